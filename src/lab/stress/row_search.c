// SPDX-License-Identifier: Apache-2.0
/* Budget, calls and the worst rows so far. */
#include "src/lab/stress/row_search.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/timer.h"
#include "src/lab/stress/trial.h"
#include "src/plan/distributions.h"

const char *nb_objective_name(int objective) {
    if (objective < NB_N_MEASURES) return nb_measure_names[objective];
    return objective == NB_OBJECTIVE_SUM ? "sum_error_u" : "strange";
}

int nb_row_search_init(struct nb_row_search *h, struct nb_trial *t, double budget_s, int64_t budget_calls) {
    *h = (struct nb_row_search){.t = t, .rows = t->in.rows, .cols = t->in.cols, .budget_s = budget_s};
    h->budget_calls = budget_calls;
    t->reason = nb_row_score_refuses(&t->c);
    if (t->reason) return -1;
    h->x = nb_alloc((unsigned long long)(h->rows * h->cols), sizeof *h->x);
    h->scores = nb_alloc((unsigned long long)h->rows, sizeof *h->scores);
    h->started_s = nb_now_s();
    h->first_call = t->calls;
    nb_row_search_stage(h, 1);
    return 0;
}

void nb_row_search_release(struct nb_row_search *h) {
    for (int i = 0; i < NB_N_OBJECTIVES; i++) free(h->found[i].x);
    free(h->x);
    free(h->scores);
    *h = (struct nb_row_search){0};
}

void nb_row_search_stage(struct nb_row_search *h, double until_share) {
    h->stage_until_s = h->started_s + until_share * h->budget_s;
    h->stage_until_call = h->first_call + (int64_t)ceil(until_share * (double)h->budget_calls);
}

bool nb_row_search_over(const struct nb_row_search *h) {
    if (h->failed) return true;
    return h->budget_calls > 0 ? h->t->calls >= h->stage_until_call : nb_now_s() >= h->stage_until_s;
}

/* What overflows or underflows as the formula predicts has its place among the frontiers (src/lab/stress/frontier.h); here it would be all
 * that is ever found. A predicted cancellation is not like that: errors grow with rho all the way. */
static bool leaves_range(const struct nb_row_score *s) {
    return !nb_row_is_ordinary(s) || (s->loss != NB_LOSS_NONE && s->loss != NB_LOSS_CANCELLATION);
}

double nb_objective_value(const struct nb_row_score *s, int objective) {
    const int64_t n = s->n_nan + s->n_inf + s->n_zero;
    if (objective == NB_BY_BOUND) return s->worst[objective].value;
    if (objective == NB_OBJECTIVE_STRANGE) return n > 0 ? (double)n : (double)NAN;
    if (leaves_range(s)) return NAN;
    return objective == NB_OBJECTIVE_SUM ? fabs(s->sum_error_u) : s->worst[objective].value;
}

struct nb_row_look nb_row_look(const double *x, int64_t n) {
    struct nb_row_look look = {0};
    for (int64_t i = 0; i < n; i++) {
        look.mean += x[i] / (double)n;
        look.max_abs = fmax(look.max_abs, fabs(x[i]));
    }
    for (int64_t i = 0; i < n; i++) look.variance += (x[i] - look.mean) * (x[i] - look.mean) / (double)n;
    if (!(look.variance > 0)) look.kurtosis = NAN;
    for (int64_t i = 0; i < n && look.variance > 0; i++)
        look.kurtosis += pow((x[i] - look.mean) / sqrt(look.variance), 4) / (double)n;
    return look;
}

static void keep_row(const struct nb_row_search *h, struct nb_found_row *c, int64_t row, uint64_t seed,
                     const char *generator) {
    if (!c->x) c->x = nb_alloc((unsigned long long)h->cols, sizeof *c->x);
    memcpy(c->x, h->x + row * h->cols, (size_t)h->cols * sizeof *c->x);
    c->eps = h->t->c.eps;
    c->score = h->scores[row];
    c->seed = seed;
    snprintf(c->generator, sizeof c->generator, "%s", generator);
    const struct nb_row_look look = nb_row_look(c->x, h->cols);
    c->mean = h->climbs_from ? h->climbs_from->mean : look.mean;
    c->deviation = h->climbs_from ? h->climbs_from->deviation : sqrt(look.variance);
}

static void offer(struct nb_row_search *h, int64_t row, uint64_t seed, const char *generator) {
    const struct nb_row_score *s = &h->scores[row];
    if (!s->claimed) return;
    for (int q = 0; q < NB_N_OBJECTIVES; q++) {
        struct nb_found_row *c = &h->found[q];
        const double value = nb_objective_value(s, q);
        if (isnan(value) || (c->x && value <= c->value)) continue;
        c->value = value;
        keep_row(h, c, row, seed, generator);
    }
}

