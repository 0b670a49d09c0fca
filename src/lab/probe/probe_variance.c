// SPDX-License-Identifier: Apache-2.0
/* How a LayerNorm forms its mean, from elements next to it: y there is the mean's error times rstd, of which all digits show. */
#include <math.h>
#include <stdio.h>

#include "src/core/random.h"
#include "src/lab/probe/probe_internal.h"

/* ---- means that every plain sum hits ---- */

/* Random integers in pairs of sum 0, and the first 0: y there is 0, unless the mean is missed, as it is where it is updated by rounded
 * quotients. gamma makes what is small visible in f16. */
static void count_missed(struct nb_mean *m, struct nb_probe *p) {
    enum { ROWS = 16, COLS = 6144 };
    struct nb_box b;
    const struct nb_random random = nb_random_stream(7, 1);
    if (nb_box_init(&b, p, ROWS, COLS, 0) == 0) {
        for (int64_t i = 0; i < COLS; i++) b.gamma[i] = p->has_gamma ? 4096 : p->unit;
        nb_trial_set_params(&b.t, b.gamma, b.beta);
        for (int64_t r = 0; r < ROWS; r++)
            for (int64_t i = 1; i < COLS / 2; i++) {
                const uint64_t bits = nb_random_bits(random, (uint64_t)(r * COLS + i));
                const double x = (double)(bits % 101) * (bits >> 63 ? -1 : 1);
                nb_box_set(&b, r, i, x);
                nb_box_set(&b, r, COLS / 2 + (i * 1021 + 7 * r) % (COLS / 2),
                           -x); /* 1021 is odd and no multiple of 3 */
            }
        m->n_rows = ROWS;
        const bool ran = nb_box_run(&b) == 0;
        for (int64_t r = 0; ran && r < ROWS; r++) m->n_missed += nb_box_y(&b, r, 0) != 0;
    }
    nb_box_release(&b);
}

/* ---- means between two numbers of f32 ---- */

/* C + d (-1, 0, 1 in turn), one element raised by d: all sums are exact, and the mean is C + d / n, a third of a spacing from a number of
 * f32. y of an element C beside that of an element C + d tells what was taken off: the mean, or that number. */
static void see_fractions(struct nb_mean *m, struct nb_probe *p) {
    struct nb_box b;
    const double centre = p->c.dtype == NB_F16 ? 1024 : 4096, d = p->c.dtype == NB_BF16 ? 32 : 1;
    const int64_t n = p->c.dtype == NB_BF16 ? 12288 : 768;
    if (nb_box_init(&b, p, 1, n, 0) == 0) {
        for (int64_t i = 0; i < n; i++) nb_box_set(&b, 0, i, centre + d * (double)(i % 3 - 1));
        nb_box_set(&b, 0, 31, centre + d); /* 31 % 3 == 1 */
        if (nb_box_run(&b) == 0) {
            const double exact = d / (double)n, rounded = (double)(float)(centre + exact) - centre;
            const double seen = -nb_box_y(&b, 0, 1) / nb_box_y(&b, 0, 2);
            m->hits_fractions = fabs(seen * (d - exact) / exact - 1) < 0.02;
            m->rounds_fractions = fabs(seen * (d - rounded) / rounded - 1) < 0.02;
        }
    }
    nb_box_release(&b);
}

/* ---- the sum ---- */

/* M in column j, -M at the end, u elsewhere, one of them 0, M = 2^24 u: the mean is u (n - 3 - lost) / n, and y where x is u is
 * (u - mean) rstd, of which all digits show. In f16, whose numbers span less, gamma lifts it. */
static double loss_of_mean(struct nb_box *b, int64_t j, void *arg) {
    const bool narrow = b->p->c.dtype == NB_F16;
    const double large = narrow ? 0x1p15 : 0x1p24, unit = large * 0x1p-24;
    const int64_t n = b->cols, zero = nb_sum_zero(n, j), end = zero == n - 1 ? n - 2 : n - 1, at = j == 2 ? 3 : 2;
    const double *lift = arg;
    for (int64_t i = 0; i < n; i++) nb_box_set(b, 0, i, i == zero ? 0 : unit);
    nb_box_set(b, 0, j, large);
    nb_box_set(b, 0, end, -large);
    for (int64_t i = 2; i < 4; i++) b->gamma[i] = (i == at ? *lift : 1) - (b->p->unit == 0 ? 1 : 0);
    nb_trial_set_params(&b->t, b->gamma, b->beta);
    if (nb_box_run(b) != 0) return NAN;
    const double one = nb_box_y(b, 0, at) / *lift, most = nb_box_y(b, 0, j);
    const double kept = (double)n * (1 - 0x1p24 * one / most);
    return one == 0 || !isfinite(one) || !isfinite(most) ? NAN : (double)(n - 3) - kept;
}

