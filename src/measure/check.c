// SPDX-License-Identifier: Apache-2.0
/* The calls that judge a kernel. The first is compared with the oracle; the others must repeat its bits in other
 * memory, with other poison around, cut into other ranges. */
#include "src/measure/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/timer.h"
#include "src/measure/faults.h"
#include "src/measure/pool.h"

struct subject {
    const struct nb_case *c;
    const struct nb_entry *entry;
    const struct nb_inputs *in;
    const struct nb_exact *exact;
    struct nb_checked *out;
    size_t item;
    bool joined; /* its rows must lie next to each other */
};

uint64_t nb_row_digest(const void *row, int64_t cols, size_t item) {
    const unsigned char *p = row;
    uint64_t h = 0x9e3779b97f4a7c15u;
    size_t bytes = (size_t)cols * item, i = 0;
    for (; i + 8 <= bytes; i += 8) {
        uint64_t word;
        memcpy(&word, p + i, 8);
        h = (h ^ word) * 0xff51afd7ed558ccdu; /* a multiplicative mix: an odd factor loses no bit */
        h ^= h >> 32;
    }
    for (; i < bytes; i++) h = (h ^ p[i]) * 0x100000001b3u;
    return h ^ h >> 29;
}

uint64_t nb_output_digest(const struct nb_outputs *o, int64_t row) {
    uint64_t digest = 0;
    const bool of_all = row == o->by_row[0]->rows;
    for (int i = 0; i < (of_all ? o->n_of_all : o->n_by_row); i++) {
        const struct nb_tensor *t = of_all ? o->of_all[i] : o->by_row[i];
        digest = digest * 31 + nb_row_digest(nb_tensor_row(t, of_all ? 0 : row), t->cols, t->item);
    }
    return digest;
}

int64_t nb_digests_differ(const struct nb_buffers *b, const struct nb_case *c, int64_t rows, const uint64_t *digests) {
    const struct nb_outputs o = nb_buffers_outputs(b, c);
    for (int64_t r = 0; r < rows; r++)
        if (nb_output_digest(&o, r) != digests[r]) return r;
    return rows < c->shape.rows || nb_output_digest(&o, rows) == digests[rows] ? -1 : rows;
}

uint64_t *nb_take_digests(const struct nb_buffers *b, const struct nb_case *c) {
    const struct nb_outputs o = nb_buffers_outputs(b, c);
    const int64_t n = nb_n_digests(o.by_row[0]->rows);
    uint64_t *digests = nb_alloc((unsigned long long)n, sizeof *digests);
    for (int64_t r = 0; r < n; r++) digests[r] = nb_output_digest(&o, r);
    return digests;
}

/* The caller's floating-point environment survives a kernel that leaves it changed. False: it returned an error, which is judged. */
static bool call_kernel(struct subject *s, const struct nb_call *call, int64_t range, const struct nb_buffers *b) {
    char reason[200];
    const struct nb_fp_state state = nb_fp_state();
    nb_faults_set_buffers(b);
    const int code = nb_run_in_ranges(s->entry->kernel, call, range);
    nb_faults_set_buffers(NULL);
    nb_fp_state_set(state);
    if (code == 0) return true;
    nb_say_returned(reason, sizeof reason, s->entry->kernel, code);
    return nb_checked_fail(s->out, NB_RETURNED_ERROR, "%s", reason);
}

/* Libraries that take rows next to each other alone, or one stride for all tensors, say so of a call whose rows are apart. */
static bool refuses_gaps(const struct subject *s) {
    struct nb_call call;
    nb_case_call(s->c, &call);
    int64_t *const strides[] = {&call.x_stride,  &call.y_stride,  &call.residual_stride,      &call.residual_out_stride,
                                &call.dy_stride, &call.dx_stride, &call.dresidual_out_stride, &call.dresidual_stride};
    for (size_t i = 0; i < sizeof strides / sizeof strides[0]; i++) *strides[i] += 1 + (int64_t)i;
    return nb_kernel_applicable(s->entry->kernel, &call) != NULL;
}

struct attempt {
    enum nb_placement placement;
    uint32_t poison;
    int64_t rows, range;
    bool with_stats;
    const char *what;      /* how a difference is explained */
    bool parameters_alone; /* backward: dx is not wanted */
};

/* What a call on a device has come to is known when it is waited for. Nothing else can be done
 * there afterwards, and this process ends with the case. */
