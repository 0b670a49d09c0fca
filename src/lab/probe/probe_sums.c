// SPDX-License-Identifier: Apache-2.0
/* How sums are formed: from losses to the order of the sum of squares, the mean of a LayerNorm, its variance. */
#include <math.h>
#include <stdio.h>

#include "src/core/random.h"
#include "src/lab/probe/probe_internal.h"

/* The sum of squares. */
struct sum {
    bool found, wide; /* wide: nothing is lost */
    struct nb_structure structure;
    struct nb_losses losses;
    const char *why; /* not found: the reason */
};
/* The mean of a LayerNorm. */
struct mean {
    int n_missed, n_rows;  /* rows with a mean of 0 that was missed */
    bool hits_fractions;   /* a mean between two numbers of f32 is taken off as it is; */
    bool rounds_fractions; /* the nearest of these is */
    bool found;            /* one plain f32 sum, of the structure */
    bool corrected;        /* the losses are those of a mean that was corrected once */
    struct nb_structure structure;
    struct nb_losses losses;
    const char *why; /* not found: the reason; may be null */
};

/* The column that is 0 in such rows. */
static int64_t sum_zero(int64_t n, int64_t j) { return j == n - 1 ? n - 2 : n - 1; }

/* Ones in columns from `first` in steps of the lanes, up to `last`. */
static int64_t count_ones(int64_t first, int64_t last, int64_t lanes, int64_t zero) {
    if (first > last) return 0;
    const int64_t n = (last - first) / lanes + 1;
    return zero >= first && zero <= last && (zero - first) % lanes == 0 ? n - 1 : n;
}

/* c ones before 2^24 make 2^24 + c, rounded to an even number of which the half is even when it is a tie; of the ones behind it the
 * first is a tie too, which goes up where that half is odd. */
/* In a row of n columns with one zero (sum_zero), the large addend in column j: how many ones this structure loses. */
static int64_t structure_loss(const struct nb_structure *s, int64_t n, int64_t j) {
    const int64_t zero = sum_zero(n, j), start = j / s->block * s->block, end = start + s->block;
    const int64_t last = (end < n ? end : n) - 1, first = start + (j - start) % s->lanes;
    const int64_t before = count_ones(first, j - 1, s->lanes, zero);
    const int64_t behind = count_ones(j + s->lanes, last, s->lanes, zero);
    int64_t kept = before / 2;
    if (before % 2 && kept % 2) kept++; /* tie */
    if (behind > 0 && kept % 2) kept++;
    return before + behind - 2 * kept;
}

static bool fits(const struct nb_structure *s, const struct nb_losses *losses) {
    for (int i = 0; i < losses->n_positions; i++) {
        const double expected = (double)structure_loss(s, losses->n, losses->at[i]);
        const double tolerance = losses->tolerance + losses->relative * fabs(expected);
        if (!(fabs(expected - losses->loss[i]) <= tolerance)) return false;
    }
    return losses->n_positions > 0;
}

/* Every structure that fits: lanes m 2^k up to 1024, m = 1, 3, 5, 7, in the whole row or in blocks of 2^k. How many; the first. */
static int structure_search(const struct nb_losses *losses, struct nb_structure *found) {
    int n = 0;
    for (int64_t block = losses->n; block >= 2; block /= 2)
        for (int64_t odd = 1; odd <= 7; odd += 2)
            for (int64_t lanes = odd; lanes <= 1024 && lanes < block; lanes *= 2) {
                const struct nb_structure s = {.block = block, .lanes = lanes};
                if (fits(&s, losses) && n++ == 0) *found = s;
            }
    return n;
}

static int weigh(struct nb_losses *losses, double loss, int64_t at) {
    losses->at[losses->n_positions] = at;
    losses->loss[losses->n_positions++] = loss;
    return isnan(loss) ? -1 : 0;
}

/* Weighs the losses at positions that distinguish structures. loss(b, j, arg) is NaN where it cannot be determined. Returns how many
 * structures fit, -1 when a loss is NaN. */
