// SPDX-License-Identifier: Apache-2.0
#include "src/lab/probe/probe_box.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/core/log.h"
#include "src/core/random.h"

static int fail(struct nb_box *b) {
    struct nb_probe *p = b->p;
    b->broken = true;
    snprintf(p->failure_text, sizeof p->failure_text, "%s", b->t.reason ? b->t.reason : "no reason given");
    p->failure = p->failure_text;
    return -1;
}

static void shape_case(struct nb_case *c, int64_t rows, int64_t cols) {
    c->shape = nb_shape_of(rows, cols);
    if (c->op == NB_OP_PRMSNORM) snprintf(c->k_text, sizeof c->k_text, "%lld", (long long)cols);
    nb_case_normalize(c);
}

int nb_box_init(struct nb_box *b, struct nb_probe *p, int64_t rows, int64_t cols, double eps) {
    struct nb_case c = p->c;
    *b = (struct nb_box){.p = p, .rows = rows, .cols = cols};
    shape_case(&c, rows, cols);
    if (nb_trial_init(&b->t, &c, p->entry) != 0) return fail(b);
    b->x = nb_alloc((unsigned long long)(rows * cols), sizeof *b->x);
    b->gamma = nb_alloc((unsigned long long)cols, sizeof *b->gamma);
    b->beta = nb_alloc((unsigned long long)cols, sizeof *b->beta);
    for (int64_t i = 0; i < cols; i++) b->gamma[i] = p->unit;
    nb_trial_set_eps(&b->t, eps);
    return 0;
}

void nb_box_release(struct nb_box *b) {
    if (b->p) b->p->calls += b->t.calls;
    nb_trial_release(&b->t);
    nb_free_all(b->x, b->gamma, b->beta);
    *b = (struct nb_box){0};
}

void nb_box_set(struct nb_box *b, int64_t row, int64_t col, double x) {
    assert(row < b->rows && col < b->cols);
    b->x[row * b->cols + col] = nb_round_to(x, b->p->dtype);
}

void nb_box_set_level(struct nb_box *b, double a) {
    for (int64_t i = 0; i < b->cols; i++) nb_box_set(b, 0, i, i % 2 ? -a : a);
}

void nb_box_fill_normal(struct nb_box *b, uint64_t stream) {
    const struct nb_random random = nb_random_stream(13, stream);
    for (int64_t row = 0; row < b->rows; row++)
        for (int64_t i = 0; i < b->cols; i++) {
            const double x = nb_random_normal(random, (uint64_t)(row * b->cols + i));
            nb_box_set(b, row, i, x);
            if (b->p->centres && i % 2) nb_box_set(b, row, i, -b->x[row * b->cols + i - 1]);
        }
}

int nb_box_rerun(struct nb_box *b, double eps) {
    nb_trial_set_eps(&b->t, eps);
    return nb_trial_run(&b->t) == 0 ? 0 : fail(b);
}

int nb_box_run(struct nb_box *b) {
    nb_trial_set_params(&b->t, b->gamma, b->beta);
    nb_trial_set_x(&b->t, b->x, NULL);
    return nb_trial_run(&b->t) == 0 ? 0 : fail(b);
}

/* A call with another value of what y falls with. */
typedef int (*try_fn)(struct nb_box *b, int64_t col, double value);

static int try_eps(struct nb_box *b, int64_t col, double eps) { return nb_box_rerun(b, eps); }
static int try_weight(struct nb_box *b, int64_t col, double divisor) {
    b->gamma[col] = 1 / divisor - (b->p->unit == 0 ? 1 : 0);
    nb_trial_set_params(&b->t, b->gamma, b->beta);
    return nb_box_rerun(b, 0);
}

/* Does y stand above the level there? */
static bool is_above(struct nb_box *b, int64_t col, double level, try_fn try, double value) {
    return try(b, col, value) == 0 && fabs(nb_box_y(b, 0, col)) > level;
}

static double drop_of(struct nb_box *b, int64_t col, double level, try_fn try, double low, double high) {
    if (!is_above(b, col, level, try, low) || is_above(b, col, level, try, high)) return NAN;
    for (double width = high - low; high - low > width * 0x1p-36 && !b->broken;) {
        const double middle = low + (high - low) / 2;
        if (middle <= low || middle >= high) break;
        if (is_above(b, col, level, try, middle))
            low = middle;
        else
            high = middle;
    }
    return b->broken ? NAN : low + (high - low) / 2;
}

double nb_box_drop(struct nb_box *b, int64_t col, double level, double low, double high) {
    return drop_of(b, col, level, try_eps, low, high);
}

/* ---- weighing ---- */

