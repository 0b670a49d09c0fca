// SPDX-License-Identifier: Apache-2.0
/* What a calibration found: one line for each group, then what it means in words. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/gate/gate_report.h"
#include "reports/text/output.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/record/fingerprint.h"

enum { DRAWS = 300 }; /* of simulated gates: a share of 95 % is known to 1.3 % */

struct findings {                /* for one group of the run */
    struct nb_gate_design usual; /* the gate's own plan */
    struct nb_gate_power usual_power;
    double smallest_effect;
    char hopeless[200]; /* why it cannot be gated by that plan at the rule's margins; "" */
    struct nb_recommendation wanted;
};

struct report {
    const struct nb_calibration_run *run;
    const char *config;
    double effect; /* that is wanted */
    struct findings *findings;
    int noisiest; /* the group with the largest spread that can be gated: its plan serves all; -1: none */
};

/* ---- findings --------------------------------------------------------------------------------------------------------------- */

static void find(struct findings *f, const struct nb_calibration_group *group, const struct nb_gate_plan *plan,
                 double effect) {
    const struct nb_calibration *c = &group->noise;
    f->usual = (struct nb_gate_design){plan->screen_launches, plan->confirm_launches, plan->blocks};
    f->smallest_effect = nb_gate_smallest_effect(c, &f->usual, &plan->rule);
    f->usual_power = (struct nb_gate_power){NAN, NAN, NAN, NAN};
    const char *hopeless = group->refused[0] ? "it could not be launched" : nb_gate_hopeless(c, &f->usual, &plan->rule);
    snprintf(f->hopeless, sizeof f->hopeless, "%s", hopeless ? hopeless : "");
    if (c->n_residuals == 0) return;
    f->usual_power = nb_gate_power(c, &f->usual, &plan->rule, effect, DRAWS, 2);
    nb_gate_recommend(c, &plan->rule, effect, DRAWS, &f->wanted);
}

/* Simulates gates of every group. */
static void find_all(struct report *r) {
    const struct nb_calibration_run *run = r->run;
    double most = -1;
    r->noisiest = -1;
    r->findings = nb_alloc(run->n_groups + 1, sizeof *r->findings);
    for (size_t i = 0; i < run->n_groups; i++) {
        struct findings *f = &r->findings[i];
        find(f, &run->groups[i], &run->g->plan, r->effect);
        if (f->hopeless[0] || !f->wanted.is_found || !(run->groups[i].noise.launch_sd > most)) continue;
        most = run->groups[i].noise.launch_sd;
        r->noisiest = (int)i;
    }
}

/* ---- as JSON: reports/schema/calibration.schema.json describes it; ratios are logarithms where a name begins with ln - */

static void add_noise(cJSON *group, const struct nb_calibration *c) {
    cJSON *json = cJSON_AddObjectToObject(group, "noise");
    cJSON_AddNumberToObject(json, "launches", (double)c->n_launches);
    nb_json_number(json, "ln_launch_sd", c->launch_sd);
    nb_json_number(json, "ln_launch_sd_high", c->launch_sd_high);
    nb_json_number(json, "ln_within_sd", c->within_sd);
    nb_json_number(json, "ln_between_sd", c->between_sd);
    nb_json_number(json, "ln_same_code_sd", c->same_sd);
    nb_json_number(json, "ln_fastest_sd", c->min_sd);
    nb_json_text(json, "tighter", isfinite(c->min_sd) ? c->min_sd < c->launch_sd ? "fastest" : "median" : NULL);
    nb_json_number(json, "preempted", c->preempted);
    nb_json_number(json, "overhead_s", c->overhead_s);
    nb_json_number(json, "sample_s", c->sample_s);
    nb_json_interval(json, "ln_order_effect", &c->order_effect);
    cJSON *bias = cJSON_AddObjectToObject(json, "ln_bias");
    for (int t = 0; t < NB_N_REPLICAS; t++) nb_json_interval(bias, nb_replica_names[t], &c->bias[t]);
}

#define D(field) NB_MEMBER(COUNT, struct nb_gate_design, field)
#define P(key, field) NB_MEMBER_AS(key, NUMBER, struct nb_gate_power, field)
static const struct nb_member plan_members[] = {D(screen_launches), D(confirm_launches), D(blocks), NB_MEMBERS_END};
static const struct nb_member power_members[] = {
    P("pass_without_change", pass_same), P("regression_without_change", regression_same),
    P("regression_with_effect", regression_effect), P("pass_with_effect", pass_effect), NB_MEMBERS_END};