static bool fail_on_device(struct subject *s) {
    bool outside;
    const char *error = nb_device_of(s->entry->kernel->backend)->last_error(&outside);
    return nb_checked_fail(s->out, outside ? NB_WROTE_OUTSIDE : NB_CRASHED, "%s%s",
                           outside ? "read or wrote outside its tensors: " : "its call failed: ", error);
}

/* At the guard pages no store to an input goes unseen, not even of what is put back. A device's tensors and those that another process maps
 * are out of reach. */
static bool closes_inputs(const struct subject *s, const struct attempt *a) {
    const struct nb_kernel *k = s->entry->kernel;
    return a->placement != NB_PLACE_INTERIOR && nb_device_is_host(nb_device_of(k->backend)) &&
           !nb_kernel_is_of_program(k);
}

bool nb_declares_units(const struct nb_kernel *k, const struct nb_call *call) {
    int64_t n = 0;
    for (int phase = 0; phase < nb_kernel_n_phases(k, call); phase++) n += nb_kernel_n_units(k, call, phase);
    return n > 0;
}

/* One call in fresh buffers, which stay for the caller to look at. */
static bool call_once(struct subject *s, const struct attempt *a, struct nb_buffers *b) {
    struct nb_call call;
    nb_case_call(s->c, &call);
    call.rows = a->rows;
    struct nb_layout_request q = {
        .wants = nb_buffers_wants(s->c, a->with_stats),
        .placement = a->placement,
        .rows = a->rows,
        .pad = s->c->pad,
        .n_stats = s->c->op == NB_OP_BATCHNORM ? s->in->n_params : a->rows,
        .saved = nb_inputs_saved(s->in, s->c),
        .scratch_bytes = nb_kernel_scratch_bytes(s->entry->kernel, &call),
        .joined = s->joined,
        .poison = a->poison,
        .device = nb_device_of(s->entry->kernel->backend),
    };
    if (nb_buffers_init(b, s->in, &q) != 0)
        return nb_checked_fail(s->out, NB_SKIPPED, "no memory for its buffers and scratch");
    nb_buffers_attach(b, s->c, &call);
    if (a->parameters_alone) call.dx = NULL;
    if (!nb_declares_units(s->entry->kernel, &call))
        return nb_checked_fail(s->out, NB_RETURNED_ERROR, "n_units() declares no unit in any phase");
    if (closes_inputs(s, a)) nb_buffers_close_inputs(b);
    if (!call_kernel(s, &call, a->range, b)) return false;
    char where[200];
    if (nb_buffers_from_device(b) != 0) return fail_on_device(s);
    enum nb_damage damage = nb_buffers_verify(b, where, sizeof where);
    if (damage == NB_DAMAGED_OUTSIDE) return nb_checked_fail(s->out, NB_WROTE_OUTSIDE, "%s", where);
    if (damage == NB_DAMAGED_INPUT) return nb_checked_fail(s->out, NB_CHANGED_INPUT, "%s", where);
    return true;
}

/* ---- repetition ---- */

static bool repeats(struct subject *s, const struct attempt *a, const struct nb_buffers *b, int64_t *row) {
    const struct nb_outputs o = nb_buffers_outputs(b, s->c);
    *row = a->parameters_alone ? a->rows : nb_digests_differ(b, s->c, a->rows, s->out->digests);
    return *row < 0 || nb_output_digest(&o, *row) == s->out->digests[*row];
}

static void name_row(const struct subject *s, int64_t row, char *name, size_t n) {
    if (row < s->c->shape.rows)
        snprintf(name, n, "row %lld differs", (long long)row);
    else
        snprintf(name, n, "the gradients of the parameters differ");
}

/* A stretch of an output in which what was there before the call is there still. */
struct hole {
    int tensor; /* of the buffers; -1: none */
    bool of_all;
    int64_t row, first, last, cols;
};

static bool is_poison(const struct nb_tensor *t, int64_t row, int64_t col, uint32_t poison) {
    const uint16_t *half = (const uint16_t *)nb_tensor_row(t, row) + col * (int64_t)t->item / 2;
    return half[0] == (uint16_t)poison && half[t->item / 2 - 1] == (uint16_t)(poison >> 16);
}

