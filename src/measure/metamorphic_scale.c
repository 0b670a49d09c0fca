// SPDX-License-Identifier: Apache-2.0
/* Multiplying by 2^k commutes with every rounding as long as nothing leaves the normal numbers. */
#include "src/measure/metamorphic_scale.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/log.h"

/* Least magnitude beside 0, and largest, of what is stored and of what is normalized. */
struct extent {
    double least, largest;
    bool finite;
};

static void extend(struct extent *e, double v) {
    const double magnitude = fabs(v);
    if (!isfinite(magnitude)) e->finite = false;
    if (magnitude == 0 || !e->finite) return;
    e->least = fmin(e->least, magnitude);
    e->largest = fmax(e->largest, magnitude);
}

static struct extent extent_of(const struct nb_trials *t) {
    const struct nb_inputs *in = &t->fixture->in;
    struct extent e = {.least = INFINITY, .finite = true};
    for (int64_t r = 0; r < in->rows; r++) {
        nb_truth_row(&t->fixture->c, in, r, t->exact);
        for (int64_t i = 0; i < in->cols; i++) {
            extend(&e, t->exact[i]);
            if (in->residual) extend(&e, nb_get(in->x, r * in->cols + i, in->dtype));
            if (in->residual) extend(&e, nb_get(in->residual, r * in->cols + i, in->dtype));
        }
    }
    return e;
}

static const struct nb_format *statistics_format(const struct nb_case *c) {
    return &nb_formats[c->stats_dtype == NB_STATS_X ? c->dtype : NB_F32];
}

static bool is_normal(double v, const struct nb_format *f) { return v >= f->min_normal && v <= f->max_finite; }

/* Does a parameter of the call scale exactly in the statistics' dtype? */
static bool scales(double v, int k, const struct nb_format *f) {
    const enum nb_dtype dtype = (enum nb_dtype)(f - nb_formats);
    if (v == 0) return true;
    const double before = nb_round_to(v, dtype), after = nb_round_to(ldexp(v, k), dtype);
    return is_normal(before, f) && is_normal(after, f) && after == ldexp(before, k);
}

static int eps_power(const struct nb_case *c, int k) { return c->formula.eps_place == NB_EPS_INSIDE ? 2 * k : k; }

static bool centres(const struct nb_case *c) {
    return c->op == NB_OP_LAYERNORM || c->op == NB_OP_ADD_LAYERNORM || c->op == NB_OP_BATCHNORM;
}

/* Why the bits may change under 2^k, or null. */
static const char *excuse(const struct nb_trials *t, const struct extent *e, int k) {
    const struct nb_case *c = &t->fixture->c;
    const struct nb_format *f = statistics_format(c), *stored = &nb_formats[c->dtype];
    const double n = (double)t->oracle->n_stats;
    if (!e->finite) return "Inf or NaN in the rows";
    if (c->op == NB_OP_DYT) return scales(c->alpha, -k, f) ? NULL : "alpha leaves the normal numbers";
    if (!scales(c->eps, eps_power(c, k), f)) return "eps leaves the normal numbers of the statistics";
    for (int power = 0;; power = k) {
        const double least = ldexp(e->least, power), largest = ldexp(e->largest, power);
        /* Centred, the smallest distance from a mean is of the order of the least number's last place, over n. */
        const double distance = centres(c) ? least * f->unit_roundoff / n : least;
        if (e->largest > 0 && (!is_normal(least, stored) || !is_normal(largest, stored)))
            return "rows leave the normal numbers";
        if (e->largest > 0 && (distance * distance < f->min_normal || 8 * n * largest * largest > f->max_finite))
            return "squares may leave the normal numbers of the statistics";
        for (int64_t i = 0; i < t->oracle->n_truth; i++) {
            const double scale = ldexp(t->oracle->truth[i].scale, -power);
            if (isfinite(scale) && !is_normal(scale, f))
                return "1 / sqrt(v) leaves the normal numbers of the statistics";
        }
        if (power == k) return NULL;
    }
}

/* The rows times 2^k, and what must go with them. */
static bool scale_by(struct nb_fixture *fixture, int k) {
    nb_fixture_reset(fixture);
    fixture->c.eps = ldexp(fixture->eps, eps_power(&fixture->c, k));
    fixture->c.alpha = ldexp(fixture->alpha, -k);
    return nb_fixture_scale(fixture, k);
}

