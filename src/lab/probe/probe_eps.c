// SPDX-License-Identifier: Apache-2.0
/* Where eps stands, what it is worth, in which format it is kept; and how many digits the statistics have.
 *
 * Place: y of a row with v = eps = 1, and how y of a row next to nothing falls when eps grows 16-fold. Format: a number that is
 * rounded to a format before it is used changes an output only where it crosses the middle between two numbers of that format. */
#include <math.h>
#include <stdio.h>

#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/lab/probe/probe_box.h"

enum { COLS = 64 };

/* y / x of a row of +-a. */
static double gain(struct nb_box *b, double a, double eps) {
    nb_box_set_level(b, a);
    nb_trial_set_eps(&b->t, eps);
    return nb_box_run(b) == 0 ? nb_box_y(b, 0, 0) / a : NAN;
}

static bool near(double x, double y) { return fabs(x - y) <= 0.015 * fabs(y); }

/* What the gain does next to zero, eps^power, and at v = m eps = 1, m being the multiple of eps that the row next to zero showed. */
static const struct {
    double power, gain;
    int place;
    const char *name;
} places[] = {
    {-0.5, 0.70710678, NB_EPS_INSIDE, "inside: 1/sqrt(v + eps)"},
    {-1, 0.5, NB_EPS_OUTSIDE, "outside: 1/(sqrt(v) + eps)"},
    {-1, 1, NB_EPS_CLAMP, "clamp: 1/max(sqrt(v), eps)"},
    {-0.5, 1, -1, "clamp inside: 1/sqrt(max(v, eps))"},
    {0, 1, -1, "nowhere: it has no effect"},
};

static void say_added_to(struct nb_probe *p, double m) {
    const char *value = NULL;
    if (near(m, 1)) value = p->of_sum ? "the sum" : "the mean";
    if (near(m, 1.0 / COLS) && !p->of_sum) value = "the sum";
    if (near(m, COLS)) value = p->of_sum ? "the mean" : "n times to the mean";
    nb_probe_say(p, "eps_added_to", value, "certain", "a row of n = %d near zero shows %.6g eps", COLS, m);
}

static void ask_place(struct nb_probe *p, struct nb_box *b) {
    const double tiny = 0x1p-10; /* next to nothing against eps = 64 */
    const double small = gain(b, tiny, 64), smaller = gain(b, tiny, 1024), power = log2(smaller / small) / 4;
    double m = 1; /* eps is multiplied by this before it is used */
    if (fabs(power + 0.5) < 0.02) m = 1 / (small * small * 64);
    if (fabs(power + 1) < 0.02) m = 1 / (small * 64);
    const double even = gain(b, p->of_sum ? 0.125 : 1, 1 / m); /* v = 1 */
    const char *name = NULL;
    for (size_t i = 0; i < sizeof places / sizeof places[0] && !name; i++) {
        if (!near(even, places[i].gain) || !(fabs(power - places[i].power) < 0.02)) continue;
        name = places[i].name;
        p->eps_place = places[i].place;
    }
    const char *short_name = p->eps_place >= 0 ? nb_eps_place_names[p->eps_place] : name;
    nb_probe_say(p, "eps_place", short_name, "certain",
                 "near zero the gain varies as eps^%.3f; at v = 1, which is %.4g eps, it is %.4g%s%s", power, m, even,
                 name ? ": " : "", name ? name : "");
    p->eps_on_sum = p->eps_place == NB_EPS_INSIDE && !p->of_sum && near(m, 1.0 / COLS);
    p->eps_plain = p->eps_place >= 0 && (near(m, 1) || p->eps_on_sum);
    if (p->eps_place == NB_EPS_INSIDE) say_added_to(p, m);
}

/* The gain of two elements +-a in a long row of zeros: a so small that v adds less than 1/256 of eps, or of its root. */
static double effective_eps(struct nb_probe *p, double *a, double *share) {
    struct nb_box b released_by(nb_box_release);
    const bool inside = p->eps_place == NB_EPS_INSIDE;
    const double eps = p->c.eps, least = p->format->min_subnormal * 16;
    *a = fmax(exp2(floor(log2(inside ? sqrt(eps) : eps)) - 4), least);
    const double v = 2 * *a * *a / (p->of_sum ? 1 : (double)NB_PROBE_COLS);
    *share = inside ? v / eps * (p->eps_on_sum ? (double)NB_PROBE_COLS : 1) : sqrt(v) / eps;
    if (nb_box_init(&b, p, 1, NB_PROBE_COLS, eps) != 0) return NAN;
    nb_box_set(&b, 0, 0, *a);
    nb_box_set(&b, 0, 1, -*a);
    if (nb_box_run(&b) != 0) return NAN;
    const double gained = nb_box_y(&b, 0, 0) / *a, multiple = p->eps_on_sum ? (double)NB_PROBE_COLS : 1;
    return inside ? multiple / (gained * gained) : 1 / gained;
}