static int find_structure(struct nb_losses *losses, double (*loss)(struct nb_box *b, int64_t j, void *arg),
                          struct nb_box *b, void *arg, struct nb_structure *found) {
    const int64_t n = losses->n, first[] = {0, 1, 3, 5, 6, n / 2 - 1, n / 2, n - 70};
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++)
        if (weigh(losses, loss(b, first[i], arg), first[i]) != 0) return -1;
    if (structure_search(losses, found) == 0) return 0;
    /* About the boundaries of what fits so far. */
    const int64_t q = found->lanes, then[] = {q - 1, q, 2 * q + 1, 17 * q, found->block - 1, found->block, 333, 4097};
    for (size_t i = 0; i < sizeof then / sizeof then[0]; i++)
        if (then[i] > 1 && then[i] < n - 2 && weigh(losses, loss(b, then[i], arg), then[i]) != 0) return -1;
    return structure_search(losses, found);
}

static void print_losses(const struct nb_losses *losses, struct nb_strbuf *out) {
    nb_strbuf_add(out, "of ones, lost beside 2^24:");
    for (int i = 0; i < losses->n_positions && i < 5; i++)
        nb_strbuf_addf(out, "%s %.0f at column %lld", i ? "," : "", losses->loss[i], (long long)losses->at[i]);
    nb_strbuf_addf(out, " of %lld", (long long)losses->n);
}

/* ---- How the squares of a row are summed: format and order.
 *
 * A in column j among numbers of magnitude 1, A^2 = 2^24: in f32 each 1 that is added to a sum holding A^2 is lost, being half a
 * spacing beside an even number; ones that were summed among themselves before are kept. The loss as a function of j is the number of
 * columns behind j that join the same running sum one after another. */

static const double A = 4096;

/* One row: a in column j, +-1 elsewhere with the sum -a. */
static void sum_set_row(struct nb_box *b, int64_t j, double a) {
    const int64_t n = b->cols, zero = sum_zero(n, j), m = n - 2, negative = (m + (int64_t)a) / 2;
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
    sum_set_row(b, j, a);
    return a * a + (double)(b->cols - 2) - nb_scale_weigh(s, b, j, a);
}
static double loss_of_squares(struct nb_box *b, int64_t j, void *arg) { return loss_beside(b, arg, j, A); }

static bool loses_nothing(const struct nb_losses *l) {
    for (int i = 0; i < l->n_positions; i++)
        if (fabs(l->loss[i]) > l->tolerance) return false;
    return l->n_positions > 0;
}

/* Beside A^2 = 2^34 (2^30 in f16) a tree of f32 sums loses 2^11 (2^7) ones, more than the loss about 2^24 can distinguish from none; wider
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

static void measure_squares(struct sum *m, struct nb_probe *p) {
    struct nb_box b;
    struct nb_scale s;
    *m = (struct sum){.why = p->why_not_weighed, .losses = {.n = p->cols}};
    if (!p->fine_stats) return;
    if (nb_box_init(&b, p, 1, p->cols, 0) == 0 && nb_scale_init(&s, &b, 0, A, &m->why) == 0) {
        /* One lane has an odd number of ones and is rounded where it joins A^2. */
        m->losses.tolerance = s.tolerance + 1.2;
        const int fitting = find_structure(&m->losses, loss_of_squares, &b, &s, &m->structure);
        const bool nothing = loses_nothing(&m->losses);
        m->why = fitting < 0 ? "a row left the scale" : "what is lost fits no order of plain sums";
        if (fitting > 1) m->why = "several orders lose the same";
        if (nothing) m->why = "too little is lost beside 2^24 to distinguish orders";
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

/* ---- Finer questions about the sum of squares: how blocks are joined, where a tail goes, whether a square is rounded before it is
 * added. All need the lanes. */

/* ---- blocks: pairwise, or one after another ---- */

/* A^2 so large that its half spacing is 8 blocks: block sums that are added one by one are all lost, a tree loses 16 blocks. */
static double loss_of_blocks(struct nb_probe *p, int64_t block) {
    struct nb_box b;
    struct nb_scale s;
    const char *why;
    double sum = NAN;
    const double a = exp2(ceil((24 + log2((double)block * 8)) / 2));
    if (p->centres || a > p->format->max_finite / 2) return NAN;
    if (nb_box_init(&b, p, 1, p->cols, 0) == 0 && nb_scale_init(&s, &b, 0, a, &why) == 0 &&
        s.tolerance < (double)p->cols / 8) {
        for (int64_t i = 0; i < p->cols; i++) nb_box_set(&b, 0, i, i ? 1 : a);
        sum = nb_scale_weigh(&s, &b, 0, a);
    }
    nb_box_release(&b);
    return a * a + (double)(p->cols - 1) - sum;
}

