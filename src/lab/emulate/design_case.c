// SPDX-License-Identifier: Apache-2.0
/* Which case a design's arithmetic is no worse than. */
#include "src/lab/emulate/design_case.h"

#include <stdio.h>
#include <string.h>

/* Has a every number that b has? */
static bool covers(enum nb_number a, enum nb_number b) {
    const struct nb_format *fa = &nb_numbers[a], *fb = &nb_numbers[b];
    return fa->precision >= fb->precision && fa->emin <= fb->emin && fa->emax >= fb->emax;
}

static bool all_steps_cover(const struct nb_design *d, enum nb_number number) {
    const enum nb_number steps[] = {d->square, d->acc, d->stat, d->root, d->rstd, d->scale, d->offset};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (!covers(steps[i], number)) return false;
    return true;
}

const char *nb_design_unbounded(const struct nb_design *d) {
    const bool is_dtype = d->store == NB_NUM_F32 || d->store == NB_NUM_F16 || d->store == NB_NUM_BF16;
    if (!is_dtype) return "the bound is for outputs in f32, f16 and bf16";
    if (d->rounding != NB_ROUND_NEAREST || d->store_rounding != NB_ROUND_NEAREST)
        return "the bound is for rounding to nearest";
    if (d->flush) return "the bound does not know flushed subnormals";
    if (!all_steps_cover(d, NB_NUM_F32) && !all_steps_cover(d, d->store))
        return "a step is narrower than both f32 and the stored format";
    if (d->cast == NB_CAST_BEFORE && !d->weight_offset && !covers(d->store, d->weight))
        return "the bound does not know the rounding of the weight to the stored format";
    return NULL;
}

static enum nb_dtype dtype_of(enum nb_number number) {
    return number == NB_NUM_F16 ? NB_F16 : number == NB_NUM_BF16 ? NB_BF16 : NB_F32;
}

void nb_design_case(struct nb_case *c, const struct nb_design *d, int64_t rows, int64_t cols, enum nb_affine affine) {
    nb_case_init(c);
    c->op = d->op;
    c->dtype = dtype_of(d->store);
    c->shape.rows = rows;
    c->shape.cols = cols;
    c->formula = (struct nb_formula){.struct_size = sizeof c->formula,
                                     .root = d->root_form,
                                     .eps_place = d->eps_place,
                                     .cast = d->cast,
                                     .weight_offset = d->weight_offset,
                                     .affine = affine};
    c->variance = d->op == NB_OP_LAYERNORM ? d->variance : NB_VAR_NONE;
    c->folded = d->folded;
    c->eps = d->eps;
    snprintf(c->eps_text, sizeof c->eps_text, "%s", d->eps_text);
    c->k = nb_design_elements(d, cols);
    if (!all_steps_cover(d, NB_NUM_F32)) c->stats_dtype = NB_STATS_X;
    if (covers(d->acc, NB_NUM_F32)) c->style = NB_COMPOSED; /* sums in f32 whatever the tensors are */
}
