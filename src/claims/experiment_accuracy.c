// SPDX-License-Identifier: Apache-2.0
/* Accuracy experiments: cases that are checked and not timed. Each case gives the figures of the table below. */
#include <math.h>

#include "src/claims/experiment.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/record/grade.h"

static double share_lost(const struct nb_record *r) {
    const struct nb_evidence *e = &r->evidence;
    if (!r->has_evidence || e->n == 0) return NAN;
    return (double)(e->n_nan + e->n_inf + e->n_zero) / (double)e->n;
}
static double normwise(const struct nb_record *r) {
    return r->has_evidence ? r->evidence.normwise_u * nb_formats[r->c.dtype].unit_roundoff : (double)NAN;
}
static double failed(const struct nb_record *r) { return nb_status_failed(r->status); }
static double survives(const struct nb_record *r) { return nb_grade_survives(r); }

static const struct figure {
    const char *name, *unit;
    double (*of)(const struct nb_record *r); /* null: a number of its accuracy */
    size_t offset;
} figures[] = {
    {"lost", "share", share_lost, 0},                                  /* NaN, Inf or 0 where a number belongs */
    {"max_ulp", "ulp", NULL, offsetof(struct nb_accuracy, max_ulp)},   /* largest error */
    {"mean_ulp", "ulp", NULL, offsetof(struct nb_accuracy, mean_ulp)}, /* mean |error| */
    {"correct", "share", NULL, offsetof(struct nb_accuracy, correctly_rounded)}, /* correctly rounded */
    {"of_bound", "", NULL, offsetof(struct nb_accuracy, worst_ratio)},           /* largest error / bound */
    {"normwise", "share", normwise, 0},                                          /* worst row: ||error|| / ||y|| */
    {"failed", "", failed, 0},     /* 1: wrong, crashed, beyond its bound */
    {"survives", "", survives, 0}, /* 1: a result of use (nb_grade_survives) */
};
enum { N_FIGURES = sizeof figures / sizeof figures[0] };

static int accuracy_read(struct nb_experiment *e, const struct nb_jsonc *file, const cJSON *node) {
    static const struct nb_field fields[] = {
        {"kind", NB_FIELD_ELSEWHERE, .required = true},
        {NB_FIELD(MEMBER, struct nb_blocks, blocks), .read = nb_config_read_blocks},
        {"from", NB_FIELD_READ, .read = nb_blocks_read_from},
        {NB_FIELD(MEMBER, struct nb_blocks, quick), .read = nb_config_read_blocks}};
    const cJSON *blocks = nb_json_get(node, "blocks");
    const cJSON *from = nb_json_get(node, "from");
    e->own = nb_alloc(1, sizeof(struct nb_blocks));
    if (!blocks == !from)
        return nb_jsonc_error(file, node, "an accuracy experiment needs \"blocks\", or \"from\" a config");
    return nb_fields_read(file, node, fields, sizeof fields / sizeof fields[0], "an accuracy experiment", e->own);
}

static void accuracy_release(struct nb_experiment *e) { nb_blocks_release(e->own); }

static void accuracy_plan(struct nb_experiment *e, bool quick, struct nb_config configs[NB_N_CLAIMS_PLANS]) {
    nb_blocks_move(e->own, quick, e->label, &configs[NB_PLAN_ACCURACY]);
}

static void add_record(const struct nb_record *r, const struct nb_results *results, struct nb_findings *out) {
    for (int i = 0; i < N_FIGURES; i++) {
        const double *of_accuracy = (const void *)((const char *)&r->accuracy + figures[i].offset);
        const double value = figures[i].of ? figures[i].of(r) : r->has_accuracy ? *of_accuracy : (double)NAN;
        const bool ran = r->status != NB_SKIPPED && r->status != NB_NOT_RUN;
        struct nb_finding *f = ran && isfinite(value)
                                   ? nb_findings_add_exact(out, figures[i].name, figures[i].unit, value)
                                   : nb_findings_add_missing(out, figures[i].name, "%s%s%s", nb_status_name(r->status),
                                                             r->reason ? ": " : "", r->reason ? r->reason : "");
        nb_tag_record(f, r, results->meta);
        if (r->replay) f->evidence = nb_strdup(r->replay);
    }
}

static void accuracy_find(const struct nb_experiment *e, const struct nb_claims_measured *m, struct nb_findings *out) {
    const struct nb_results *results = m->results[NB_PLAN_ACCURACY];
    const size_t before = out->n;
    for (size_t i = 0; results && i < results->n; i++)
        if (nb_record_has_label(&results->records[i], e->label)) add_record(&results->records[i], results, out);
    for (int i = 0; out->n == before && i < N_FIGURES; i++)
        nb_findings_add_missing(out, figures[i].name, "%s", nb_blocks_why_none(results));
}

const struct nb_experiment_kind nb_experiment_accuracy = {
    .name = "accuracy",
    .summary = "cases checked against the exact result, not timed",
    .read = accuracy_read,
    .release = accuracy_release,
    .plan = accuracy_plan,
    .find = accuracy_find,
};
