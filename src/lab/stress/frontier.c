// SPDX-License-Identifier: Apache-2.0
/* What the closed forms predict; then the search: all seeds, all rows, the worst counts. */
#include "src/lab/stress/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/accuracy/bound.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/lab/stress/row_score.h"

/* ---- Where a kernel should break down, in closed form, from what it declares: the dtype of its statistics, its way to the variance, its
 * chain. Each rule gives a threshold of its own; the tightest is the prediction. ---- */

/* Of an error that all elements of a row share: k ulp are from k u to 2 k u, so about 1.5 k u. */
static double shared_tolerance(enum nb_dtype dtype) {
    return 1.5 * nb_granted_ulp(dtype) * nb_formats[dtype].unit_roundoff;
}

/* ---- the largest scale ---- */

static struct nb_prediction largest_scale(const struct nb_arithmetic *a, const struct nb_draw_facts *f) {
    const double square = sqrt(a->op.overflow) / f->max_abs;
    const double sum = sqrt(a->sum.overflow / ((double)f->n * f->mean_square));
    if (sum < square) return (struct nb_prediction){sum, "the sum of squares overflows: rms sqrt(T / n)"};
    return (struct nb_prediction){square, "x^2 overflows: |x| = sqrt(T)"};
}

/* ---- the smallest scale ---- */

static struct nb_prediction smallest_scale(const struct nb_arithmetic *a, const struct nb_trial *t,
                                           const struct nb_draw_facts *f) {
    const struct nb_case *c = &t->c;
    const enum nb_dtype stats = c->stats_dtype == NB_STATS_X ? t->in.dtype : NB_F32;
    const double stored = nb_round_to(c->eps, stats), tolerance = shared_tolerance(t->in.dtype);
    const bool inverts = c->formula.root != NB_ROOT_DIV_SQRT;
    struct nb_prediction p = {0, "none: eps covers what underflows"};
    const struct {
        double mean_square; /* below which it is so */
        const char *rule;
    } rules[] = {
        /* eps as it is stored is off by d, which moves y by d / (2 (m + eps)). */
        {fabs(stored - c->eps) / (2 * tolerance) - c->eps, "eps is stored inexactly"},
        /* The mean square is rounded to a grid of 2 eta, which moves y by up to eta / (2 (m + eps)). */
        {a->op.eta / (2 * tolerance) - stored, "the mean square falls on the subnormal grid"},
        {inverts ? 1 / (a->op.overflow * a->op.overflow) - stored : 0, "1 / sqrt(m + eps) overflows"},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const double at = rules[i].mean_square > 0 ? sqrt(rules[i].mean_square / f->least_square) : 0;
        if (at > p.at) p = (struct nb_prediction){at, rules[i].rule};
    }
    return p;
}

/* ---- the largest rho ---- */

/* Sums of n terms in L = n / chain lanes, whose roundings are independent, are off by sqrt(n / (18 L^2) + 1/2) u of their size
 * (root mean square: errors uniform, partial sums growing evenly, then a tree). The largest of some rows is twice that for the
 * mean; for a variance as the difference of two such figures, 4 times that times 1 + rho^2. */
struct spread_errors {
    double mean, gain; /* of y: absolute where rms(y) = 1; relative */
};

static struct spread_errors errors_at(const struct nb_arithmetic *a, const struct nb_trial *t, double n, double rho) {
    const double u = a->op.u, g = sqrt(a->chain * a->chain / (18 * n) + 0.5);
    struct spread_errors e = {2 * g * u * rho, 2 * g * u};
    switch (t->c.variance) {
    case NB_VAR_WELFORD: /* later steps take most of an early rounding of the running mean away again */
        e.mean *= 0.7;
        break;
    case NB_VAR_ONEPASS:
        e.gain *= 1 + rho * rho;
        break;
    case NB_VAR_CORRECTED:
        e.mean = u + e.mean * e.mean; /* the residual mean is taken away from each element too */
        break;
    case NB_VAR_SHIFTED:
        e.mean = 0.5 * u * rho; /* x_0 plus a small sum, rounded once */
        e.gain *= 2;
        break;
    default:
        e.gain += e.mean * e.mean / 2;
    }
    return e;
}