static cJSON *group_to_json(const struct nb_calibration_run *run, const struct nb_calibration_group *group,
                            const struct findings *f) {
    cJSON *json = cJSON_CreateObject(), *cases;
    nb_json_text(json, "op", nb_op_names[group->c->op]);
    nb_json_text(json, "pass", nb_pass_names[group->c->pass]);
    nb_json_text(json, "dtype", nb_dtype_names[group->c->dtype]);
    nb_json_text(json, "shape", group->c->shape.text);
    cJSON_AddNumberToObject(json, "n_cases", (double)group->n_all);
    cases = cJSON_AddArrayToObject(json, "launched");
    for (size_t i = 0; i < group->n_cases; i++)
        cJSON_AddItemToArray(cases, cJSON_CreateString(run->g->cases[group->cases[i]].key));
    nb_json_text(json, "refused", group->refused[0] ? group->refused : NULL);
    add_noise(json, &group->noise);
    cJSON *usual = cJSON_AddObjectToObject(json, "usual_plan");
    nb_json_add_members(usual, plan_members, &f->usual);
    nb_json_add_members(usual, power_members, &f->usual_power);
    nb_json_number(usual, "smallest_effect", f->smallest_effect);
    nb_json_text(usual, "cannot_be_gated", f->hopeless[0] ? f->hopeless : NULL);
    if (!f->wanted.is_found) {
        cJSON_AddNullToObject(json, "wanted_plan");
        return json;
    }
    cJSON *wanted = cJSON_AddObjectToObject(json, "wanted_plan");
    nb_json_add_members(wanted, plan_members, &f->wanted.plan);
    nb_json_add_members(wanted, power_members, &f->wanted.power);
    nb_json_number(wanted, "seconds_without_change", f->wanted.seconds_same);
    nb_json_number(wanted, "seconds_with_effect", f->wanted.seconds_effect);
    return json;
}

static cJSON *calibration_to_json(const struct report *report) {
    const struct nb_calibration_run *run = report->run;
    const struct nb_gate_rule *rule = &run->g->plan.rule;
    cJSON *json = nb_json_document("2.0"), *groups;
    nb_json_text(json, "config", report->config);
    nb_json_number(json, "elapsed_s", run->g->elapsed_s);
    cJSON_AddNumberToObject(json, "launches", run->launches);
    cJSON_AddNumberToObject(json, "blocks", run->g->plan.blocks);
    nb_json_number(json, "sample_ms", run->g->plan.sample_ms);
    nb_json_number(json, "fail_margin", rule->fail_margin);
    nb_json_number(json, "pass_margin", rule->pass_margin);
    nb_json_number(json, "effect", report->effect);
    groups = cJSON_AddArrayToObject(json, "groups");
    for (size_t i = 0; i < run->n_groups; i++)
        cJSON_AddItemToArray(groups, group_to_json(run, &run->groups[i], &report->findings[i]));
    if (report->noisiest >= 0)
        cJSON_AddItemToObject(json, "recommended",
                              nb_json_of_members(plan_members, &report->findings[report->noisiest].wanted.plan));
    else
        cJSON_AddNullToObject(json, "recommended");
    cJSON_AddItemToObject(json, "fingerprint", nb_fingerprint());
    return json;
}

/* ---- the table -------------------------------------------------------------------------------------------------------------- */

/* The largest difference between a copy and its original. */
static double worst_bias(const struct nb_calibration *c) {
    double worst = 0;
    for (int t = 0; t < NB_N_COPIES; t++)
        if (fabs(c->bias[t].value) > fabs(worst)) worst = c->bias[t].value;
    return worst;
}

static void add_row(struct nb_grid *grid, const struct nb_calibration_group *group, const struct findings *f) {
    const struct nb_calibration *c = &group->noise;
    const bool known = isfinite(c->launch_sd), found = f->wanted.is_found;
    nb_grid_style(grid, f->hopeless[0] ? NB_GRID_BAD : NB_GRID_PLAIN);
    nb_grid_addf(grid, "%s%s", nb_op_names[group->c->op], group->c->pass == NB_FORWARD ? "" : " backward");
    nb_grid_row(grid, nb_dtype_names[group->c->dtype], group->c->shape.text);
    nb_grid_add_known(grid, known, "%.2f%%", 100 * c->launch_sd);
    nb_grid_add_known(grid, known, "%.2f%%", 100 * c->within_sd);
    nb_grid_add_known(grid, known, "%+.2f%%", 100 * expm1(worst_bias(c)));
    nb_grid_add_known(grid, known, "%.0f%%", 100 * c->preempted);
    nb_grid_add_known(grid, known, "%.2f%%%s", 100 * c->min_sd, c->min_sd < c->launch_sd ? " <" : "");
    nb_grid_add_known(grid, known, "%.1f%%", 100 * f->smallest_effect);
    nb_grid_add_known(grid, found, "%d+2x%d x %d", f->wanted.plan.screen_launches, f->wanted.plan.confirm_launches,
                      f->wanted.plan.blocks);
    nb_grid_add_known(grid, found, "%.1f-%.1f", f->wanted.seconds_same, f->wanted.seconds_effect);
    nb_grid_add_known(grid, found, "%.0f%%", 100 * f->wanted.power.regression_effect);
}

