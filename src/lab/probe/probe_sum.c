// SPDX-License-Identifier: Apache-2.0
/* From losses to the order of a sum: which of the known orders explain them all? */
#include <math.h>
#include <stdio.h>

#include "src/lab/probe/probe_internal.h"

int64_t nb_sum_zero(int64_t n, int64_t j) { return j == n - 1 ? n - 2 : n - 1; }

/* Ones in columns from `first` in steps of the lanes, up to `last`. */
static int64_t count_ones(int64_t first, int64_t last, int64_t lanes, int64_t zero) {
    if (first > last) return 0;
    const int64_t n = (last - first) / lanes + 1;
    return zero >= first && zero <= last && (zero - first) % lanes == 0 ? n - 1 : n;
}

/* c ones before 2^24 make 2^24 + c, rounded to an even number of which the half is even when it is a tie; of the ones behind it the
 * first is a tie too, which goes up where that half is odd. */
int64_t nb_structure_loss(const struct nb_structure *s, int64_t n, int64_t j) {
    const int64_t zero = nb_sum_zero(n, j), start = j / s->block * s->block, end = start + s->block;
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
        const double expected = (double)nb_structure_loss(s, losses->n, losses->at[i]);
        const double tolerance = losses->tolerance + losses->relative * fabs(expected);
        if (!(fabs(expected - losses->loss[i]) <= tolerance)) return false;
    }
    return losses->n_positions > 0;
}

int nb_structure_search(const struct nb_losses *losses, struct nb_structure *found) {
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

int nb_structure_find(struct nb_losses *losses, double (*loss)(struct nb_box *b, int64_t j, void *arg),
                      struct nb_box *b, void *arg, struct nb_structure *found) {
    const int64_t n = losses->n, first[] = {0, 1, 3, 5, 6, n / 2 - 1, n / 2, n - 70};
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++)
        if (weigh(losses, loss(b, first[i], arg), first[i]) != 0) return -1;
    if (nb_structure_search(losses, found) == 0) return 0;
    /* About the boundaries of what fits so far. */
    const int64_t q = found->lanes, then[] = {q - 1, q, 2 * q + 1, 17 * q, found->block - 1, found->block, 333, 4097};
    for (size_t i = 0; i < sizeof then / sizeof then[0]; i++)
        if (then[i] > 1 && then[i] < n - 2 && weigh(losses, loss(b, then[i], arg), then[i]) != 0) return -1;
    return nb_structure_search(losses, found);
}

void nb_losses_print(const struct nb_losses *losses, struct nb_strbuf *out) {
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
    if (nb_box_init(&b, p, 1, n, 0) != 0 || nb_scale_init(&s, &b, 0, a, why) != 0) loss = NAN;
    for (int64_t j = 0; j < POSITIONS && !isnan(loss); j++) {
        sum_set_row(&b, j, a);
        loss += (a * a + (double)(n - 2) - nb_scale_weigh(&s, &b, j, a)) / POSITIONS;
    }
    nb_box_release(&b);
    return loss;
}

static void say_tail(struct nb_probe *p, const struct nb_sum *m) {
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

static double predict(bool fused) {
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

static void say_fma(struct nb_probe *p, const struct nb_sum *m) {
    struct nb_box b;
    double sum = NAN, tolerance = 0;
    const char *why = p->lanes > 0 ? "the lanes are too short" : "the lanes are not known";
    if (p->c.dtype != NB_F32) why = "squares of 16-bit numbers are exact in f32: rounded or not, they are the same";
    const bool asked = p->c.dtype == NB_F32 && p->lanes > 0 && (N_B + 1) * p->lanes < m->structure.block;
    if (asked && nb_box_init(&b, p, 1, p->cols, 0) == 0) sum = weigh_squares(&b, p->lanes, &tolerance, &why);
    if (asked) nb_box_release(&b);
    const double fused = predict(true), separate = predict(false), unit = fabs(fused - separate);
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
static void probe_sum_details(struct nb_probe *p, const struct nb_sum *m) {
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
    probe_sum_details(p, m);
}