/* Noise of inputs of size rho is 0.75 u rho, for elements of any size: next to the largest |y| it weighs least. */
static bool is_granted(const struct nb_arithmetic *a, const struct nb_trial *t, double n, double rho) {
    const struct spread_errors e = errors_at(a, t, n, rho);
    const double noise = NB_GRANTED_NOISE * 0.75 * nb_formats[t->in.dtype].unit_roundoff * rho;
    const double granted = shared_tolerance(t->in.dtype), y_max = sqrt(2 * log(fmax(n, 2)));
    return e.mean <= fmax(granted, noise) && e.gain <= fmax(granted, noise / y_max);
}

static double precision_limit(const struct nb_arithmetic *a, const struct nb_trial *t, double n) {
    double low = 0x1p-10, high = 0x1p60;
    if (is_granted(a, t, n, high)) return INFINITY;
    while (high / low > 1 + 0x1p-20) {
        const double middle = sqrt(low * high);
        *(is_granted(a, t, n, middle) ? &low : &high) = middle;
    }
    return low;
}

static struct nb_prediction largest_rho(const struct nb_arithmetic *a, const struct nb_trial *t,
                                        const struct nb_draw_facts *f) {
    const bool squares_x = t->c.variance == NB_VAR_ONEPASS;
    struct nb_prediction p = {precision_limit(a, t, (double)f->n), "rounding errors grow with rho, or its square"};
    const double sum = a->sum.overflow / (double)f->n;
    if (isinf(p.at)) p.rule = "none: errors grow no faster than input noise";
    if (t->c.variance != NB_VAR_WELFORD && t->c.variance != NB_VAR_SHIFTED && sum < p.at)
        p = (struct nb_prediction){sum, "the sum of x overflows: mean T / n"};
    if (squares_x && sqrt(sum) < p.at)
        p = (struct nb_prediction){sqrt(sum), "the sum of squares overflows: rms sqrt(T / n)"};
    return p;
}

static struct nb_prediction predict(const struct nb_trial *t, enum nb_frontier_of of,
                                    const struct nb_draw_facts *facts) {
    struct nb_arithmetic a;
    nb_arithmetic_init(&a, &t->c, nb_kernel_chain(t->entry->kernel, &t->call));
    if (t->c.op == NB_OP_DYT)
        return (struct nb_prediction){of == NB_SCALE_MIN ? 0 : (double)INFINITY, "none: the op sums nothing"};
    if (of == NB_SCALE_MAX) return largest_scale(&a, facts);
    if (of == NB_SCALE_MIN) return smallest_scale(&a, t, facts);
    if (nb_op_centres(t->c.op)) return largest_rho(&a, t, facts);
    return (struct nb_prediction){INFINITY, "none: the op does not centre"};
}

/* ---- One question of the search: do the rows of this parameter come back right? ---- */

/* What the worst row of one call over all seeds had. */
struct seen {
    int64_t nan, inf, zero; /* elements of all rows */
    double accurate;        /* largest |error| / what is granted */
    double max_ulp;         /* NaN: nothing to measure */
    uint64_t seed;          /* of the reproducer: the first strange element, else the one with the largest error */
    int64_t row;
    struct nb_row_worst at;
};

enum { SEEDS = 2 };

struct prober {
    struct nb_trial *t;
    struct nb_draws draws[SEEDS];
    struct nb_draw_facts facts;
    struct nb_row_score *scores;
    enum nb_frontier_of of;
};

