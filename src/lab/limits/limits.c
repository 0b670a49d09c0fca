// SPDX-License-Identifier: Apache-2.0
/* All rules, how any of them is predicted and verified, and what they share. */
#include "src/lab/limits/limits.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/dtype.h"

const char *const nb_limit_states[NB_N_LIMIT_STATES] = {"holds", "does not hold", "does not apply"};

/* Squares are those of the distances from the mean, where there is one. */
static const char *unit_of(const struct nb_limit_rule *rule, const struct nb_limits *l) {
    if (!nb_op_centres(l->design.op)) return rule->unit;
    if (strcmp(rule->unit, "|x|") == 0) return "|x - mean|";
    return strcmp(rule->unit, "rms") == 0 ? "sigma" : rule->unit;
}

void nb_limit_predict(const struct nb_limit_rule *rule, const struct nb_limits *l, struct nb_limit *line) {
    *line = (struct nb_limit){.id = rule->id,
                              .group = rule->group,
                              .what = rule->what,
                              .unit = unit_of(rule, l),
                              .law = NAN,
                              .from = NAN,
                              .safe = NAN};
    if (rule->predict(l, line) != 0) line->state = NB_LIMIT_ABSENT;
}

void nb_limit_verify(const struct nb_limit_rule *rule, const struct nb_limits *l, struct nb_limit *line) {
    if (line->state == NB_LIMIT_ABSENT) return;
    bool holds = true;
    if (rule->check) {
        holds = rule->check(l, line);
    } else {
        if (!isnan(line->from)) holds = rule->happens(l, line->from, line->at, sizeof line->at);
        if (!isnan(line->safe)) holds = !rule->happens(l, line->safe, line->beyond, sizeof line->beyond) && holds;
    }
    line->state = holds ? NB_LIMIT_HOLDS : NB_LIMIT_BROKEN;
}

/* ---- configuration ----------------------------------------------------------------------------------------------------- */

void nb_limits_init(struct nb_limits *l, enum nb_op op, enum nb_number dtype, int64_t n, double eps) {
    assert(n >= 1 && dtype < NB_N_NUMBERS);
    *l = (struct nb_limits){.n = n, .gamma_max = NAN};
    struct nb_design *d = &l->design;
    nb_design_init(d);
    d->op = op;
    d->store = d->weight = d->square = d->acc = d->stat = d->root = d->rstd = d->scale = d->offset = dtype;
    d->eps = eps;
    snprintf(d->eps_text, sizeof d->eps_text, "%.17g", eps);
}

const struct nb_limit_rule *nb_limit_rule_at(size_t i) {
    static const struct nb_limit_rule *const groups[] = {nb_range_rules, nb_eps_rules, nb_sum_rules};
    for (size_t g = 0; g < sizeof groups / sizeof groups[0]; g++)
        for (const struct nb_limit_rule *rule = groups[g]; rule->id; rule++)
            if (i-- == 0) return rule;
    return NULL;
}

/* ---- what rules share -------------------------------------------------------------------------------------------------- */

void nb_limit_downwards(struct nb_limit *line, enum nb_number number, bool (*ends)(double v, const void *arg),
                        const void *arg) {
    const double first = nb_first_representable(number, ends, arg);
    if (isfinite(first)) line->safe = first;
    const double last = nb_next_below(first, number);
    if (last > 0) line->from = last;
}

struct nb_design nb_limits_isolated(const struct nb_limits *l) {
    struct nb_design d = l->design;
    d.op = NB_OP_RMSNORM;
    d.store = d.weight = d.square = d.acc = d.root = d.rstd = d.scale = d.offset = NB_NUM_F64;
    d.order = NB_ORDER_SEQUENTIAL;
    d.lanes = 1;
    d.fma = d.folded = false;
    d.root_form = NB_ROOT_MUL_RECIP;
    d.eps_place = NB_EPS_INSIDE;
    d.cast = NB_CAST_AFTER;
    d.weight_offset = 0;
    return d;
}