/* In a row, or (row = rows of the case) in what belongs to all of them. */
static struct hole find_hole(const struct nb_buffers *b, const struct nb_case *c, int64_t row) {
    const struct nb_outputs o = nb_buffers_outputs(b, c);
    const bool of_all = row == c->shape.rows;
    for (int i = 0; i < (of_all ? o.n_of_all : o.n_by_row); i++) {
        const struct nb_tensor *t = of_all ? o.of_all[i] : o.by_row[i];
        struct hole h = {.tensor = (int)(t - b->tensors), .of_all = of_all, .row = of_all ? 0 : row, .cols = t->cols};
        while (h.first < t->cols && !is_poison(t, h.row, h.first, b->request.poison)) h.first++;
        h.last = h.first;
        while (h.last + 1 < t->cols && is_poison(t, h.row, h.last + 1, b->request.poison)) h.last++;
        if (h.first < t->cols) return h;
    }
    return (struct hole){.tensor = -1};
}

/* The other poison is there still, too: no result is both. */
static bool is_hole(struct subject *s, const struct hole *h, int64_t rows) {
    const struct attempt again = {.poison = NB_POISON_NAN, .rows = rows, .what = ""};
    struct nb_buffers b;
    const bool unwritten =
        h->tensor >= 0 && call_once(s, &again, &b) && is_poison(&b.tensors[h->tensor], h->row, h->first, again.poison);
    if (h->tensor >= 0) nb_buffers_release(&b);
    return unwritten;
}

static void name_hole(const struct hole *h, char *text, size_t n) {
    char row[64] = "", where[64] = "";
    if (!h->of_all) snprintf(row, sizeof row, "row %lld of ", (long long)h->row);
    if (h->first == h->last && h->cols > 1)
        snprintf(where, sizeof where, " in column %lld", (long long)h->first);
    else if (h->last - h->first + 1 < h->cols)
        snprintf(where, sizeof where, " from column %lld to %lld", (long long)h->first, (long long)h->last);
    snprintf(text, n, "%s%s is not written%s", row, nb_tensor_name(h->tensor), where);
}

/* Does the kernel write the same bits again? A difference under other poison is a read of it; else the cut or the
 * alignment. */
static bool check_again(struct subject *s, const struct attempt *a) {
    struct nb_buffers b released_by(nb_buffers_release) = {0};
    int64_t row = 0;
    char unwritten[200], what[64];
    if (!call_once(s, a, &b)) return false;
    bool comparable = s->c->op != NB_OP_COPY && (a->rows == s->c->shape.rows || s->out->row_local);
    bool same = !comparable || repeats(s, a, &b, &row);
    struct hole hole = {.tensor = -1};
    if (same) return true;
    hole = find_hole(&b, s->c, row);
    bool cut = a->range > 0;
    if (cut) {
        struct attempt whole = *a;
        whole.range = 0;
        int64_t other;
        nb_buffers_release(&b);
        if (!call_once(s, &whole, &b)) return false;
        cut = repeats(s, &whole, &b, &other);
    }
    bool polluted = !cut && a->poison != NB_POISON_NAN;
    name_row(s, row, what, sizeof what);
    if (polluted && is_hole(s, &hole, a->rows)) {
        name_hole(&hole, unwritten, sizeof unwritten);
        return nb_checked_fail(s->out, NB_NOT_WRITTEN, "%s", unwritten);
    }
    return nb_checked_fail(s->out, polluted ? NB_READ_OUTSIDE : NB_NOT_REPRODUCIBLE, "%s %s", what,
                           polluted ? "when the memory around the tensors does"
                           : cut    ? "when the call is cut into ranges"
                                    : a->what);
}

static int64_t rows_at_guards(const struct subject *s) {
    const int64_t rows = s->c->shape.rows;
    double row_bytes = 4.0 * (double)(s->c->shape.cols + s->c->pad) * (double)s->item;
    if (!s->out->row_local || (double)rows * row_bytes <= NB_CHECK_WHOLE_BYTES) return rows;
    int64_t fits = (int64_t)(NB_CHECK_WHOLE_BYTES / row_bytes);
    return fits > 1 ? fits : 1;
}

/* A range that divides no count of units evenly, so that every phase meets a ragged cut. */
static int64_t ragged_range(const struct subject *s, const struct nb_call *call) {
    int64_t units = nb_kernel_n_units(s->entry->kernel, call, 0);
    return units / 3 + 1;
}

