// SPDX-License-Identifier: Apache-2.0
/* The format of sums of squares, and which variance a LayerNorm forms. */
#include <math.h>

#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/random.h"
#include "src/lab/probe/probe_box.h"

/* ---- The format of the running sums: what a large addend swallows.
 *
 * A = 2^12 among numbers of magnitude 1: in f32 each 1 that is added to a sum which holds A^2 = 2^24 is lost, being half a spacing beside
 * an even number; sums with more bits lose none of them, and sums with fewer lose ones beside 2^22 too. */

static const double A = 4096;

/* The sum of squares. */
struct sum {
    bool is_f32, is_wide; /* wide: nothing is lost */
    double lost;          /* ones beside 2^24 */
    const char *why;      /* neither: the reason */
};

/* a, a zero at the end, and +-1 elsewhere with the sum -a. The squares that are missing from the sum. */
static double loss_beside(struct nb_box *b, const struct nb_scale *s, double a) {
    const int64_t m = b->cols - 2, negative = (m + (int64_t)a) / 2;
    nb_box_clear(b);
    nb_box_set(b, 0, 0, a);
    for (int64_t i = 0; i < m; i++) /* spread evenly */
        nb_box_set(b, 0, i + 1, (i + 1) * negative / m > i * negative / m ? -1 : 1);
    return a * a + (double)m - nb_scale_weigh(s, b, 0, a);
}

/* Beside A^2 = 2^34 (2^30 in f16) a tree of f32 sums loses 2^11 (2^7) ones, more than the loss about 2^24 can distinguish from none; wider
 * sums lose none, and v, rounded to f32, is off by a fraction of that. */
static bool is_wide(struct nb_probe *p) {
    if (p->centres) return false; /* ones do not outweigh such an A */
    const double a = p->dtype == NB_F16 ? 0x1p15 : 0x1p17;
    struct nb_box b released_by(nb_box_release);
    struct nb_scale s;
    const char *why;
    if (nb_box_init(&b, p, 1, NB_PROBE_COLS, 0) != 0 || nb_scale_init(&s, &b, 0, a, &why) != 0) return false;
    for (int64_t i = 0; i < NB_PROBE_COLS; i++) nb_box_set(&b, 0, i, i ? 1 : a);
    const double sum = nb_scale_weigh(&s, &b, 0, a);
    return fabs(a * a + (double)(NB_PROBE_COLS - 1) - sum) < a * a * 0x1p-24 * 0.6;
}

static void measure_squares(struct sum *m, struct nb_probe *p) {
    *m = (struct sum){.lost = NAN, .why = p->why_not_weighed};
    if (!p->fine_stats) return;
    struct nb_box b released_by(nb_box_release);
    struct nb_scale s;
    if (nb_box_init(&b, p, 1, NB_PROBE_COLS, 0) != 0 || nb_scale_init(&s, &b, 0, A, &m->why) != 0) return;
    const double tolerance = s.tolerance + 1.2; /* an odd number of ones is rounded where it joins A^2 */
    m->lost = loss_beside(&b, &s, A);
    m->why = isnan(m->lost) ? "a row left the scale" : "too little is lost beside 2^24";
    if (m->lost > tolerance && nb_scale_init(&s, &b, 0, A / 2, &m->why) == 0) {
        m->is_f32 = fabs(loss_beside(&b, &s, A / 2)) <= s.tolerance + 3;
        m->why = "squares are lost beside 2^22 too";
    }
    m->is_wide = fabs(m->lost) <= tolerance && is_wide(p);
}

/* 128 columns of 2^4 (bf16) or 2^6 (f16), then 2^17 of 1, in any number of lanes up to 128: a sum in x's dtype loses the ones. Read
 * off the output, since v is coarse. */
