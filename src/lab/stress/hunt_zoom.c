// SPDX-License-Identifier: Apache-2.0
/* Interval splitting on the parameters of a row (after binary guided random testing: Chiang, Gopalakrishnan, Rakamaric & Solovyev
 * 2014): one dimension of the box is halved, rows are drawn from both halves, the half with the worse row is kept; a box that has
 * become small is given up for the whole one. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/kernel_fields.h"
#include "src/core/random.h"
#include "src/lab/stress/hunt.h"

enum dimension { LOG_SCALE, LOG_RHO, LOG_OUTLIER, LOG_EPS, N_DIMENSIONS };

struct box {
    double low[N_DIMENSIONS], high[N_DIMENSIONS];
};
struct point {
    double at[N_DIMENSIONS];
};

static const int objectives[] = {NB_BY_BOUND, NB_BY_NOISE, NB_BY_SCALED, NB_BY_ULP};
enum { N_OBJECTIVES = sizeof objectives / sizeof objectives[0], ROWS_PER_HALF = 4 };

static struct box whole_box(const struct nb_hunt *h, double eps_low, double eps_high) {
    const struct nb_format *f = &nb_formats[h->t->in.dtype];
    const bool centres = nb_op_centres(h->t->c.op);
    struct nb_range range;
    nb_kernel_range(h->t->entry->kernel, &h->t->call, &range);
    const double largest = fmin(f->max_finite, range.max_abs) / 8.5; /* no draw is further than 8.3 from the mean */
    const double smallest = fmin(fmax(f->min_subnormal * 16, range.min_rms), largest);
    const double rho = fmin(ldexp(1, f->precision - 2), fmax(range.max_rho, 0x1p-4));
    return (struct box){.low = {log2(smallest), -4, 0, log2(eps_low)},
                        .high = {log2(largest), centres ? log2(rho) : -4, 12, log2(eps_high)}};
}

static struct point sample(const struct box *b, uint64_t *state) {
    struct point p;
    for (int d = 0; d < N_DIMENSIONS; d++) p.at[d] = b->low[d] + (b->high[d] - b->low[d]) * nb_hunt_uniform(state);
    return p;
}

/* scale (rho + z), one element of it larger by the outlier ratio; cut at the largest number. */
static void make_row(const struct nb_hunt *h, const struct point *p, uint64_t seed, double *x) {
    const struct nb_random random = nb_random_stream(seed, 1);
    const enum nb_dtype dtype = h->t->in.dtype;
    const double scale = exp2(p->at[LOG_SCALE]), rho = p->at[LOG_RHO] <= -4 ? 0 : exp2(p->at[LOG_RHO]);
    const double largest = nb_formats[dtype].max_finite;
    const int64_t outlier = (int64_t)(nb_random_bits(random, (uint64_t)h->cols) % (uint64_t)h->cols);
    for (int64_t i = 0; i < h->cols; i++) {
        double v = scale * (rho + nb_random_normal(random, (uint64_t)i));
        if (i == outlier) v *= exp2(p->at[LOG_OUTLIER]);
        x[i] = nb_round_to(fmin(fmax(v, -largest), largest), dtype);
    }
}

/* The worst of some rows of the box; -1 for none. */
static double worst_in(struct nb_hunt *h, const struct box *b, int objective, bool moves_eps, uint64_t *state) {
    double worst = -1;
    for (int64_t done = 0; done < ROWS_PER_HALF && !nb_hunt_over(h); done += h->rows) {
        char text[96];
        struct point p = sample(b, state);
        const double log_eps = p.at[LOG_EPS]; /* of all rows of a call */
        const uint64_t seed = nb_random_next(state);
        if (moves_eps) nb_trial_set_eps(h->t, exp2(log_eps));
        for (int64_t r = 0; r < h->rows; r++) {
            if (r > 0) p = sample(b, state);
            make_row(h, &p, seed + (uint64_t)r, h->x + r * h->cols);
        }
        snprintf(text, sizeof text, "zoom: scale 2^%.2f, rho 2^%.2f, outlier 2^%.2f and near", p.at[LOG_SCALE],
                 p.at[LOG_RHO], p.at[LOG_OUTLIER]);
        if (nb_hunt_call(h, h->rows, seed, text) != 0) return -1;
        for (int64_t r = 0; r < h->rows; r++) {
            const double value = nb_quarry_value(&h->scores[r], objective);
            if (h->scores[r].claimed && value > worst) worst = value;
        }
    }
    return worst;
}

static bool is_small(const struct box *b) {
    for (int d = 0; d < N_DIMENSIONS; d++)
        if (b->high[d] - b->low[d] > 0.1) return false;
    return true;
}

/* Halves the box along d. Rows come back worse from one half by chance too: now and then the other is kept. */
static void split(struct nb_hunt *h, struct box *b, int d, int objective, bool moves_eps, uint64_t *state) {
    struct box low = *b, high = *b;
    low.high[d] = high.low[d] = (b->low[d] + b->high[d]) / 2;
    const double of_low = worst_in(h, &low, objective, moves_eps, state);
    const double of_high = worst_in(h, &high, objective, moves_eps, state);
    const bool against = nb_hunt_uniform(state) < 0.1;
    *b = (of_low >= of_high) != against ? low : high;
}

void nb_hunt_zoom(struct nb_hunt *h, double eps_low, double eps_high) {
    const bool moves_eps = eps_low > 0 && eps_low < eps_high;
    const double eps = h->t->c.eps;
    char eps_text[NB_TEXT_MAX];
    uint64_t state = 1;
    snprintf(eps_text, sizeof eps_text, "%s", h->t->c.eps_text);
    const struct box whole = moves_eps ? whole_box(h, eps_low, eps_high) : whole_box(h, 1, 1);
    for (int round = 0; !nb_hunt_over(h); round++) {
        struct box b = whole;
        for (int d = 0; !is_small(&b) && !nb_hunt_over(h); d = (d + 1) % N_DIMENSIONS)
            if (b.high[d] - b.low[d] > 0.1) split(h, &b, d, objectives[round % N_OBJECTIVES], moves_eps, &state);
        if (is_small(&whole)) break;
    }
    nb_trial_set_eps(h->t, eps);
    memcpy(h->t->c.eps_text, eps_text, sizeof eps_text);
}