/* What the closed forms need to know of the draws. */
static void take_facts(struct prober *p) {
    const int64_t rows = p->t->in.rows, cols = p->t->in.cols, seen = nb_truth_elements(&p->t->c);
    p->facts = (struct nb_draw_facts){.n = seen, .least_square = INFINITY};
    for (int s = 0; s < SEEDS; s++)
        for (int64_t r = 0; r < rows; r++) {
            double squares = 0;
            for (int64_t i = r * cols; i < r * cols + seen; i++) {
                const double v = p->draws[s].z[i] + (p->draws[s].z_other ? p->draws[s].z_other[i] : 0);
                squares += v * v;
                p->facts.max_abs = fmax(p->facts.max_abs, fabs(v));
            }
            p->facts.mean_square = fmax(p->facts.mean_square, squares / (double)seen);
            p->facts.least_square = fmin(p->facts.least_square, squares / (double)seen);
        }
}

static int prober_init(struct prober *p, struct nb_trial *t) {
    *p = (struct prober){.t = t};
    t->reason = nb_row_score_refuses(&t->c);
    if (t->reason) return -1;
    for (int s = 0; s < SEEDS; s++) nb_draws_init(&p->draws[s], t, t->c.seed + (unsigned)s);
    p->scores = nb_alloc((unsigned long long)t->in.rows, sizeof *p->scores);
    take_facts(p);
    return 0;
}

static void prober_release(struct prober *p) {
    for (int s = 0; s < SEEDS; s++) nb_draws_release(&p->draws[s]);
    free(p->scores);
}

static int64_t n_strange(const struct seen *seen) { return seen->nan + seen->inf + seen->zero; }

static void add_row(struct seen *seen, uint64_t seed, int64_t row, const struct nb_row_score *s) {
    const struct nb_row_worst *ulp = &s->worst[NB_BY_SCALED];
    const bool is_strange = s->strange.col >= 0;
    if (n_strange(seen) == 0 && (is_strange || (ulp->col >= 0 && !(ulp->value <= seen->max_ulp)))) {
        seen->seed = seed;
        seen->row = row;
        seen->at = is_strange ? s->strange : *ulp;
    }
    seen->nan += s->n_nan;
    seen->inf += s->n_inf;
    seen->zero += s->n_zero;
    seen->accurate = fmax(seen->accurate, s->accurate);
    if (ulp->col >= 0) seen->max_ulp = fmax(seen->max_ulp, ulp->value);
}

/* -1 with t->reason when the kernel failed. */
static int look(struct prober *p, double parameter, struct seen *seen) {
    *seen = (struct seen){.row = -1, .at.col = -1, .max_ulp = NAN};
    for (int s = 0; s < SEEDS; s++) {
        nb_trial_load(p->t, &p->draws[s], p->of == NB_RHO_MAX ? NB_FAMILY_OFFSET : NB_FAMILY_SCALE, parameter);
        if (nb_trial_run(p->t) != 0 || nb_row_score(p->t, p->scores) != 0) return -1;
        for (int64_t r = 0; r < p->t->in.rows; r++) add_row(seen, p->draws[s].seed, r, &p->scores[r]);
    }
    return 0;
}

/* ---- The search proper. A parameter is a positive number of the dtype, taken as its bits: neighbours are one apart, powers of two a
 * fixed stride. ---- */

static int64_t ordinal(double value, enum nb_dtype dtype) {
    uint64_t item = 0;
    nb_set(&item, 0, dtype, value);
    return (int64_t)nb_bits(&item, 0, dtype);
}

static double number(int64_t ordinal_of_it, enum nb_dtype dtype) {
    if (dtype == NB_F32) return nb_float_of((uint32_t)ordinal_of_it);
    return (dtype == NB_F16 ? nb_f16_decode : nb_bf16_decode)((uint16_t)ordinal_of_it);
}

/* Where the search ends. Scales: before a draw of 8 standard deviations would be cut off; rho: where the spread is about one step of
 * the format at the mean. */
static double end_of(enum nb_frontier_of of, enum nb_dtype dtype) {
    const struct nb_format *f = &nb_formats[dtype];
    if (of == NB_SCALE_MAX) return nb_round_to(f->max_finite / 8.5, dtype);
    return of == NB_SCALE_MIN ? f->min_subnormal : ldexp(1, f->precision - 1);
}

