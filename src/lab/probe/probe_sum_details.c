// SPDX-License-Identifier: Apache-2.0
/* Finer questions about the sum of squares: how blocks are joined, where a tail goes, whether a square is rounded before it is
 * added. All need the lanes. */
#include <math.h>
#include <stdio.h>

#include "src/lab/probe/probe_sum.h"

/* ---- blocks: pairwise, or one after another ---- */

/* A^2 so large that its half spacing is 8 blocks: block sums that are added one by one are all lost, a tree loses 16 blocks. */
static double loss_of_blocks(struct nb_probe *p, int64_t block) {
    struct nb_box b;
    struct nb_scale s;
    const char *why;
    double sum = NAN;
    const double a = exp2(ceil((24 + log2((double)block * 8)) / 2));
    if (p->centres || a > p->format->max_finite / 2) return NAN;
    if (nb_box_init(&b, p, 1, p->cols, 0) == 0 && nb_scale_init(&s, &b, 0, a, &why) == 0 &&
        s.tolerance < (double)p->cols / 8) {
        for (int64_t i = 0; i < p->cols; i++) nb_box_set(&b, 0, i, i ? 1 : a);
        sum = nb_scale_weigh(&s, &b, 0, a);
    }
    nb_box_release(&b);
    return a * a + (double)(p->cols - 1) - sum;
}

static void say_order(struct nb_probe *p, const struct nb_structure *s) {
    char text[64];
    if (s->block == p->cols) {
        nb_probe_say(p, "order", s->lanes == 1 ? "sequential" : "sequential in interleaved lanes", "strong",
                     "an addend in column j swallows the columns behind it at distances of %lld", (long long)s->lanes);
        return;
    }
    const double loss = loss_of_blocks(p, s->block);
    const double n = (double)p->cols;
    const bool pairwise = loss<n / 2, one_by_one = loss> n * 0.9;
    const char *join = pairwise ? ", pairwise" : one_by_one ? ", one after another" : "";
    if (s->block > p->cols / 64) join = "";
    snprintf(text, sizeof text, "blocks of %lld%s", (long long)s->block, join);
    nb_probe_say(p, "order", text, "strong",
                 "losses begin anew every %lld columns; beside 2^24 times 8 blocks %.0f of %.0f are lost",
                 (long long)s->block, loss, n - 1);
}

/* ---- the tail ---- */

/* Six columns more, the last of them 0: all five ones lost, as where they are added to the total one by one, or only those that fall into
 * A's lane? Averaged over eight lanes, since sums of an odd number of ones are rounded either way; against the same without the tail. */
enum { TAIL = 6, POSITIONS = 8 };
static double average_loss(struct nb_probe *p, int64_t n, const char **why) {
    const double a = 4096;
    struct nb_box b;
    struct nb_scale s;
    double loss = 0;
    if (nb_box_init(&b, p, 1, n, 0) != 0 || nb_scale_init(&s, &b, 0, a, why) != 0) loss = NAN;
    for (int64_t j = 0; j < POSITIONS && !isnan(loss); j++) {
        nb_sum_set_row(&b, j, a);
        loss += (a * a + (double)(n - 2) - nb_scale_weigh(&s, &b, j, a)) / POSITIONS;
    }
    nb_box_release(&b);
    return loss;
}

static void say_tail(struct nb_probe *p, const struct nb_sum *m) {
    double more = NAN;
    const struct nb_structure *structure = &m->structure;
    const char *why = "it is told from 8 lanes on, where whole rows are summed in lanes";
    if (structure->block == p->cols && structure->lanes >= 8 && structure->lanes <= 512)
        more = average_loss(p, p->cols + TAIL, &why) - average_loss(p, p->cols, &why);
    const char *value = fabs(more - 5) < 0.9 ? "one by one behind the lanes" : fabs(more) < 3 ? "not one by one" : NULL;
    if (isnan(more))
        nb_probe_say(p, "tail", NULL, NULL, "%s", why);
    else
        nb_probe_say(p, "tail", value, "strong", "of 5 ones behind column %lld %.2g are lost, on average over 8 lanes",
                     (long long)(p->cols - 1), more);
}

