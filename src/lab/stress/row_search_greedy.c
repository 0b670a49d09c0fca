// SPDX-License-Identifier: Apache-2.0
/* The accumulators are followed as the kernel is thought to have them. Sums are formed in double, where an f32 or narrower
 * accumulator plus a product of two such numbers is off by 2^-53 of itself at most: far below what is looked for. */
#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/kernel_fields.h"
#include "src/core/random.h"
#include "src/lab/stress/row_search.h"

enum { MAX_LEVELS = 64 };

/* Lanes, or for pairwise sums the finished blocks of each size that wait for their other half, and the leaf that is being filled. */
struct sums {
    const struct nb_sum_order *order;
    double lanes[NB_MAX_LANES];
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

static double error_of(const struct sums *s, double x) {
    double error = 0;
    int level;
    const double q = addend(s, x);
    if (s->order->lanes > 0) {
        added(s, s->lanes[s->n % s->order->lanes], q, &error);
        return error;
    }
    const double leaf = added(s, s->leaf, q, &error);
    if ((s->n + 1) % s->order->leaf == 0) carried(s, leaf, &level, &error);
    return error;
}

static void take(struct sums *s, double x) {
    double error = 0;
    const double q = addend(s, x);
    if (s->order->lanes > 0) {
        double *lane = &s->lanes[s->n % s->order->lanes];
        *lane = added(s, *lane, q, &error);
    } else {
        s->leaf = added(s, s->leaf, q, &error);
        if ((s->n + 1) % s->order->leaf == 0) {
            int level;
            const double sum = carried(s, s->leaf, &level, &error);
            s->levels[level] = sum;
            s->n_leaves++;
            s->leaf = 0;
        }
    }
    s->n++;
}

void nb_greedy_row(const struct nb_greedy *g, int64_t n, double *x) {
    assert(g->best_of >= 1 && g->order.lanes <= NB_MAX_LANES && (g->order.lanes > 0 || g->order.leaf > 0));
    const struct nb_random random = nb_random_stream(g->seed, 0);
    struct sums s = {.order = &g->order};
    for (int64_t i = 0; i < n; i++) {
        double best = -INFINITY;
        for (int k = 0; k < g->best_of; k++) {
            const uint64_t at = (uint64_t)i * (uint64_t)g->best_of + (uint64_t)k;
            const double v = nb_round_to(g->offset + g->scale * nb_random_normal(random, at), g->dtype);
            const double error = g->sign * error_of(&s, v);
            if (!(error > best)) continue;
            best = error;
            x[i] = v;
        }
        take(&s, x[i]);
    }
}

/* ---- Greedy rows: first the order of summation that hurts the kernel most, which also serves a kernel whose order nobody knows, then
 * more candidates for each element and more seeds. Ops that centre are attacked through the sum of x as well, at growing rho. */

enum { PAIRWISE = 0, FIRST_SEED = 1 };
static const int lane_counts[] = {1, 4, 8, 16, 32, 64, 128, PAIRWISE};
enum { N_LANE_COUNTS = sizeof lane_counts / sizeof lane_counts[0] };

/* A long row is not worth a second of draws: fewer candidates, but two. */
static int affordable(const struct nb_row_search *h, int best_of) {
    const double most = 4e6 / ((double)h->rows * (double)h->cols);
    return best_of > most ? (int)fmax(most, fmin(best_of, 2)) : best_of;
}

static struct nb_greedy attack(const struct nb_row_search *h, int lanes, int best_of, uint64_t seed) {
    const struct nb_trial *t = h->t;
    const bool narrow = t->c.stats_dtype == NB_STATS_X && t->c.style != NB_COMPOSED;
    return (struct nb_greedy){
        .order = {.lanes = lanes, .leaf = 8, .squares = true, .sum = narrow ? t->in.dtype : NB_F32, .fused = !narrow},
        .dtype = t->in.dtype,
        .scale = 1,
        .best_of = affordable(h, best_of),
        .sign = 1,
        .seed = seed};
}

/* What an attempt is judged by: the sum's error where the outputs show it alone, else how near the bound. */
static double worth(const struct nb_trial *t, const struct nb_row_score *s) {
    const double value = nb_objective_value(s, nb_op_centres(t->c.op) ? (int)NB_BY_BOUND : (int)NB_OBJECTIVE_SUM);
    return isnan(value) ? -1 : value;
}

static void describe(const struct nb_greedy *g, char *text, size_t n) {
    char order[32] = "pairwise";
    if (g->order.lanes > 0) snprintf(order, sizeof order, "%d lane%s", g->order.lanes, g->order.lanes > 1 ? "s" : "");
    snprintf(text, n, "greedy on %s, %s, best of %d, %s, N(%g,%g)", g->order.squares ? "squares" : "sum", order,
             g->best_of, g->sign > 0 ? "up" : "down", g->offset, g->scale);
}

static void note(const struct nb_greedy *g, const struct nb_row_search *h, int64_t row, cJSON *attempts) {
    const struct nb_row_score *s = &h->scores[row];
    const struct nb_row_look look = nb_row_look(h->x + row * h->cols, h->cols);
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "on", g->order.squares ? "squares" : "sum");
    nb_json_number(json, "lanes", g->order.lanes > 0 ? g->order.lanes : NAN); /* null: pairwise */
    nb_json_number(json, "best_of", g->best_of);
    nb_json_number(json, "sign", g->sign);
    nb_json_number(json, "offset", g->offset);
    nb_json_uint64(json, "seed", g->seed);
    nb_json_number(json, "sum_error_u", s->sum_error_u);
    nb_json_number(json, "bound", s->worst[NB_BY_BOUND].value);
    nb_json_number(json, "noise", s->worst[NB_BY_NOISE].value);
    nb_json_number(json, "mean", look.mean);
    nb_json_number(json, "variance", look.variance);
    cJSON_AddItemToArray(attempts, json);
}