static void ask_value(struct nb_probe *p) {
    const double eps = p->c.eps;
    char text[32];
    double a, share;
    if (p->eps_place < 0 || !(eps > 0)) {
        nb_probe_say(p, "eps_effective", NULL, NULL, eps > 0 ? "its place is not known" : "eps is 0 here");
        return;
    }
    const double effective = effective_eps(p, &a, &share);
    snprintf(text, sizeof text, "%.4g", effective);
    const char *value = isfinite(effective) && effective > 0 && share < 0x1p-7 ? text : NULL;
    nb_probe_say(p, "eps_effective", value, "as exact as the output",
                 value ? "x = %.3g shows %.7g where %.9g was passed; the row itself adds %.2g of it"
                       : "x = %.3g shows %.7g where %.9g was passed, and the row itself adds %.2g of it",
                 a, effective, eps, share);
}

/* Distance from x to the nearest middle between two neighbours of a format, in its spacings. */
static double from_middle(double x, enum nb_dtype dtype) {
    const double ulp = nb_ulp(x, dtype), steps = x / ulp - 0.5;
    return fabs(steps - nearbyint(steps));
}

/* Drops of y in eps from 64 to 128, with x as it is. Twelve: the steps of an estimate's table may fall on middles too, but not all. */
enum { N_DROPS = 12 };
static int find_drops(struct nb_box *b, double drops[N_DROPS]) {
    if (nb_box_run(b) != 0) return -1;
    for (int i = 0; i < N_DROPS; i++) {
        const double low = 64 * (1.02 + 0.075 * i), high = 64 * (1.09 + 0.075 * i);
        if (nb_box_rerun(b, low + 2) != 0) return -1;
        drops[i] = nb_box_drop(b, 0, fabs(nb_box_y(b, 0, 0)), low, high);
        if (isnan(drops[i])) return -1;
    }
    return 0;
}

/* The narrowest format at whose middles all drops lie. Numbers that pass through f32 first carry its half spacing. */
static int format_of(const double drops[N_DROPS]) {
    static const enum nb_dtype formats[] = {NB_BF16, NB_F16, NB_F32};
    for (size_t f = 0; f < 3; f++) {
        const enum nb_dtype dtype = formats[f];
        const double slack = dtype == NB_F32 ? 0x1p-10 : nb_ulp(64, NB_F32) / nb_ulp(64, dtype) + 0x1p-10;
        int n = 0;
        for (int i = 0; i < N_DROPS; i++) n += from_middle(drops[i], dtype) <= slack;
        if (n == N_DROPS) return (int)dtype;
    }
    return -1;
}

/* sqrt(v) = 2^-6.5: no multiple of f32's spacing at eps, so that drops of a sum in f32 of a wider eps are off its middles. */
static bool drops_beside_root(struct nb_box *b) {
    double drops[N_DROPS];
    for (int64_t i = 0; i < b->cols; i++) nb_box_set(b, 0, i, i % 4 == 0 ? 0x1p-6 : i % 4 == 1 ? -0x1p-6 : 0);
    return find_drops(b, drops) == 0 && format_of(drops) == NB_F32;
}

/* A row next to zero shows the format of eps, or that of v + eps; one with v about eps shows which of the two it is. */
static void ask_dtype(struct nb_probe *p, struct nb_box *b) {
    double drops[N_DROPS], beside[N_DROPS];
    const bool inside = p->eps_place == NB_EPS_INSIDE;
    const double even = inside ? 5.28125 : 42.25; /* five to seven digits: even^2 is exact */
    nb_box_set_level(b, 0x1p-10);
    if (p->eps_place < 0 || find_drops(b, drops) != 0) {
        nb_probe_say(p, "eps_dtype", NULL, NULL,
                     p->eps_place < 0 ? "its place is not known" : "y does not fall where eps grows");
        return;
    }
    const int format = format_of(drops);
    p->coarse_eps = format == NB_BF16 || format == NB_F16;
    if (format < 0) {
        nb_probe_say(
            p, "eps_dtype", NULL, NULL,
            "y drops at eps = %.12g, %.12g: no midpoint of f32, f16 or bf16; wider than f32, or drops of the root",
            drops[0], drops[1]);
        return;
    }
    const char *name = nb_formats[format].name;
    nb_box_set_level(b, even);
    const int beside_format = find_drops(b, beside) == 0 ? format_of(beside) : -1;
    const bool is_f32 = format == NB_F32 && (inside || drops_beside_root(b));
    if (is_f32 || (format != NB_F32 && beside_format == format && p->eps_place != NB_EPS_CLAMP))
        nb_probe_say(p, "eps_dtype", name, "certain", "y drops at eps = %.12g, %.12g: midpoints of %s", drops[0],
                     drops[1], name);
    else
        nb_probe_say(p, "eps_dtype", NULL, NULL,
                     "what eps enters is rounded to %s, which hides the format of eps itself", name);
}

/* ---- how many digits the statistics have ---- */