/* ---- fma ---- */

/* B^2 = (2^19 + 1)^2 = 2^38 + 2^20 + 1 beside 2^44, whose spacing is 2^21: rounded to f32 first it is 2^38 + 2^20, a tie that goes down to
 * even; unrounded it is above the tie and goes up. */
static const double LARGE = 0x1p22, B = 0x1p19 + 1;
enum { N_B = 12 };

static double predict(bool fused) {
    const float b = (float)B;
    volatile float square = b * b; /* rounded to f32 */
    float sum = 0x1p44f;
    for (int i = 0; i < N_B; i++) {
        if (fused) {
            sum = fmaf(b, b, sum);
        } else {
            volatile float next = sum + square;
            sum = next;
        }
    }
    return (double)sum;
}

/* LARGE in lane 0 with +-B behind it; where the mean is taken off, -LARGE in 16 parts at the end. */
static double weigh_squares(struct nb_box *b, int64_t lanes, double *tolerance, const char **why) {
    struct nb_scale s;
    if (nb_scale_init(&s, b, 0, LARGE, why) != 0) return NAN;
    *tolerance = s.tolerance;
    nb_box_clear(b);
    nb_box_set(b, 0, 0, LARGE);
    for (int64_t i = 1; i <= N_B; i++) nb_box_set(b, 0, i * lanes, i % 2 ? B : -B);
    const int64_t parts = b->p->centres ? 16 : 0;
    for (int64_t i = 0; i < parts; i++) nb_box_set(b, 0, b->cols - 1 - i, -LARGE / 16);
    const double sum = nb_scale_weigh(&s, b, 0, LARGE);
    return sum - (double)parts * (LARGE / 16) * (LARGE / 16);
}

static void say_fma(struct nb_probe *p, const struct nb_sum *m) {
    struct nb_box b;
    double sum = NAN, tolerance = 0;
    const char *why = p->lanes > 0 ? "the lanes are too short" : "the lanes are not known";
    if (p->c.dtype != NB_F32) why = "squares of 16-bit numbers are exact in f32: rounded or not, they are the same";
    const bool asked = p->c.dtype == NB_F32 && p->lanes > 0 && (N_B + 1) * p->lanes < m->structure.block;
    if (asked && nb_box_init(&b, p, 1, p->cols, 0) == 0) sum = weigh_squares(&b, p->lanes, &tolerance, &why);
    if (asked) nb_box_release(&b);
    const double fused = predict(true), separate = predict(false), unit = fabs(fused - separate);
    const bool is_fused = fabs(sum - fused) < unit / 3, is_separate = fabs(sum - separate) < unit / 3;
    if (isnan(sum))
        nb_probe_say(p, "sum_fma", NULL, NULL, "%s", why);
    else if (tolerance > unit / 4)
        nb_probe_say(p, "sum_fma", NULL, NULL, "with eps here sums cannot be weighed finely enough");
    else
        nb_probe_say(p, "sum_fma",
                     is_fused      ? "fma"
                     : is_separate ? "rounded, then added"
                                   : NULL,
                     "certain", "2^44 and %d squares at ties weigh 2^44 (1 + %.9g), fused %.9g, rounded %.9g", N_B,
                     sum / 0x1p44 - 1, fused / 0x1p44 - 1, separate / 0x1p44 - 1);
}

void nb_probe_sum_details(struct nb_probe *p, const struct nb_sum *m) {
    if (p->lanes > 0)
        say_order(p, &m->structure);
    else
        nb_probe_say(p, "order", NULL, NULL, "the lanes are not known");
    if (p->lanes > 0)
        say_tail(p, m);
    else
        nb_probe_say(p, "tail", NULL, NULL, "the lanes are not known");
    say_fma(p, m);
}
