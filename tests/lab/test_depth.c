// SPDX-License-Identifier: Apache-2.0
/* Errors over residual blocks: what has a preferred side adds up, what has none grows as the root. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "src/lab/emulate/depth.h"

static struct nb_depth curve(const char *text, const char *data, enum nb_number stream, int64_t rows, int blocks) {
    struct nb_design d;
    struct nb_design_rows drawn;
    struct nb_depth depth;
    const struct nb_design_data wanted = {
        .data = data, .rows = rows, .cols = 1024, .seed = 1, .affine = NB_AFFINE_NONE};
    const struct nb_depth_options options = {.blocks = blocks, .step = 0.05, .stream = stream, .seed = 1};
    cr_assert_eq(nb_design_parse(&d, text), 0);
    cr_assert_eq(nb_design_rows_init(&drawn, &d, &wanted), 0);
    cr_assert_eq(nb_depth_run(&depth, &d, &drawn, &options), 0);
    nb_design_rows_release(&drawn);
    return depth;
}

Test(depth, a_truncating_cast_adds_up_and_roundings_to_nearest_grow_as_the_root) {
    struct nb_depth truncated = curve("truncate/order:pairwise", "scales", NB_NUM_F64, 16, 64);
    struct nb_depth ideal = curve("ideal/order:pairwise", "scales", NB_NUM_F64, 16, 64);
    cr_expect(fabs(truncated.gain_exponent - 1) < 0.1, "%g", truncated.gain_exponent);
    cr_expect(fabs(ideal.residual_exponent - 0.55) < 0.12, "%g", ideal.residual_exponent);
    cr_expect(fabs(truncated.points[63].gain_blocks_u) > 20 * fabs(ideal.points[63].gain_blocks_u));
    /* an eighth of -0.72 u goes on along the stream, in each block */
    const double per_block = truncated.points[63].gain_blocks_u / 64;
    cr_expect(per_block < -0.07 && per_block > -0.13, "%g", per_block);
    cr_expect(isnan(ideal.gain_exponent), "no preferred side, no law: %g", ideal.gain_exponent);
    free(truncated.points);
    free(ideal.points);
}

/* x itself cut off to bf16 in every block, as a fused add and norm that truncates does it: the stream shrinks by 0.72 u a block. */
Test(depth, a_truncated_stream_shrinks_and_a_rounded_one_does_not) {
    struct nb_depth truncated = curve("truncate", "scales", NB_NUM_BF16, 12, 32);
    struct nb_depth rounded = curve("ideal", "scales", NB_NUM_BF16, 12, 32);
    const double shrunk = truncated.points[31].gain_u / 32;
    cr_expect(shrunk < -0.5 && shrunk > -0.8, "%g u a block", shrunk);
    cr_expect(fabs(rounded.points[31].gain_u) < 1, "%g", rounded.points[31].gain_u);
    cr_expect(fabs(truncated.gain_exponent - 0.95) < 0.15, "%g", truncated.gain_exponent);
    cr_expect(fabs(rounded.residual_exponent - 0.5) < 0.12, "%g", rounded.residual_exponent);
    free(truncated.points);
    free(rounded.points);
}

Test(depth, one_block_has_a_figure_and_no_exponent) {
    struct nb_depth one = curve("ideal", "normal", NB_NUM_F64, 2, 1);
    cr_expect(one.points[0].residual_u > 0 && isnan(one.residual_exponent));
    free(one.points);
    struct nb_depth inf = curve("ideal", "inf", NB_NUM_F64, 2, 3);
    cr_expect(isnan(inf.points[2].gain_u) && isnan(inf.gain_exponent));
    free(inf.points);
}
