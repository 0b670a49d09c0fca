// SPDX-License-Identifier: Apache-2.0
/* The answers of `normbench try`, line by line. */
#include <criterion/criterion.h>

#include "reports/run/try_view.c"

Test(try_view, wide_figures_keep_their_columns_apart) {
    const struct nb_interval wide = {.value = 1 / 176.39, .low = 1 / 1815.6, .high = 1 / 42.93},
                             close = {.value = 1.5, .low = 1.25, .high = 1.75};
    struct nb_strbuf cells[2] = {{0}}, out = {0};
    add_ratio(&wide, &cells[0]);
    add_ratio(&close, &cells[1]);
    cr_expect_str_eq(cells[0].text, "176x slower [43, 1816]");
    cr_expect_str_eq(cells[1].text, "1.50x faster [1.25, 1.75]");
    nb_strbuf_clear(&cells[0]);
    nb_strbuf_add(&cells[0], "longer than its column of thirty");
    add_cells(&out, "label", cells);
    cr_expect_str_eq(out.text, "label              longer than its column of thirty 1.50x faster [1.25, 1.75]\n");
    nb_strbuf_release(&out);
}
