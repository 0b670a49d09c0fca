// SPDX-License-Identifier: Apache-2.0
/* Budget, calls and champions. */
#include "src/lab/stress/hunt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/timer.h"
#include "src/lab/stress/trial_rows.h"

const char *nb_quarry_name(int quarry) {
    if (quarry < NB_N_MEASURES) return nb_measure_names[quarry];
    return quarry == NB_QUARRY_SUM ? "sum_error_u" : "strange";
}

int nb_hunt_init(struct nb_hunt *h, struct nb_trial *t, double budget_s, int64_t budget_calls) {
    *h = (struct nb_hunt){.t = t, .rows = t->in.rows, .cols = t->in.cols, .budget_s = budget_s};
    h->budget_calls = budget_calls;
    t->reason = nb_row_score_refuses(&t->c);
    if (t->reason) return -1;
    h->x = nb_alloc((unsigned long long)(h->rows * h->cols), sizeof *h->x);
    h->scores = nb_alloc((unsigned long long)h->rows, sizeof *h->scores);
    h->started_s = nb_now_s();
    h->first_call = t->calls;
    nb_hunt_stage(h, 1);
    return 0;
}

void nb_hunt_release(struct nb_hunt *h) {
    for (int i = 0; i < NB_N_QUARRIES; i++) free(h->champions[i].x);
    free(h->x);
    free(h->scores);
    *h = (struct nb_hunt){0};
}

void nb_hunt_stage(struct nb_hunt *h, double until_share) {
    h->stage_until_s = h->started_s + until_share * h->budget_s;
    h->stage_until_call = h->first_call + (int64_t)ceil(until_share * (double)h->budget_calls);
}

bool nb_hunt_over(const struct nb_hunt *h) {
    if (h->failed) return true;
    return h->budget_calls > 0 ? h->t->calls >= h->stage_until_call : nb_now_s() >= h->stage_until_s;
}

/* What overflows or underflows as the formula predicts has its place among the frontiers (src/lab/stress/frontier.h); here it would be all
 * that is ever found. A predicted cancellation is not like that: errors grow with rho all the way. */
static bool leaves_range(const struct nb_row_score *s) {
    return !nb_row_is_ordinary(s) || (s->loss != NB_LOSS_NONE && s->loss != NB_LOSS_CANCELLATION);
}

double nb_quarry_value(const struct nb_row_score *s, int quarry) {
    const int64_t n = s->n_nan + s->n_inf + s->n_zero;
    if (quarry == NB_BY_BOUND) return s->worst[quarry].value;
    if (quarry == NB_QUARRY_STRANGE) return n > 0 ? (double)n : (double)NAN;
    if (leaves_range(s)) return NAN;
    return quarry == NB_QUARRY_SUM ? fabs(s->sum_error_u) : s->worst[quarry].value;
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

static void crown(const struct nb_hunt *h, struct nb_champion *c, int64_t row, uint64_t seed, const char *generator) {
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

static void offer(struct nb_hunt *h, int64_t row, uint64_t seed, const char *generator) {
    const struct nb_row_score *s = &h->scores[row];
    if (!s->claimed) return;
    for (int q = 0; q < NB_N_QUARRIES; q++) {
        struct nb_champion *c = &h->champions[q];
        const double value = nb_quarry_value(s, q);
        if (isnan(value) || (c->x && value <= c->value)) continue;
        c->value = value;
        crown(h, c, row, seed, generator);
    }
}

int nb_hunt_call(struct nb_hunt *h, int64_t n, uint64_t seed, const char *generator) {
    for (int64_t r = n; r < h->rows; r++)
        memcpy(h->x + r * h->cols, h->x, (size_t)h->cols * sizeof *h->x); /* the call is always of all rows */
    nb_trial_load_rows(h->t, h->x);
    h->failed = nb_trial_run(h->t) != 0 || nb_row_score(h->t, h->scores) != 0;
    for (int64_t r = 0; r < n && !h->failed; r++) offer(h, r, seed, generator);
    return h->failed ? -1 : 0;
}

double nb_hunt_uniform(uint64_t *state) { return (double)(nb_random_next(state) >> 11) * 0x1p-53; }
