// SPDX-License-Identifier: Apache-2.0
/* Rough figures of the right order of magnitude, from journals of `quick` on a busy AMD Milan; how much slower or faster the machine is shows
 * while it runs. */
#include "src/plan/estimate.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "src/core/cpu.h"
#include "src/core/log.h"
#include "src/core/registry.h"

/* A process that loads the kernels and makes its buffers; and one in which libraries of others start their threads. */
static const double start_s = 15e-3, open_peers_s = 60e-3;
/* Generated numbers and a copy of them in fresh pages, per element of each tensor that is read. */
static const double input_s = 15e-9;
/* The same for further sets of buffers, which are copies, in bytes per second; a set has more than one kernel touches. */
static const double fresh_bytes_per_s = 1e9, cold_sets = 1.5;
/* A launch whose memory takes longer to lay out than its samples has up to so many times the blocks: a sample from memory varies by 11% (median of
 * 10 cases on an Emerald Rapids), so that 20 of them say less than the layout did cost. */
static const double most_times = 5;
/* A kernel that has to fetch what it needs, one thread, in bytes per second; one of a library, which may do so several times. */
static const double bytes_per_s = 5e9, peer_bytes_per_s = 2.5e9;
/* The oracle, the bound and a comparison in four placements, per element; and what a case takes beside. Two checks that share a core. */
static const double check_s = 250e-9, check_case_s = 7e-3;
/* Behind a launch: memory spoilt, one more call, digests of its rows, per element. */
static const double again_s = 8e-9;
/* Samples in which an arm finds out how much fits into one. */
static const double tuning_samples = 4;
/* A trial of copies (src/measure/copies_job.c): how many copies, over how many blocks. */
static const double trial_copies = 8;
static const int trial_blocks = 8;
/* Counters: a few calls under each event set, and single steps. */
static const double counters_s = 50e-3;

/* All that a case which is only checked takes beside: a few dozen calls in fresh buffers, its line in the journal. */
static const double case_s = 400e-6;

/* What is emulated, thread by thread: that, for each tensor that the kernel declares to move per element, and a case's few dozen launches. */
static const double emulated_s = 1.5e-6, emulated_case_s = 10e-3;

size_t nb_count_parts(size_t n, const struct nb_effort *effort) {
    return effort->launches == 0 ? n > 0 : (n + NB_GROUP_ARMS - 1) / NB_GROUP_ARMS;
}

enum { SOME_COLD_BYTES = 64 << 20 };

double nb_cold_bytes(const struct nb_case *c) {
    enum { MOST = 512 << 20 };
    if (c->cache != NB_COLD) return 0;
    const double l3 = (double)nb_cpu_light()->l3_bytes, bytes = l3 > 0 ? 2 * l3 : SOME_COLD_BYTES;
    return bytes < MOST ? bytes : MOST;
}

static double elements(const struct nb_case *c) { return (double)c->shape.rows * (double)c->shape.cols; }

/* Longer calls are cut into rows, where that is allowed; of cold rows those that are longer than a sample. As measure.c has it. */
static const double most_samples_whole = 20;

/* All samples of one arm in one launch, where a call takes call_s. One that is longer than a sample and is not cut takes part in some
 * blocks only, as measure.c has it. */
static double samples_s(double call_s, bool cut, int blocks, double sample) {
    if (call_s <= sample || cut) return (blocks + tuning_samples) * sample;
    double every = call_s / (10 * sample), most = blocks > 4 ? blocks / 4 : 1;
    if (every < 1) every = 1;
    if (every > most) every = most;
    return (blocks / every + 1) * call_s;
}

/* Where one cannot be cut into rows, none of its group is. */
static bool all_cut(const struct nb_cells *cells, const size_t *which, size_t n) {
    struct nb_call call;
    for (size_t i = 0; i < n; i++) {
        nb_case_call(&cells->items[which[i]].c, &call);
        if (!nb_ask_row_local(cells->items[which[i]].entry, &call)) return false;
    }
    return true;
}

static double arm_s(const struct nb_cell *cell, bool cut, const struct nb_effort *effort) {
    int loads, stores;
    nb_op_tensors(cell->c.op, cell->c.pass, &loads, &stores);
    double declared = (double)cell->entry->kernel->loads + (double)cell->entry->kernel->stores;
    double times = declared > loads + stores ? declared / (loads + stores) : 1;
    double call_s =
        nb_case_bytes(&cell->c) * times / (cell->c.is_peer ? peer_bytes_per_s : bytes_per_s) / cell->c.threads;
    const double sample = effort->sample_ms * 1e-3;
    cut = cut && (cell->c.cache == NB_COLD || call_s > most_samples_whole * sample);
    return samples_s(call_s, cut, effort->blocks, sample);
}

/* All copies of one trial of copies. */
static double trial_s(const struct nb_cell *cell, const struct nb_effort *effort) {
    return trial_copies * samples_s(nb_case_bytes(&cell->c) / bytes_per_s / cell->c.threads, true, trial_blocks,
                                    effort->sample_ms * 1e-3);
}