static void say_coarse(struct nb_probe *p) {
    enum { LARGE = 128, COLS = 1 << 17 };
    struct nb_box b released_by(nb_box_release);
    const double a = p->dtype == NB_BF16 ? 16 : 64, exact = LARGE * (a * a) + COLS - LARGE;
    if (nb_box_init(&b, p, 1, COLS, 0) != 0) return;
    for (int64_t i = 0; i < COLS; i++) nb_box_set(&b, 0, i, (i % 2 ? -1 : 1) * (i < LARGE ? a : 1));
    const double sum = nb_box_run(&b) == 0 ? pow(a / nb_box_y(&b, 0, 0), 2) * COLS : (double)NAN;
    const bool lost = sum < 0.93 * exact || isinf(sum), kept = fabs(sum - exact) < 0.03 * exact;
    const char *value = lost ? p->format->name : kept ? "f32 or wider" : NULL;
    if (p->of_sum || (p->centres && !kept)) value = NULL; /* a variance may be lost otherwise */
    nb_probe_say(p, "accumulator", value, "strong", "%d columns of %g and %d of 1 were summed to %.6g, exactly %.6g",
                 LARGE, a, COLS - LARGE, sum, exact);
}

static void say_accumulator(struct nb_probe *p, const struct sum *m) {
    const bool plain = !p->centres || p->variance == NB_VAR_TWOPASS || p->variance == NB_VAR_CORRECTED ||
                       p->variance == NB_VAR_ONEPASS;
    const char *value = m->is_f32 && plain ? "f32" : m->is_wide && !p->centres ? "f64 or compensated" : NULL;
    if (p->coarse_stats)
        say_coarse(p);
    else if (value)
        nb_probe_say(p, "accumulator", value, "strong", "of %d squares %.0f are lost beside 2^24%s", NB_PROBE_COLS - 2,
                     m->lost, m->is_f32 ? ", none beside 2^22" : "");
    else
        nb_probe_say(p, "accumulator", NULL, NULL, "%s",
                     m->is_f32 || m->is_wide ? "the variance is not known to be a plain sum of squares" : m->why);
}

/* ---- How a LayerNorm forms its mean, from elements next to it: y there is the mean's error times rstd, of which all digits show ---- */

struct mean {
    int n_missed, n_rows;  /* rows with a mean of 0 that was missed */
    bool far_missed;       /* one of them by more than an update in f32 can */
    bool hits_fractions;   /* a mean between two numbers of f32 is taken off as it is; */
    bool rounds_fractions; /* the nearest of these is */
    bool loses;            /* all that is small beside large numbers: a plain sum in f32 */
};

/* ---- means that every plain sum hits ---- */

/* Random integers in pairs of sum 0, and the first 0: y there is 0, unless the mean is missed, as it is where it is updated by rounded
 * quotients. gamma makes what is small visible in f16. */
static void count_missed(struct mean *m, struct nb_probe *p) {
    enum { ROWS = 16, COLS = 6144 };
    struct nb_box b released_by(nb_box_release);
    const struct nb_random random = nb_random_stream(7, 1);
    if (nb_box_init(&b, p, ROWS, COLS, 0) != 0) return;
    for (int64_t i = 0; i < COLS; i++) b.gamma[i] = p->has_gamma ? 4096 : p->unit;
    for (int64_t r = 0; r < ROWS; r++)
        for (int64_t i = 1; i < COLS / 2; i++) {
            const uint64_t bits = nb_random_bits(random, (uint64_t)(r * COLS + i));
            const double x = (double)(bits % 101) * (bits >> 63 ? -1 : 1);
            nb_box_set(&b, r, i, x);
            nb_box_set(&b, r, COLS / 2 + (i * 1021 + 7 * r) % (COLS / 2), -x); /* 1021: odd, no multiple of 3 */
        }
    m->n_rows = ROWS;
    if (nb_box_run(&b) != 0) return;
    for (int64_t r = 0; r < ROWS; r++) {
        const double missed = fabs(nb_box_y(&b, r, 0)) / (p->has_gamma ? 4096 : 1);
        m->n_missed += missed != 0;
        m->far_missed = m->far_missed || missed > 0x1p-14;
    }
}

/* ---- means between two numbers of f32 ---- */

/* C + d (-1, 0, 1 in turn), one element raised by d: all sums are exact, and the mean is C + d / n, a third of a spacing from a number of
 * f32. y of an element C beside that of an element C + d shows what was taken off: the mean, or that number. */