/* Wrong because it read what is not its own? Then other poison gives another wrong result. */
static void tell_read_outside(struct subject *s, int64_t rows) {
    const struct nb_checked wrong = *s->out;
    const struct attempt other = {.poison = NB_POISON_NUMBER, .rows = rows, .what = ""};
    const bool same = check_again(s, &other);
    if (!same && (s->out->status == NB_READ_OUTSIDE || s->out->status == NB_NOT_WRITTEN)) return;
    *s->out = wrong;
}

bool nb_check_declared(const struct nb_case *c, const struct nb_kernel *k, const struct nb_call *call,
                       struct nb_checked *out) {
    const int64_t most_units = call->rows * call->cols + 1024, n_phases = nb_kernel_n_phases(k, call);
    const int64_t reduced = c->op == NB_OP_BATCHNORM ? call->n * call->hw : call->cols;
    const int64_t chain = nb_kernel_chain(k, call), column_chain = nb_kernel_column_chain(k, call);
    const int64_t column = c->op == NB_OP_BATCHNORM ? reduced : call->rows;
    const char *not_applicable = nb_kernel_applicable(k, call);
    struct nb_range range;
    if (not_applicable) return nb_checked_fail(out, NB_SKIPPED, "%s", not_applicable);
    if (n_phases < 1 || n_phases > 1000)
        return nb_checked_fail(out, NB_RETURNED_ERROR, "n_phases() declares %lld phases", (long long)n_phases);
    for (int phase = 0; phase < n_phases; phase++) {
        int64_t n = nb_kernel_n_units(k, call, phase);
        if (n >= 0 && n <= most_units) continue;
        return nb_checked_fail(out, NB_RETURNED_ERROR, "n_units() declares %lld units in phase %d", (long long)n,
                               phase);
    }
    nb_kernel_range(k, call, &range);
    if (!(range.min_rms >= 0 && range.max_abs > 0 && range.min_rms <= range.max_abs && range.max_rho >= 0))
        return nb_checked_fail(out, NB_RETURNED_ERROR,
                               "range() declares a root mean square from %g, magnitudes up to %g, |mean| / sd up to %g",
                               range.min_rms, range.max_abs, range.max_rho);
    const size_t scratch = nb_kernel_scratch_bytes(k, call);
    if (scratch > NB_SCRATCH_MAX)
        return nb_checked_fail(out, NB_RETURNED_ERROR, "scratch_bytes() declares %zu bytes", scratch);
    if (chain < 0 || chain > 8 * reduced + 1024)
        return nb_checked_fail(out, NB_RETURNED_ERROR,
                               "chain() declares %lld roundings in a reduction of %lld elements", (long long)chain,
                               (long long)reduced);
    if (column_chain >= 0 && column_chain <= 8 * column + 1024) return true;
    return nb_checked_fail(out, NB_RETURNED_ERROR, "column_chain() declares %lld roundings in a sum of %lld elements",
                           (long long)column_chain, (long long)column);
}

/* At the end of all calls. */
static void settle(struct subject *s) {
    struct nb_checked *out = s->out;
    if (nb_status_timed(out->status) && nb_faults_heap_harmed())
        nb_checked_fail(s->out, NB_WROTE_OUTSIDE, "wrote to memory of the heap that is not its own");
    const int unwatched = nb_faults_unwatched();
    if (nb_status_timed(out->status) && unwatched)
        nb_checked_fail(s->out, NB_WROTE_OUTSIDE, "replaced the handler of signal %d", unwatched);
    if (!nb_status_timed(out->status)) {
        free(out->digests);
        out->digests = NULL;
    }
}

