// SPDX-License-Identifier: Apache-2.0
/* A kernel called on rows that are chosen as one goes along: searches and probes pick the next row by what the last one gave.
 * For the inside of a worker process, since the kernel may crash or hang (src/measure/study.h). Buffers end at a guard page. */
#ifndef NB_TRIAL_H
#define NB_TRIAL_H

#include "src/accuracy/accuracy.h"
#include "src/accuracy/oracle.h"
#include "src/core/case.h"
#include "src/core/registry.h"
#include "src/measure/buffers.h"
#include "src/plan/inputs.h"

struct nb_trial {
    struct nb_case c; /* shape, formula, eps; data is not used */
    const struct nb_entry *entry;
    struct nb_inputs in;
    struct nb_buffers buffers;
    struct nb_call call;
    int64_t calls;            /* made so far */
    void (*alive)(void *arg); /* told of every call, as a sign of life; may be null */
    void *alive_arg;
    const char *reason; /* why the last call failed, or null */
    char reason_text[200];
};

/* c: normalized, its kernel set. gamma and beta as nb_inputs gives them; nb_trial_set_param changes them. -1 with t->reason. */
int nb_trial_init(struct nb_trial *t, const struct nb_case *c, const struct nb_entry *entry);
/* Another eps from the next call on. */
void nb_trial_set_eps(struct nb_trial *t, double eps);
/* gamma, beta: n_params values or null for 1 and 0; in the parameters' dtype after rounding. */
void nb_trial_set_params(struct nb_trial *t, const double *gamma, const double *beta);
/* rows x cols values, rounded to the dtype as they are stored; residual: null for 0 (add_* alone use it). */
void nb_trial_set_x(struct nb_trial *t, const double *x, const double *residual);
/* Calls the kernel. -1 with t->reason when it returned an error or wrote outside. */
int nb_trial_run(struct nb_trial *t);
/* Element of the output of the last call. */
double nb_trial_y(const struct nb_trial *t, int64_t row, int64_t col);
/* How far the last call's output is off. chain: as the kernel declares (nb_kernel_chain), or one's own. */
int nb_trial_judge(struct nb_trial *t, int64_t chain, struct nb_accuracy *out);
/* The exact y of the last call's inputs, rows x cols. */
int nb_trial_exact(struct nb_trial *t, double *y);
void nb_trial_release(struct nb_trial *t);

#endif