static void say_order(struct nb_probe *p, const struct nb_structure *s) {
    char text[64];
    if (s->block == p->cols) {
        nb_probe_say(p, "order", s->lanes == 1 ? "sequential" : "sequential in interleaved lanes", "strong",
                     "an addend in column j swallows the columns behind it at distances of %lld", (long long)s->lanes);
        return;
    }
    const double loss = loss_of_blocks(p, s->block);
    const double n = (double)p->cols;
    const bool pairwise = loss<n / 2, one_by_one = loss> n * 0.9;
    const char *join = pairwise ? ", pairwise" : one_by_one ? ", one after another" : "";
    if (s->block > p->cols / 64) join = "";
    snprintf(text, sizeof text, "blocks of %lld%s", (long long)s->block, join);
    nb_probe_say(p, "order", text, "strong",
                 "losses start again every %lld columns; beside 2^24 times 8 blocks %.0f of %.0f are lost",
                 (long long)s->block, loss, n - 1);
}

/* ---- the tail ---- */

/* Six columns more, the last of them 0: all five ones lost, as where they are added to the total one by one, or only those that fall into
 * A's lane? Averaged over eight lanes, since sums of an odd number of ones are rounded either way; against the same without the tail. */
enum { TAIL = 6, POSITIONS = 8 };
static double average_loss(struct nb_probe *p, int64_t n, const char **why) {
    const double a = 4096;
    struct nb_box b;
    struct nb_scale s;
    double loss = 0;
    if (nb_box_init(&b, p, 1, n, 0) != 0 || nb_scale_init(&s, &b, 0, a, why) != 0) {
        loss = NAN;
    } else if (s.tolerance > 4) {
        *why = "sums cannot be weighed finely enough";
        loss = NAN;
    }
    for (int64_t j = 0; j < POSITIONS && !isnan(loss); j++) {
        sum_set_row(&b, j, a);
        loss += (a * a + (double)(n - 2) - nb_scale_weigh(&s, &b, j, a)) / POSITIONS;
    }
    nb_box_release(&b);
    return loss;
}

static void say_tail(struct nb_probe *p, const struct sum *m) {
    double more = NAN;
    const struct nb_structure *structure = &m->structure;
    const char *why = "it can be seen from 8 lanes on, where whole rows are summed in lanes";
    if (structure->block == p->cols && structure->lanes >= 8 && structure->lanes <= 512)
        more = average_loss(p, p->cols + TAIL, &why) - average_loss(p, p->cols, &why);
    const char *value = fabs(more - 5) < 0.9 ? "one by one behind the lanes" : fabs(more) < 3 ? "not one by one" : NULL;
    if (isnan(more))
        nb_probe_say(p, "tail", NULL, NULL, "%s", why);
    else
        nb_probe_say(p, "tail", value, "strong", "of 5 ones behind column %lld %.2g are lost, on average over 8 lanes",
                     (long long)(p->cols - 1), more);
}

/* ---- fma ---- */

/* B^2 = (2^19 + 1)^2 = 2^38 + 2^20 + 1 beside 2^44, whose spacing is 2^21: rounded to f32 first it is 2^38 + 2^20, a tie that goes down to
 * even; unrounded it is above the tie and goes up. */
static const double LARGE = 0x1p22, B = 0x1p19 + 1;
enum { N_B = 12 };

static double predict_sum(bool fused) {
    const float b = (float)B;
    volatile float square = b * b; /* rounded to f32 */
    float sum = 0x1p44f;
    for (int i = 0; i < N_B; i++) {
        if (fused) {
            sum = fmaf(b, b, sum);
        } else {
            volatile float next = sum + square;
            sum = next;
        }
    }
    return (double)sum;
}

/* LARGE in lane 0 with +-B behind it; where the mean is taken off, -LARGE in 16 parts at the end. */
static double weigh_squares(struct nb_box *b, int64_t lanes, double *tolerance, const char **why) {
    struct nb_scale s;
    if (nb_scale_init(&s, b, 0, LARGE, why) != 0) return NAN;
    *tolerance = s.tolerance;
    nb_box_clear(b);
    nb_box_set(b, 0, 0, LARGE);
    for (int64_t i = 1; i <= N_B; i++) nb_box_set(b, 0, i * lanes, i % 2 ? B : -B);
    const int64_t parts = b->p->centres ? 16 : 0;
    for (int64_t i = 0; i < parts; i++) nb_box_set(b, 0, b->cols - 1 - i, -LARGE / 16);
    const double sum = nb_scale_weigh(&s, b, 0, LARGE);
    return sum - (double)parts * (LARGE / 16) * (LARGE / 16);
}

