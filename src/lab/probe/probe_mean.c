// SPDX-License-Identifier: Apache-2.0
/* How a LayerNorm forms its mean, from elements next to it: y there is the mean's error times rstd, of which all digits show. */
#include <math.h>

#include "src/core/random.h"
#include "src/lab/probe/probe_sum.h"

/* ---- means that every plain sum hits ---- */

/* Random integers in pairs of sum 0, and the first 0: y there is 0, unless the mean is missed, as it is where it is updated by rounded
 * quotients. gamma makes what is small visible in f16. */
static void count_missed(struct nb_mean *m, struct nb_probe *p) {
    enum { ROWS = 16, COLS = 6144 };
    struct nb_box b;
    const struct nb_random random = nb_random_stream(7, 1);
    if (nb_box_init(&b, p, ROWS, COLS, 0) == 0) {
        for (int64_t i = 0; i < COLS; i++) b.gamma[i] = p->has_gamma ? 4096 : p->unit;
        nb_trial_set_params(&b.t, b.gamma, b.beta);
        for (int64_t r = 0; r < ROWS; r++)
            for (int64_t i = 1; i < COLS / 2; i++) {
                const uint64_t bits = nb_random_bits(random, (uint64_t)(r * COLS + i));
                const double x = (double)(bits % 101) * (bits >> 63 ? -1 : 1);
                nb_box_set(&b, r, i, x);
                nb_box_set(&b, r, COLS / 2 + (i * 1021 + 7 * r) % (COLS / 2),
                           -x); /* 1021 is odd and no multiple of 3 */
            }
        m->n_rows = ROWS;
        const bool ran = nb_box_run(&b) == 0;
        for (int64_t r = 0; ran && r < ROWS; r++) m->n_missed += nb_box_y(&b, r, 0) != 0;
    }
    nb_box_release(&b);
}

/* ---- means between two numbers of f32 ---- */

/* C + d (-1, 0, 1 in turn), one element raised by d: all sums are exact, and the mean is C + d / n, a third of a spacing from a number of
 * f32. y of an element C beside that of an element C + d tells what was taken off: the mean, or that number. */
static void see_fractions(struct nb_mean *m, struct nb_probe *p) {
    struct nb_box b;
    const double centre = p->c.dtype == NB_F16 ? 1024 : 4096, d = p->c.dtype == NB_BF16 ? 32 : 1;
    const int64_t n = p->c.dtype == NB_BF16 ? 12288 : 768;
    if (nb_box_init(&b, p, 1, n, 0) == 0) {
        for (int64_t i = 0; i < n; i++) nb_box_set(&b, 0, i, centre + d * (double)(i % 3 - 1));
        nb_box_set(&b, 0, 31, centre + d); /* 31 % 3 == 1 */
        if (nb_box_run(&b) == 0) {
            const double exact = d / (double)n, rounded = (double)(float)(centre + exact) - centre;
            const double seen = -nb_box_y(&b, 0, 1) / nb_box_y(&b, 0, 2);
            m->hits_fractions = fabs(seen * (d - exact) / exact - 1) < 0.02;
            m->rounds_fractions = fabs(seen * (d - rounded) / rounded - 1) < 0.02;
        }
    }
    nb_box_release(&b);
}

/* ---- the sum ---- */

/* M in column j, -M at the end, u elsewhere, one of them 0, M = 2^24 u: the mean is u (n - 3 - lost) / n, and y where x is u is
 * (u - mean) rstd, of which all digits show. In f16, whose numbers span less, gamma lifts it. */
static double loss_of_mean(struct nb_box *b, int64_t j, void *arg) {
    const bool narrow = b->p->c.dtype == NB_F16;
    const double large = narrow ? 0x1p15 : 0x1p24, unit = large * 0x1p-24;
    const int64_t n = b->cols, zero = nb_sum_zero(n, j), end = zero == n - 1 ? n - 2 : n - 1, at = j == 2 ? 3 : 2;
    const double *lift = arg;
    for (int64_t i = 0; i < n; i++) nb_box_set(b, 0, i, i == zero ? 0 : unit);
    nb_box_set(b, 0, j, large);
    nb_box_set(b, 0, end, -large);
    for (int64_t i = 2; i < 4; i++) b->gamma[i] = (i == at ? *lift : 1) - (b->p->unit == 0 ? 1 : 0);
    nb_trial_set_params(&b->t, b->gamma, b->beta);
    if (nb_box_run(b) != 0) return NAN;
    const double one = nb_box_y(b, 0, at) / *lift, most = nb_box_y(b, 0, j);
    const double kept = (double)n * (1 - 0x1p24 * one / most);
    return one == 0 || !isfinite(one) || !isfinite(most) ? NAN : (double)(n - 3) - kept;
}

/* What is lost when the mean of x - mean is taken off after: the share that the first sum lost, of which the second loses its own. */
static bool fits_corrected(const struct nb_losses *l, const struct nb_structure *squares) {
    for (int64_t lanes = 1; lanes <= 1024; lanes *= 2) {
        const struct nb_structure first = {.block = l->n, .lanes = lanes};
        bool fits = l->n_positions > 0;
        for (int i = 0; i < l->n_positions; i++) {
            const double one = (double)nb_structure_loss(&first, l->n, l->at[i]) + 3;
            const double two = (double)nb_structure_loss(squares, l->n, l->at[i]) + 3;
            fits = fits && fabs(l->loss[i] - (one * two / (double)l->n - 2)) <=
                               l->tolerance + 2 + 0.01 * one * two / (double)l->n;
        }
        if (fits) return true;
    }
    return false;
}

static void measure_sum(struct nb_mean *m, struct nb_probe *p, const struct nb_sum *squares) {
    struct nb_box b;
    double lift = p->c.dtype == NB_F16 ? 0x1p14 : 1;
    m->losses = (struct nb_losses){.n = p->cols, .tolerance = 2.5, .relative = 2 * p->format->unit_roundoff};
    m->why = "without gamma an f16 output does not show it";
    if (lift != 1 && !p->has_gamma) return;
    m->why = NULL;
    if (nb_box_init(&b, p, 1, p->cols, 0) == 0) {
        const int fitting = nb_structure_find(&m->losses, loss_of_mean, &b, &lift, &m->structure);
        m->found = fitting == 1;
        if (fitting == 0) m->why = "what is lost fits no order of plain sums";
        if (fitting > 1) m->why = "too little is lost to tell orders apart";
        if (fitting < 0) m->why = "a row gives no number";
        m->corrected = !m->found && fitting >= 0 && squares->found && fits_corrected(&m->losses, &squares->structure);
    }
    nb_box_release(&b);
}

void nb_mean_measure(struct nb_mean *m, struct nb_probe *p, const struct nb_sum *squares) {
    *m = (struct nb_mean){0};
    count_missed(m, p);
    if (!p->failure) see_fractions(m, p);
    if (!p->failure) measure_sum(m, p, squares);
}
