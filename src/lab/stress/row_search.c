// SPDX-License-Identifier: Apache-2.0
/* Budget, calls and the worst rows so far; the searches; what reproduces the rows that they found. */
#include "src/core/case.h"
#include "src/lab/stress/search.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/timer.h"
#include "src/plan/npy.h"

static const char *const objective_names[NB_N_OBJECTIVES] = {
    "bound", "noise", "ulp", "scaled_ulp", [NB_OBJECTIVE_STRANGE] = "strange", [NB_OBJECTIVE_SUM] = "sum_error_u"};

/* ---- What all searches share: a trial, a budget, and the worst rows so far ---- */

struct found {
    double *x; /* null: none yet */
    double value;
    double mean, deviation; /* of the row that a search made first; climbing draws from these and keeps them */
    struct nb_row_score score;
    char generator[96]; /* what made it */
    uint64_t seed;
};

struct search {
    struct nb_trial *t;
    int64_t rows, cols;
    double *x; /* rows x cols: the next call's */
    struct nb_row_score *scores;
    struct found found[NB_N_OBJECTIVES];
    const struct found *climbs_from; /* null: rows are new */
    double started_s, until;         /* of the budget: the part that may be used up by now */
    int64_t first_call;
    double budget_calls; /* not above 0: time alone counts */
    bool failed;         /* the kernel; t->reason says how */
};

static const double BUDGET_S = 2;

/* budget_calls > 0: so many calls, whatever the time. -1 with t->reason. */
static int search_init(struct search *h, struct nb_trial *t, double budget_calls) {
    *h = (struct search){.t = t,
                         .rows = t->in.rows,
                         .cols = t->in.cols,
                         .started_s = nb_now_s(),
                         .first_call = t->calls,
                         .budget_calls = budget_calls};
    t->reason = nb_row_score_refuses(&t->c);
    if (t->reason) return -1;
    h->x = nb_alloc((unsigned long long)(h->rows * h->cols), sizeof *h->x);
    h->scores = nb_alloc((unsigned long long)h->rows, sizeof *h->scores);
    return 0;
}

static void search_release(struct search *h) {
    for (int i = 0; i < NB_N_OBJECTIVES; i++) free(h->found[i].x);
    free(h->x);
    free(h->scores);
    *h = (struct search){0};
}

static bool is_over(const struct search *h) {
    if (h->failed) return true;
    return h->budget_calls > 0 ? (double)(h->t->calls - h->first_call) >= h->until * h->budget_calls
                               : nb_now_s() - h->started_s >= h->until * BUDGET_S;
}

/* What overflows or underflows as the formula predicts has its place among the frontiers (src/lab/stress/search.h); here it would be all
 * that is ever found. A predicted cancellation is not like that: errors grow with rho all the way. */
static bool leaves_range(const struct nb_row_score *s) {
    return !nb_row_is_ordinary(s) ||
           (s->loss != NB_LOSS_NONE && s->loss != NB_LOSS_CANCELLATION && s->loss != NB_LOSS_UNBOUNDED);
}

/* What a row is worth by an objective; NaN: nothing. */
static double objective_value(const struct nb_row_score *s, int objective) {
    const int64_t n = s->n_nan + s->n_inf + s->n_zero;
    if (objective == NB_BY_BOUND) return s->worst[objective].value;
    if (objective == NB_OBJECTIVE_STRANGE) return n > 0 ? (double)n : (double)NAN;
    if (leaves_range(s)) return NAN;
    return objective == NB_OBJECTIVE_SUM ? fabs(s->sum_error_u) : s->worst[objective].value;
}