static void say_fma(struct nb_probe *p, const struct sum *m) {
    struct nb_box b;
    double sum = NAN, tolerance = 0;
    const char *why = p->lanes > 0 ? "the lanes are too short" : "the lanes are not known";
    if (p->c.dtype != NB_F32) why = "squares of 16-bit numbers are exact in f32: rounded or not, they are the same";
    const bool asked = p->c.dtype == NB_F32 && p->lanes > 0 && (N_B + 1) * p->lanes < m->structure.block;
    if (asked && nb_box_init(&b, p, 1, p->cols, 0) == 0) sum = weigh_squares(&b, p->lanes, &tolerance, &why);
    if (asked) nb_box_release(&b);
    const double fused = predict_sum(true), separate = predict_sum(false), unit = fabs(fused - separate);
    const bool is_fused = fabs(sum - fused) < unit / 3, is_separate = fabs(sum - separate) < unit / 3;
    if (isnan(sum))
        nb_probe_say(p, "sum_fma", NULL, NULL, "%s", why);
    else if (tolerance > unit / 4)
        nb_probe_say(p, "sum_fma", NULL, NULL, "with eps here sums cannot be weighed finely enough");
    else
        nb_probe_say(p, "sum_fma",
                     is_fused      ? "fma"
                     : is_separate ? "rounded, then added"
                                   : NULL,
                     "certain", "2^44 and %d squares at ties weigh 2^44 (1 + %.9g), fused %.9g, rounded %.9g", N_B,
                     sum / 0x1p44 - 1, fused / 0x1p44 - 1, separate / 0x1p44 - 1);
}

/* joins of blocks, tail, fma */
static void probe_sum_details(struct nb_probe *p, const struct sum *m) {
    if (p->lanes > 0)
        say_order(p, &m->structure);
    else
        nb_probe_say(p, "order", NULL, NULL, "the lanes are not known");
    if (p->lanes > 0)
        say_tail(p, m);
    else
        nb_probe_say(p, "tail", NULL, NULL, "the lanes are not known");
    say_fma(p, m);
}

/* ---- answers ---- */

static void say_lanes(struct nb_probe *p, const struct sum *m, const char *evidence) {
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

static void ask_squares(struct nb_probe *p, const struct sum *m) {
    struct nb_strbuf evidence = {0};
    print_losses(&m->losses, &evidence);
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
    probe_sum_details(p, m);
}

/* ---- How a LayerNorm forms its mean, from elements next to it: y there is the mean's error times rstd, of which all digits show ---- */

/* ---- means that every plain sum hits ---- */

/* Random integers in pairs of sum 0, and the first 0: y there is 0, unless the mean is missed, as it is where it is updated by rounded
 * quotients. gamma makes what is small visible in f16. */
static void count_missed(struct mean *m, struct nb_probe *p) {
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
 * f32. y of an element C beside that of an element C + d shows what was taken off: the mean, or that number. */
static void see_fractions(struct mean *m, struct nb_probe *p) {
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
    const int64_t n = b->cols, zero = sum_zero(n, j), end = zero == n - 1 ? n - 2 : n - 1, at = j == 2 ? 3 : 2;
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
            const double one = (double)structure_loss(&first, l->n, l->at[i]) + 3;
            const double two = (double)structure_loss(squares, l->n, l->at[i]) + 3;
            fits = fits && fabs(l->loss[i] - (one * two / (double)l->n - 2)) <=
                               l->tolerance + 2 + 0.01 * one * two / (double)l->n;
        }
        if (fits) return true;
    }
    return false;
}

static void measure_sum(struct mean *m, struct nb_probe *p, const struct sum *squares) {
    struct nb_box b;
    double lift = p->c.dtype == NB_F16 ? 0x1p14 : 1;
    m->losses = (struct nb_losses){.n = p->cols, .tolerance = 2.5, .relative = 2 * p->format->unit_roundoff};
    m->why = "without gamma an f16 output does not show it";
    if (lift != 1 && !p->has_gamma) return;
    m->why = NULL;
    if (nb_box_init(&b, p, 1, p->cols, 0) == 0) {
        const int fitting = find_structure(&m->losses, loss_of_mean, &b, &lift, &m->structure);
        m->found = fitting == 1;
        if (fitting == 0) m->why = "what is lost fits no order of plain sums";
        if (fitting > 1) m->why = "too little is lost to distinguish orders";
        if (fitting < 0) m->why = "a row gives no number";
        m->corrected = !m->found && fitting >= 0 && squares->found && fits_corrected(&m->losses, &squares->structure);
    }
    nb_box_release(&b);
}