int nb_row_search_call(struct nb_row_search *h, int64_t n, uint64_t seed, const char *generator) {
    for (int64_t r = n; r < h->rows; r++)
        memcpy(h->x + r * h->cols, h->x, (size_t)h->cols * sizeof *h->x); /* the call is always of all rows */
    nb_trial_load_rows(h->t, h->x);
    h->failed = nb_trial_run(h->t) != 0 || nb_row_score(h->t, h->scores) != 0;
    for (int64_t r = 0; r < n && !h->failed; r++) offer(h, r, seed, generator);
    return h->failed ? -1 : 0;
}

/* In [0, 1), for choices. */
static double uniform(uint64_t *state) { return (double)(nb_random_next(state) >> 11) * 0x1p-53; }

/* ---- The same numbers in other orders: ascending is kind to a running sum, descending swamps what comes late, an outlier decides by
 * its place; interleaved and lane by lane the same is done to sums in lanes. */

enum order { AS_DRAWN, ASCENDING, DESCENDING, SIGNED, OUTLIER_FIRST, OUTLIER_LAST, INTERLEAVED, N_ORDERS };
static const char *const order_names[N_ORDERS] = {"as drawn",      "ascending",    "descending", "by sign",
                                                  "outlier first", "outlier last", "interleaved"};
static const char *const recipes[] = {"normal", "heavy_tail", "lognormal(2)", "massive", "sparse(0.05)", "uniform"};
enum { N_RECIPES = sizeof recipes / sizeof recipes[0] };

static int by_magnitude(const void *a, const void *b) {
    const double x = fabs(*(const double *)a), y = fabs(*(const double *)b);
    return (x > y) - (x < y);
}
static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void reverse(double *x, int64_t n) {
    for (int64_t i = 0; i < n / 2; i++) {
        const double kept = x[i];
        x[i] = x[n - 1 - i];
        x[n - 1 - i] = kept;
    }
}

/* Smallest, largest, second smallest, second largest ... of a sorted row. */
static void interleave(double *x, int64_t n) {
    double *sorted = nb_alloc((unsigned long long)n, sizeof *sorted);
    memcpy(sorted, x, (size_t)n * sizeof *sorted);
    for (int64_t i = 0; i < n; i++) x[i] = i % 2 ? sorted[n - 1 - i / 2] : sorted[i / 2];
    free(sorted);
}

static void swap_outlier(double *x, int64_t n, int64_t to) {
    int64_t at = 0;
    for (int64_t i = 1; i < n; i++)
        if (fabs(x[i]) > fabs(x[at])) at = i;
    const double outlier = x[at];
    x[at] = x[to];
    x[to] = outlier;
}

static void arrange(double *x, int64_t n, enum order order) {
    if (order == OUTLIER_FIRST) swap_outlier(x, n, 0);
    if (order == OUTLIER_LAST) swap_outlier(x, n, n - 1);
    if (order == SIGNED) qsort(x, (size_t)n, sizeof *x, by_value);
    if (order == ASCENDING || order == DESCENDING || order == INTERLEAVED) qsort(x, (size_t)n, sizeof *x, by_magnitude);
    if (order == DESCENDING) reverse(x, n);
    if (order == INTERLEAVED) interleave(x, n);
}

static void draw(const struct nb_row_search *h, const char *text, uint64_t seed, double *x) {
    struct nb_recipe recipe;
    char reason[128];
    const int parsed = nb_distribution_parse(text, &recipe, reason, sizeof reason);
    assert(parsed == 0 && recipe.data);
    (void)parsed;
    const struct nb_draw d = nb_draw_of(&recipe, &nb_formats[h->t->in.dtype], h->cols, nb_random_stream(seed, 0));
    for (int64_t i = 0; i < h->cols; i++) x[i] = nb_round_to(nb_draw_value(recipe.data, &d, 0, i), h->t->in.dtype);
}

void nb_row_search_orders(struct nb_row_search *h) {
    for (uint64_t seed = 1; !nb_row_search_over(h); seed += (uint64_t)h->rows)
        for (int i = 0; i < N_RECIPES * N_ORDERS && !nb_row_search_over(h); i++) {
            const char *recipe = recipes[i / N_ORDERS];
            const enum order order = (enum order)(i % N_ORDERS);
            char text[96];
            snprintf(text, sizeof text, "%s, %s", recipe, order_names[order]);
            for (int64_t r = 0; r < h->rows; r++) {
                draw(h, recipe, seed + (uint64_t)r, h->x + r * h->cols);
                arrange(h->x + r * h->cols, h->cols, order);
            }
            nb_row_search_call(h, h->rows, seed, text);
        }
}

/* ---- Interval splitting on the parameters of a row (after binary guided random testing: Chiang, Gopalakrishnan, Rakamaric & Solovyev
 * 2014): one dimension of the box is halved, rows are drawn from both halves, the half with the worse row is kept; a box that has
 * become small is given up for the whole one. */

enum dimension { LOG_SCALE, LOG_RHO, LOG_OUTLIER, LOG_EPS, N_DIMENSIONS };

struct box {
    double low[N_DIMENSIONS], high[N_DIMENSIONS];
};
struct point {
    double at[N_DIMENSIONS];
};

static const int objectives[] = {NB_BY_BOUND, NB_BY_NOISE, NB_BY_SCALED, NB_BY_ULP};
enum { N_OBJECTIVES = sizeof objectives / sizeof objectives[0], ROWS_PER_HALF = 4 };