static void add_machine(struct nb_strbuf *out) {
    cJSON *fingerprint released_by(nb_json_release) = nb_fingerprint();
    const cJSON *cpu = nb_json_get(fingerprint, "cpu");
    const char *model = nb_json_get_text(cpu, "model"), *hypervisor = nb_json_get_text(cpu, "hypervisor");
    nb_strbuf_addf(out, "on %s, %.0f CPUs%s%s\n", model ? model : "a CPU that does not say its name",
                   nb_json_get_number(cpu, "n_online"), hypervisor ? ", under " : "", hypervisor ? hypervisor : "");
}

static void add_explanation(struct nb_strbuf *out, const struct report *r) {
    nb_strbuf_addf(
        out,
        "\nspread    standard deviation between launches of the median of ln(copy / baseline), %d pairs a launch\n"
        "smallest  effect that %d + 2 x %d launches find in %.0f%% of gates\n"
        "launches  screening + 2 x confirming, x pairs, that find %.3g%%; s: seconds a case, unchanged - changed\n"
        "more      on a wider screen: within, the part of the spread that more pairs would shrink; copies, how far a byte "
        "copy is off; fastest, the spread of the fastest samples (<: tighter than the medians here)\n",
        r->run->g->plan.blocks, r->run->g->plan.screen_launches, r->run->g->plan.confirm_launches,
        100 * NB_WANTED_POWER, 100 * r->effect);
}

static void add_conclusion(struct nb_strbuf *out, const struct report *r) {
    const struct nb_gate_rule *rule = &r->run->g->plan.rule;
    size_t hopeless = 0;
    for (size_t i = 0; i < r->run->n_groups; i++) {
        const struct nb_calibration_group *group = &r->run->groups[i];
        const struct findings *f = &r->findings[i];
        if (!f->hopeless[0]) continue;
        if (hopeless++ == 0)
            nb_strbuf_addf(out, "\nCannot be gated here at the margins of %.3g and %.3g%%:\n", 100 * rule->fail_margin,
                           100 * rule->pass_margin);
        nb_strbuf_addf(out, "  %s %s %s: %s%s%s\n", nb_op_names[group->c->op], nb_dtype_names[group->c->dtype],
                       group->c->shape.text, f->hopeless, group->refused[0] ? ": " : "", group->refused);
    }
    if (hopeless == 0) nb_strbuf_add(out, "\nAll of this can be gated here at the gate's margins.\n");
    if (r->noisiest < 0) return;
    const struct nb_recommendation *w = &r->findings[r->noisiest].wanted;
    nb_strbuf_addf(out,
                   "To find %.3g%% in %.0f%% of gates, for the noisiest that can be gated:\n"
                   "  normbench gate --screen-launches %d --confirm-launches %d --blocks %d\n",
                   100 * r->effect, 100 * NB_WANTED_POWER, w->plan.screen_launches, w->plan.confirm_launches,
                   w->plan.blocks);
}

static int print_table(const struct report *r, FILE *out) {
    struct nb_strbuf text = {0};
    enum { STAYS = NB_GRID_STAYS };
    struct nb_grid grid = nb_grid_of("op", "dtype", "shape", "spread", "within", "copies", "preempted", "fastest",
                                     "smallest", "launches x pairs", "s", "power");
    grid.right = (const bool[12]){[3] = true, true, true, true, true, true, true, true, true};
    grid.ranks = (const int[]){STAYS, STAYS, STAYS, STAYS, 4, 3, 1, 2, STAYS, STAYS, STAYS, STAYS};
    for (size_t i = 0; i < r->run->n_groups; i++) add_row(&grid, &r->run->groups[i], &r->findings[i]);
    add_machine(&text);
    nb_strbuf_add(&text, "\n");
    const struct nb_page page = nb_page_for(out, false, &text);
    nb_page_grid(&page, &grid);
    add_explanation(&text, r);
    add_conclusion(&text, r);
    return nb_output_folded(&text, out);
}

int nb_calibration_report(const struct nb_calibration_run *run, const char *config, double effect, const char *format,
                          FILE *out, const char *dir) {
    struct report r = {.run = run, .config = config, .effect = effect};
    int result;
    find_all(&r);
    cJSON *json released_by(nb_json_release) = calibration_to_json(&r);
    result = strcmp(format, "json") == 0 ? nb_output_document(json, out) : print_table(&r, out);
    if (dir) {
        char *path freed = nb_path_join(dir, "calibration.json");
        if (nb_json_write(json, path) != 0) result = -1;
    }
    free(r.findings);
    return result;
}
