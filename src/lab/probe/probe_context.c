// SPDX-License-Identifier: Apache-2.0
/* Does a row's output hang on anything but the row? The same row in calls that differ in one thing. What differs once depends; what
 * never differs has not been seen to. */
#include <stdlib.h>

#include "src/core/log.h"
#include "src/core/random.h"
#include "src/lab/probe/probe_box.h"

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

void nb_probe_context(struct nb_probe *p) {
    struct nb_box b;
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
