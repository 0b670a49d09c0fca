// SPDX-License-Identifier: Apache-2.0
/* Rough figures, none of them fitted to a machine: they only have to have the right order of magnitude. */
#include "src/plan/estimate.h"

#include <stdbool.h>

#include "src/core/registry.h"

/* A process that loads the kernels and makes its buffers. */
static const double start_s = 12e-3;
/* Generated numbers and a copy of them in fresh pages, per element of each tensor that is read. */
static const double input_s = 15e-9;
/* A kernel that has to fetch what it needs, one thread, in bytes per second. */
static const double bytes_per_s = 5e9;
/* The oracle, the bound and a comparison in four placements, per element. */
static const double check_s = 130e-9;
/* Behind a launch: memory spoilt, one more call, digests of its rows, per element. */
static const double again_s = 8e-9;
/* Samples in which an arm finds out how much fits into one. */
static const double tuning_samples = 4;
/* Counters: a few calls under each event set, and single steps. */
static const double counters_s = 50e-3;

/* All that a case which is only checked takes beside: a few dozen calls in fresh buffers, its line in the journal. */
static const double case_s = 400e-6;

size_t nb_n_parts(size_t n, const struct nb_effort *effort) {
    return effort->launches == 0 ? n > 0 : (n + NB_GROUP_ARMS - 1) / NB_GROUP_ARMS;
}

static double elements(const struct nb_case *c) { return (double)c->shape.rows * (double)c->shape.cols; }

/* All samples of one arm in one launch. A call that is longer than a sample and cannot be cut takes part in some blocks only, as
 * measure.c has it. */
static double arm_s(const struct nb_cell *cell, const struct nb_effort *effort) {
    const double sample = effort->sample_ms * 1e-3;
    struct nb_call call;
    nb_case_call(&cell->c, &call);
    int loads, stores;
    nb_op_tensors(cell->c.op, cell->c.pass, &loads, &stores);
    double declared = (double)cell->entry->kernel->loads + (double)cell->entry->kernel->stores;
    double times = declared > loads + stores ? declared / (loads + stores) : 1;
    double call_s = nb_case_bytes(&cell->c) * times / bytes_per_s / cell->c.threads;
    if (call_s <= sample || nb_ask_row_local(cell->entry, &call)) return (effort->blocks + tuning_samples) * sample;
    double every = call_s / (10 * sample), most = effort->blocks > 4 ? effort->blocks / 4 : 1;
    if (every < 1) every = 1;
    if (every > most) every = most;
    return (effort->blocks / every + 1) * call_s;
}

static double check_only_s(const struct nb_cells *cells, const size_t *which, size_t n) {
    double s = start_s;
    for (size_t i = 0; i < n; i++) s += case_s + 4 * elements(&cells->items[which[i]].c) * check_s;
    return s;
}

struct nb_estimate nb_estimate(const struct nb_cells *cells, const size_t *which, size_t n,
                               const struct nb_effort *effort) {
    struct nb_estimate e = {0};
    if (n == 0) return e;
    if (effort->launches == 0) return (struct nb_estimate){.check = check_only_s(cells, which, n)};
    const struct nb_cell *first = &cells->items[which[0]];
    const double parts = (double)nb_n_parts(n, effort),
                 copy = (effort->blocks + tuning_samples) * effort->sample_ms * 1e-3;
    int loads, stores;
    nb_op_tensors(first->c.op, first->c.pass, &loads, &stores);
    const double start = parts * (start_s + elements(&first->c) * loads * input_s);
    e.check = start;
    e.counters = start;
    e.launch = start + parts * copy + (parts - 1) * arm_s(first, effort);
    for (size_t i = 0; i < n; i++) {
        const struct nb_cell *cell = &cells->items[which[i]];
        e.launch += arm_s(cell, effort) + elements(&cell->c) * again_s;
        e.check += elements(&cell->c) * check_s;
        e.counters += counters_s;
    }
    return e;
}

double nb_estimate_total_s(const struct nb_estimate *e, const struct nb_effort *effort) {
    return e->check + effort->launches * e->launch + e->counters;
}

double nb_estimate_s(const struct nb_cells *cells, const size_t *which, size_t n, const struct nb_effort *effort) {
    const struct nb_estimate e = nb_estimate(cells, which, n, effort);
    return nb_estimate_total_s(&e, effort);
}