/* Eight rows whose v differ by 2^-13 of itself, each an exact sum in any order. Returns how many are weighed right, -1: they cannot be. */
enum { N_SUMS = 8 };
static int weigh_neighbours(struct nb_probe *p, int *coarse, const char **why) {
    struct nb_box b released_by(nb_box_release);
    struct nb_scale s;
    const double a = 16;
    int right = 0;
    *coarse = 0;
    *why = "a call failed";
    if (nb_box_init(&b, p, 1, COLS, 0) != 0 || nb_scale_init(&s, &b, 0, a, why) != 0) return -1;
    const double base = s.known * (p->of_sum ? 1 : COLS);
    for (int64_t k = 1; k <= N_SUMS; k++) { /* pairs of +-1/8 */
        nb_box_set(&b, 0, 30 + 2 * k, 0.125);
        nb_box_set(&b, 0, 31 + 2 * k, -0.125);
        const double off = fabs(nb_scale_weigh(&s, &b, 0, a) - base - (double)k / 32);
        right += off <= 0.008;
        *coarse += off > 0.016;
    }
    return right;
}

/* Without eps: a row with v about 1.5, halfway between two middles of the format, and 64 elements of all significands that count for
 * nothing. `moved` is how far v lies from 1.5 in half spacings; y of the 64. */
enum { SEERS = 64, CELL_COLS = 256 };
static int see_cell(struct nb_box *b, double moved, double y[SEERS]) {
    const double target = 1.5 + moved * b->p->format->unit_roundoff;
    double sum = 0;
    nb_box_clear(b);
    for (int64_t i = 0; i < SEERS; i++) {
        nb_box_set(b, 0, 2 * i, (1 + (double)i / SEERS) * 0x1p-7);
        nb_box_set(b, 0, 2 * i + 1, -b->x[2 * i]);
    }
    for (int64_t i = 2 * SEERS; i < 2 * SEERS + 94; i++) nb_box_set(b, 0, i, i % 2 ? -2 : 2);
    for (int64_t i = 0; i < CELL_COLS; i++) sum += b->x[i] * b->x[i];
    const double last = sqrt((target * CELL_COLS - sum) / 2);
    nb_box_set(b, 0, CELL_COLS - 2, last);
    nb_box_set(b, 0, CELL_COLS - 1, -last);
    if (nb_box_run(b) != 0) return -1;
    for (int64_t i = 0; i < SEERS; i++) y[i] = nb_box_y(b, 0, 2 * i);
    return 0;
}

static int n_differing(const double a[SEERS], const double b[SEERS]) {
    int n = 0;
    for (int i = 0; i < SEERS; i++) n += a[i] != b[i];
    return n;
}

/* Where v is rounded to x's format no output moves within the cell, and most do where v crosses its end; 1 / sqrt(v), were it rounded,
 * would stay in its own cell throughout. */
static void say_cells(struct nb_probe *p) {
    struct nb_box b released_by(nb_box_release);
    double low[SEERS], high[SEERS], beyond[SEERS];
    if (nb_box_init(&b, p, 1, CELL_COLS, 0) != 0 || see_cell(&b, -0.8, low) != 0 || see_cell(&b, 0.88, high) != 0 ||
        see_cell(&b, 1.12, beyond) != 0)
        return;
    char finer[40];
    const int inside = n_differing(low, high), across = n_differing(high, beyond);
    snprintf(finer, sizeof finer, "finer than %s", p->format->name);
    const char *value = inside > SEERS / 5 ? finer : inside == 0 && across > SEERS / 4 ? p->format->name : NULL;
    nb_probe_say(p, "statistics_dtype", value, "strong",
                 "of %d outputs %d change while v stays next to one number of %s, %d where it goes on to the next",
                 SEERS, inside, p->format->name, across);
}

static void ask_statistics(struct nb_probe *p) {
    int coarse;
    const char *why;
    const int right = weigh_neighbours(p, &coarse, &why);
    if (p->failure) return;
    p->fine_stats = right == N_SUMS;
    p->coarse_stats = p->dtype != NB_F32 && (right < 0 ? p->coarse_eps : coarse > N_SUMS / 2);
    p->why_not_weighed = right < 0 ? why : "sums cannot be weighed finely enough";
    if (p->fine_stats)
        nb_probe_say(p, "statistics_dtype", "f32 or wider", "strong", "%d sums 2^-13 apart were weighed right", right);
    else if (p->dtype != NB_F32 && !p->of_sum)
        say_cells(p);
    else
        nb_probe_say(p, "statistics_dtype", NULL, NULL, "%s", p->why_not_weighed);
}

void nb_probe_eps(struct nb_probe *p) {
    struct nb_box b released_by(nb_box_release);
    if (nb_box_init(&b, p, 1, COLS, 0) != 0) return;
    ask_place(p, &b);
    if (!b.broken) ask_value(p);
    ask_dtype(p, &b);
    if (!p->failure) ask_statistics(p);
}