static double check_only_s(const struct nb_cells *cells, const size_t *which, size_t n) {
    double s = start_s;
    for (size_t i = 0; i < n; i++) {
        const struct nb_cell *cell = &cells->items[which[i]];
        const struct nb_kernel *k = cell->entry->kernel;
        s += case_s + 1.5 * elements(&cell->c) * check_s;
        if (cell->c.backend == NB_BACKEND_CUDA_EMULATED)
            s += emulated_case_s + elements(&cell->c) * ((double)k->loads + (double)k->stores) * emulated_s;
    }
    return s;
}

static bool has_peer(const struct nb_cells *cells, const size_t *which, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (cells->items[which[i]].c.is_peer) return true;
    return false;
}

/* Of all arms of a launch, in all parts. */
static double all_samples_s(const struct nb_cells *cells, const size_t *which, size_t n,
                            const struct nb_effort *effort) {
    const bool cut = all_cut(cells, which, n);
    const double parts = (double)nb_count_parts(n, effort), copy = effort->blocks + tuning_samples;
    double s = parts * copy * effort->sample_ms * 1e-3 + (parts - 1) * arm_s(&cells->items[which[0]], cut, effort);
    for (size_t i = 0; i < n; i++) s += arm_s(&cells->items[which[i]], cut, effort);
    return s;
}

static double cold_s(const struct nb_case *c, const struct nb_effort *effort) {
    const double somewhere = c->cache == NB_COLD ? SOME_COLD_BYTES : 0;
    return cold_sets * (effort->anywhere ? somewhere : nb_cold_bytes(c)) / fresh_bytes_per_s;
}

int nb_estimate(double s[NB_N_STAGES], const struct nb_cells *cells, const size_t *which, size_t n,
                const struct nb_effort *effort) {
    for (int stage = 0; stage < NB_N_STAGES; stage++) s[stage] = 0;
    if (n == 0) return effort->blocks;
    const struct nb_cell *first = &cells->items[which[0]];
    if (effort->launches == 0 || !nb_case_is_timed(&first->c)) {
        s[NB_STAGE_CHECK] = check_only_s(cells, which, n);
        return effort->blocks;
    }
    int loads, stores;
    nb_op_tensors(first->c.op, first->c.pass, &loads, &stores);
    const bool on_cpu = first->c.backend == NB_BACKEND_CPU;
    const double parts = (double)nb_count_parts(n, effort),
                 start = parts * (start_s + elements(&first->c) * loads * input_s),
                 open = has_peer(cells, which, n) ? parts * open_peers_s : 0, cold = parts * cold_s(&first->c, effort),
                 samples = all_samples_s(cells, which, n, effort),
                 times = on_cpu ? fmin(fmax(floor(cold / samples), 1), most_times) : 1;
    s[NB_STAGE_CHECK] = start + open;
    s[NB_STAGE_ROOFS] = start + parts * trial_s(first, effort) + cold;
    s[NB_STAGE_LAUNCH] = start + open + cold + times * samples;
    s[NB_STAGE_COUNTERS] = on_cpu ? start + open + cold : 0;
    for (size_t i = 0; i < n; i++) {
        const struct nb_cell *cell = &cells->items[which[i]];
        s[NB_STAGE_LAUNCH] += elements(&cell->c) * again_s;
        s[NB_STAGE_CHECK] += check_case_s + elements(&cell->c) * check_s;
        s[NB_STAGE_COUNTERS] += cell->c.backend == NB_BACKEND_CPU ? counters_s : 0;
    }
    return effort->blocks * (int)times;
}

double nb_estimate_total_s(const double s[NB_N_STAGES], const struct nb_effort *effort) {
    return s[NB_STAGE_CHECK] + NB_COPY_TRIALS * s[NB_STAGE_ROOFS] + effort->launches * s[NB_STAGE_LAUNCH] +
           s[NB_STAGE_COUNTERS];
}

/* ---- shards ---- */

struct load {
    double s;
    size_t at;
};

static int longest_first(const void *a, const void *b) {
    const struct load *p = a, *q = b;
    if (p->s != q->s) return p->s < q->s ? 1 : -1;
    return (p->at > q->at) - (p->at < q->at);
}

void nb_shards_deal(const double *seconds, size_t n, int n_shards, int *shard_of) {
    assert(n_shards > 0 && (n == 0 || (seconds && shard_of)));
    struct load *loads freed = nb_alloc(n, sizeof *loads);
    double *taken freed = nb_alloc((size_t)n_shards, sizeof *taken);
    for (size_t i = 0; i < n; i++) loads[i] = (struct load){seconds[i], i};
    if (n > 1) qsort(loads, n, sizeof *loads, longest_first);
    for (size_t i = 0; i < n; i++) {
        int least = 0;
        for (int s = 1; s < n_shards; s++)
            if (taken[s] < taken[least]) least = s;
        taken[least] += loads[i].s;
        shard_of[loads[i].at] = least + 1;
    }
}
