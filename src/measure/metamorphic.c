// SPDX-License-Identifier: Apache-2.0
/* A fixture of a few rows, one call as it is, then every relation against it. */
#include "src/measure/metamorphic.h"

#include <math.h>
#include <stdlib.h>

#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/measure/metamorphic_bits.h"
#include "src/measure/metamorphic_gradient.h"
#include "src/measure/metamorphic_residuals.h"
#include "src/measure/metamorphic_scale.h"
#include "src/measure/metamorphic_within.h"

static void skip_all(struct nb_trials *t, const char *reason) {
    for (int i = 0; i < NB_N_RELATIONS; i++) nb_trials_skip(t, (enum nb_relation)i, reason);
}

typedef void (*trial_fn)(struct nb_trials *t);

static void try_all(struct nb_trials *t) {
    static const trial_fn forward[] = {nb_trials_scale,  nb_trials_negate,    nb_trials_permute,
                                       nb_trials_shift,  nb_trials_row_order, nb_trials_batch,
                                       nb_trials_ranges, nb_trials_twice,     nb_trials_residuals};
    static const trial_fn backward[] = {nb_trials_scale_gradient, nb_trials_negate, nb_trials_row_order,
                                        nb_trials_batch,          nb_trials_ranges, nb_trials_twice};
    const bool is_backward = t->fixture->c.pass == NB_BACKWARD;
    const size_t n = is_backward ? sizeof backward / sizeof backward[0] : sizeof forward / sizeof forward[0];
    if (is_backward) {
        nb_trials_skip(t, NB_REL_PERMUTE, "not asked of gradients");
        nb_trials_skip(t, NB_REL_SHIFT, "not asked of gradients");
        nb_trials_skip(t, NB_REL_SQUARES, "a gradient is not normalized");
        nb_trials_skip(t, NB_REL_SUM, "a gradient is not normalized");
    }
    for (size_t i = 0; i < n; i++) (is_backward ? backward : forward)[i](t);
}

static void check_all(struct nb_trials *t) {
    const int64_t rows = t->fixture->in.rows;
    const unsigned long long cols = (unsigned long long)t->fixture->in.cols;
    t->first = nb_alloc((unsigned long long)rows * cols, t->fixture->item);
    t->y = nb_alloc((unsigned long long)rows * cols, t->fixture->item);
    t->exact = nb_alloc(cols, sizeof *t->exact);
    t->tolerance = nb_alloc(cols, sizeof *t->tolerance);
    if (nb_fixture_run(t->fixture, rows, 0) == 0) {
        nb_fixture_take(t->fixture, rows, t->first);
        try_all(t);
    } else {
        skip_all(t, "run() returned an error");
    }
    free(t->first);
    free(t->y);
    free(t->exact);
    free(t->tolerance);
}

enum { ROWS = 5, LONG_ROWS = 2, LONG = 16384 };

void nb_metamorphic_check(const struct nb_case *c, const struct nb_entry *entry, const struct nb_oracle *oracle,
                          struct nb_metamorphic *out) {
    struct nb_fixture fixture = {0};
    struct nb_trials t = {.fixture = &fixture, .oracle = oracle, .out = out};
    *out = (struct nb_metamorphic){.order_noise_ulp = NAN, .scale_up = -1, .scale_down = -1};
    for (int i = 0; i < NB_N_RELATIONS; i++) out->relations[i].row = out->relations[i].col = -1;
    if (c->op == NB_OP_COPY) {
        skip_all(&t, "a copy computes nothing");
        return;
    }
    if (nb_fixture_init(&fixture, c, entry, oracle->in, c->shape.cols > LONG ? LONG_ROWS : ROWS) == 0) {
        nb_bound_init(&t.bound, c, oracle, nb_kernel_chain(entry->kernel, &fixture.call));
        check_all(&t);
        nb_bound_release(&t.bound);
    } else {
        skip_all(&t, "the kernel refuses so few rows, or there is no memory");
    }
    nb_fixture_release(&fixture);
}
