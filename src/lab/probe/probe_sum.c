// SPDX-License-Identifier: Apache-2.0
/* How the squares of a row are summed: format and order.
 *
 * A in column j among numbers of magnitude 1, A^2 = 2^24: in f32 each 1 that is added to a sum holding A^2 is lost, being half a
 * spacing beside an even number; ones that were summed among themselves before are kept. The loss as a function of j is the number of
 * columns behind j that join the same running sum one after another. */
#include "src/lab/probe/probe_sum.h"

#include <math.h>
#include <stdio.h>

static const double A = 4096;

void nb_sum_set_row(struct nb_box *b, int64_t j, double a) {
    const int64_t n = b->cols, zero = nb_sum_zero(n, j), m = n - 2, negative = (m + (int64_t)a) / 2;
    int64_t seen = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = i == j ? a : 0;
        if (i != j && i != zero) {
            x = (seen + 1) * negative / m > seen * negative / m ? -1 : 1; /* spread evenly */
            seen++;
        }
        nb_box_set(b, 0, i, x);
    }
}

static double loss_beside(struct nb_box *b, const struct nb_scale *s, int64_t j, double a) {
    nb_sum_set_row(b, j, a);
    return a * a + (double)(b->cols - 2) - nb_scale_weigh(s, b, j, a);
}
static double loss_of_squares(struct nb_box *b, int64_t j, void *arg) { return loss_beside(b, arg, j, A); }

static bool loses_nothing(const struct nb_losses *l) {
    for (int i = 0; i < l->n_positions; i++)
        if (fabs(l->loss[i]) > l->tolerance) return false;
    return l->n_positions > 0;
}

/* Beside A^2 = 2^34 (2^30 in f16) a tree of f32 sums loses 2^11 (2^7) ones, more than the loss about 2^24 can tell from none; wider
 * sums lose none, and v, rounded to f32, is off by a fraction of that. */
static bool is_wide(struct nb_probe *p) {
    const double a = p->c.dtype == NB_F16 ? 0x1p15 : 0x1p17;
    struct nb_box b;
    struct nb_scale s;
    const char *why;
    double sum = NAN;
    if (p->centres) return false; /* ones do not outweigh such an A */
    if (nb_box_init(&b, p, 1, p->cols, 0) == 0 && nb_scale_init(&s, &b, 0, a, &why) == 0) {
        for (int64_t i = 0; i < p->cols; i++) nb_box_set(&b, 0, i, i ? 1 : a);
        sum = nb_scale_weigh(&s, &b, 0, a);
    }
    nb_box_release(&b);
    return fabs(a * a + (double)(p->cols - 1) - sum) < a * a * 0x1p-24 * 0.6;
}

void nb_sum_measure(struct nb_sum *m, struct nb_probe *p) {
    struct nb_box b;
    struct nb_scale s;
    *m = (struct nb_sum){.why = p->why_not_weighed, .losses = {.n = p->cols}};
    if (!p->fine_stats) return;
    if (nb_box_init(&b, p, 1, p->cols, 0) == 0 && nb_scale_init(&s, &b, 0, A, &m->why) == 0) {
        /* One lane has an odd number of ones and is rounded where it joins A^2. */
        m->losses.tolerance = s.tolerance + 1.2;
        const int fitting = nb_structure_find(&m->losses, loss_of_squares, &b, &s, &m->structure);
        const bool nothing = loses_nothing(&m->losses);
        m->why = fitting < 0 ? "a row left the scale" : "what is lost fits no order of plain sums";
        if (fitting > 1) m->why = "several orders lose the same";
        if (nothing) m->why = "too little is lost beside 2^24 to tell orders apart";
        /* f32 loses nothing beside 2^22; fewer bits would. */
        m->found = fitting == 1 && !nothing && nb_scale_init(&s, &b, 0, A / 2, &m->why) == 0 &&
                   fabs(loss_beside(&b, &s, 0, A / 2)) <= s.tolerance + 3;
        m->wide = nothing && is_wide(p);
    }
    nb_box_release(&b);
}

/* ---- coarse statistics ---- */

/* 128 columns of 2^4 (bf16) or 2^6 (f16), then 2^17 of 1, in any number of lanes up to 128: a sum in x's dtype loses the ones. Read
 * off the output, since v is coarse. */
static void say_coarse(struct nb_probe *p) {
    enum { LARGE = 128, COLS = 1 << 17 };
    struct nb_box b;
    double sum = NAN;
    const double a = p->c.dtype == NB_BF16 ? 16 : 64, exact = LARGE * (a * a) + COLS - LARGE;
    if (nb_box_init(&b, p, 1, COLS, 0) == 0) {
        for (int64_t i = 0; i < COLS; i++) nb_box_set(&b, 0, i, (i % 2 ? -1 : 1) * (i < LARGE ? a : 1));
        if (nb_box_run(&b) == 0) sum = pow(a / nb_box_y(&b, 0, 0), 2) * COLS;
    }
    nb_box_release(&b);
    const bool lost = sum < 0.93 * exact || isinf(sum), kept = fabs(sum - exact) < 0.03 * exact;
    const char *value = lost ? p->format->name : kept ? "f32 or wider" : NULL;
    if (p->of_sum || (p->centres && !kept)) value = NULL; /* a variance may be lost otherwise */
    nb_probe_say(p, "accumulator", value, "strong", "%d columns of %g and %d of 1 were summed to %.6g, exactly %.6g",
                 LARGE, a, COLS - LARGE, sum, exact);
}

/* ---- answers ---- */

static void say_lanes(struct nb_probe *p, const struct nb_sum *m, const char *evidence) {
    char text[96];
    const struct nb_structure *s = &m->structure;
    p->lanes = s->lanes;
    nb_probe_say(p, "accumulator", "f32", "strong", "%s; none beside 2^22", evidence);
    snprintf(text, sizeof text, "%lld", (long long)s->lanes);
    nb_probe_say(p, "lanes", text, "strong",
                 "no other number of lanes loses %.0f at column 0 and fits all %d positions", m->losses.loss[0],
                 m->losses.n_positions);
}

static void say_nothing(struct nb_probe *p, const char *why) {
    nb_probe_say(p, "accumulator", NULL, NULL, "%s", why);
    nb_probe_say(p, "lanes", NULL, NULL, "%s", why);
}

void nb_probe_sum(struct nb_probe *p, const struct nb_sum *m) {
    struct nb_strbuf evidence = {0};
    nb_losses_print(&m->losses, &evidence);
    const bool plain = !p->centres || p->variance == NB_VAR_TWOPASS || p->variance == NB_VAR_CORRECTED ||
                       p->variance == NB_VAR_ONEPASS;
    if (p->coarse_stats) {
        say_coarse(p);
        nb_probe_say(p, "lanes", NULL, NULL, "%s", m->why);
    } else if (!p->fine_stats || (!m->found && !m->wide)) {
        say_nothing(p, m->why);
    } else if (m->wide && !p->centres) {
        nb_probe_say(p, "accumulator", "f64 or compensated", "strong", "%s", evidence.text);
        nb_probe_say(p, "lanes", NULL, NULL, "nothing is lost, whatever the order");
    } else if (plain && m->found) {
        say_lanes(p, m, evidence.text);
    } else {
        say_nothing(p, "the variance is not known to be a plain sum of squares");
    }
    nb_strbuf_release(&evidence);
    nb_probe_sum_details(p, m);
}