/* 1 right, 0 wrong, -1 with t->reason. */
static int right_at(struct prober *p, int64_t at) {
    struct seen seen;
    if (look(p, number(at, p->t->in.dtype), &seen) != 0) return -1;
    return n_strange(&seen) == 0 && seen.accurate <= 1;
}

/* Of the ordinals: outwards. */
static int direction(const struct prober *p) { return p->of == NB_SCALE_MIN ? -1 : 1; }
static bool is_beyond(const struct prober *p, int64_t at, int64_t end) { return direction(p) * (at - end) > 0; }

/* Outwards by powers of two, all the way: the last right one before the first wrong one, that one, and one right beyond. */
struct coarse {
    int64_t good, bad, good_beyond; /* -1: none */
};

static int64_t next_power(const struct prober *p, int64_t at, int64_t end) {
    const double value = number(at, p->t->in.dtype) * (direction(p) > 0 ? 2 : 0.5);
    const int64_t next = ordinal(value, p->t->in.dtype);
    return is_beyond(p, next, end) || next == at ? end : next;
}

static int walk_out(struct prober *p, int64_t start, int64_t end, struct coarse *c) {
    *c = (struct coarse){-1, -1, -1};
    for (int64_t at = start;; at = next_power(p, at, end)) {
        const int right = right_at(p, at);
        if (right < 0) return -1;
        if (right && c->bad < 0) c->good = at;
        if (right && c->bad >= 0) c->good_beyond = at;
        if (!right && c->bad < 0) c->bad = at;
        if (at == end || (c->bad >= 0 && c->good < 0)) return 0;
    }
}

static int bisect(struct prober *p, int64_t *good, int64_t *bad) {
    while (llabs(*bad - *good) > 1) {
        const int64_t middle = *good + (*bad - *good) / 2;
        const int right = right_at(p, middle);
        if (right < 0) return -1;
        *(right ? good : bad) = middle;
    }
    return 0;
}

/* Steps on either side, near ones and some further off: all before the frontier should be right, all beyond it wrong. */
static int verify_sides(struct prober *p, int64_t good, int64_t bad, int64_t end, struct nb_frontier *out) {
    static const int64_t steps[] = {1, 2, 3, 5, 16, 128, 4096};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        const int64_t before = good - direction(p) * steps[i], beyond = bad + direction(p) * steps[i];
        const bool in_range = before > 0 && !is_beyond(p, before, end) && !is_beyond(p, beyond, end) && beyond > 0;
        if (!in_range) continue;
        const int was = right_at(p, before), is = right_at(p, beyond);
        if (was < 0 || is < 0) return -1;
        if (!was) out->monotone = false;
        if (is) out->good_beyond = number(beyond, p->t->in.dtype);
    }
    return 0;
}

static int find(struct prober *p, enum nb_frontier_of of, struct nb_frontier *out) {
    const struct nb_trial *t = p->t;
    const enum nb_dtype dtype = t->in.dtype;
    *out = (struct nb_frontier){.of = of, .monotone = true, .good = NAN, .bad = NAN, .good_beyond = NAN};
    out->searched_to = end_of(of, dtype);
    out->predicted = predict(t, of, &p->facts);
    p->of = of;
    if (of == NB_RHO_MAX && !nb_op_centres(t->c.op)) return 0;
    const int64_t end = ordinal(out->searched_to, dtype);
    struct coarse c;
    if (walk_out(p, ordinal(of == NB_RHO_MAX ? 0x1p-4 : 1, dtype), end, &c) != 0) return -1;
    if (c.good_beyond >= 0) out->good_beyond = number(c.good_beyond, dtype);
    if (c.good >= 0 && c.bad >= 0 && (bisect(p, &c.good, &c.bad) != 0 || verify_sides(p, c.good, c.bad, end, out) != 0))
        return -1;
    if (c.good >= 0) out->good = number(c.good, dtype);
    if (c.bad >= 0) out->bad = number(c.bad, dtype);
    if (!isnan(out->good_beyond)) out->monotone = false;
    return 0;
}

