// SPDX-License-Identifier: Apache-2.0
/* Kernels are called in this process, so that only those of this program are. */
#include "src/lab/tolerance/tolerance_subjects.h"

#include <stdio.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/lab/emulate/design_case.h"
#include "src/lab/emulate/emulate.h"
#include "src/lab/stress/trial.h"

/* ---- designs ------------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum nb_order order;
    int64_t lanes, leaf;
} orders[] = {
    {"one running sum", NB_ORDER_SEQUENTIAL, 1, 8}, {"4 lanes", NB_ORDER_SEQUENTIAL, 4, 8},
    {"16 lanes", NB_ORDER_SEQUENTIAL, 16, 8},       {"pairwise", NB_ORDER_PAIRWISE, 1, 8},
    {"blocks of 128", NB_ORDER_BLOCKED, 1, 128},    {"compensated", NB_ORDER_KAHAN, 1, 8},
};

static bool same_order(const struct nb_design *a, const struct nb_design *b) {
    return a->order == b->order && a->lanes == b->lanes && a->leaf == b->leaf;
}

static int add_designs(const struct nb_tolerance_request *q, int64_t chain, struct nb_correct *list, int most) {
    int n = 0;
    list[n] = (struct nb_correct){.design = q->design};
    snprintf(list[n++].name, sizeof list->name, "emulated: the design itself");
    for (size_t i = 0; i < sizeof orders / sizeof orders[0] && n < most; i++) {
        struct nb_design d = q->design;
        d.order = orders[i].order;
        d.lanes = orders[i].lanes;
        d.leaf = orders[i].leaf;
        if (same_order(&d, &q->design) || nb_design_chain(&d, nb_design_elements(&d, q->cols)) > chain) continue;
        list[n] = (struct nb_correct){.design = d};
        snprintf(list[n++].name, sizeof list->name, "emulated: %s", orders[i].name);
    }
    return n;
}

/* ---- kernels ------------------------------------------------------------------------------------------------------------- */

void nb_tolerance_kernel_case(struct nb_case *c, const struct nb_design *d, const struct nb_entry *entry, int64_t rows,
                              int64_t cols, enum nb_affine affine) {
    nb_design_case(c, d, rows, cols, affine);
    snprintf(c->shape.text, sizeof c->shape.text, "%lldx%lld", (long long)rows, (long long)cols);
    snprintf(c->k_text, sizeof c->k_text, "%lld", (long long)c->k);
    nb_case_set_entry(c, entry);
}

/* Has the kernel the arithmetic that the bound was asked for? */
static bool fits(const struct nb_entry *entry, const struct nb_tolerance_request *q, int64_t chain) {
    const struct nb_kernel *k = entry->kernel;
    struct nb_case c;
    struct nb_call call;
    nb_design_case(&c, &q->design, q->rows, q->cols, q->affine);
    if (entry->plugin || k->op != c.op || k->dtype != c.dtype || k->pass != NB_FORWARD) return false;
    if (nb_cpu_refuses(k->cpu_features, k->width) || nb_kernel_refuses(k, &c.formula)) return false;
    if (k->stats_dtype != c.stats_dtype || (k->stats_dtype == NB_STATS_X && k->style != c.style)) return false;
    if (k->op == NB_OP_LAYERNORM && k->variance != c.variance) return false;
    if (((k->flags & NB_FLAG_FOLDED) != 0) != c.folded) return false;
    nb_tolerance_kernel_case(&c, &q->design, entry, q->rows, q->cols, q->affine);
    nb_case_call(&c, &call);
    return !nb_kernel_applicable(k, &call) && nb_kernel_chain(k, &call) <= chain;
}

int nb_correct_list(const struct nb_tolerance_request *q, int64_t chain, struct nb_correct *list, int most) {
    int n = 0;
    if (q->kernel) {
        list[n] = (struct nb_correct){.kernel = q->kernel, .design = q->design};
        snprintf(list[n++].name, sizeof list->name, "%s", q->kernel->id);
    } else {
        n = add_designs(q, chain, list, most);
    }
    for (size_t i = 0; i < nb_registry_size() && n < most; i++) {
        const struct nb_entry *entry = nb_registry_at(i);
        if (entry == q->kernel || !fits(entry, q, chain)) continue;
        list[n] = (struct nb_correct){.kernel = entry, .design = q->design};
        snprintf(list[n++].name, sizeof list->name, "%s", entry->id);
    }
    return n;
}

static int call_kernel(const struct nb_correct *s, const struct nb_tolerance_test *t, double *got, char *reason,
                       size_t size) {
    const int64_t rows = t->rows.rows, cols = t->rows.cols;
    struct nb_trial trial;
    struct nb_case c;
    if (s->kernel->plugin) {
        snprintf(reason, size, "a plugin is not called in this process");
        return -1;
    }
    nb_tolerance_kernel_case(&c, &s->design, s->kernel, rows, cols, t->rows.affine);
    int result = nb_trial_init(&trial, &c, s->kernel);
    if (result == 0) {
        nb_trial_set_params(&trial, t->gamma, t->beta);
        nb_trial_set_x(&trial, t->rows.x, NULL);
        result = nb_trial_run(&trial);
    }
    if (result != 0) snprintf(reason, size, "%s", trial.reason ? trial.reason : "it could not be called");
    for (int64_t i = 0; result == 0 && i < t->n; i++) got[i] = nb_trial_y(&trial, i / cols, i % cols);
    nb_trial_release(&trial);
    return result;
}

int nb_correct_run(const struct nb_correct *s, const struct nb_tolerance_test *t, double *got, char *reason,
                   size_t size) {
    if (s->kernel) return call_kernel(s, t, got, reason, size);
    for (int64_t row = 0; row < t->rows.rows; row++)
        nb_emulate_row(&s->design, t->rows.cols, t->rows.x + row * t->rows.cols, t->gamma, t->beta,
                       got + row * t->rows.cols, 1);
    return 0;
}
