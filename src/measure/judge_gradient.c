// SPDX-License-Identifier: Apache-2.0
/* dx row by row as y is; then the gradients of the parameters, which a wrong sum over rows shows in. */
#include "src/measure/judge_gradient.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/accuracy/gradient_bias.h"
#include "src/accuracy/gradient_bound.h"
#include "src/core/log.h"

/* What a parameter's gradient is compared with. */
struct wanted {
    const char *name;
    const struct nb_tensor *got;
    const double *want;
    double (*bound)(const struct nb_gradient_bound *b, int64_t i);
};

/* Where the exact gradient is no number, or its loss is predicted, any value is right. False where one is not: then it is named. */
static bool compare(const struct wanted *w, const struct nb_gradient_bound *bound, struct nb_parameter_error *error,
                    struct nb_checked *out) {
    double squares = 0, exact = 0;
    int64_t worst = -1;
    *error = (struct nb_parameter_error){.ratio = NAN, .norm_u = NAN};
    if (!w->got->data || !w->want) return true;
    for (int64_t i = 0; i < w->got->cols; i++) {
        const double allowed = w->bound(bound, i), off = fabs((double)((const float *)w->got->data)[i] - w->want[i]);
        if (!isfinite(w->want[i]) || !isfinite(allowed)) continue;
        const double ratio = off == 0 ? 0 : isnan(off) ? INFINITY : off / allowed;
        if (error->n++ == 0 || ratio > error->ratio) {
            error->ratio = ratio;
            worst = i;
        }
        squares += off * off;
        exact += w->want[i] * w->want[i];
    }
    if (error->n > 0) error->norm_u = squares > 0 ? sqrt(squares / exact) * 0x1p24 : isnan(squares) ? INFINITY : 0;
    if (error->n == 0 || error->ratio <= 1) return true;
    out->status = NB_INACCURATE;
    snprintf(out->reason, sizeof out->reason, "%s[%lld] is %.9g, should be %.9g within %.3g", w->name, (long long)worst,
             (double)((const float *)w->got->data)[worst], w->want[worst], w->bound(bound, worst));
    return false;
}

static double bound_dalpha(const struct nb_gradient_bound *b, int64_t i) {
    (void)i;
    return nb_gradient_bound_dalpha(b);
}

static void judge_parameters(const struct nb_gradient_bound *bound, const struct nb_buffers *b,
                             struct nb_checked *out) {
    const struct nb_gradient *g = bound->g;
    const struct wanted dgamma = {"dgamma", &b->tensors[NB_T_DGAMMA], g->dgamma, nb_gradient_bound_dgamma};
    const struct wanted dbeta = {"dbeta", &b->tensors[NB_T_DBETA], g->dbeta, nb_gradient_bound_dbeta};
    const struct wanted dalpha = {"dalpha", &b->tensors[NB_T_DALPHA], g->c->op == NB_OP_DYT ? &g->dalpha : NULL,
                                  bound_dalpha};
    struct nb_checked judged = *out; /* what dx says comes first */
    out->accuracy.has_parameters = true;
    compare(&dalpha, bound, &out->accuracy.dalpha, &judged);
    compare(&dbeta, bound, &out->accuracy.dbeta, &judged);
    compare(&dgamma, bound, &out->accuracy.dgamma, &judged);
    if (!nb_status_timed(out->status) || judged.status != NB_INACCURATE) return;
    out->status = judged.status;
    snprintf(out->reason, sizeof out->reason, "%s", judged.reason);
}

void nb_judge_gradient(const struct nb_case *c, const struct nb_gradient *gradient, const struct nb_oracle *oracle,
                       bool flushes, const struct nb_buffers *b, struct nb_checked *out) {
    const struct nb_tensor *dx = &b->tensors[NB_T_DX];
    double *want = nb_alloc((unsigned long long)dx->cols, sizeof(double));
    double *tolerance = nb_alloc((unsigned long long)dx->cols, sizeof(double));
    struct nb_gradient_bound bound;
    struct nb_bias bias;
    nb_gradient_bound_init(&bound, c, gradient, out->chain, out->column_chain, flushes);
    struct nb_accuracy_sum *sum = nb_accuracy_new(gradient->in->dtype);
    struct nb_evidence_sum *evidence = nb_evidence_new(oracle, &out->evidence.claimed);
    for (int64_t r = 0; r < dx->rows; r++) {
        nb_gradient_row(gradient, r, want);
        const enum nb_loss loss = nb_gradient_bound_row(&bound, r, want, tolerance);
        nb_accuracy_row(sum, r, dx->cols, nb_tensor_row(dx, r), want, tolerance, loss,
                        nb_tensor_row(&b->tensors[NB_T_X], r));
        nb_evidence_row(evidence, r, nb_tensor_row(dx, r), want, tolerance);
    }
    nb_accuracy_finish(sum, &out->accuracy);
    nb_evidence_finish(evidence, &out->evidence);
    out->has_accuracy = true;
    nb_bias_predict_gradient(c, gradient, &bias);
    if (nb_inputs_is_random(c)) nb_accuracy_judge_bias(&out->accuracy, gradient->in->dtype, &bias);
    nb_judge_accuracy(out);
    judge_parameters(&bound, b, out);
    nb_gradient_bound_release(&bound);
    free(want);
    free(tolerance);
}