/* One attempt fills all rows of the call, with seeds in sequence; returns the worth of its best row. */
static double attempt(struct nb_row_search *h, struct nb_greedy g, cJSON *attempts) {
    char text[96];
    int64_t best = 0;
    describe(&g, text, sizeof text);
    const uint64_t seed = g.seed;
    for (int64_t r = 0; r < h->rows; r++) {
        g.seed = seed + (uint64_t)r;
        nb_greedy_row(&g, h->cols, h->x + r * h->cols);
    }
    if (nb_row_search_call(h, h->rows, seed, text) != 0) return -1;
    for (int64_t r = 1; r < h->rows; r++)
        if (worth(h->t, &h->scores[r]) > worth(h->t, &h->scores[best])) best = r;
    g.seed = seed + (uint64_t)best;
    if (attempts) note(&g, h, best, attempts);
    return worth(h->t, &h->scores[best]);
}

static double both_signs(struct nb_row_search *h, struct nb_greedy g, cJSON *attempts) {
    double worst = -1;
    for (int sign = -1; sign <= 1; sign += 2) {
        g.sign = sign;
        if (!nb_row_search_over(h)) worst = fmax(worst, attempt(h, g, attempts));
    }
    return worst;
}

/* rho up to what the kernel claims and the format can hold. */
static double largest_rho(const struct nb_row_search *h) {
    struct nb_range range;
    nb_kernel_range(h->t->entry->kernel, &h->t->call, &range);
    return fmin(0.9 * range.max_rho, ldexp(1, nb_formats[h->t->in.dtype].precision - 4));
}

static void attack_mean(struct nb_row_search *h, int lanes, cJSON *attempts) {
    const double most = largest_rho(h);
    for (double rho = 1; rho <= most && !nb_row_search_over(h); rho *= 4) {
        struct nb_greedy g = attack(h, lanes, 16, FIRST_SEED);
        g.offset = rho;
        g.order.squares = false;
        both_signs(h, g, attempts);
        g.order.squares = true;
        g.order.about = h->t->c.variance == NB_VAR_ONEPASS ? 0 : rho;
        both_signs(h, g, attempts);
    }
}

void nb_row_search_greedy(struct nb_row_search *h, cJSON *attempts) {
    static const int candidates[] = {1, 2, 16, 64, 256}; /* 1: plain random rows, for comparison */
    double worst = -1;
    int lanes = 1;
    for (int i = 0; i < N_LANE_COUNTS && !nb_row_search_over(h); i++) {
        if (lane_counts[i] > h->cols) continue;
        struct nb_greedy g = attack(h, lane_counts[i], 16, FIRST_SEED);
        if (nb_op_centres(h->t->c.op)) {
            g.offset = fmin(16, largest_rho(h));
            g.order.squares = false;
        }
        const double value = both_signs(h, g, attempts);
        if (value > worst) lanes = lane_counts[i];
        worst = fmax(worst, value);
    }
    if (nb_op_centres(h->t->c.op)) attack_mean(h, lanes, attempts);
    for (uint64_t seed = FIRST_SEED + 1; !nb_row_search_over(h); seed += (uint64_t)h->rows)
        for (size_t k = 0; k < sizeof candidates / sizeof candidates[0] && !nb_row_search_over(h); k++)
            both_signs(h, attack(h, lanes, candidates[k], seed), seed == FIRST_SEED + 1 ? attempts : NULL);
}
