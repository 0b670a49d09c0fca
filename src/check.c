// SPDX-License-Identifier: Apache-2.0
/* The calls that judge a kernel. The first is compared with the oracle; the others must repeat its bits in other
 * memory, with other poison around, cut into other ranges. */
#include "src/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "src/dtype.h"
#include "src/faults.h"
#include "src/log.h"
#include "src/pool.h"

struct subject {
    const struct nb_case *c;
    const struct nb_entry *entry;
    const struct nb_inputs *in;
    const struct nb_oracle *oracle;
    struct nb_checked *out;
    size_t item;
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

static bool fail(struct subject *s, enum nb_status status, const char *reason) {
    s->out->status = status;
    snprintf(s->out->reason, sizeof s->out->reason, "%s", reason);
    return false;
}

/* The caller's floating-point environment survives a kernel that leaves it changed. */
static int call_kernel(const struct nb_kernel *kernel, const struct nb_call *call, int64_t range) {
#if defined(__x86_64__)
    unsigned saved = _mm_getcsr();
    int code = nb_run_in_ranges(kernel, call, range);
    _mm_setcsr(saved);
    return code;
#else
    return nb_run_in_ranges(kernel, call, range);
#endif
}

struct attempt {
    enum nb_placement placement;
    uint32_t poison;
    int64_t rows, range;
    bool with_stats;
    const char *what; /* how a difference is explained */
};

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
        .scratch_bytes = nb_kernel_scratch_bytes(s->entry->kernel, &call),
        .poison = a->poison,
    };
    if (nb_buffers_init(b, s->in, &q) != 0) return fail(s, NB_CRASHED, "no memory for the buffers of this case");
    nb_buffers_attach(b, s->c, &call);
    nb_faults_set_buffers(b);
    int code = call_kernel(s->entry->kernel, &call, a->range);
    nb_faults_set_buffers(NULL);
    char where[200];
    if (code != 0) {
        snprintf(where, sizeof where, "run() returned %d", code);
        return fail(s, NB_RETURNED_ERROR, where);
    }
    enum nb_damage damage = nb_buffers_verify(b, where, sizeof where);
    if (damage == NB_DAMAGED_OUTSIDE) return fail(s, NB_WROTE_OUTSIDE, where);
    if (damage == NB_DAMAGED_INPUT) return fail(s, NB_CHANGED_INPUT, where);
    return true;
}

/* ---- accuracy -----------------------------------------------------------------------------------------------------
 */

/* x + residual, rounded once to f32 and once to the dtype. */
static bool residual_is_right(struct subject *s, struct nb_buffers *b, double *want) {
    const struct nb_tensor *t = &b->tensors[NB_T_RESIDUAL_OUT];
    if (!t->data || s->c->op == NB_OP_TWIN) return true;
    for (int64_t r = 0; r < t->rows; r++) {
        nb_oracle_residual_row(s->oracle, r, want);
        for (int64_t i = 0; i < t->cols; i++) {
            double got = nb_get(nb_tensor_row(t, r), i, s->in->dtype);
            double slack = nb_ulp(want[i], s->in->dtype); /* the two roundings may fall on either side of a tie */
            if (fabs(got - want[i]) <= slack || (isnan(got) && isnan(want[i])) || got == want[i]) continue;
            char reason[160];
            snprintf(reason, sizeof reason, "residual_out[%lld][%lld] is %.9g, should be %.9g", (long long)r,
                     (long long)i, got, want[i]);
            return fail(s, NB_INACCURATE, reason);
        }
    }
    return true;
}

/* (1 - m) * old + m * new, where new is a sum of n terms in `chain` dependent steps: its error is relative to the sum
 * of the terms' absolute values. A one-pass variance has the mean square there, any other the variance and the mean's
 * own error. */