static struct nb_row_look row_look(const double *x, int64_t n) {
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

static void keep_row(const struct search *h, struct found *c, int64_t row, uint64_t seed, const char *generator) {
    if (!c->x) c->x = nb_alloc((unsigned long long)h->cols, sizeof *c->x);
    memcpy(c->x, h->x + row * h->cols, (size_t)h->cols * sizeof *c->x);
    c->score = h->scores[row];
    c->seed = seed;
    snprintf(c->generator, sizeof c->generator, "%s", generator);
    const struct nb_row_look look = row_look(c->x, h->cols);
    c->mean = h->climbs_from ? h->climbs_from->mean : look.mean;
    c->deviation = h->climbs_from ? h->climbs_from->deviation : sqrt(look.variance);
}

static void offer(struct search *h, int64_t row, uint64_t seed, const char *generator) {
    const struct nb_row_score *s = &h->scores[row];
    if (!s->claimed) return;
    for (int q = 0; q < NB_N_OBJECTIVES; q++) {
        struct found *c = &h->found[q];
        const double value = objective_value(s, q);
        if (isnan(value) || (c->x && value <= c->value)) continue;
        c->value = value;
        keep_row(h, c, row, seed, generator);
    }
}

/* Calls the kernel on the first n rows of h->x, scores them, and keeps the worst. -1: failed. */
static int call_rows(struct search *h, int64_t n, uint64_t seed, const char *generator) {
    for (int64_t r = n; r < h->rows; r++)
        memcpy(h->x + r * h->cols, h->x, (size_t)h->cols * sizeof *h->x); /* the call is always of all rows */
    nb_trial_set_x(h->t, h->x, h->x);
    h->failed = nb_trial_run(h->t) != 0 || nb_row_score(h->t, h->scores) != 0;
    for (int64_t r = 0; r < n && !h->failed; r++) offer(h, r, seed, generator);
    return h->failed ? -1 : 0;
}

/* In [0, 1), for choices. */
static double uniform(uint64_t *state) { return (double)(nb_random_next(state) >> 11) * 0x1p-53; }

/* ---- Rows along an assumed order of summation ---- */

enum { MAX_LEVELS = 64, MOST_LANES = 128, LEAF = 8 };

/* Follows the order in which a kernel adds, draws several candidates for each element from N(offset, 1), keeps the one whose addition rounds the
 * most in the wanted direction. The row keeps the distribution's mean and variance, since only low bits of the sums decide. */
struct greedy {
    int lanes; /* element i goes to lane i mod lanes, at most MOST_LANES; 0: pairwise, halves down to leaves of LEAF elements */
    bool squares; /* what is summed: squares of x - about, or x */
    double about;
    enum nb_dtype sum, dtype; /* formats of the accumulators, and of the elements as stored */
    bool fused;               /* squares enter unrounded: rounded once, in the addition */
    double offset;
    int best_of;
    int sign; /* of the rounding errors wanted: 1 or -1 */
    uint64_t seed;
};

/* The accumulators are followed as the kernel is thought to have them. Sums are formed in double, where an f32 or narrower
 * accumulator plus a product of two such numbers is off by 2^-53 of itself at most: far below what is looked for.
 *
 * Lanes, or for pairwise sums the finished blocks of each size that wait for their other half, and the leaf that is being filled. */
struct sums {
    const struct greedy *order;
    double lanes[MOST_LANES];
    double levels[MAX_LEVELS], leaf;
    int64_t n_leaves; /* finished */
    int64_t n;        /* elements */
};

static double rounded(const struct sums *s, double v) {
    return s->order->sum == NB_F32 ? (double)(float)v : nb_round_to(v, s->order->sum);
}

static double addend(const struct sums *s, double x) {
    if (!s->order->squares) return x;
    double d = x - s->order->about;
    if (s->order->about != 0) d = rounded(s, d);
    return s->order->fused ? d * d : rounded(s, d * d);
}

/* acc + q as rounded; adds its error to *error. */
static double added(const struct sums *s, double acc, double q, double *error) {
    const double exact = acc + q, result = rounded(s, exact);
    *error += result - exact;
    return result;
}

/* The leaf that is full joins the waiting halves, as a binary counter carries. */
static double carried(const struct sums *s, double leaf, int *level, double *error) {
    double sum = leaf;
    *level = 0;
    for (int64_t leaves = s->n_leaves; leaves & 1; leaves >>= 1) sum = added(s, s->levels[(*level)++], sum, error);
    return sum;
}

/* What adding x is off by; it is added where `keep` says so. */
static double step(struct sums *s, double x, bool keep) {
    double error = 0;
    const double q = addend(s, x);
    if (s->order->lanes > 0) {
        double *lane = &s->lanes[s->n % s->order->lanes];
        const double sum = added(s, *lane, q, &error);
        if (keep) *lane = sum;
    } else {
        const double leaf = added(s, s->leaf, q, &error);
        if (keep) s->leaf = leaf;
        if ((s->n + 1) % LEAF == 0) {
            int level;
            const double sum = carried(s, leaf, &level, &error);
            if (keep) {
                s->levels[level] = sum;
                s->n_leaves++;
                s->leaf = 0;
            }
        }
    }
    s->n += keep;
    return error;
}

/* n elements, each a number of the dtype. */
static void greedy_row(const struct greedy *g, int64_t n, double *x) {
    assert(g->best_of >= 1 && g->lanes <= MOST_LANES);
    const struct nb_random random = nb_random_stream(g->seed, 0);
    struct sums s = {.order = g};
    for (int64_t i = 0; i < n; i++) {
        double best = -INFINITY;
        for (int k = 0; k < g->best_of; k++) {
            const uint64_t at = (uint64_t)i * (uint64_t)g->best_of + (uint64_t)k;
            const double v = nb_round_to(g->offset + nb_random_normal(random, at), g->dtype);
            const double error = g->sign * step(&s, v, false);
            if (!(error > best)) continue;
            best = error;
            x[i] = v;
        }
        step(&s, x[i], true);
    }
}

/* ---- Greedy rows: first the order of summation that hurts the kernel most, which also serves a kernel whose order nobody knows, then
 * more candidates for each element and more seeds. Ops that centre are attacked through the sum of x as well, at growing rho. */

enum { PAIRWISE = 0, FIRST_SEED = 1 };
static const int lane_counts[] = {1, 4, 8, 16, 32, 64, 128, PAIRWISE};
enum { N_LANE_COUNTS = sizeof lane_counts / sizeof lane_counts[0] };

/* A long row is not worth a second of draws: fewer candidates, but two. */
static int affordable(const struct search *h, int best_of) {
    const double most = 4e6 / ((double)h->rows * (double)h->cols);
    return best_of > most ? (int)fmax(most, fmin(best_of, 2)) : best_of;
}

static struct greedy attack(const struct search *h, int lanes, int best_of, uint64_t seed) {
    const struct nb_trial *t = h->t;
    const bool narrow = t->c.stats_dtype == NB_STATS_X && t->c.style != NB_COMPOSED;
    return (struct greedy){.lanes = lanes,
                           .squares = true,
                           .sum = narrow ? t->in.dtype : NB_F32,
                           .dtype = t->in.dtype,
                           .fused = !narrow,
                           .best_of = affordable(h, best_of),
                           .sign = 1,
                           .seed = seed};
}

/* What an attempt is judged by: the sum's error where the outputs show it alone, else how near the bound. */
static double worth(const struct nb_trial *t, const struct nb_row_score *s) {
    const double value = objective_value(s, nb_op_centres(t->c.op) ? (int)NB_BY_BOUND : (int)NB_OBJECTIVE_SUM);
    return isnan(value) ? -1 : value;
}

static void describe(const struct greedy *g, char *text, size_t n) {
    char order[32] = "pairwise";
    if (g->lanes > 0) snprintf(order, sizeof order, "%d lane%s", g->lanes, g->lanes > 1 ? "s" : "");
    snprintf(text, n, "greedy on %s, %s, best of %d, %s, N(%g,1)", g->squares ? "squares" : "sum", order, g->best_of,
             g->sign > 0 ? "up" : "down", g->offset);
}

/* One attempt fills all rows of the call, with seeds in sequence; returns the worth of its best row. */
static double attempt(struct search *h, struct greedy g) {
    char text[96];
    int64_t best = 0;
    describe(&g, text, sizeof text);
    const uint64_t seed = g.seed;
    for (int64_t r = 0; r < h->rows; r++) {
        g.seed = seed + (uint64_t)r;
        greedy_row(&g, h->cols, h->x + r * h->cols);
    }
    if (call_rows(h, h->rows, seed, text) != 0) return -1;
    for (int64_t r = 1; r < h->rows; r++)
        if (worth(h->t, &h->scores[r]) > worth(h->t, &h->scores[best])) best = r;
    return worth(h->t, &h->scores[best]);
}

static double both_signs(struct search *h, struct greedy g) {
    double worst = -1;
    for (int sign = -1; sign <= 1; sign += 2) {
        g.sign = sign;
        if (!is_over(h)) worst = fmax(worst, attempt(h, g));
    }
    return worst;
}

/* rho up to what the kernel claims and the format can hold. */
static double largest_rho(const struct search *h) {
    struct nb_range range;
    nb_kernel_range(h->t->entry->kernel, &h->t->call, &range);
    return fmin(0.9 * range.max_rho, ldexp(1, nb_formats[h->t->in.dtype].precision - 4));
}

static void attack_mean(struct search *h, int lanes) {
    const double most = largest_rho(h);
    for (double rho = 1; rho <= most && !is_over(h); rho *= 4) {
        struct greedy g = attack(h, lanes, 16, FIRST_SEED);
        g.offset = rho;
        g.squares = false;
        both_signs(h, g);
        g.squares = true;
        g.about = h->t->c.variance == NB_VAR_ONEPASS ? 0 : rho;
        both_signs(h, g);
    }
}

static void search_greedy(struct search *h) {
    static const int candidates[] = {1, 2, 16, 64, 256}; /* 1: plain random rows, for comparison */
    double worst = -1;
    int lanes = 1;
    for (int i = 0; i < N_LANE_COUNTS && !is_over(h); i++) {
        if (lane_counts[i] > h->cols) continue;
        struct greedy g = attack(h, lane_counts[i], 16, FIRST_SEED);
        if (nb_op_centres(h->t->c.op)) {
            g.offset = fmin(16, largest_rho(h));
            g.squares = false;
        }
        const double value = both_signs(h, g);
        if (value > worst) lanes = lane_counts[i];
        worst = fmax(worst, value);
    }
    if (nb_op_centres(h->t->c.op)) attack_mean(h, lanes);
    for (uint64_t seed = FIRST_SEED + 1; !is_over(h); seed += (uint64_t)h->rows)
        for (size_t k = 0; k < sizeof candidates / sizeof candidates[0] && !is_over(h); k++)
            both_signs(h, attack(h, lanes, candidates[k], seed));
}

/* ---- Interval splitting on the parameters of a row (after binary guided random testing: Chiang, Gopalakrishnan, Rakamaric & Solovyev
 * 2014): one dimension of the box is halved, rows are drawn from both halves, the half with the worse row is kept; a box that has
 * become small is given up for the whole one. */

enum dimension { LOG_SCALE, LOG_RHO, LOG_OUTLIER, N_DIMENSIONS };

struct box {
    double low[N_DIMENSIONS], high[N_DIMENSIONS];
};
struct point {
    double at[N_DIMENSIONS];
};

static const int objectives[] = {NB_BY_BOUND, NB_BY_NOISE, NB_BY_SCALED, NB_BY_ULP};
enum { N_OBJECTIVES = sizeof objectives / sizeof objectives[0], ROWS_PER_HALF = 4 };

static struct box whole_box(const struct search *h) {
    const struct nb_format *f = &nb_formats[h->t->in.dtype];
    const bool centres = nb_op_centres(h->t->c.op);
    struct nb_range range;
    nb_kernel_range(h->t->entry->kernel, &h->t->call, &range);
    const double largest = fmin(f->max_finite, range.max_abs) / 8.5; /* no draw is further than 8.3 from the mean */
    const double smallest = fmin(fmax(f->min_subnormal * 16, range.min_rms), largest);
    const double rho = fmin(ldexp(1, f->precision - 2), fmax(range.max_rho, 0x1p-4));
    return (struct box){.low = {log2(smallest), -4, 0}, .high = {log2(largest), centres ? log2(rho) : -4, 12}};
}

static struct point sample(const struct box *b, uint64_t *state) {
    struct point p;
    for (int d = 0; d < N_DIMENSIONS; d++) p.at[d] = b->low[d] + (b->high[d] - b->low[d]) * uniform(state);
    return p;
}

/* scale (rho + z), one element of it larger by the outlier ratio; cut at the largest number. */
static void make_row(const struct search *h, const struct point *p, uint64_t seed, double *x) {
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
static double worst_in(struct search *h, const struct box *b, int objective, uint64_t *state) {
    double worst = -1;
    for (int64_t done = 0; done < ROWS_PER_HALF && !is_over(h); done += h->rows) {
        char text[96];
        struct point p = sample(b, state);
        const uint64_t seed = nb_random_next(state);
        for (int64_t r = 0; r < h->rows; r++) {
            if (r > 0) p = sample(b, state);
            make_row(h, &p, seed + (uint64_t)r, h->x + r * h->cols);
        }
        snprintf(text, sizeof text, "zoom: scale 2^%.2f, rho 2^%.2f, outlier 2^%.2f and near", p.at[LOG_SCALE],
                 p.at[LOG_RHO], p.at[LOG_OUTLIER]);
        if (call_rows(h, h->rows, seed, text) != 0) return -1;
        for (int64_t r = 0; r < h->rows; r++) {
            const double value = objective_value(&h->scores[r], objective);
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
static void split(struct search *h, struct box *b, int d, int objective, uint64_t *state) {
    struct box low = *b, high = *b;
    low.high[d] = high.low[d] = (b->low[d] + b->high[d]) / 2;
    const double of_low = worst_in(h, &low, objective, state);
    const double of_high = worst_in(h, &high, objective, state);
    const bool against = uniform(state) < 0.1;
    *b = (of_low >= of_high) != against ? low : high;
}

static void search_zoom(struct search *h) {
    uint64_t state = 1;
    const struct box whole = whole_box(h);
    for (int round = 0; !is_over(h); round++) {
        struct box b = whole;
        for (int d = 0; !is_small(&b) && !is_over(h); d = (d + 1) % N_DIMENSIONS)
            if (b.high[d] - b.low[d] > 0.1) split(h, &b, d, objectives[round % N_OBJECTIVES], &state);
        if (is_small(&whole)) break;
    }
}

/* ---- Hill climbing from the worst rows so far: a few elements are drawn again from the normal distribution with the mean
 * and deviation of the row that it all began with.
 * What is worse is kept, and is the start of the next step. Rows with elements near ties need no search of their own:
 * among thousands of elements some are, and in short rows this finds them. */

static const int climbed[] = {NB_BY_BOUND, NB_BY_NOISE, NB_OBJECTIVE_SUM, NB_BY_SCALED, NB_BY_ULP};
enum { N_CLIMBED = sizeof climbed / sizeof climbed[0], STEPS = 16 };

/* From one element to a quarter of them, small numbers as often as large ones. */
static void vary(const struct search *h, const struct found *c, double *x, uint64_t *state) {
    const double most = fmax((double)h->cols / 4, 1), largest = nb_formats[h->t->in.dtype].max_finite;
    const int64_t n = (int64_t)exp2(uniform(state) * log2(most + 1));
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = (int64_t)(nb_random_next(state) % (uint64_t)h->cols);
        const double v = c->mean + c->deviation * nb_normal_quantile((uniform(state) + 0x1p-54) * (1 - 0x1p-53));
        x[i] = nb_round_to(fmin(fmax(v, -largest), largest), h->t->in.dtype);
    }
}

static void climb(struct search *h, int objective, uint64_t *state) {
    const struct found *c = &h->found[objective];
    char text[96];
    if (!c->x || isinf(c->value)) return;
    for (int step = 0; step < STEPS && !is_over(h); step++) {
        snprintf(text, sizeof text, "%s%s", strncmp(c->generator, "climb", 5) == 0 ? "" : "climb from ", c->generator);
        for (int64_t r = 0; r < h->rows; r++) {
            double *x = h->x + r * h->cols;
            memcpy(x, c->x, (size_t)h->cols * sizeof *x);
            vary(h, c, x, state);
        }
        h->climbs_from = c;
        call_rows(h, h->rows, c->seed, text);
        h->climbs_from = NULL;
    }
}

static void search_climb(struct search *h) {
    uint64_t state = 1;
    int64_t calls = -1;
    for (int i = 0; !is_over(h); i++) {
        if (i % N_CLIMBED == 0 && calls == h->t->calls) return; /* no row to start from */
        if (i % N_CLIMBED == 0) calls = h->t->calls;
        climb(h, climbed[i % N_CLIMBED], &state);
    }
}

/* ---- The worst rows with what reproduces them: a file and a key, and for short rows the numbers themselves ---- */

enum { SHORT_ROW = 16 };

static const struct nb_member look_members[] = {
    NB_MEMBER(NUMBER, struct nb_row_look, mean),
    NB_MEMBER(NUMBER, struct nb_row_look, variance),
    NB_MEMBER(NUMBER, struct nb_row_look, kurtosis),
    NB_MEMBER(NUMBER, struct nb_row_look, max_abs),
    NB_MEMBERS_END,
};

static void add_exact_row(cJSON *json, const double *x, int64_t n) {
    cJSON *values = cJSON_AddArrayToObject(json, "x");
    for (int64_t i = 0; i < n; i++) {
        char text[40];
        snprintf(text, sizeof text, "%a", x[i]);
        cJSON_AddItemToArray(values, cJSON_CreateString(text));
    }
}

static void add_reproducer(cJSON *json, const struct found *c, int objective) {
    cJSON *reproducer = cJSON_AddObjectToObject(json, "reproducer");
    struct nb_row_worst w = c->score.worst[objective < NB_N_MEASURES ? objective : (int)NB_BY_SCALED];
    if (c->score.strange.col >= 0) w = c->score.strange;
    nb_json_number(reproducer, "col", (double)w.col);
    nb_json_exact(reproducer, "x", w.col >= 0 ? c->x[w.col] : (double)NAN);
    nb_json_exact(reproducer, "got", w.got);
    nb_json_exact(reproducer, "want", w.want);
}

/* A name of its own for each case, kernel and objective: what a path may not hold is left out, the key's hash is added. */
static void name_file(const struct nb_case *c, const char *dir, int objective, struct nb_strbuf *path) {
    char *key freed = nb_case_key(c);
    nb_strbuf_addf(path, "%s/", dir);
    for (const char *p = c->variant; *p; p++) nb_strbuf_addn(path, *p == ':' || *p == '/' ? "-" : p, 1);
    nb_strbuf_addf(path, "-%08x-%s.npy", nb_hash32_text(key), objective_names[objective]);
}

/* One row to a .npy file, f32 or f16 as the dtype (bf16 in f32); -1 after nb_error. */
static int write_row(const struct nb_trial *t, const double *x, const char *path) {
    const int64_t cols = t->in.cols;
    const enum nb_dtype dtype = t->in.dtype == NB_F16 ? NB_F16 : NB_F32; /* .npy knows no bf16 */
    void *values freed = nb_alloc((unsigned long long)cols, nb_formats[dtype].bytes);
    for (int64_t i = 0; i < cols; i++) nb_set(values, i, dtype, nb_round_to(x[i], t->in.dtype));
    return nb_npy_write(path, values, dtype == NB_F16 ? "<f2" : "<f4", &cols, 1);
}

static void add_files(cJSON *json, const struct search *h, const struct found *c, int objective, const char *dir) {
    struct nb_strbuf path released_by(nb_strbuf_release) = {0};
    name_file(&h->t->c, dir, objective, &path);
    if (path.len < NB_DATA_MAX && write_row(h->t, c->x, path.text) == 0) {
        char *replay freed = NULL, *key freed = nb_trial_key(h->t, path.text, h->t->c.seed, 1, &replay);
        nb_json_text(json, "file", path.text);
        nb_json_text(json, "key", key);
        nb_json_text(json, "replay", replay);
    }
}

static cJSON *found_to_json(const struct search *h, int objective, const char *dir) {
    const struct found *c = &h->found[objective];
    const struct nb_row_look look = row_look(c->x, h->cols);
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "objective", objective_names[objective]);
    (isinf(c->value) ? nb_json_exact : nb_json_number)(json, "value", c->value);
    nb_json_text(json, "generator", c->generator);
    nb_json_uint64(json, "seed", c->seed);
    nb_json_number(json, "eps", h->t->c.eps);
    cJSON_AddBoolToObject(json, "violation", c->score.worst[NB_BY_BOUND].value > 1);
    for (int m = 0; m < NB_N_MEASURES; m++) nb_json_number(json, nb_measure_names[m], c->score.worst[m].value);
    nb_json_number(json, "nan", (double)c->score.n_nan);
    nb_json_number(json, "inf", (double)c->score.n_inf);
    nb_json_number(json, "zero", (double)c->score.n_zero);
    nb_json_text(json, "loss", nb_loss_names[c->score.loss]);
    nb_json_number(json, "gain_u", c->score.gain_u);
    nb_json_number(json, "sum_error_u", c->score.sum_error_u);
    cJSON_AddItemToObject(json, "row", nb_json_of_members(look_members, &look));
    add_reproducer(json, c, objective);
    if (h->cols <= SHORT_ROW) add_exact_row(json, c->x, h->cols);
    if (dir) add_files(json, h, c, objective, dir);
    return json;
}

/* ---- The searches in turn, each with its part of the budget; the last starts from what the others found ---- */

cJSON *nb_worst_case(struct nb_trial *t, const cJSON *options) {
    static const struct {
        void (*search)(struct search *h);
        double until;
    } stages[] = {{search_greedy, 0.4}, {search_zoom, 0.75}, {search_climb, 1}};
    struct search h released_by(search_release) = {0};
    if (search_init(&h, t, nb_json_get_number(options, "budget_calls")) != 0) return NULL;
    cJSON *summary = cJSON_CreateObject(), *all = cJSON_CreateArray();
    nb_json_text(summary, "objective", "search");
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        h.until = stages[i].until;
        stages[i].search(&h);
    }
    for (int q = 0; q < NB_N_OBJECTIVES && !h.failed; q++)
        if (h.found[q].x) cJSON_AddItemToArray(all, found_to_json(&h, q, nb_json_get_text(options, "reproducer_dir")));
    nb_json_number(summary, "calls", (double)(t->calls - h.first_call));
    nb_json_number(summary, "seconds", nb_now_s() - h.started_s);
    cJSON_AddItemToArray(all, summary);
    if (!h.failed) return all;
    cJSON_Delete(all);
    return NULL;
}
