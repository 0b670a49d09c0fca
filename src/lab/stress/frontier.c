// SPDX-License-Identifier: Apache-2.0
/* The search proper. A parameter is a positive number of the dtype, taken as its bits: neighbours are one apart, powers of two a
 * fixed stride. Answers are remembered, since three demands ask about the same rows. */
#include "src/lab/stress/frontier.h"

#include <math.h>
#include <stdlib.h>

#include "src/core/dtype.h"

/* ---- the positive numbers of a dtype, in order ---- */

static int64_t ordinal(double value, enum nb_dtype dtype) {
    unsigned char item[8] = {0};
    nb_set(item, 0, dtype, value);
    return (int64_t)nb_bits(item, 0, dtype);
}

static double number(int64_t ordinal_of_it, enum nb_dtype dtype) {
    union {
        float f;
        uint32_t word;
        uint16_t half;
    } item = {.word = 0};
    if (dtype == NB_F32)
        item.word = (uint32_t)ordinal_of_it;
    else
        item.half = (uint16_t)ordinal_of_it;
    return nb_get(&item, 0, dtype);
}

/* Where the search ends. Scales: before a draw of 8 standard deviations would be cut off; rho: where the spread is about one step of
 * the format at the mean. */
static double end_of(enum nb_frontier_of of, enum nb_dtype dtype) {
    const struct nb_format *f = &nb_formats[dtype];
    if (of == NB_SCALE_MAX) return nb_round_to(f->max_finite / 8.5, dtype);
    return of == NB_SCALE_MIN ? f->min_subnormal : ldexp(1, f->precision - 1);
}

/* ---- search ---- */

struct walk {
    struct nb_prober *p;
    enum nb_dtype dtype;
    enum nb_frontier_of of;
    enum nb_demand demand;
    enum nb_family family;
    int direction; /* of the ordinals: outwards */
};

/* 1 right, 0 wrong, -1 failed. */
static int right_at(const struct walk *w, int64_t at) {
    return nb_prober_right(w->p, w->family, number(at, w->dtype), w->demand);
}

static bool is_beyond(const struct walk *w, int64_t at, int64_t end) { return w->direction * (at - end) > 0; }

/* Outwards by powers of two, all the way: the last right one before the first wrong one, that one, and one right beyond. */
struct coarse {
    int64_t good, bad, good_beyond; /* -1: none */
};

static int64_t next_power(const struct walk *w, int64_t at, int64_t end) {
    const double value = number(at, w->dtype) * (w->direction > 0 ? 2 : 0.5);
    const int64_t next = ordinal(value, w->dtype);
    return is_beyond(w, next, end) || next == at ? end : next;
}

static int walk_out(const struct walk *w, int64_t start, int64_t end, struct coarse *c) {
    *c = (struct coarse){-1, -1, -1};
    for (int64_t at = start;; at = next_power(w, at, end)) {
        const int right = right_at(w, at);
        if (right < 0) return -1;
        if (right && c->bad < 0) c->good = at;
        if (right && c->bad >= 0) c->good_beyond = at;
        if (!right && c->bad < 0) c->bad = at;
        if (at == end || (c->bad >= 0 && c->good < 0)) return 0;
    }
}

static int bisect(const struct walk *w, int64_t *good, int64_t *bad) {
    while (llabs(*bad - *good) > 1) {
        const int64_t middle = *good + (*bad - *good) / 2;
        const int right = right_at(w, middle);
        if (right < 0) return -1;
        *(right ? good : bad) = middle;
    }
    return 0;
}

/* Steps on either side, near ones and some further off: all before the frontier should be right, all beyond it wrong. */
static int verify_sides(const struct walk *w, int64_t good, int64_t bad, int64_t end, struct nb_frontier *out) {
    static const int64_t steps[] = {1, 2, 3, 5, 16, 128, 4096};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        const int64_t before = good - w->direction * steps[i], beyond = bad + w->direction * steps[i];
        const bool in_range = before > 0 && !is_beyond(w, before, end) && !is_beyond(w, beyond, end) && beyond > 0;
        if (!in_range) continue;
        const int was = right_at(w, before), is = right_at(w, beyond);
        if (was < 0 || is < 0) return -1;
        if (!was) out->monotone = false;
        if (is) out->good_beyond = number(beyond, w->dtype);
    }
    return 0;
}

int nb_frontier_find(struct nb_prober *p, enum nb_frontier_of of, enum nb_demand demand, struct nb_frontier *out) {
    const struct nb_trial *t = p->t;
    const struct walk w = {
        p, t->in.dtype, of, demand, of == NB_RHO_MAX ? NB_FAMILY_OFFSET : NB_FAMILY_SCALE, of == NB_SCALE_MIN ? -1 : 1};
    *out = (struct nb_frontier){.of = of, .demand = demand, .monotone = true, .good = NAN, .bad = NAN};
    out->good_beyond = NAN;
    out->searched_to = end_of(of, w.dtype);
    out->predicted = nb_frontier_predict(t, of, demand, &p->facts);
    if (of == NB_RHO_MAX && !nb_op_centres(t->c.op)) return 0;
    const int64_t end = ordinal(out->searched_to, w.dtype);
    struct coarse c;
    if (walk_out(&w, ordinal(of == NB_RHO_MAX ? 0x1p-4 : 1, w.dtype), end, &c) != 0) return -1;
    out->has_good = c.good >= 0;
    out->has_bad = c.bad >= 0;
    if (c.good >= 0 && c.bad >= 0 && bisect(&w, &c.good, &c.bad) != 0) return -1;
    if (out->has_good) out->good = number(c.good, w.dtype);
    if (out->has_bad) out->bad = number(c.bad, w.dtype);
    if (c.good_beyond >= 0) out->good_beyond = number(c.good_beyond, w.dtype);
    if (out->has_good && out->has_bad && verify_sides(&w, c.good, c.bad, end, out) != 0) return -1;
    if (!isnan(out->good_beyond)) out->monotone = false;
    return 0;
}
