// SPDX-License-Identifier: Apache-2.0
/* One set of buffers, two calls on its first rows. */
#include "src/gate/gate_injection.h"

#include <math.h>
#include <stdio.h>

#include "src/accuracy/saved_statistics.h"
#include "src/core/kernel_fields.h"
#include "src/measure/buffers.h"
#include "src/measure/pool.h"
#include "src/measure/single_step.h"

enum { COLS = 64, LIMIT = 400000 };

struct work {
    const struct nb_kernel *kernel;
    struct nb_call call;
};

static void run(void *arg) {
    struct work *w = arg;
    nb_run_in_ranges(w->kernel, &w->call, 0);
}

double nb_gate_injection(const struct nb_case *c, const struct nb_entry *entry, int percent, char *reason, size_t n) {
    struct nb_case small = *c;
    struct nb_inputs in = {0};
    struct nb_buffers b = {0};
    double ratio = NAN;
    if (c->shape.layout != NB_ROWS) {
        snprintf(reason, n, "not counted for BatchNorm");
        return NAN;
    }
    small.shape.rows = 100 + percent;
    if (small.shape.cols > COLS) small.shape.cols = COLS;
    if (small.k > small.shape.cols) small.k = small.shape.cols;
    snprintf(small.data, sizeof small.data, "normal");
    small.pad = 0;
    struct work w = {.kernel = entry->kernel};
    nb_case_call(&small, &w.call);
    const struct nb_layout_request q = {.wants = nb_buffers_wants(&small, false),
                                        .placement = NB_PLACE_SLAB,
                                        .rows = small.shape.rows,
                                        .n_stats = small.shape.rows,
                                        .seed = 1,
                                        .scratch_bytes = nb_kernel_scratch_bytes(entry->kernel, &w.call),
                                        .poison = NB_POISON_NUMBER};
    if (nb_inputs_init(&in, &small) == 0 && nb_saved_statistics_add(&in, &small) == 0 &&
        nb_buffers_init(&b, &in, &q) == 0) {
        nb_buffers_attach(&b, &small, &w.call);
        const int64_t more = nb_single_step(run, &w, LIMIT, reason, n);
        w.call.rows = 100;
        const int64_t plain = more > 0 ? nb_single_step(run, &w, LIMIT, reason, n) : -1;
        if (plain > 0) ratio = (double)more / (double)plain - 1;
    } else {
        snprintf(reason, n, "no memory for the counted call");
    }
    nb_buffers_release(&b);
    nb_inputs_release(&in);
    return ratio;
}