/* ---- What was found, in words and keys that replay it ---- */

static const char *const frontier_names[NB_N_FRONTIERS] = {"scale_max", "scale_min", "rho_max"};

static void add_key(cJSON *json, const char *name, const struct nb_trial *t, enum nb_frontier_of of, double value,
                    uint64_t seed) {
    char number[32], data[64];
    nb_shortest_text(value, number);
    snprintf(data, sizeof data, "%s(%s)", of == NB_RHO_MAX ? "offset" : "scale", number);
    char *replay freed = NULL, *key freed = nb_trial_key(t, data, seed, 0, &replay);
    nb_json_text(json, name, key);
    if (name[0] == 'b') nb_json_text(json, "replay", replay);
}

static const struct nb_member reproducer_members[] = {
    NB_MEMBER(UINT64, struct seen, seed),
    NB_MEMBER(COUNT, struct seen, row),
    NB_MEMBER_AS("col", COUNT, struct seen, at.col),
    NB_MEMBER_AS("got", EXACT, struct seen, at.got),
    NB_MEMBER_AS("want", EXACT, struct seen, at.want),
    NB_MEMBERS_END,
};
static const struct nb_member seen_members[] = {
    NB_MEMBER_GROUP("reproducer", reproducer_members),
    NB_MEMBER(COUNT, struct seen, nan),
    NB_MEMBER(COUNT, struct seen, inf),
    NB_MEMBER(COUNT, struct seen, zero),
    NB_MEMBER(NUMBER, struct seen, max_ulp),
    NB_MEMBERS_END,
};

static const char *status_of(const struct nb_frontier *f) {
    if (isnan(f->good)) return isnan(f->bad) ? "does_not_apply" : "never";
    return isnan(f->bad) ? "none" : "found";
}

/* Null after a failure of the kernel. */
static cJSON *to_json(struct prober *p, const struct nb_frontier *f) {
    struct seen seen = {.seed = p->t->c.seed};
    const bool has_bad = !isnan(f->bad);
    if (has_bad && look(p, f->bad, &seen) != 0) return NULL;
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "of", frontier_names[f->of]);
    nb_json_number(json, "ulp", nb_granted_ulp(p->t->in.dtype));
    nb_json_number(json, "noise", NB_GRANTED_NOISE);
    nb_json_text(json, "status", status_of(f));
    nb_json_number(json, "good", f->good);
    nb_json_number(json, "bad", f->bad);
    nb_json_number(json, "searched_to", f->searched_to);
    cJSON_AddBoolToObject(json, "monotone", f->monotone);
    nb_json_number(json, "good_beyond", f->good_beyond);
    nb_json_number(json, "predicted", f->predicted.at);
    nb_json_text(json, "rule", f->predicted.rule);
    nb_json_number(json, "ratio", has_bad ? f->good / f->predicted.at : NAN);
    if (has_bad) cJSON_AddItemToObject(json, "seen", nb_json_of_members(seen_members, &seen));
    if (!isnan(f->good)) add_key(json, "good_key", p->t, f->of, f->good, seen.seed);
    if (has_bad) add_key(json, "bad_key", p->t, f->of, f->bad, seen.seed);
    return json;
}

cJSON *nb_frontiers(struct nb_trial *t, const cJSON *options) {
    struct prober p released_by(prober_release);
    if (prober_init(&p, t) != 0) return NULL;
    cJSON *all = cJSON_CreateArray();
    for (int of = 0; of < NB_N_FRONTIERS; of++) {
        struct nb_frontier f;
        cJSON *one = find(&p, (enum nb_frontier_of)of, &f) == 0 ? to_json(&p, &f) : NULL;
        if (!one) {
            cJSON_Delete(all);
            return NULL;
        }
        cJSON_AddItemToArray(all, one);
    }
    return all;
}