/* What is lost when the mean of x - mean is taken off after: the share that the first sum lost, of which the second loses its own. */
static bool fits_corrected(const struct nb_losses *l, const struct nb_structure *squares) {
    for (int64_t lanes = 1; lanes <= 1024; lanes *= 2) {
        const struct nb_structure first = {.block = l->n, .lanes = lanes};
        bool fits = l->n_positions > 0;
        for (int i = 0; i < l->n_positions; i++) {
            const double one = (double)nb_structure_loss(&first, l->n, l->at[i]) + 3;
            const double two = (double)nb_structure_loss(squares, l->n, l->at[i]) + 3;
            fits = fits && fabs(l->loss[i] - (one * two / (double)l->n - 2)) <=
                               l->tolerance + 2 + 0.01 * one * two / (double)l->n;
        }
        if (fits) return true;
    }
    return false;
}

static void measure_sum(struct nb_mean *m, struct nb_probe *p, const struct nb_sum *squares) {
    struct nb_box b;
    double lift = p->c.dtype == NB_F16 ? 0x1p14 : 1;
    m->losses = (struct nb_losses){.n = p->cols, .tolerance = 2.5, .relative = 2 * p->format->unit_roundoff};
    m->why = "without gamma an f16 output does not show it";
    if (lift != 1 && !p->has_gamma) return;
    m->why = NULL;
    if (nb_box_init(&b, p, 1, p->cols, 0) == 0) {
        const int fitting = nb_structure_find(&m->losses, loss_of_mean, &b, &lift, &m->structure);
        m->found = fitting == 1;
        if (fitting == 0) m->why = "what is lost fits no order of plain sums";
        if (fitting > 1) m->why = "too little is lost to distinguish orders";
        if (fitting < 0) m->why = "a row gives no number";
        m->corrected = !m->found && fitting >= 0 && squares->found && fits_corrected(&m->losses, &squares->structure);
    }
    nb_box_release(&b);
}

static void mean_measure(struct nb_mean *m, struct nb_probe *p, const struct nb_sum *squares) {
    *m = (struct nb_mean){0};
    count_missed(m, p);
    if (!p->failure) see_fractions(m, p);
    if (!p->failure) measure_sum(m, p, squares);
}

/* ---- Which variance a LayerNorm forms.
 *
 * E[x^2] - mean^2 of a row at 2^12 is a difference of numbers near 2^24, which are multiples of 2: it misses a v that is none. About x_0
 * the same holds where x_0 is far from the rest. Welford's mean is updated by rounded quotients, so that it misses means that every
 * plain sum hits. What is left is two-pass, whose mean is one plain sum, or corrected by the mean of what that sum left. */

/* A centre with a spacing of at most 32, and differences from it that are far smaller: rho of 2^7 and more. */
static double centre_of(const struct nb_probe *p) { return p->c.dtype == NB_F16 ? 1024 : 4096; }

/* ---- differences of large numbers ---- */

/* Two rows with the same v, `turn` 0 and 1; y in column COL is read. Returns v (exactly). */
typedef double (*fill_fn)(struct nb_box *b, int turn, int variation);
enum { COL = 5 };

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
    struct nb_box b;
    double drops[2], least = INFINITY;
    int n_known = 0;
    *why = "eps cannot be weighed against";
    if (p->eps_place < 0 || p->eps_place == NB_EPS_CLAMP || !p->eps_plain) return NAN;
    if (nb_box_init(&b, p, 1, n, 0) == 0)
        for (int i = 0; i < 3; i++) {
            const double v = fill(&b, 0, variation), unit = nb_eps_unit(p, n);
            if (drops_at(&b, fill, variation, shares[i], drops) != 0) continue;
            n_known++;
            if (!isnan(drops[1]))
                least =
                    fmin(least, fabs(drops[1] - drops[0]) / unit / (p->eps_place == NB_EPS_OUTSIDE ? sqrt(v) / 2 : v));
        }
    nb_box_release(&b);
    *why = "y does not fall where eps grows";
    return n_known ? least : NAN;
}