void nb_check_case(const struct nb_case *c, const struct nb_entry *entry, const struct nb_inputs *in,
                   const struct nb_exact *exact, struct nb_checked *out) {
    *out = (struct nb_checked){.status = NB_OK};
    struct subject s = {c, entry, in, exact, out, nb_formats[in->dtype].bytes, false};
    struct nb_call call;
    nb_case_call(c, &call);
    if (!nb_check_declared(c, entry->kernel, &call, out)) return;
    s.joined = refuses_gaps(&s);
    out->chain = nb_kernel_chain(entry->kernel, &call);
    out->column_chain = nb_kernel_column_chain(entry->kernel, &call);
    out->evidence.is_declared = nb_kernel_range(entry->kernel, &call, &out->evidence.claimed);
    out->row_local = nb_kernel_row_local(entry->kernel, &call) != 0;

    nb_faults_guard_heap();
    struct nb_buffers b;
    const int64_t all = c->shape.rows, some = rows_at_guards(&s);
    struct attempt first = {.poison = NB_POISON_NAN, .rows = all, .with_stats = true, .what = ""};
    bool intact = call_once(&s, &first, &b);
    if (intact) {
        out->digests = nb_take_digests(&b, c);
        if (c->op != NB_OP_COPY) nb_judge(c, in, exact, (entry->kernel->flags & NB_FLAG_FLUSHES) != 0, &b, out);
    }
    nb_buffers_release(&b);
    if (!intact) return;
    if (out->status == NB_INACCURATE) tell_read_outside(&s, all);

    const struct attempt others[] = {
        {NB_PLACE_INTERIOR, NB_POISON_NUMBER, all, ragged_range(&s, &call), false, "when it is called again", false},
        {NB_PLACE_END, NB_POISON_NAN, some, 0, false, "when its buffers end at a page", false},
        {NB_PLACE_START, NB_POISON_NAN, some, 0, false, "when its buffers start at a page", false},
        {NB_PLACE_INTERIOR, NB_POISON_NAN, all, 0, false, "when dx is not wanted", true},
    };
    const bool has_parameters =
        c->pass == NB_BACKWARD && c->op != NB_OP_COPY && (c->formula.affine != NB_AFFINE_NONE || c->op == NB_OP_DYT);
    const size_t n = sizeof others / sizeof others[0] - !has_parameters;
    for (size_t i = 0; i < n && nb_status_timed(out->status); i++)
        if (!check_again(&s, &others[i])) break;
    settle(&s);
}

/* One call more, on outputs that are poison: is all that it writes what it was at first? */
static bool repeat_call(struct subject *s, const struct nb_call *call, struct nb_buffers *b) {
    char what[64];
    nb_buffers_poison_outputs(b);
    s->out->calls++;
    nb_worked(s->c->variant, s->entry->file, 1, (double)s->c->shape.rows * (double)s->c->shape.cols);
    if (!call_kernel(s, call, 0, b)) return false;
    const int64_t row = s->c->op == NB_OP_COPY ? -1 : nb_digests_differ(b, s->c, s->c->shape.rows, s->out->digests);
    if (row < 0) return true;
    name_row(s, row, what, sizeof what);
    return nb_checked_fail(s->out, NB_NOT_REPRODUCIBLE, "%s in call %lld", what, (long long)s->out->calls);
}

/* A kernel that counts its calls, or fills what it keeps, is right at first, or in most of them. */
void nb_check_on(const struct nb_case *c, const struct nb_entry *entry, const struct nb_inputs *in,
                 struct nb_checked *out) {
    enum { MOST_BYTES = 64 << 20, FIRST = 5, LAST = 11 };
    struct subject s = {c, entry, in, NULL, out, nb_formats[in->dtype].bytes, false};
    struct nb_buffers b released_by(nb_buffers_release) = {0};
    struct nb_call call;
    char what[64], where[200];
    const double bytes = nb_case_bytes(c), end_s = nb_now_s() + 0.25;
    const struct nb_random random = nb_random_stream(c->seed, 61);
    struct attempt again = {.poison = NB_POISON_NAN, .rows = c->shape.rows};
    bool is_right =
        nb_status_timed(out->status) && nb_case_is_timed(c) && nb_device_is_host(nb_device_of(entry->kernel->backend));
    if (!is_right) return;
    nb_case_call(c, &call);
    s.joined = refuses_gaps(&s);
    is_right = call_once(&s, &again, &b);
    if (is_right) nb_buffers_attach(&b, c, &call);
    for (int k = FIRST; k <= LAST && is_right && (double)out->calls * bytes < MOST_BYTES && nb_now_s() < end_s; k++) {
        const int64_t until = ((int64_t)1 << k) + (int64_t)(nb_random_bits(random, (uint64_t)k) >> (64 - k));
        while (is_right && out->calls < until && nb_now_s() < end_s) is_right = repeat_call(&s, &call, &b);
        if (!is_right) break;
        snprintf(what, sizeof what, "after %lld calls", (long long)out->calls);
        again.what = what;
        is_right = check_again(&s, &again);
    }
    if (is_right && nb_buffers_verify(&b, where, sizeof where) != NB_INTACT)
        nb_checked_fail(s.out, NB_WROTE_OUTSIDE, "%s", where);
    settle(&s);
}