static struct box whole_box(const struct nb_row_search *h, double eps_low, double eps_high) {
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
    for (int d = 0; d < N_DIMENSIONS; d++) p.at[d] = b->low[d] + (b->high[d] - b->low[d]) * uniform(state);
    return p;
}

/* scale (rho + z), one element of it larger by the outlier ratio; cut at the largest number. */
static void make_row(const struct nb_row_search *h, const struct point *p, uint64_t seed, double *x) {
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
static double worst_in(struct nb_row_search *h, const struct box *b, int objective, bool moves_eps, uint64_t *state) {
    double worst = -1;
    for (int64_t done = 0; done < ROWS_PER_HALF && !nb_row_search_over(h); done += h->rows) {
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
        if (nb_row_search_call(h, h->rows, seed, text) != 0) return -1;
        for (int64_t r = 0; r < h->rows; r++) {
            const double value = nb_objective_value(&h->scores[r], objective);
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
static void split(struct nb_row_search *h, struct box *b, int d, int objective, bool moves_eps, uint64_t *state) {
    struct box low = *b, high = *b;
    low.high[d] = high.low[d] = (b->low[d] + b->high[d]) / 2;
    const double of_low = worst_in(h, &low, objective, moves_eps, state);
    const double of_high = worst_in(h, &high, objective, moves_eps, state);
    const bool against = uniform(state) < 0.1;
    *b = (of_low >= of_high) != against ? low : high;
}

void nb_row_search_zoom(struct nb_row_search *h, double eps_low, double eps_high) {
    const bool moves_eps = eps_low > 0 && eps_low < eps_high;
    const double eps = h->t->c.eps;
    char eps_text[NB_TEXT_MAX];
    uint64_t state = 1;
    snprintf(eps_text, sizeof eps_text, "%s", h->t->c.eps_text);
    const struct box whole = moves_eps ? whole_box(h, eps_low, eps_high) : whole_box(h, 1, 1);
    for (int round = 0; !nb_row_search_over(h); round++) {
        struct box b = whole;
        for (int d = 0; !is_small(&b) && !nb_row_search_over(h); d = (d + 1) % N_DIMENSIONS)
            if (b.high[d] - b.low[d] > 0.1) split(h, &b, d, objectives[round % N_OBJECTIVES], moves_eps, &state);
        if (is_small(&whole)) break;
    }
    nb_trial_set_eps(h->t, eps);
    memcpy(h->t->c.eps_text, eps_text, sizeof eps_text);
}

/* ---- Hill climbing from the worst rows so far: a few elements are drawn again from the normal distribution with the mean
 * and deviation of the row that it all began with.
 * What is worse is kept, and is the start of the next step. Rows with elements near ties need no search of their own:
 * among thousands of elements some are, and in short rows this finds them. */

static const int climbed[] = {NB_BY_BOUND, NB_BY_NOISE, NB_OBJECTIVE_SUM, NB_BY_SCALED, NB_BY_ULP};
enum { N_CLIMBED = sizeof climbed / sizeof climbed[0], STEPS = 16 };

/* From one element to a quarter of them, small numbers as often as large ones. */
static void vary(const struct nb_row_search *h, const struct nb_found_row *c, double *x, uint64_t *state) {
    const double most = fmax((double)h->cols / 4, 1), largest = nb_formats[h->t->in.dtype].max_finite;
    const int64_t n = (int64_t)exp2(uniform(state) * log2(most + 1));
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = (int64_t)(nb_random_next(state) % (uint64_t)h->cols);
        const double v = c->mean + c->deviation * nb_normal_quantile((uniform(state) + 0x1p-54) * (1 - 0x1p-53));
        x[i] = nb_round_to(fmin(fmax(v, -largest), largest), h->t->in.dtype);
    }
}

static void climb(struct nb_row_search *h, int objective, uint64_t *state) {
    const struct nb_found_row *c = &h->found[objective];
    char text[96];
    if (!c->x || c->eps != h->t->c.eps || isinf(c->value)) return;
    for (int step = 0; step < STEPS && !nb_row_search_over(h); step++) {
        snprintf(text, sizeof text, "%s%s", strncmp(c->generator, "climb", 5) == 0 ? "" : "climb from ", c->generator);
        for (int64_t r = 0; r < h->rows; r++) {
            double *x = h->x + r * h->cols;
            memcpy(x, c->x, (size_t)h->cols * sizeof *x);
            vary(h, c, x, state);
        }
        h->climbs_from = c;
        nb_row_search_call(h, h->rows, c->seed, text);
        h->climbs_from = NULL;
    }
}

void nb_row_search_climb(struct nb_row_search *h) {
    uint64_t state = 1;
    int64_t calls = -1;
    for (int i = 0; !nb_row_search_over(h); i++) {
        if (i % N_CLIMBED == 0 && calls == h->t->calls) return; /* no row to start from */
        if (i % N_CLIMBED == 0) calls = h->t->calls;
        climb(h, climbed[i % N_CLIMBED], &state);
    }
}