static bool running_is_right(struct subject *s, struct nb_buffers *b) {
    const struct nb_tensor *mean = &b->tensors[NB_T_RUNNING_MEAN_OUT], *var = &b->tensors[NB_T_RUNNING_VAR_OUT];
    if (!mean->data || !var->data) return true;
    double *want_mean = nb_alloc((unsigned long long)mean->cols, sizeof(double));
    double *want_var = nb_alloc((unsigned long long)mean->cols, sizeof(double));
    nb_oracle_running(s->oracle, want_mean, want_var);
    bool lowp = s->c->stats_dtype == NB_STATS_X, right = true;
    double u = lowp ? nb_formats[s->in->dtype].unit_roundoff : nb_formats[NB_F32].unit_roundoff;
    double steps = ((double)s->out->chain + 8) * u;
    for (int64_t i = 0; i < mean->cols && right; i++) {
        const struct nb_row_truth *t = &s->oracle->truth[i];
        double got_mean = ((const float *)mean->data)[i], got_var = ((const float *)var->data)[i];
        double spread = s->c->variance == NB_VAR_ONEPASS ? 4 * t->mean_square : 2 * t->var + steps * t->mean_square;
        double slack_mean = steps * (fabs(want_mean[i]) + t->mean_abs), slack_var = steps * (want_var[i] + spread);
        if (fabs(got_mean - want_mean[i]) <= slack_mean && fabs(got_var - want_var[i]) <= slack_var) continue;
        if (!isfinite(want_mean[i]) || !isfinite(want_var[i]) || lowp) continue;
        char reason[160];
        snprintf(reason, sizeof reason, "running statistics of channel %lld are %.9g, %.9g, should be %.9g, %.9g",
                 (long long)i, got_mean, got_var, want_mean[i], want_var[i]);
        right = fail(s, NB_INACCURATE, reason);
    }
    free(want_mean);
    free(want_var);
    return right;
}

static void judge(struct subject *s, const struct nb_bound *bound) {
    struct nb_accuracy *a = &s->out->accuracy;
    struct nb_bias predicted;
    nb_bias_predict(bound, &predicted);
    if (nb_inputs_is_random(s->c)) nb_accuracy_judge_bias(a, s->in->dtype, &predicted);
    char reason[256];
    int64_t strange = a->nan_unexpected + a->inf_unexpected + a->zero_unexpected + a->nan_missing + a->inf_missing;
    const struct nb_witness *w = &a->witness;
    if (strange > 0 || a->n_beyond > 0 || a->worst_ratio > 1) {
        snprintf(
            reason, sizeof reason,
            "%lld of %lld elements beyond the bound; worst at [%lld][%lld]: %.9g, should be %.9g (%.3g ulp, allowed "
            "%.3g)%s",
            (long long)(a->n_beyond > strange ? a->n_beyond : strange), (long long)a->n, (long long)w->row,
            (long long)w->col, w->got, w->want, w->err_ulp, w->tolerance_ulp,
            a->nan_unexpected ? "; NaN where a number belongs" : "");
        fail(s, NB_INACCURATE, reason);
    } else if (fabs(a->bias_sigma) > 6) {
        snprintf(
            reason, sizeof reason,
            "one-sided errors: bias %.3g u, last rounding %+.2f ulp, %.1f standard deviations from what rounding to "
            "nearest gives",
            a->bias_large_u, a->rounding_ulp, a->bias_sigma);
        fail(s, NB_BIASED, reason);
    } else if (a->n_rows_lost > 0) {
        snprintf(reason, sizeof reason, "%lld rows lost to %s, as the formula predicts", (long long)a->n_rows_lost,
                 nb_loss_name(a->loss));
        fail(s, NB_OUT_OF_RANGE, reason);
    } else {
        s->out->status = NB_OK;
    }
}

static void measure_accuracy(struct subject *s, struct nb_buffers *b) {
    const struct nb_tensor *y = &b->tensors[NB_T_Y];
    double *want = nb_alloc((unsigned long long)y->cols, sizeof(double));
    double *tolerance = nb_alloc((unsigned long long)y->cols, sizeof(double));
    struct nb_bound bound;
    nb_bound_init(&bound, s->c, s->oracle, s->out->chain);
    struct nb_accuracy_sum *sum = nb_accuracy_new(s->in->dtype);
    for (int64_t r = 0; r < y->rows; r++) {
        nb_oracle_row(s->oracle, r, want);
        enum nb_loss loss = nb_bound_row(&bound, r, want, tolerance);
        nb_accuracy_row(sum, r, y->cols, nb_tensor_row(y, r), want, tolerance, loss,
                        nb_tensor_row(&b->tensors[NB_T_X], r));
    }
    nb_accuracy_finish(sum, &s->out->accuracy);
    s->out->has_accuracy = true;
    judge(s, &bound);
    if (nb_status_timed(s->out->status) && residual_is_right(s, b, want)) running_is_right(s, b);
    free(want);
    free(tolerance);
}

