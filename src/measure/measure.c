// SPDX-License-Identifier: Apache-2.0
#include "src/measure/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/stats.h"
#include "src/core/timer.h"
#include "src/measure/check.h"
#include "src/measure/faults.h"
#include "src/measure/pool.h"

/* ---- what others did meanwhile ----------------------------------------------------------------------------------- */

static void disturbance_begin(struct nb_noise *noise, struct nb_thread_usage *before, int threads,
                              const struct nb_device_api *device) {
    *noise = (struct nb_noise){.steal_ms = nb_steal_ms()};
    *before = nb_thread_usage();
    noise->cpu = before->cpu;
    noise->threads = threads;
    noise->wall_s = nb_now_s();
    if (device) device->throttled(); /* from now on */
}

static void disturbance_end(struct nb_noise *noise, const struct nb_thread_usage *before,
                            const struct nb_device_api *device) {
    noise->wall_s = nb_now_s() - noise->wall_s;
    const struct nb_thread_usage after = nb_thread_usage();
    noise->cpu_s = 1e-6 * (double)(after.cpu_us - before->cpu_us);
    noise->involuntary = (double)(after.involuntary - before->involuntary);
    noise->voluntary = (double)(after.voluntary - before->voluntary);
    noise->steal_ms = nb_steal_ms() - noise->steal_ms;
    noise->throttled = device ? device->throttled() : (double)NAN;
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

/* Samples, blocks and one launch of a group. */

/* Where the next sample begins, for all arms together. */
struct cursor {
    int64_t row;
    int set, n_sets;
    bool stays;      /* in its set until the next block; else every call goes on to the next */
    uint64_t random; /* of what is spoilt; never 0 */
};

struct launch {
    struct nb_pool *pool;
    const struct nb_measure_options *options;
    struct cursor cursor;
    unsigned unmet;           /* homes whose set no arm has met in this block: bits, the first home's and the other's */
    bool exchanges;           /* two rows of the inputs change places, in the set of every home that the block is on */
    int64_t a, b;             /* those that have */
    uint64_t times;           /* sum over all samples, weighted by their places */
    struct nb_arm *acquitted; /* wrong behind inputs that some arm, not known yet, had changed; null: none was */
    char where[120];          /* they were changed */
    double probe;             /* the last one, where the core is probed */
    int cpu;                  /* of those that it may use, by number in their list */
    double asleep_s;          /* waiting for an uncontended core */
    struct nb_hidden_threads hidden;
};

/* ---- spot checks ------------------------------------------------------------------------------------------------- */

/* Xorshift (Marsaglia 2003): this is done within the time of a sample. */
static inline uint64_t next_random(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

/* One element of what the call on rows [begin, end) is to write. */
static inline void spoil_element(struct nb_arm *arm, struct cursor *at, int64_t begin, int64_t end) {
    const struct nb_outputs *o = &arm->outputs[at->set];
    const uint64_t r = next_random(&at->random), bits = r * 0x9e3779b97f4a7c15u >> 32;
    const bool of_all = o->n_of_all > 0 && r % 8 == 0 && end - begin == arm->c->shape.rows;
    const struct nb_tensor *t =
        of_all ? o->of_all[(r >> 3 & 0xff) * (unsigned)o->n_of_all >> 8] : o->by_row[o->n_by_row > 1 && (r >> 3 & 1)];
    const int64_t row = of_all ? 0 : begin + (int64_t)((r >> 32) * (uint64_t)(end - begin) >> 32);
    const int64_t col = (int64_t)((r >> 8 & 0xffffff) * (uint64_t)t->cols >> 24);
    char *element = (char *)t->data + (size_t)(row * t->stride + col) * t->item;
    if (t->item == sizeof(uint16_t))
        memcpy(element, &bits, sizeof(uint16_t));
    else
        memcpy(element, &bits, sizeof(uint32_t));
    arm->spoilt_row = of_all ? arm->c->shape.rows : row;
    arm->spoilt_set = at->set;
}

/* A store and some arithmetic, 5 ns, are to be less than 1 % of what lies between two of them. */
static int64_t spoils_every(double call_s) {
    const double least_s = 0.5e-6;
    return call_s >= least_s ? 1 : call_s > 0 ? (int64_t)ceil(least_s / call_s) : 1;
}

static void swap_rows(const struct nb_tensor *t, int64_t a, int64_t b) {
    char part[4096];
    const size_t bytes = (size_t)t->cols * t->item;
    char *p = nb_tensor_row(t, a), *q = nb_tensor_row(t, b);
    for (size_t i = 0; i < bytes; i += sizeof part) {
        const size_t n = bytes - i < sizeof part ? bytes - i : sizeof part;
        memcpy(part, p + i, n);
        memcpy(p + i, q + i, n);
        memcpy(q + i, part, n);
    }
}

static void exchange_rows(const struct launch *l) {
    for (int s = l->cursor.set; l->exchanges && s < l->options->n_watched && l->a != l->b; s += l->cursor.n_sets) {
        const struct nb_tensor *tensors = l->options->watched[s].tensors;
        swap_rows(&tensors[NB_T_X], l->a, l->b);
        if (tensors[NB_T_RESIDUAL].data) swap_rows(&tensors[NB_T_RESIDUAL], l->a, l->b);
    }
}

/* To the next set; the two rows back, and two others. */
static void begin_block(struct launch *l, uint64_t rows) {
    exchange_rows(l);
    if (l->cursor.stays) l->cursor.set = (l->cursor.set + 1) % l->cursor.n_sets;
    l->unmet = l->cursor.stays && l->cursor.n_sets > 1 ? 3 : 0;
    if (!l->exchanges) return;
    l->a = (int64_t)((next_random(&l->cursor.random) >> 32) * rows >> 32);
    l->b = (int64_t)((next_random(&l->cursor.random) >> 32) * rows >> 32);
    exchange_rows(l);
}

/* Forward kernels whose rows depend on nothing else, not even on where they lie. */
static bool takes_any_order(const struct nb_arm *arm) {
    const struct nb_case *c = arm->c;
    if (c->op == NB_OP_COPY) return true;
    return c->pass == NB_FORWARD && c->op != NB_OP_BATCHNORM && nb_kernel_row_local(arm->entry->kernel, &arm->calls[0]);
}

static bool may_exchange(const struct nb_arm *arms, int n_arms, const struct cursor *at) {
    bool may = at->stays || at->n_sets == 1;
    for (int a = 0; a < n_arms && may; a++) may = takes_any_order(&arms[a]);
    return may;
}

static void look_at_row(struct nb_arm *arm, const struct launch *l, int set, int64_t row) {
    const int64_t holds = row == l->a ? l->b : row == l->b ? l->a : row;
    if (arm->is_wrong || nb_output_digest(&arm->outputs[set], row) == arm->digests[holds]) return;
    arm->is_wrong = true;
    arm->wrong_row = row;
}

/* Inputs and poison as they were at first, in their places, or what harmed them first. */
static enum nb_damage mend(struct launch *l, char *where, size_t n) {
    enum nb_damage damage = NB_INTACT;
    exchange_rows(l);
    for (int s = 0; s < l->options->n_watched; s++) {
        struct nb_buffers *set = &l->options->watched[s];
        char here[sizeof l->where];
        const enum nb_damage found = nb_buffers_verify(set, here, sizeof here);
        if (found == NB_INTACT) continue;
        nb_buffers_fill(set);
        if (damage == NB_INTACT) snprintf(where, n, "%s", here);
        if (damage == NB_INTACT) damage = found;
    }
    exchange_rows(l);
    return damage;
}

/* Rows are wrong, too, behind an arm that changed the inputs: then all are looked at behind each sample until it has come again. */
static void acquit(struct nb_arm *arm, struct launch *l) {
    char where[sizeof arm->where];
    if (!arm->is_wrong || !l->options->watched || mend(l, where, sizeof where) == NB_INTACT) return;
    arm->is_wrong = false;
    l->acquitted = arm;
    memcpy(l->where, where, sizeof l->where);
}

/* An arm that changed the inputs once and did not come again: somebody is wrong, and no launch may end as if all were well. */
static void blame_who_changed_inputs(struct launch *l, const struct nb_arm *arms, int n_arms) {
    bool found = l->acquitted == NULL;
    for (int a = 0; a < n_arms; a++) found |= arms[a].damage == NB_DAMAGED_INPUT;
    if (found) return;
    l->acquitted->damage = NB_DAMAGED_INPUT;
    memcpy(l->acquitted->where, l->where, sizeof l->where);
}

/* What is written to a time after it was taken changes the sum. */
static uint64_t weighted(const struct nb_arm *arm, int block) {
    uint64_t bits;
    memcpy(&bits, &arm->sample_ns[block], sizeof bits);
    return isnan(arm->sample_ns[block]) ? 0 : bits * (2 * (uint64_t)block + 1);
}

/* Of what no call changes: whom it calls, on which memory, and what is expected of it. */
static uint64_t digest_of_arms(const struct nb_arm *arms, int n_arms, int n_sets) {
    uint64_t digest = 0;
    for (int a = 0; a < n_arms; a++) {
        const struct nb_arm *arm = &arms[a];
        digest = digest * 31 + nb_row_digest(arm->calls, n_sets, sizeof *arm->calls);
        if (arm->outputs) digest = digest * 31 + nb_row_digest(arm->outputs, n_sets, sizeof *arm->outputs);
        digest = digest * 31 + nb_row_digest(arm->c, 1, sizeof *arm->c);
        digest = digest * 31 + nb_row_digest(arm->entry->kernel, 1, sizeof *arm->entry->kernel);
    }
    return digest;
}

/* An arm has written to what the harness keeps in the heap. Which of them is not known. */
static void look_for_harm(const struct launch *l, struct nb_arm *arms, int n_arms, uint64_t digest) {
    uint64_t times = 0;
    for (int a = 0; a < n_arms; a++)
        for (int b = 0; b < l->options->blocks; b++) times += weighted(&arms[a], b);
    if (times == l->times && digest == digest_of_arms(arms, n_arms, l->cursor.n_sets) && !nb_faults_heap_harmed())
        return;
    arms[0].damage = NB_DAMAGED_OUTSIDE;
    snprintf(arms[0].where, sizeof arms[0].where, "wrote to memory of the heap that is not its own");
}

const char *nb_wrong_deed(int64_t wrong_row) {
    return wrong_row == NB_WRONG_CLOCK    ? "changed the process's clock"
           : wrong_row == NB_WRONG_HELPED ? "let another thread do its work"
                                          : NULL;
}

/* May threads work that are not the pool's? Those of libraries that say so, of drivers, of functions that are no kernels; of emulators. */
static bool may_have_other_threads(const struct launch *l, const struct nb_arm *arms, int n_arms) {
    bool may = l->options->device || l->options->before || nb_cpu_emulator();
    for (int a = 0; a < n_arms; a++) may |= (arms[a].entry->kernel->flags & NB_FLAG_OWN_THREADS) != 0;
    return may;
}

/* Blocks from one turn of the arm with the longest calls to its next. */
static int longest_round(const struct nb_arm *arms, int n_arms) {
    int every = 1;
    for (int a = 0; a < n_arms; a++) every = arms[a].every > every ? arms[a].every : every;
    return every;
}

/* Behind a sample. Long rows are looked at so seldom that it takes 1 % of the time. */
static void look_at_spots(struct nb_arm *arm, struct launch *l) {
    const double digest_s = 0.3e-9; /* a byte */
    if (!arm->digests || arm->error || !arm->spoils_every || arm->c->op == NB_OP_COPY) return;
    const struct nb_tensor *t = arm->outputs[0].by_row[0];
    const double share = 2 * digest_s * (double)t->cols * (double)t->item / (0.01 * l->options->sample_s);
    if (share > 1 && (double)(next_random(&l->cursor.random) >> 11) * 0x1p-53 * share > 1) return;
    look_at_row(arm, l, arm->spoilt_set, arm->spoilt_row);
    if (l->exchanges && !arm->chunked) look_at_row(arm, l, l->cursor.set, l->a);
    acquit(arm, l);
}

/* ---- one sample ----------------------------------------------------------------------------------------------------- */

/* So many rows, as an amount of calls on the whole shape. */
static void tell_of_rows(const struct nb_arm *arm, int64_t rows) {
    const struct nb_shape *s = &arm->c->shape;
    nb_worked(arm->entry->kernel->variant, arm->entry->file, (double)rows / (double)s->rows,
              (double)s->rows * (double)s->cols);
}

static void run_rows(struct nb_arm *arm, struct nb_pool *pool, struct cursor *at, int64_t rows) {
    const int64_t all = arm->c->shape.rows;
    tell_of_rows(arm, rows);
    while (rows > 0 && !arm->error) {
        int64_t end = at->row + rows < all ? at->row + rows : all;
        if (arm->spoils_every) spoil_element(arm, at, at->row, end);
        arm->error = nb_pool_run_rows(pool, arm->entry->kernel, &arm->calls[at->set], at->row, end);
        rows -= end - at->row;
        at->row = end;
        if (end < all) continue;
        at->row = 0;
        if (!at->stays) at->set = (at->set + 1) % at->n_sets;
    }
}

/* Calls of another process in one message, so that none is timed apart. An element is spoilt before it. */
static void run_message(struct nb_arm *arm, struct nb_pool *pool, struct cursor *at, int64_t calls) {
    const struct nb_program_calls message = {.calls = arm->calls, .n = at->n_sets, .start = at->set, .amount = calls};
    if (arm->spoils_every) spoil_element(arm, at, 0, arm->c->shape.rows);
    arm->error = nb_pool_run_program(pool, arm->entry->kernel, &message);
    at->set = (int)((at->set + calls) % at->n_sets);
}

static void run_calls(struct nb_arm *arm, struct nb_pool *pool, struct cursor *at, int64_t calls) {
    tell_of_rows(arm, calls * arm->c->shape.rows);
    if (nb_kernel_is_of_program(arm->entry->kernel)) {
        if (calls > 0 && !arm->error) run_message(arm, pool, at, calls);
        return;
    }
    /* Before the last one always: it is looked at. */
    int64_t next = arm->spoils_every ? (calls - 1) % arm->spoils_every + 1 : INT64_MAX;
    for (; calls > 0 && !arm->error; calls--) {
        if (--next == 0) {
            spoil_element(arm, at, 0, arm->c->shape.rows);
            next = arm->spoils_every;
        }
        arm->error = nb_pool_run(pool, arm->entry->kernel, &arm->calls[at->set]);
        if (!at->stays && ++at->set == at->n_sets) at->set = 0;
    }
}

static void run_amount(struct nb_arm *arm, struct nb_pool *pool, struct cursor *at, int64_t amount) {
    if (arm->chunked)
        run_rows(arm, pool, at, amount);
    else
        run_calls(arm, pool, at, amount);
}

/* Seconds of the sample, with each reading of the clock between two of the system's own: a kernel can put a clock of its own in the
 * program's way, and cannot see which samples are looked at. */
static double time_with_proof(struct nb_arm *arm, struct launch *l, int64_t amount) {
    const double slack = 2e-6;
    const double before = nb_system_now_s(), begin = nb_now_s(), behind = nb_system_now_s();
    run_amount(arm, l->pool, &l->cursor, amount);
    const double ahead = nb_system_now_s(), end = nb_now_s(), after = nb_system_now_s();
    if (begin < before - slack || begin > behind + slack || end < ahead - slack || end > after + slack) {
        arm->is_wrong = true;
        arm->wrong_row = NB_WRONG_CLOCK;
    }
    return end - begin;
}

static bool is_out(const struct nb_arm *arm) { return arm->error || arm->damage != NB_INTACT || arm->is_wrong; }

/* ---- a sample on a device ------------------------------------------------------------------------------------------- */

/* The host's clock would time the enqueueing: events do it, behind and before the sample's calls on one stream. These are captured once and
 * replayed together, however long they are. Nothing is spoilt within a sample; before it one word of the outputs is, and after it that row must
 * have the bits that were checked. */

/* A sample lasts at least so long: an event's time is a multiple of half a microsecond, and a graph takes one to begin. */
static const double least_on_device_s = 0.4e-3;

static void fail_on_device(struct nb_arm *arm, const struct nb_device_api *device) {
    bool outside;
    const char *error = device->last_error(&outside);
    snprintf(arm->where, sizeof arm->where, outside ? "read or wrote outside its tensors: %s" : "its call failed: %s",
             error);
    arm->damage = outside ? NB_DAMAGED_OUTSIDE : arm->damage;
    arm->error = outside ? arm->error : -1;
}

static void drop_graph(struct nb_arm *arm, const struct nb_device_api *device) {
    if (arm->graph) device->release_graph(arm->graph);
    arm->graph = NULL;
}

/* The arm's graph, of as many calls as a sample has; where they cannot be captured there is none. */
static void capture(struct nb_arm *arm, struct launch *l) {
    const struct nb_device_api *device = l->options->device;
    struct cursor at = {.n_sets = l->cursor.n_sets};
    drop_graph(arm, device);
    if (device->capture_begin() != 0) return;
    run_calls(arm, l->pool, &at, arm->per_sample);
    if (device->capture_end(&arm->graph) == 0 && !arm->error) return;
    drop_graph(arm, device);
    arm->error = 0; /* uncaptured, its calls may well be right */
}

/* What a row of the outputs is on the device, here. */
static int fetch_row(const struct nb_arm *arm, const struct nb_device_api *device, int64_t row) {
    const struct nb_outputs *o = &arm->outputs[0];
    int result = 0;
    for (int i = 0; i < o->n_by_row && result == 0; i++) {
        unsigned char *here = nb_tensor_row(o->by_row[i], row);
        result =
            device->copy_out(here, here + o->by_row[i]->to_device, (size_t)o->by_row[i]->cols * o->by_row[i]->item);
    }
    return result;
}

static bool is_spot_checked(const struct nb_arm *arm, const struct launch *l) {
    return arm->digests && l->cursor.n_sets == 1 && arm->c->op != NB_OP_COPY;
}

static void spoil_on_device(struct nb_arm *arm, struct launch *l) {
    const struct nb_tensor *t = arm->outputs[0].by_row[0];
    const uint64_t r = next_random(&l->cursor.random);
    if (!is_spot_checked(arm, l)) return;
    arm->spoilt_row = (int64_t)((r >> 32) * (uint64_t)arm->c->shape.rows >> 32);
    unsigned char *at = (unsigned char *)nb_tensor_row(t, arm->spoilt_row) + t->to_device;
    if ((uintptr_t)at % sizeof(uint32_t) == 0 && (size_t)t->cols * t->item >= sizeof(uint32_t))
        l->options->device->fill(at, (uint32_t)r, 1);
}

static void look_on_device(struct nb_arm *arm, const struct launch *l) {
    if (!is_spot_checked(arm, l) || is_out(arm)) return;
    if (fetch_row(arm, l->options->device, arm->spoilt_row) == 0) look_at_row(arm, l, 0, arm->spoilt_row);
}

/* One more sample, or a call, ahead of the sample: it warms, and while the device works through it the sample is enqueued, which would be part of
 * the time of a device that waits. */
static int run_ahead(struct nb_arm *arm, struct launch *l) {
    if (arm->needs_no_warming) return 0;
    if (arm->graph) return l->options->device->replay(arm->graph);
    run_calls(arm, l->pool, &l->cursor, 1);
    return 0;
}

static double time_on_device(struct nb_arm *arm, struct launch *l, int64_t amount) {
    const struct nb_device_api *device = l->options->device;
    int result = run_ahead(arm, l);
    spoil_on_device(arm, l);
    if (!arm->error) result |= device->record(0);
    if (arm->graph)
        result |= device->replay(arm->graph);
    else
        run_calls(arm, l->pool, &l->cursor, amount);
    if (!arm->error) result |= device->record(1);
    const double s = arm->error || result != 0 ? (double)NAN : device->elapsed_s();
    if (isnan(s) && !arm->error) fail_on_device(arm, device);
    look_on_device(arm, l);
    return isnan(s) ? 0 : s;
}

/* ---- a sample ------------------------------------------------------------------------------------------------------- */

/* What the program prepares for a call is no part of a sample. */
static void prepare(struct nb_arm *arm, const struct launch *l) {
    const struct nb_program_calls all = {.calls = arm->calls, .n = l->cursor.n_sets};
    if (arm->error || !nb_kernel_is_of_program(arm->entry->kernel)) return;
    const int code = nb_kernel_program_prepare(arm->entry->kernel, &all);
    if (code != NB_PROGRAM_GONE) arm->error = code; /* the next call says that it is gone */
}

/* Within a message nothing can be spoilt, so a kernel might do the work of some of its calls alone. One that is a message of its own shows
 * whether it did; one more before it, or none, so that it is not always that of the same turn. */
static void call_apart(struct nb_arm *arm, struct launch *l, int64_t amount) {
    if (amount == 1 || !arm->spoils_every || !nb_kernel_is_of_program(arm->entry->kernel)) return;
    if (next_random(&l->cursor.random) % 2) run_calls(arm, l->pool, &l->cursor, 1);
    run_calls(arm, l->pool, &l->cursor, 1);
}

/* A set that other blocks have pushed out of the second cache is back after two calls, not after one (256x1024, an Intel with AMX: with
 * one, ratios differed by 9 % from set to set, with two by 2 %). Rows are of no warmer call than that of a set. */
static int64_t calls_to_warm(const struct nb_arm *arm, struct launch *l) {
    const unsigned home = arm->home > 0 ? 2 : 1;
    if (l->options->cold || arm->needs_no_warming) return 0;
    const int64_t n = (l->unmet & home ? 1 : 0) + (arm->chunked ? 0 : 1);
    l->unmet &= ~home;
    return n;
}

/* Seconds for `amount` calls, or rows when chunked. */
static double time_sample(struct nb_arm *arm, struct launch *l, int64_t amount) {
    if (l->options->device) return time_on_device(arm, l, amount);
    const struct nb_fp_state state = nb_fp_state();
    double elapsed;
    nb_pool_make_ready(l->pool, arm->entry->kernel);
    prepare(arm, l);
    run_calls(arm, l->pool, &l->cursor, calls_to_warm(arm, l));
    nb_fp_state_set(state); /* what a call that warms left is none of the sample's */
    if (next_random(&l->cursor.random) % 8 == 0) {
        elapsed = time_with_proof(arm, l, amount);
    } else {
        const double begin = nb_now_s();
        run_amount(arm, l->pool, &l->cursor, amount);
        elapsed = nb_now_s() - begin;
    }
    call_apart(arm, l, amount);
    nb_fp_state_set(state);
    return elapsed;
}

/* Whose sample it was that is known now, and at the end of the launch no more. */
static void look_for_damage(struct nb_arm *arm, const struct launch *l) {
    if (!l->options->watched) return;
    struct nb_buffers *set = &l->options->watched[arm->home + l->cursor.set];
    arm->damage = nb_buffers_verify_margins(set, arm->where, sizeof arm->where);
    if (arm->damage != NB_INTACT) nb_buffers_fill(set);
}

/* A call of many samples' length that cannot be cut takes part in every so many blocks only, but in at least four. */
static int blocks_between(double call_s, double sample_s, int blocks) {
    int most = blocks > 4 ? blocks / 4 : 1;
    double wanted = call_s / (10 * sample_s);
    return wanted <= 1 ? 1 : wanted >= most ? most : (int)wanted;
}

/* A call this much longer than a sample pays for the caches as it finds them once, as it does for its first rows every time: fetching all
 * that a shared cache holds takes some samples. A call to warm it would double what the slowest arms cost. */
static const double samples_without_warming = 100;

/* While its data stay in a cache, a call up to so many samples long is taken whole: what some rows of it find there depends on what ran since
 * they were last read. 64x4096, an Emerald Rapids: ratios to such a kernel spread by 8 to 9% between launches, by 2 to 3% to whole calls
 * (decision 0032). */
static const int64_t most_samples_whole = 20;

bool nb_measure_goes_by_rows(const struct nb_kernel *kernel, const struct nb_call *call) {
    return nb_kernel_row_local(kernel, call) && nb_kernel_n_phases(kernel, call) == 1 &&
           nb_kernel_n_units(kernel, call, 0) == call->rows; /* its units are rows */
}

/* What a message takes is to be a small part of what it is counted with. */
static const double messages_longer = 4;

static double sample_of(const struct nb_arm *arm, const struct nb_measure_options *options) {
    if (options->device) return fmax(options->sample_s, least_on_device_s);
    return options->sample_s * (nb_kernel_is_of_program(arm->entry->kernel) ? messages_longer : 1);
}

/* Replayed, calls take less time than they took to enqueue: more of them fill the sample. */
static void choose_graph(struct nb_arm *arm, struct launch *l) {
    const double sample = sample_of(arm, l->options);
    for (int tries = 0; tries < 8 && !is_out(arm); tries++) {
        capture(arm, l);
        const double elapsed = arm->graph ? time_sample(arm, l, arm->per_sample) : sample;
        if (elapsed >= 0.7 * sample || is_out(arm)) return;
        const double grow = elapsed > 0 ? fmin(sample / elapsed, 16) : 16;
        arm->per_sample = (int64_t)((double)arm->per_sample * grow) + 1;
    }
}

/* A try that fills a sample before it was expected to was disturbed, or the first: a thread's first calls wait until it runs, and one such
 * wait would make every sample of the launch a few rows long. */
static bool came_early(double elapsed, double expected, double sample_s) {
    return elapsed > 1.5 * expected && elapsed <= samples_without_warming * sample_s;
}

/* Grows the amount until it fills the sample. A call longer than a sample is taken row by row where that is allowed. Returns the seconds of
 * a call, or of a sample's rows. */
static double choose_sample(struct nb_arm *arm, struct launch *l) {
    const double sample = sample_of(arm, l->options), filled = 0.7 * sample;
    const int64_t rows = arm->c->shape.rows;
    const struct nb_kernel *kernel = arm->entry->kernel;
    const bool can_chunk =
        !l->options->device && nb_measure_goes_by_rows(kernel, &arm->calls[0]); /* rows would starve a device */
    arm->chunked = can_chunk;
    int64_t amount = can_chunk && rows > 16 ? 16 : can_chunk ? rows : 1;
    double elapsed = 0, expected = 0;
    for (int tries = 0; tries < 24 && !is_out(arm); tries++) {
        elapsed = time_sample(arm, l, amount);
        if (elapsed >= filled && came_early(elapsed, expected, sample))
            elapsed = fmin(elapsed, time_sample(arm, l, amount));
        if (elapsed >= filled) break;
        double grow = elapsed > 0 ? sample / elapsed : 16;
        if (grow > 16) grow = 16;
        int64_t larger = (int64_t)((double)amount * grow) + 1;
        expected = elapsed * (double)larger / (double)amount;
        if (arm->chunked && larger >= rows) { /* the whole shape fits into a sample */
            arm->chunked = false;
            larger = larger / rows > 1 ? larger / rows : 1;
        }
        amount = larger;
    }
    if (arm->chunked && (l->options->cold ? 2 : most_samples_whole) * amount > rows) {
        elapsed *= (double)rows / (double)amount;
        arm->chunked = false;
        amount = 1;
    }
    arm->per_sample = amount;
    arm->every = 1;
    const double call_s = arm->chunked ? elapsed : elapsed / (double)amount;
    if (l->options->device) choose_graph(arm, l);
    if (arm->chunked || amount > 1) return call_s;
    arm->every = blocks_between(elapsed, sample, l->options->blocks);
    arm->needs_no_warming = elapsed > samples_without_warming * sample;
    return call_s;
}

/* The first arm's sample for all, by rows where all can. Where samples are inflated rows are counted in hundreds, so that a percent is
 * whole; of a few calls no percent is, and what is injected there is time. */
static void even_samples(struct nb_arm *arms, int n_arms) {
    struct nb_arm *first = &arms[0];
    const int64_t rows = first->c->shape.rows;
    bool inflated = false, all_by_rows = true;
    for (int a = 0; a < n_arms; a++) {
        inflated |= arms[a].extra_percent != 0;
        all_by_rows &= nb_measure_goes_by_rows(arms[a].entry->kernel, &arms[a].calls[0]);
    }
    if (first->chunked && !all_by_rows) {
        first->chunked = false;
        first->per_sample = first->per_sample > rows ? first->per_sample / rows : 1;
    }
    if (inflated && all_by_rows) {
        if (!first->chunked) first->per_sample *= rows;
        first->chunked = true;
        first->per_sample = (first->per_sample + 99) / 100 * 100;
    }
    for (int a = 1; a < n_arms; a++) {
        arms[a].chunked = first->chunked;
        arms[a].per_sample = first->per_sample;
        arms[a].every = first->every;
    }
}

/* Seconds for which the core was busy, so many at least. */
static double spend(double s) {
    const double begin = nb_now_s();
    double spent = 0;
    while (spent < s) spent = nb_now_s() - begin;
    return spent;
}

static void run_sample(struct nb_arm *arm, struct launch *l, int block) {
    const struct nb_device_api *device = l->options->device;
    const bool was_disturbed = device && device->is_disturbed();
    const struct nb_thread_usage before = nb_thread_usage();
    const int64_t extra_rows = arm->chunked ? arm->per_sample / 100 * arm->extra_percent : 0;
    double elapsed = time_sample(arm, l, arm->per_sample + extra_rows);
    if (!arm->chunked) elapsed += spend(elapsed * arm->extra_percent / 100);
    const struct nb_thread_usage after = nb_thread_usage();
    double calls = arm->chunked ? (double)arm->per_sample / (double)arm->c->shape.rows : (double)arm->per_sample;
    arm->sample_ns[block] = arm->error || (device && is_out(arm)) ? NAN : 1e9 * elapsed / calls;
    l->times += weighted(arm, block);
    arm->preempted[block] = after.cpu != before.cpu || after.involuntary != before.involuntary;
    if (device) arm->preempted[block] = device->is_disturbed() || was_disturbed;
}

/* ---- probes of the core ---- */

/* The probe behind a sample is the one before the next. */
static void take_probe_behind(struct nb_arm *arm, struct launch *l, int block) {
    const double before = l->probe;
    if (!l->options->probed) return;
    l->probe = nb_pool_probe(l->pool);
    arm->probe[block] = fmax(before, l->probe);
}

/* A set that the next CPU's caches do not hold is one that no arm has met. */
static void move_on(struct launch *l) {
    const struct nb_measure_options *o = l->options;
    l->cpu = (l->cpu + 1) % o->n_cpus;
    nb_cpu_pin(o->cpus[l->cpu]);
    if (l->cursor.stays) l->unmet = 3;
}

static void sleep_for(struct launch *l, double s) {
    const double begin = nb_now_s();
    nb_wait_s(s);
    l->asleep_s += nb_now_s() - begin;
}

/* Before a block: on to the next CPU while the core is contended, and asleep for a moment when all of them were, since a host may wake a
 * CPU on another core. A neighbour stays for some 50 ms, a block takes one (decision 0032). Then the block is timed all the same, so that
 * the contended state has its samples, too. */
static void find_quiet(struct launch *l) {
    const struct nb_measure_options *o = l->options;
    if (!o->probed) return;
    const double begin = nb_now_s();
    l->probe = nb_pool_probe(l->pool);
    for (int tries = 1; nb_is_contended(l->probe, o->floor) && nb_now_s() - begin < NB_QUIET_S; tries++) {
        if (o->n_cpus > 1) move_on(l);
        if (o->n_cpus < 2 || tries % o->n_cpus == 0) sleep_for(l, NB_ASLEEP_S);
        l->probe = nb_pool_probe(l->pool);
    }
}

static void init_probes(struct nb_arm *arms, int n_arms, int blocks) {
    for (int a = 0; a < n_arms; a++) {
        arms[a].probe = nb_alloc((unsigned)blocks, sizeof *arms[a].probe);
        for (int b = 0; b < blocks; b++) arms[a].probe[b] = NAN;
    }
}

/* ---- blocks ---- */

static void shuffle(int *order, int n, uint64_t *random) {
    for (int i = n - 1; i > 0; i--) {
        int j = (int)(nb_random_next(random) % (uint64_t)(i + 1)), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
}

static void watch(const struct launch *l, const struct nb_arm *arms, int arm) {
    const struct nb_measure_options *options = l->options;
    if (options->watched) nb_faults_set_buffers(&options->watched[arms[arm].home + l->cursor.set]);
    if (options->current_arm) *options->current_arm = arm;
    if (options->beats) *options->beats = *options->beats + 1;
}

bool nb_arms_have_program(const struct nb_arm *arms, int n_arms) {
    for (int a = 0; a < n_arms; a++)
        if (nb_kernel_is_of_program(arms[a].entry->kernel)) return true;
    return false;
}

/* The sample of arm a in a block in which so many arms came before, and what is looked at behind it. */
static void take_turn(struct nb_arm *arms, int a, struct launch *l, int block, int n_before) {
    const struct nb_measure_options *options = l->options;
    struct nb_arm *arm = &arms[a];
    if (is_out(arm) || block % arm->every != 0) return;
    watch(l, arms, a);
    arm->position[block] = n_before;
    if (options->before) options->before(arm);
    run_sample(arm, l, block);
    take_probe_behind(arm, l, block);
    if (options->behind) options->behind(arm);
    look_for_damage(arm, l);
    if (arm->damage != NB_INTACT)
        exchange_rows(l); /* the inputs were filled anew */
    else if (l->acquitted)
        arm->damage = mend(l, arm->where, sizeof arm->where);
    look_at_spots(arm, l);
}

/* Behind the launch the arms take turns as before, untimed, while it is not decided. */
static void look_for_hidden_threads(struct launch *l, struct nb_arm *arms, int n_arms) {
    enum { MOST_ROUNDS = 10000 }; /* every arm may be out, and nothing done in them */
    if (may_have_other_threads(l, arms, n_arms) || arms[0].is_wrong) return;
    for (int i = 0; i < MOST_ROUNDS && nb_hidden_threads_undecided(&l->hidden); i++) {
        begin_block(l, (uint64_t)arms[0].c->shape.rows);
        for (int a = 0; a < n_arms; a++) {
            watch(l, arms, a);
            if (!is_out(&arms[a])) time_sample(&arms[a], l, arms[a].per_sample);
        }
        nb_hidden_threads_round(&l->hidden, nb_pool_cpu_times(l->pool));
    }
    if (!nb_hidden_threads_found(&l->hidden)) return;
    arms[0].is_wrong = true;
    arms[0].wrong_row = NB_WRONG_HELPED;
}

void nb_measure_group(struct nb_arm *arms, int n_arms, int n_sets, struct nb_pool *pool,
                      const struct nb_measure_options *options, struct nb_noise *noise) {
    struct launch l = {
        .pool = pool,
        .options = options,
        .cursor = {.n_sets = n_sets, .stays = !options->cold, .random = nb_random_mix(options->seed) | 1}};
    struct nb_thread_usage before;
    bool looks = false;
    uint64_t random = options->seed;
    const uint64_t digest = digest_of_arms(arms, n_arms, n_sets);
    nb_faults_guard_heap();
    int *order freed = nb_alloc((unsigned)n_arms, sizeof *order);
    if (options->probed) init_probes(arms, n_arms, options->blocks);
    int64_t *spoils freed = nb_alloc((unsigned)n_arms, sizeof *spoils);
    for (int a = 0; a < n_arms; a++) order[a] = a;
    for (int a = 0; a < n_arms; a++) {
        watch(&l, arms, a);
        const double call_s = choose_sample(&arms[a], &l);
        look_for_damage(&arms[a], &l);
        looks |= arms[a].digests != NULL && !options->device;
        spoils[a] = spoils_every(call_s);
    }
    if (options->even_samples) even_samples(arms, n_arms);
    for (int a = 0; a < n_arms && looks; a++) arms[a].spoils_every = spoils[options->even_samples ? 0 : a];
    l.exchanges = options->watched && looks && may_exchange(arms, n_arms, &l.cursor);
    const int round = longest_round(arms, n_arms);
    disturbance_begin(noise, &before, nb_pool_threads(pool), options->device);
    l.hidden = nb_hidden_threads_begin(nb_pool_cpu_times(pool), arms[0].c->threads);
    for (int block = 0; block < options->blocks; block++) {
        if (block % 2 == 0) shuffle(order, n_arms, &random);
        begin_block(&l, (uint64_t)arms[0].c->shape.rows);
        find_quiet(&l);
        for (int i = 0; i < n_arms; i++) /* by turns an order, and its reverse */
            take_turn(arms, order[block % 2 ? n_arms - 1 - i : i], &l, block, i);
        if ((block + 1) % round == 0) nb_hidden_threads_round(&l.hidden, nb_pool_cpu_times(pool));
    }
    disturbance_end(noise, &before, options->device);
    noise->wall_s -= l.asleep_s;
    if (options->device || nb_arms_have_program(arms, n_arms))
        noise->cpu_s = NAN; /* this thread waits, which is no sign of others */
    look_for_hidden_threads(&l, arms, n_arms);
    exchange_rows(&l); /* back */
    blame_who_changed_inputs(&l, arms, n_arms);
    look_for_harm(&l, arms, n_arms, digest);
    for (int a = 0; a < n_arms; a++) {
        arms[a].spoils_every = 0;
        drop_graph(&arms[a], options->device);
    }
}

/* ---- after timing, and before ---- */

static void spoil_tensor(const struct nb_tensor *t, int64_t rows, uint64_t *random) {
    const size_t bytes = (size_t)t->cols * t->item;
    for (int64_t r = 0; r < rows; r++) {
        unsigned char *row = nb_tensor_row(t, r);
        for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
            const uint64_t bits = next_random(random);
            memcpy(row + i, &bits, bytes - i < sizeof bits ? bytes - i : sizeof bits);
        }
    }
}

static void spoil(const struct nb_buffers *set, const struct nb_case *c, int64_t rows, uint64_t seed) {
    const struct nb_outputs o = nb_buffers_outputs(set, c);
    uint64_t random = nb_random_mix(seed) | 1;
    for (int i = 0; i < o.n_by_row; i++) spoil_tensor(o.by_row[i], rows, &random);
    for (int i = 0; i < o.n_of_all; i++) spoil_tensor(o.of_all[i], 1, &random);
}

bool nb_measure_recheck(struct nb_arm *arm, struct nb_buffers *set, struct nb_pool *pool, const uint64_t *digests,
                        int64_t *first_row) {
    int64_t rows = arm->c->shape.rows;
    if (arm->chunked && arm->per_sample < rows) rows = arm->per_sample;
    spoil(set, arm->c, rows, (uint64_t)(uintptr_t)set ^ (uint64_t)(1e9 * nb_now_s()));
    struct cursor at = {.n_sets = 1};
    *first_row = 0;
    if (nb_buffers_to_device(set) != 0) return false;
    const struct nb_fp_state state = nb_fp_state();
    run_amount(arm, pool, &at, arm->chunked ? rows : 1);
    nb_fp_state_set(state);
    if (nb_buffers_from_device(set) != 0) return false;
    *first_row = nb_digests_differ(set, arm->c, rows, digests);
    return *first_row < 0;
}

double nb_measure_empty_ns(struct nb_arm *arm, int n_sets, struct nb_pool *pool) {
    enum { N = 9 };
    const struct nb_program_calls message = {
        .calls = arm->calls, .n = n_sets, .amount = arm->per_sample, .empty = true};
    double ns[N];
    if (!nb_kernel_is_of_program(arm->entry->kernel) || is_out(arm)) return NAN;
    for (int i = 0; i < N; i++) {
        const double begin = nb_now_s();
        nb_worked("empty_call", arm->entry->file, (double)arm->per_sample, 0);
        if (nb_pool_run_program(pool, arm->entry->kernel, &message) != 0) return NAN;
        ns[i] = 1e9 * (nb_now_s() - begin) / (double)arm->per_sample;
    }
    return nb_median(ns, N);
}

double nb_measure_quickly(struct nb_arm *arm, struct nb_pool *pool, double budget_s) {
    double least = INFINITY, start = nb_now_s();
    struct cursor at = {.n_sets = 1};
    const struct nb_fp_state state = nb_fp_state();
    for (int tries = 0; tries < 1000 && !arm->error; tries++) {
        double begin = nb_now_s();
        run_calls(arm, pool, &at, 1);
        double elapsed = nb_now_s() - begin;
        if (tries > 0 && elapsed < least) least = elapsed; /* the first call warms */
        if (tries > 2 && nb_now_s() - start > budget_s) break;
    }
    nb_fp_state_set(state);
    return least;
}