static void mean_measure(struct mean *m, struct nb_probe *p, const struct sum *squares) {
    *m = (struct mean){0};
    count_missed(m, p);
    if (!p->failure) see_fractions(m, p);
    if (!p->failure) measure_sum(m, p, squares);
}

/* ---- Which variance a LayerNorm forms.
 *
 * E[x^2] - mean^2 of a row at 2^12 is a difference of numbers near 2^24, which are multiples of 2: it misses a v that is none. About x_0
 * the same holds where x_0 is far from the rest; about another number, with a second sweep where that one is far off, squares of it are
 * lost beside large ones. Welford's mean is updated by rounded quotients, so that it misses means that every
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
    struct mean mean;
};

static int decide(const struct sum *squares, const struct findings *f) {
    const struct mean *mean = &f->mean;
    const bool plain = squares->found || mean->found;
    if (isnan(f->about_zero) || isnan(f->about_first) || isnan(f->beside)) return -1;
    if (mean->n_missed > 2) return plain ? -1 : NB_VAR_WELFORD;
    if (mean->n_missed > 0) return -1;
    if (f->about_zero > 0x1p-13) return squares->found ? NB_VAR_ONEPASS : -1;
    if (f->about_first > 0x1p-17) return plain || f->about_zero > 0x1p-21 ? -1 : NB_VAR_SHIFTED;
    if (f->beside > 0x1p-19) return f->about_zero > 0x1p-21 ? -1 : NB_VAR_SHIFTED;
    if (f->about_zero > 0x1p-18 || f->about_first > 0x1p-19 || !squares->found) return -1;
    if (mean->rounds_fractions) return NB_VAR_TWOPASS;
    return mean->corrected && mean->hits_fractions ? NB_VAR_CORRECTED : -1;
}

static void say_variance(struct nb_probe *p, const struct findings *f) {
    const struct mean *mean = &f->mean;
    const char *sum = mean->found       ? "its lanes alone"
                      : mean->corrected ? "less than any lanes alone"
                                        : "what fits no plain sum";
    nb_probe_say(
        p, "variance", p->variance < 0 ? NULL : nb_variance_names[p->variance], "strong",
        "v is off by %.2g at rho >= 128, by %.2g where x_0 is an outlier, by %.2g where most elements lie at the mean; a "
        "mean of 0 is missed in %d of %d rows; the mean's sum loses %s; means between numbers of f32 are %s",
        f->about_zero, f->about_first, f->beside, mean->n_missed, mean->n_rows, sum,
        mean->hits_fractions ? "hit" : "missed");
}

static void say_mean(struct nb_probe *p, const struct mean *m) {
    char text[64];
    struct nb_strbuf evidence = {0};
    print_losses(&m->losses, &evidence);
    snprintf(text, sizeof text, "f32, %lld lane%s%s", (long long)m->structure.lanes, m->structure.lanes == 1 ? "" : "s",
             m->structure.block == p->cols ? "" : " in blocks");
    const bool plain = p->variance == NB_VAR_TWOPASS || p->variance == NB_VAR_ONEPASS;
    if (plain && m->found)
        nb_probe_say(p, "mean_sum", text, "strong", "%s", evidence.text);
    else
        nb_probe_say(p, "mean_sum", NULL, NULL, "%s", m->why ? m->why : "the mean is not known to be one plain sum");
    nb_strbuf_release(&evidence);
}

static void ask_variance(struct nb_probe *p, const struct sum *m) {
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
    f.beside = largest_miss(p, 8064, fill_beside, &why);
    mean_measure(&f.mean, p, m);
    if (p->failure) return;
    p->variance = decide(m, &f);
    if (isnan(f.about_zero) || isnan(f.about_first) || isnan(f.beside))
        nb_probe_say(p, "variance", NULL, NULL, "%s", why);
    else
        say_variance(p, &f);
    say_mean(p, &f.mean);
}

void nb_probe_sums(struct nb_probe *p) {
    struct sum squares;
    measure_squares(&squares, p);
    if (p->centres && !p->failure) ask_variance(p, &squares);
    if (!p->failure) ask_squares(p, &squares);
}