/* ---- repetition ---------------------------------------------------------------------------------------------------
 */

static bool repeats(struct subject *s, const struct nb_buffers *b, int64_t *row) {
    const struct nb_tensor *y = &b->tensors[NB_T_Y];
    for (*row = 0; *row < y->rows; ++*row)
        if (nb_row_digest(nb_tensor_row(y, *row), y->cols, s->item) != s->out->row_digests[*row]) return false;
    return true;
}

/* Does the kernel write the same bits again? A difference under other poison is a read of it; else the cut or the
 * alignment. */
static bool check_again(struct subject *s, const struct attempt *a) {
    struct nb_buffers b;
    int64_t row = 0;
    char reason[200];
    if (!call_once(s, a, &b)) {
        nb_buffers_release(&b);
        return false;
    }
    bool comparable = s->c->op != NB_OP_TWIN && (a->rows == s->c->shape.rows || s->out->row_local);
    bool same = !comparable || repeats(s, &b, &row);
    nb_buffers_release(&b);
    if (same) return true;
    bool cut = a->range > 0;
    if (cut) {
        struct attempt whole = *a;
        whole.range = 0;
        int64_t other;
        if (!call_once(s, &whole, &b)) {
            nb_buffers_release(&b);
            return false;
        }
        cut = repeats(s, &b, &other);
        nb_buffers_release(&b);
    }
    bool polluted = !cut && a->poison != NB_POISON_NAN;
    snprintf(reason, sizeof reason, "row %lld differs %s", (long long)row,
             polluted ? "when the memory around the tensors does"
             : cut    ? "when the call is cut into ranges"
                      : a->what);
    return fail(s, polluted ? NB_READ_OUTSIDE : NB_NOT_REPRODUCIBLE, reason);
}

static void take_digests(struct subject *s, const struct nb_buffers *b) {
    const struct nb_tensor *y = &b->tensors[NB_T_Y];
    s->out->row_digests = nb_alloc((unsigned long long)y->rows, sizeof(uint64_t));
    for (int64_t r = 0; r < y->rows; r++) s->out->row_digests[r] = nb_row_digest(nb_tensor_row(y, r), y->cols, s->item);
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

void nb_check_case(const struct nb_case *c, const struct nb_entry *entry, const struct nb_inputs *in,
                   const struct nb_oracle *oracle, struct nb_checked *out) {
    *out = (struct nb_checked){.status = NB_OK};
    struct subject s = {c, entry, in, oracle, out, nb_formats[in->dtype].bytes};
    struct nb_call call;
    nb_case_call(c, &call);
    out->chain = nb_kernel_chain(entry->kernel, &call);
    out->row_local = nb_kernel_row_local(entry->kernel, &call) != 0;

    struct nb_buffers b;
    const int64_t all = c->shape.rows, some = rows_at_guards(&s);
    struct attempt first = {NB_PLACE_INTERIOR, NB_POISON_NAN, all, 0, true, ""};
    bool intact = call_once(&s, &first, &b);
    if (intact && c->op != NB_OP_TWIN) measure_accuracy(&s, &b);
    if (intact && nb_status_timed(out->status)) take_digests(&s, &b);
    nb_buffers_release(&b);
    if (!intact || !out->row_digests) return;

    const struct attempt others[] = {
        {NB_PLACE_INTERIOR, NB_POISON_NUMBER, all, ragged_range(&s, &call), false, "when it is called again"},
        {NB_PLACE_END, NB_POISON_NAN, some, 0, false, "when its buffers end at a page"},
        {NB_PLACE_START, NB_POISON_NAN, some, 0, false, "when its buffers start at a page"},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (!check_again(&s, &others[i])) break;
    if (!nb_status_timed(out->status)) {
        free(out->row_digests);
        out->row_digests = NULL;
    }
}

void nb_checked_release(struct nb_checked *checked) {
    free(checked->row_digests);
    checked->row_digests = NULL;
}