static void see_fractions(struct mean *m, struct nb_probe *p) {
    struct nb_box b released_by(nb_box_release);
    const double centre = p->dtype == NB_F16 ? 1024 : 4096, d = p->dtype == NB_BF16 ? 32 : 1;
    const int64_t n = p->dtype == NB_BF16 ? 12288 : 768;
    if (nb_box_init(&b, p, 1, n, 0) != 0) return;
    for (int64_t i = 0; i < n; i++) nb_box_set(&b, 0, i, centre + d * (double)(i % 3 - 1));
    nb_box_set(&b, 0, 31, centre + d); /* 31 % 3 == 1 */
    if (nb_box_run(&b) != 0) return;
    const double exact = d / (double)n, rounded = (double)(float)(centre + exact) - centre;
    const double seen = -nb_box_y(&b, 0, 1) / nb_box_y(&b, 0, 2);
    m->hits_fractions = fabs(seen * (d - exact) / exact - 1) < 0.02;
    m->rounds_fractions = fabs(seen * (d - rounded) / rounded - 1) < 0.02;
}

/* ---- the sum ---- */

/* M in the first 1024 columns, -M in the last, u between, M = 2^24 u: a plain sum in f32, of up to 1024 lanes, loses every u, and so does
 * the sum of what is left after that mean. Then the mean is 0, and y where x is u is u rstd; a mean that keeps its digits is u (1 - 2048 / n).
 * In f16, whose numbers span less, gamma lifts y. */
static void see_losses(struct mean *m, struct nb_probe *p) {
    enum { N = NB_PROBE_COLS, LARGE = 1024, AT = N / 2 };
    const bool narrow = p->dtype == NB_F16;
    const double large = narrow ? 0x1p15 : 0x1p24, unit = large * 0x1p-24, lift = narrow ? 0x1p14 : 1;
    if (narrow && !p->has_gamma) return;
    struct nb_box b released_by(nb_box_release);
    if (nb_box_init(&b, p, 1, N, 0) != 0) return;
    for (int64_t i = 0; i < N; i++) nb_box_set(&b, 0, i, i < LARGE ? large : i < N - LARGE ? unit : -large);
    b.gamma[AT] = lift - (p->unit == 0 ? 1 : 0);
    if (nb_box_run(&b) != 0) return;
    const double taken_off = 1 - nb_box_y(&b, 0, AT) / lift / nb_box_y(&b, 0, 0) * 0x1p24; /* in u */
    m->loses = fabs(taken_off) < 0.02;
}

static void mean_measure(struct mean *m, struct nb_probe *p) {
    *m = (struct mean){0};
    count_missed(m, p);
    if (!p->failure) see_fractions(m, p);
    if (!p->failure) see_losses(m, p);
}

/* ---- Which variance a LayerNorm forms.
 *
 * E[x^2] - mean^2 of a row at 2^12 is a difference of numbers near 2^24, which are multiples of 2: it misses a v that is none. About x_0
 * the same holds where x_0 is far from the rest; about another number, with a second sweep where that one is far off, squares of it are
 * lost beside large ones. Welford's mean is updated by rounded quotients, so that it misses means that every
 * plain sum hits. What is left, if its sums are plain ones in f32, is two-pass, or corrected: a correction adds digits to a mean. */

/* A centre with a spacing of at most 32, and differences from it that are far smaller: rho of 2^7 and more. */
static double centre_of(const struct nb_probe *p) { return p->dtype == NB_F16 ? 1024 : 4096; }

/* ---- differences of large numbers ---- */

/* Two rows with the same v, `turn` 0 and 1; y in column COL is read. Returns v (exactly). */
typedef double (*fill_fn)(struct nb_box *b, int turn, int variation);
enum { COL = 5, OUTLIER_COLS = 4096 };

/* The drops of y in eps on both rows, below what it has on the first at this eps by a little, since x - mean may differ in its last
 * bits. */