/* C (turn 1) or 0 (turn 0), plus d times -1, 0, 1: v = 2/3 d^2. */
static double fill_centre(struct nb_box *b, int turn, int variation) {
    const double d = (b->p->c.dtype == NB_BF16 ? 32 : 1) * (1 + variation);
    for (int64_t i = 0; i < b->cols; i++) nb_box_set(b, 0, i, centre_of(b->p) * turn + d * (double)(i % 3 - 1));
    return d * d * 2 / 3;
}

/* The same at C, and one column 0: the first (turn 1) or the second. v = mean of squares - square of mean. */
static double fill_outlier(struct nb_box *b, int turn, int variation) {
    const double centre = centre_of(b->p), d = centre / 128 * (2 + variation), n = (double)b->cols;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < b->cols; i++) {
        const double x = i == 1 - turn ? 0 : centre + d * (double)((i < 2 ? 1 : i) % 3 - 1);
        nb_box_set(b, 0, i, x);
        sum += x;
        squares += x * x;
    }
    return squares / n - sum / n * (sum / n);
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
    double about_zero, about_first; /* misses of v */
    struct nb_mean mean;
};

static int decide(const struct nb_sum *squares, const struct findings *f) {
    const struct nb_mean *mean = &f->mean;
    const bool plain = squares->found || mean->found;
    if (isnan(f->about_zero) || isnan(f->about_first)) return -1;
    if (mean->n_missed > 2) return plain ? -1 : NB_VAR_WELFORD;
    if (mean->n_missed > 0) return -1;
    if (f->about_zero > 0x1p-13) return squares->found ? NB_VAR_ONEPASS : -1;
    if (f->about_first > 0x1p-17) return plain || f->about_zero > 0x1p-21 ? -1 : NB_VAR_SHIFTED;
    if (f->about_zero > 0x1p-18 || f->about_first > 0x1p-19 || !squares->found) return -1;
    if (mean->rounds_fractions) return NB_VAR_TWOPASS;
    return mean->corrected && mean->hits_fractions ? NB_VAR_CORRECTED : -1;
}

static void say_variance(struct nb_probe *p, const struct findings *f) {
    const struct nb_mean *mean = &f->mean;
    const char *sum = mean->found       ? "its lanes alone"
                      : mean->corrected ? "less than any lanes alone"
                                        : "what fits no plain sum";
    nb_probe_say(
        p, "variance", p->variance < 0 ? NULL : nb_variance_name((uint32_t)p->variance), "strong",
        "v is off by %.2g at rho >= 128, by %.2g where x_0 is an outlier; a mean of 0 is missed in %d of %d rows; the "
        "mean's sum loses %s; means between numbers of f32 are %s",
        f->about_zero, f->about_first, mean->n_missed, mean->n_rows, sum, mean->hits_fractions ? "hit" : "missed");
}

static void say_mean(struct nb_probe *p, const struct nb_mean *m) {
    char text[64];
    struct nb_strbuf evidence = {0};
    nb_losses_print(&m->losses, &evidence);
    snprintf(text, sizeof text, "f32, %lld lane%s%s", (long long)m->structure.lanes, m->structure.lanes == 1 ? "" : "s",
             m->structure.block == p->cols ? "" : " in blocks");
    const bool plain = p->variance == NB_VAR_TWOPASS || p->variance == NB_VAR_ONEPASS;
    if (plain && m->found)
        nb_probe_say(p, "mean_sum", text, "strong", "%s", evidence.text);
    else
        nb_probe_say(p, "mean_sum", NULL, NULL, "%s", m->why ? m->why : "the mean is not known to be one plain sum");
    nb_strbuf_release(&evidence);
}

void nb_probe_variance(struct nb_probe *p, const struct nb_sum *m) {
    struct findings f = {0};
    const char *why = NULL;
    p->variance = -1;
    if (!p->fine_stats) {
        nb_probe_say(p, "variance", NULL, NULL, "%s", m->why);
        nb_probe_say(p, "mean_sum", NULL, NULL, "%s", m->why);
        return;
    }
    f.about_zero = largest_miss(p, 768, fill_centre, &why);
    f.about_first = largest_miss(p, 3072, fill_outlier, &why);
    mean_measure(&f.mean, p, m);
    if (p->failure) return;
    p->variance = decide(m, &f);
    if (isnan(f.about_zero) || isnan(f.about_first))
        nb_probe_say(p, "variance", NULL, NULL, "%s", why);
    else
        say_variance(p, &f);
    say_mean(p, &f.mean);
}
