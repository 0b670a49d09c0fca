// SPDX-License-Identifier: Apache-2.0
/* Does a row's output depend on anything but the row? The same row in calls that differ in one thing. What differs once depends; what
 * never differs has not been seen to. */
#include <math.h>
#include <stdlib.h>

#include "src/core/log.h"
#include "src/core/random.h"
#include "src/lab/probe/probe_internal.h"

enum { COLS = 1000, ROWS = 37 };

static double drawn(uint64_t stream, int64_t i) { return nb_random_normal(nb_random_stream(19, stream), (uint64_t)i); }

/* The row of interest at `row`, others around it. */
static void fill(struct nb_box *b, int64_t row, uint64_t neighbours) {
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t i = 0; i < b->cols; i++)
            nb_box_set(b, r, i, drawn(r == row ? 0 : neighbours, r == row ? i : r * b->cols + i));
}
static void read_row(const struct nb_box *b, int64_t row, double *y) {
    for (int64_t i = 0; i < COLS; i++) y[i] = nb_box_y(b, row, i);
}
static int64_t differing(const struct nb_box *b, int64_t row, const double *y) {
    int64_t n = 0;
    for (int64_t i = 0; i < COLS; i++) n += nb_box_y(b, row, i) != y[i];
    return n;
}

static void say(struct nb_probe *p, const char *question, int64_t different, const char *of) {
    nb_probe_say(p, question, different ? "yes" : "none seen", different ? "certain" : "as far as tried",
                 "%lld outputs of one row differ %s", (long long)different, of);
}

static void ask_repeats(struct nb_probe *p, struct nb_box *b, const double *y) {
    int64_t different = 0;
    for (int turn = 0; turn < 8 && nb_box_rerun(b, 1e-5) == 0; turn++) different += differing(b, 17, y);
    if (b->broken) return;
    nb_probe_say(p, "repeatable", different ? "no" : "yes", different ? "certain" : "as far as tried",
                 "%lld outputs of one row differ over 8 calls with the same input", (long long)different);
}

static void ask_threads(struct nb_probe *p, struct nb_box *b, const double *y) {
    int64_t different = 0;
    for (int32_t threads = 2; threads <= 8 && !b->broken; threads *= 2) {
        b->t.call.n_threads = threads;
        if (nb_box_run(b) == 0) different += differing(b, 17, y);
    }
    b->t.call.n_threads = 1;
    if (!b->broken) say(p, "depends_on_threads", different, "when the call says 2, 4 or 8 threads");
}

static void ask_rows(struct nb_probe *p, struct nb_box *b, const double *y) {
    int64_t by_position = 0, by_neighbours = 0;
    for (int64_t row = 0; row < ROWS && !b->broken; row += 6) {
        fill(b, row, 1);
        if (nb_box_run(b) == 0) by_position += differing(b, row, y);
    }
    for (uint64_t neighbours = 2; neighbours < 5 && !b->broken; neighbours++) {
        fill(b, 17, neighbours);
        if (nb_box_run(b) == 0) by_neighbours += differing(b, 17, y);
    }
    if (b->broken) return;
    say(p, "depends_on_position", by_position, "where it is one of 7 rows of 37");
    say(p, "depends_on_neighbours", by_neighbours, "with other rows about it");
}

/* Alone, and with padding behind it that holds NaN. */
static void ask_batch(struct nb_probe *p, const double *y) {
    struct nb_box b;
    int64_t alone = 0, padded = 0;
    if (nb_box_init(&b, p, 1, COLS, 1e-5) == 0) {
        fill(&b, 0, 1);
        if (nb_box_run(&b) == 0) alone = differing(&b, 0, y);
    }
    const bool broken = b.broken;
    nb_box_release(&b);
    if (broken) return;
    say(p, "depends_on_batch", alone, "where it is the only row");
    const int64_t pad = p->c.pad;
    struct nb_call call;
    p->c.pad = 5;
    nb_case_call(&p->c, &call);
    const char *refusal = nb_kernel_applicable(p->entry->kernel, &call);
    if (refusal) {
        nb_probe_say(p, "reads_padding", NULL, NULL, "%s", refusal);
        p->c.pad = pad;
        return;
    }
    if (nb_box_init(&b, p, ROWS, COLS, 1e-5) == 0) {
        fill(&b, 17, 1);
        if (nb_box_run(&b) == 0) padded = differing(&b, 17, y);
    }
    if (!b.broken)
        say(p, "reads_padding", padded, "with NaN in 5 columns behind each row; none was read at a guard page");
    nb_box_release(&b);
    p->c.pad = pad;
}

/* ---- Subnormals, NaN and Inf. Subnormal inputs, squares and outputs are each met alone: the rest of a row keeps all else normal ---- */

enum { SPECIAL_COLS = 64 };

static const char *kept_or_flushed(bool kept, bool flushed) { return kept ? "kept" : flushed ? "flushed" : NULL; }