/* Elements of rows whose bits are others than the first call's; -1 when the call fails. */
static int64_t count_changed(struct nb_trials *t, int64_t rows, int64_t *first) {
    const enum nb_dtype dtype = t->fixture->in.dtype;
    const int64_t n = rows * t->fixture->in.cols;
    int64_t changed = 0;
    if (!nb_trials_call(t, NB_REL_SCALE, rows, 0)) return -1;
    if (memcmp(t->y, t->first, (size_t)n * t->fixture->item) == 0) return 0;
    for (int64_t i = 0; i < n; i++) {
        if (nb_bits(t->y, i, dtype) == nb_bits(t->first, i, dtype)) continue;
        if (isnan(nb_get(t->y, i, dtype)) && isnan(nb_get(t->first, i, dtype))) continue;
        if (changed++ == 0) *first = i;
    }
    return changed;
}

static void judge_powers(struct nb_trials *t) {
    static const int powers[] = {1, -1, 4, -4};
    const uint32_t root = t->fixture->c.formula.root;
    const bool estimate = t->fixture->c.op != NB_OP_DYT && (root == NB_ROOT_RSQRT_NR || root == NB_ROOT_RSQRT_RAW);
    const char *why = NULL;
    int64_t changed = 0, at = -1;
    int tried = 0;
    nb_fixture_reset(t->fixture);
    const struct extent e = extent_of(t);
    for (size_t i = 0; i < sizeof powers / sizeof powers[0]; i++) {
        const char *excused = excuse(t, &e, powers[i]);
        if (!excused && !scale_by(t->fixture, powers[i])) excused = "rows leave the normal numbers";
        if (excused) {
            why = excused;
            continue;
        }
        int64_t first = -1, n = count_changed(t, t->fixture->in.rows, &first);
        if (n < 0) return;
        if (changed == 0 && n > 0) at = first;
        changed += n;
        tried++;
    }
    if (tried == 0) {
        nb_trials_skip(t, NB_REL_SCALE, why ? why : "");
        return;
    }
    t->out->relations[NB_REL_SCALE].figure = (double)changed;
    if (at >= 0) {
        t->out->relations[NB_REL_SCALE].row = at / t->fixture->in.cols;
        t->out->relations[NB_REL_SCALE].col = at % t->fixture->in.cols;
    }
    if (changed > 0 && estimate)
        nb_trials_skip(t, NB_REL_SCALE, "the hardware's estimate is declared, and it need not scale");
    else
        nb_trials_judge(t, NB_REL_SCALE, "a power of two changes the bits");
}

/* ---- scan ---- */

enum { MOST = 256 };

enum step { SAME, CHANGED, INPUT_ENDS };

static enum step step_at(struct nb_trials *t, int64_t rows, int k) {
    int64_t first;
    if (!scale_by(t->fixture, k)) return INPUT_ENDS;
    return count_changed(t, rows, &first) == 0 ? SAME : CHANGED;
}

/* Doubling steps until something breaks, then halving between the last that held and the first that did not. */
static int scan(struct nb_trials *t, int sign, bool *ended_by_input) {
    const int64_t rows = t->fixture->c.op == NB_OP_BATCHNORM ? t->fixture->in.rows : 1;
    int held = 0, broken = MOST + 1;
    enum step how = INPUT_ENDS;
    for (int k = 4; k <= MOST; k *= 2) {
        const enum step step = step_at(t, rows, sign * k);
        if (step != SAME) {
            broken = k;
            how = step;
            break;
        }
        held = k;
    }
    while (broken - held > 1) {
        const int middle = held + (broken - held) / 2;
        const enum step step = step_at(t, rows, sign * middle);
        if (step == SAME) {
            held = middle;
        } else {
            broken = middle;
            how = step;
        }
    }
    *ended_by_input = how == INPUT_ENDS;
    return held;
}

void nb_trials_scale(struct nb_trials *t) {
    const int64_t rows = t->fixture->in.rows;
    judge_powers(t);
    if (t->out->relations[NB_REL_SCALE].verdict == NB_BROKEN) return;
    if (t->fixture->c.op != NB_OP_BATCHNORM) t->fixture->in.rows = 1;
    t->out->scale_up = scan(t, 1, &t->out->up_ended_by_input);
    t->out->scale_down = scan(t, -1, &t->out->down_ended_by_input);
    t->fixture->in.rows = rows;
    nb_fixture_reset(t->fixture);
}