static int drops_at(struct nb_box *b, fill_fn fill, int variation, double share, double drops[2]) {
    double level = 0;
    for (int turn = 0; turn < 2; turn++) {
        const double v = fill(b, turn, variation), unit = nb_eps_unit(b->p, b->cols);
        const double whole = unit * (b->p->eps_place == NB_EPS_OUTSIDE ? sqrt(v) : v);
        nb_trial_set_eps(&b->t, whole * share);
        if (nb_box_run(b) != 0) return -1;
        if (turn == 0) level = fabs(nb_box_y(b, 0, COL)) * (1 - 0x1p-18);
        drops[turn] = nb_box_drop(b, COL, level, 0, whole * 0.75);
    }
    return b->broken || isnan(drops[0]) ? -1 : 0;
}

/* How far the kernel's v of the second row is from that of the first, relative; infinite when y is not where it was at any eps up to v.
 * The least of three levels, since an estimate's y may rise here and there. NaN: why. */
static double miss(struct nb_probe *p, int64_t n, fill_fn fill, int variation, const char **why) {
    static const double shares[] = {0.25, 0.31, 0.37};
    double drops[2], least = INFINITY;
    int n_known = 0;
    *why = "eps cannot be weighed against";
    if (p->eps_place < 0 || p->eps_place == NB_EPS_CLAMP || !p->eps_plain) return NAN;
    *why = "y does not fall where eps grows";
    struct nb_box b released_by(nb_box_release);
    if (nb_box_init(&b, p, 1, n, 0) != 0) return NAN;
    for (int i = 0; i < 3; i++) {
        const double v = fill(&b, 0, variation), unit = nb_eps_unit(p, n);
        if (drops_at(&b, fill, variation, shares[i], drops) != 0) continue;
        n_known++;
        if (!isnan(drops[1]))
            least = fmin(least, fabs(drops[1] - drops[0]) / unit / (p->eps_place == NB_EPS_OUTSIDE ? sqrt(v) / 2 : v));
    }
    return n_known ? least : NAN;
}

/* C (turn 1) or 0 (turn 0), plus d times -1, 0, 1: v = 2/3 d^2. */
static double fill_centre(struct nb_box *b, int turn, int variation) {
    const double d = (b->p->dtype == NB_BF16 ? 32 : 1) * (1 + variation);
    for (int64_t i = 0; i < b->cols; i++) nb_box_set(b, 0, i, centre_of(b->p) * turn + d * (double)(i % 3 - 1));
    return d * d * 2 / 3;
}

/* C, a quarter of the columns off by d, C + far in column COL, and C - far in `place` (turn 1) or the second one. Their sum, n being 2^12, their
 * mean, and sums of squares about it are exact in f32 in any order; squares about C - far are not, nor are differences of their mean. */
static double fill_outlier_at(struct nb_box *b, int turn, int variation, int64_t place) {
    static const struct outlier {
        double centre, unit, far;
    } of[NB_N_DTYPES] = {[NB_F32] = {2048, 1, 2000}, [NB_F16] = {1024, 1, 1000}, [NB_BF16] = {4096, 32, 3232}};
    const struct outlier *o = &of[b->p->dtype];
    const double d = o->unit * (1 + variation);
    for (int64_t i = 0; i < b->cols; i++) {
        double off = i % 4 != 2 ? 0 : i % 8 == 2 ? -d : d;
        if (i == COL) off = o->far;
        if (i == (turn ? place : 1)) off = -o->far;
        nb_box_set(b, 0, i, o->centre + off);
    }
    return 2 * o->far * o->far / (double)b->cols + d * d / 4;
}

static double fill_outlier(struct nb_box *b, int turn, int variation) { return fill_outlier_at(b, turn, variation, 0); }
static double fill_last(struct nb_box *b, int turn, int variation) {
    return fill_outlier_at(b, turn, variation, b->cols - 1);
}
static double fill_middle(struct nb_box *b, int turn, int variation) {
    return fill_outlier_at(b, turn, variation, b->cols / 2);
}

/* c plus e (turn 1), or e alone (turn 0), e = 0 or +-2 c, and 64 elements of +-4096 c: the mean is c or 0. Beside those about the mean, no
 * e is large enough to be lost; squares about another number are, all of them in f32, where the sum's lanes hold 2^24 c^2. Where a shift is
 * only sometimes used, signs are mixed in the first columns. */