/* x of half the smallest normal number, and a rstd of 2^8 by eps. */
static void ask_inputs(struct nb_probe *p) {
    struct nb_box b;
    const double x = p->format->min_normal / 2;
    double eps = p->eps_place == NB_EPS_INSIDE ? 0x1p-16 : 0x1p-8;
    if (p->eps_place < 0) eps = 0x1p-16;
    if (nb_box_init(&b, p, 1, SPECIAL_COLS, eps) == 0) {
        nb_box_set(&b, 0, 3, x);
        nb_box_set(&b, 0, 4, -x);
        if (nb_box_run(&b) == 0) {
            const double y = nb_box_y(&b, 0, 3);
            nb_probe_say(p, "subnormal_inputs", kept_or_flushed(y > x * 16 && isfinite(y), y == 0), "certain",
                         "x = %.3g gives %.3g, which is normal when x counts", x, y);
        }
    }
    nb_box_release(&b);
}

/* x normal, rstd 2^-6: an output of half the smallest normal number or less. */
static void ask_outputs(struct nb_probe *p) {
    struct nb_box b;
    const double x = p->format->min_normal * 4, large = 64 * 8;
    if (nb_box_init(&b, p, 1, SPECIAL_COLS, 0) == 0) {
        nb_box_set(&b, 0, 0, large); /* v = 2 * 2^18 / 64, or 2^19 */
        nb_box_set(&b, 0, 1, -large);
        nb_box_set(&b, 0, 3, x);
        if (nb_box_run(&b) == 0) {
            const double rstd = nb_box_y(&b, 0, 0) / large, y = nb_box_y(&b, 0, 3);
            const bool kept = fabs(y - x * rstd) < 0.1 * x * rstd;
            const bool in_range = x * rstd < p->format->min_normal && x * rstd > 16 * p->format->min_subnormal;
            nb_probe_say(p, "subnormal_outputs", in_range ? kept_or_flushed(kept, y == 0) : NULL, "certain",
                         "%.3g times rstd %.3g gives %.3g", x, rstd, y);
        }
    }
    nb_box_release(&b);
}

/* x^2 = 2^-128 beside eps = 2^-126, both f32: v + eps is 1.25 eps, or eps. */
static void ask_squares(struct nb_probe *p) {
    struct nb_box b;
    const double x = p->of_sum ? 0x1p-67 : 0x1p-64;
    if (p->c.dtype == NB_F16 || p->eps_place != NB_EPS_INSIDE || !p->eps_plain || p->eps_on_sum) {
        nb_probe_say(p, "subnormal_squares", NULL, NULL, "%s",
                     p->c.dtype == NB_F16 ? "squares of f16 numbers are normal in f32"
                                          : "it can be seen only where eps is inside the root");
        return;
    }
    if (nb_box_init(&b, p, 1, SPECIAL_COLS, 0x1p-126) == 0) {
        for (int64_t i = 0; i < SPECIAL_COLS; i++) nb_box_set(&b, 0, i, i % 2 ? -x : x);
        if (nb_box_run(&b) == 0) {
            const double gain = nb_box_y(&b, 0, 0) / x * 0x1p-63;
            nb_probe_say(p, "subnormal_squares", kept_or_flushed(fabs(gain - sqrt(0.8)) < 0.02, fabs(gain - 1) < 0.02),
                         "certain", "v = 2^-128 beside eps = 2^-126: rstd is 2^63 times %.4g (0.894 when v counts)",
                         gain);
        }
    }
    nb_box_release(&b);
}

/* One column is NaN or Inf: what do it and the others become? */
static void ask_special(struct nb_probe *p, const char *question, double special) {
    struct nb_box b;
    int64_t nan = 0, zero = 0;
    const char *value = "hidden from the others";
    if (nb_box_init(&b, p, 1, SPECIAL_COLS, 1e-5) == 0) {
        for (int64_t i = 0; i < SPECIAL_COLS; i++) nb_box_set(&b, 0, i, i % 2 ? -1.25 : 1);
        nb_box_set(&b, 0, 7, special);
        if (nb_box_run(&b) == 0) {
            const double own = nb_box_y(&b, 0, 7);
            for (int64_t i = 0; i < SPECIAL_COLS; i++) {
                nan += i != 7 && isnan(nb_box_y(&b, 0, i));
                zero += i != 7 && nb_box_y(&b, 0, i) == 0;
            }
            if (nan == SPECIAL_COLS - 1 && isnan(own)) value = "the whole row is NaN";
            if (zero == SPECIAL_COLS - 1) value = isnan(own) ? "the others are 0, itself NaN" : "the others are 0";
            nb_probe_say(p, question, value, "certain",
                         "the element itself gives %g; of %d others %lld are NaN and %lld are 0", own, SPECIAL_COLS - 1,
                         (long long)nan, (long long)zero);
        }
    }
    nb_box_release(&b);
}

static void ask_special_values(struct nb_probe *p) {
    ask_inputs(p);
    if (!p->failure) ask_outputs(p);
    if (!p->failure) ask_squares(p);
    if (!p->failure) ask_special(p, "nan", NAN);
    if (!p->failure) ask_special(p, "inf", INFINITY);
}

void nb_probe_context(struct nb_probe *p) {
    struct nb_box b;
    ask_special_values(p);
    if (p->failure) return;
    double *y = nb_alloc(COLS, sizeof *y);
    if (nb_box_init(&b, p, ROWS, COLS, 1e-5) == 0) {
        fill(&b, 17, 1);
        if (nb_box_run(&b) == 0) {
            read_row(&b, 17, y);
            ask_repeats(p, &b, y);
            ask_threads(p, &b, y);
            ask_rows(p, &b, y);
        }
    }
    nb_box_release(&b);
    if (!p->failure) ask_batch(p, y);
    free(y);
}
