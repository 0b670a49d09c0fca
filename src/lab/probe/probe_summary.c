// SPDX-License-Identifier: Apache-2.0
/* One line of what is known, in the words of the field: "f32, 16 lanes, sequential in interleaved lanes, squares: fma, eps inside in
 * f32, mul_recip, cast after weight". */
#include "src/lab/probe/probe_state.h"

#include <string.h>

static const struct {
    const char *question, *before, *behind;
} parts[] = {
    {"accumulator", "", ""},
    {"lanes", "", " lanes"},
    {"order", "", ""},
    {"sum_fma", "squares: ", ""},
    {"variance", "", " variance"},
    {"eps_place", "eps ", ""},
    {"eps_dtype", "in ", ""},
    {"root", "", ""},
    {"cast", "cast ", " weight"},
    {"weight_offset", "weight offset ", ""},
    {"affine_fma", "beta: ", ""},
    {"rounding", "rounding ", ""},
};

void nb_probe_summary(const struct nb_probe *p, struct nb_strbuf *out) {
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char *value = nb_probe_value_in(p->answers, parts[i].question);
        const bool follows = strcmp(parts[i].question, "eps_dtype") == 0;
        if (!value || strcmp(value, "0") == 0) continue;
        nb_strbuf_addf(out, "%s%s%s%s",
                       !out->len ? ""
                       : follows ? " "
                                 : ", ",
                       parts[i].before, value, strcmp(value, "1") == 0 && i == 1 ? " lane" : parts[i].behind);
    }
    if (!out->len) nb_strbuf_add(out, "nothing could be told");
}