static double divisor(const struct nb_probe *p, int64_t n) { return p->of_sum ? 1 : (double)n; }

/* With eps as a clamp: y = a / sqrt(v), to be believed only where the output has the digits. */
static double read_off(const struct nb_box *b, int64_t at, double a) {
    const double scale = a / nb_box_y(b, 0, at);
    return scale * scale * divisor(b->p, b->cols);
}

static int init_direct(struct nb_scale *s, struct nb_box *b, int64_t at, double a, const char **why) {
    s->direct = true;
    s->tolerance = a * a * 0x1p-20;
    *why = "with such an eps a sum can only be read off the output, which has too few bits";
    if (b->p->dtype != NB_F32) return -1;
    *why = "with such an eps a sum can only be read off the output, and the root is too far off for that";
    const double sum = s->known * divisor(b->p, b->cols);
    return nb_box_rerun(b, 0) == 0 && fabs(read_off(b, at, a) - sum) <= s->tolerance / 2 ? 0 : -1;
}

/* y = x weight / sqrt(v): v is weighed against the weight, of which f32 holds all digits, unless x / sqrt(v) is rounded before. */
static int init_by_weight(struct nb_scale *s, struct nb_box *b, int64_t at, double a, const char **why) {
    s->by_weight = true;
    s->tolerance = a * a * 0x1p-21; /* of the two v, each off by the roundings of rstd and of two products */
    *why = "eps is kept in 16 bits, and no f32 weight is passed either";
    if (!b->p->has_gamma || b->p->c.formula.param == NB_PARAM_X) return -1;
    *why = "y does not fall where the weight does";
    if (try_weight(b, at, 1.4) != 0) return -1;
    s->level = fabs(nb_box_y(b, 0, at));
    s->drop = drop_of(b, at, s->level, try_weight, 1, 2);
    return isnan(s->drop) ? -1 : 0;
}

/* a, and where the mean is taken off 16 times -a / 16: whatever the order, all sums are exact. */
static void set_known_row(struct nb_scale *s, struct nb_box *b, int64_t at, double a) {
    nb_box_clear(b);
    nb_box_set(b, 0, at, a);
    if (!b->p->centres) return;
    for (int64_t i = 1; i <= 16; i++) nb_box_set(b, 0, (at + i) % b->cols, -a / 16);
    s->known *= 1.0625;
}

int nb_scale_init(struct nb_scale *s, struct nb_box *b, int64_t at, double a, const char **why) {
    const struct nb_probe *p = b->p;
    *s = (struct nb_scale){.n = b->cols, .known = a * a / divisor(p, b->cols), .unit = nb_eps_unit(p, b->cols)};
    *why = "the place of eps is not known, and sums are weighed against eps";
    if (p->eps_place < 0) return -1;
    set_known_row(s, b, at, a);
    if (nb_box_run(b) != 0) return -1;
    if (p->eps_place == NB_EPS_CLAMP) return init_direct(s, b, at, a, why);
    if (p->coarse_eps && p->dtype == NB_F32) return init_direct(s, b, at, a, why);
    if (p->coarse_eps) return init_by_weight(s, b, at, a, why);
    *why = "eps enters multiplied, and sums are weighed against it";
    if (!p->eps_plain) return -1;
    const double whole = p->eps_place == NB_EPS_OUTSIDE ? sqrt(s->known) : s->known;
    s->tolerance = a * a * (p->eps_place == NB_EPS_OUTSIDE ? 0x1p-22 : 0x1p-24);
    *why = "y does not fall where eps grows";
    if (nb_box_rerun(b, whole / 4 * s->unit) != 0) return -1;
    s->level = fabs(nb_box_y(b, 0, at));
    s->drop = nb_box_drop(b, at, s->level, 0, whole * s->unit);
    return isnan(s->drop) ? -1 : 0;
}

double nb_scale_weigh(const struct nb_scale *s, struct nb_box *b, int64_t at, double a) {
    const struct nb_probe *p = b->p;
    if (nb_box_run(b) != 0) return NAN;
    if (s->direct) return nb_box_rerun(b, 0) == 0 ? read_off(b, at, a) : NAN;
    if (s->by_weight) {
        const double by = drop_of(b, at, s->level, try_weight, 1, 2);
        return s->known * (s->drop / by) * (s->drop / by) * divisor(p, s->n);
    }
    const bool outside = p->eps_place == NB_EPS_OUTSIDE;
    const double whole = outside ? sqrt(s->known) : s->known;
    const double drop = nb_box_drop(b, at, s->level, 0, whole * s->unit);
    const double grown = whole + (s->drop - drop) / s->unit;
    return (outside ? grown * grown : grown) * divisor(p, s->n);
}