static double fill_beside(struct nb_box *b, int turn, int variation) {
    const double c = ldexp(1, -variation), large = 4096 * c;
    for (int64_t i = 0; i < b->cols; i++) {
        double e = 0;
        if (i < 32) e = i % 2 ? -2 : 0;
        if (i >= 96 && i < 144) e = i < 128 || turn ? 2 : -2;
        nb_box_set(b, 0, i, i >= 32 && i < 96 ? (i % 2 ? large : -large) : c * (e + turn));
    }
    return (large * large + 4 * c * c) * 64 / (double)b->cols;
}

static double largest_miss(struct nb_probe *p, int64_t n, fill_fn fill, const char **why) {
    double largest = 0;
    for (int variation = 0; variation < 4; variation++) {
        const double one = miss(p, n, fill, variation, why);
        if (isnan(one)) return NAN;
        largest = fmax(largest, one);
    }
    return largest;
}

/* ---- answers ---- */

/* What the trials showed. */
struct findings {
    double about_zero, about_first, beside; /* misses of v */
    double about_other;                     /* about the last element, or the middle one */
    struct mean mean;
};

static int decide(const struct sum *squares, const struct findings *f) {
    const struct mean *mean = &f->mean;
    if (isnan(f->about_zero) || isnan(f->about_first) || isnan(f->about_other) || isnan(f->beside)) return -1;
    if (mean->n_missed > 0) return mean->n_missed > 2 && !mean->far_missed ? NB_VAR_WELFORD : -1;
    if (f->about_zero > 0x1p-13) return NB_VAR_ONEPASS;
    if (f->about_first > 0x1p-17 || f->beside > 0x1p-19 || f->about_other > 0x1p-17)
        return f->about_zero > 0x1p-21 ? -1 : NB_VAR_SHIFTED;
    if (f->about_zero > 0x1p-18 || f->about_first > 0x1p-19 || f->about_other > 0x1p-19 || !squares->is_f32) return -1;
    if (mean->rounds_fractions) return NB_VAR_TWOPASS;
    return mean->loses && mean->hits_fractions ? NB_VAR_CORRECTED : -1;
}

static void say_variance(struct nb_probe *p, const struct findings *f) {
    const struct mean *mean = &f->mean;
    nb_probe_say(
        p, "variance", p->variance < 0 ? NULL : nb_variance_names[p->variance], "strong",
        "v is off by %.2g at rho >= 128, by %.2g where x_0 is an outlier, by %.2g where the last or the middle one is, by %.2g where most elements lie at the mean; a "
        "mean of 0 is missed in %d of %d rows; the mean's sum %s; means between numbers of f32 are %s",
        f->about_zero, f->about_first, f->about_other, f->beside, mean->n_missed, mean->n_rows,
        mean->loses ? "loses all beside 2^24" : "is no plain one in f32", mean->hits_fractions ? "hit" : "missed");
}

static void ask_variance(struct nb_probe *p, const struct sum *m) {
    struct findings f = {0};
    const char *why = NULL;
    if (!p->fine_stats) {
        nb_probe_say(p, "variance", NULL, NULL, "%s", m->why);
        return;
    }
    f.about_zero = largest_miss(p, 768, fill_centre, &why);
    f.about_first = largest_miss(p, OUTLIER_COLS, fill_outlier, &why);
    f.about_other =
        fmax(largest_miss(p, OUTLIER_COLS, fill_last, &why), largest_miss(p, OUTLIER_COLS, fill_middle, &why));
    f.beside = largest_miss(p, 8064, fill_beside, &why);
    mean_measure(&f.mean, p);
    if (p->failure) return;
    p->variance = decide(m, &f);
    if (isnan(f.about_zero) || isnan(f.about_first) || isnan(f.beside))
        nb_probe_say(p, "variance", NULL, NULL, "%s", why);
    else
        say_variance(p, &f);
}

void nb_probe_variance(struct nb_probe *p) {
    struct sum squares;
    measure_squares(&squares, p);
    if (p->centres && !p->failure) ask_variance(p, &squares);
    if (!p->failure) say_accumulator(p, &squares);
}
