// SPDX-License-Identifier: Apache-2.0
/* The rare cases of a judgement, and its figures as JSON. */
#include "src/lab/exhaustive/exhaust_judge.h"

#include "src/core/dtype.h"
#include "src/core/json.h"

struct nb_judge nb_judge_of(enum nb_dtype dtype) {
    const struct nb_format *f = &nb_formats[dtype];
    return (struct nb_judge){dtype, f->precision, (uint64_t)(f->emin + 1023), f->overflow};
}

int nb_judge_closely(const struct nb_judge *j, double exact, double got) {
    const double low = nb_round_to(exact * (1 - 0x1p-48), j->dtype),
                 high = nb_round_to(exact * (1 + 0x1p-48), j->dtype);
    if (low == high) return got != low;
    return got == low || got == high ? -1 : 1;
}

void nb_judge_resolve(const struct nb_judge *j, struct nb_judged *sums, struct nb_twofold exact, double got) {
    const enum nb_number number = nb_number_of(j->dtype);
    const double below = nb_number_round(exact.hi, -1, number, NB_ROUND_NEAREST, 0);
    const double above = nb_number_round(exact.hi, 1, number, NB_ROUND_NEAREST, 0);
    /* lo moves hi to neither neighbour of it among doubles, so that it matters only where hi is a tie. */
    if (below != above && fabs(exact.lo) <= 0x1p-90 * fabs(exact.hi)) return;
    sums->undecided--;
    sums->misrounded += got != (exact.lo < 0 ? below : above);
}

void nb_judged_to_json(const struct nb_judged *s, cJSON *row) {
    nb_json_number(row, "inputs", (double)s->n);
    nb_json_number(row, "correct_share", s->n ? 1 - (double)(s->misrounded + s->undecided) / (double)s->n : NAN);
    nb_json_number(row, "misrounded", (double)s->misrounded);
    nb_json_number(row, "max_ulp", s->n ? s->max_ulp : NAN);
    nb_json_number(row, "non_finite", (double)s->non_finite);
    nb_json_number(row, "undecided", (double)s->undecided);
}
