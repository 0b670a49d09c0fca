// SPDX-License-Identifier: Apache-2.0
/* From a config to what the launcher works through. The order of the steps matters: cells are expanded, grouped, hashed and
 * dealt out to shards before this machine has its say, so that all machines agree on which shard has which cell. */
#include "src/plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/text.h"
#include "src/plan/groups.h"

/* ---- hash ---- */

static uint64_t hash_line(uint64_t h, const char *text) { return nb_hash(nb_hash(h, text, strlen(text)), "\n", 1); }

static void hash_plan(struct nb_plan *plan, const struct nb_cells *cells, const struct nb_wholes *wholes,
                      const struct nb_config *config) {
    struct nb_strbuf head = {0};
    nb_strbuf_addf(&head, "%d %d %.17g %llu %s", plan->launches, plan->blocks, plan->sample_ms,
                   (unsigned long long)plan->order_seed, config->reference ? config->reference : "");
    uint64_t h = hash_line(NB_HASH_EMPTY, head.text);
    nb_strbuf_release(&head);
    for (size_t i = 0; i < wholes->n; i++) {
        for (size_t j = 0; j < wholes->items[i].n; j++) h = hash_line(h, cells->items[wholes->items[i].cells[j]].key);
        h = hash_line(h, "");
    }
    snprintf(plan->hash, sizeof plan->hash, "%016llx", (unsigned long long)h);
}

/* ---- what is left of the groups ---- */

/* Keeps the groups that are this shard's. */
static void keep_shard(struct nb_wholes *wholes, const struct nb_cells *cells, const struct nb_effort *effort,
                       const struct nb_plan_options *options, struct nb_skips *skips) {
    bool *mine = nb_alloc(wholes->n, sizeof *mine);
    size_t n = 0;
    nb_shard_choose(wholes, cells, effort, options->shard, options->n_shards, mine);
    for (size_t i = 0; i < wholes->n; i++) {
        if (mine[i]) {
            wholes->items[n++] = wholes->items[i];
            continue;
        }
        nb_skips_count(skips, wholes->items[i].n, "in another shard than %d/%d", options->shard, options->n_shards);
        free(wholes->items[i].cells);
    }
    wholes->n = n;
    free(mine);
}

/* Takes away the cells that this machine refuses; each has a record that says why. */
static void drop_refused(struct nb_plan *plan, struct nb_wholes *wholes, const struct nb_cells *cells,
                         struct nb_skips *skips) {
    for (size_t i = 0; i < wholes->n; i++) {
        struct nb_whole *whole = &wholes->items[i];
        size_t n = 0;
        for (size_t j = 0; j < whole->n; j++) {
            const struct nb_cell *cell = &cells->items[whole->cells[j]];
            if (cell->refused) {
                nb_skips_case(skips, cell->key, cell->refused);
                plan->n_runnable_elsewhere++;
            } else {
                whole->cells[n++] = whole->cells[j];
            }
        }
        whole->n = n;
    }
}

static void thin_whole(struct nb_whole *whole, size_t keep, const struct nb_cells *cells, const char *reason,
                       struct nb_skips *skips) {
    size_t *which = nb_alloc(keep, sizeof *which), next = 0;
    nb_thin(whole->n, keep, which);
    for (size_t j = 0; j < whole->n; j++) {
        if (next < keep && which[next] == j)
            whole->cells[next++] = whole->cells[j];
        else
            nb_skips_case(skips, cells->items[whole->cells[j]].key, reason);
    }
    whole->n = keep;
    free(which);
}

static int keep_budget(struct nb_wholes *wholes, const struct nb_cells *cells, const struct nb_effort *effort,
                       double budget_s, bool by_whole, struct nb_skips *skips) {
    char reason[64];
    double least_s = 0;
    size_t *keep = nb_alloc(wholes->n, sizeof *keep), before = 0, after = 0;
    (by_whole ? nb_budget_thin_wholes : nb_budget_thin)(wholes, cells, effort, budget_s, keep, &least_s);
    snprintf(reason, sizeof reason, "over the budget of %g s", budget_s);
    for (size_t i = 0; i < wholes->n; i++) {
        before += wholes->items[i].n;
        thin_whole(&wholes->items[i], keep[i], cells, reason, skips);
        after += keep[i];
    }
    free(keep);
    if (before == 0 || after > 0) return 0;
    return nb_error(
        "--budget %g: a single %s takes about %.2g s with %d launches of %d blocks; launches are never dropped",
        budget_s, by_whole ? "comparison" : "case", least_s, effort->launches, effort->blocks);
}

/* ---- the plan's own form ---- */

static size_t add_case(struct nb_plan *plan, const struct nb_cell *cell) {
    plan->cases[plan->n_cases] = cell->c;
    plan->keys[plan->n_cases] = nb_strdup(cell->key);
    for (size_t i = 0; i < cell->labels.n; i++) nb_label_set_add(&plan->case_labels[plan->n_cases], cell->labels.at[i]);
    return plan->n_cases++;
}

/* A part of a group: its own cases, behind the reference where that is not among them. */
static struct nb_group *add_part(struct nb_plan *plan, const size_t *cases, size_t from, size_t to) {
    struct nb_group *group = &plan->groups[plan->n_groups++];
    group->cases = nb_alloc(to - from + 1, sizeof *group->cases);
    if (from > 0) group->cases[group->n++] = cases[0];
    for (size_t i = from; i < to; i++) group->cases[group->n++] = cases[i];
    return group;
}

/* Parts of equal size, within one. */
static void add_whole(struct nb_plan *plan, const struct nb_whole *whole, const struct nb_cells *cells,
                      const struct nb_effort *effort) {
    const size_t n_parts = nb_n_parts(whole->n, effort);
    size_t *cases = nb_alloc(whole->n, sizeof *cases);
    for (size_t i = 0; i < whole->n; i++) cases[i] = add_case(plan, &cells->items[whole->cells[i]]);
    for (size_t part = 0; part < n_parts; part++) {
        size_t from = part * whole->n / n_parts, to = (part + 1) * whole->n / n_parts;
        struct nb_group *group = add_part(plan, cases, from, to);
        group->index = whole->index;
        group->family = whole->family;
        group->single_width = whole->single_width;
        group->part = (int)part;
        group->estimate = nb_estimate(cells, whole->cells + from, to - from, effort);
        group->estimate_s = nb_estimate_total_s(&group->estimate, effort);
        plan->estimate_s += group->estimate_s;
    }
    free(cases);
}

static void fill(struct nb_plan *plan, const struct nb_wholes *wholes, const struct nb_cells *cells,
                 const struct nb_effort *effort) {
    size_t n_cases = 0, n_groups = 0;
    for (size_t i = 0; i < wholes->n; i++) {
        n_cases += wholes->items[i].n;
        n_groups += nb_n_parts(wholes->items[i].n, effort);
    }
    plan->cases = nb_alloc(n_cases, sizeof *plan->cases);
    plan->keys = nb_alloc(n_cases, sizeof *plan->keys);
    plan->case_labels = nb_alloc(n_cases, sizeof *plan->case_labels);
    plan->groups = nb_alloc(n_groups, sizeof *plan->groups);
    for (size_t i = 0; i < wholes->n; i++) add_whole(plan, &wholes->items[i], cells, effort);
}

int nb_plan_make(struct nb_plan *plan, const struct nb_config *config, const struct nb_plan_options *options) {
    const struct nb_filters filters = {options->filters, options->n_filters};
    const struct nb_effort effort = {config->launches, config->blocks_per_launch, config->sample_ms};
    struct nb_cells cells = {0};
    struct nb_wholes wholes = {.by_op = config->compare.ours != NULL};
    struct nb_skips skips = {0};
    *plan = (struct nb_plan){.launches = config->launches,
                             .blocks = config->blocks_per_launch,
                             .sample_ms = config->sample_ms,
                             .order_seed = config->order_seed,
                             .counters = config->launches > 0};
    nb_compare_settings_copy(&plan->compare, &config->compare);
    int result = nb_cells_expand(&cells, config, &filters, &skips);
    if (result != 0) goto out;
    nb_wholes_make(&wholes, &cells);
    if (config->launches == 0) nb_wholes_batch(&wholes, &cells);
    hash_plan(plan, &cells, &wholes, config);
    if (options->n_shards > 0) keep_shard(&wholes, &cells, &effort, options, &skips);
    drop_refused(plan, &wholes, &cells, &skips);
    for (size_t i = 0; i < wholes.n && config->launches > 0; i++)
        nb_whole_arrange(&wholes.items[i], &cells, config->reference);
    if (options->budget_s > 0) result = keep_budget(&wholes, &cells, &effort, options->budget_s, wholes.by_op, &skips);
    if (result != 0) goto out;
    fill(plan, &wholes, &cells, &effort);
    nb_skips_sort(&skips);
    plan->labels = cells.labels;
    cells.labels = (struct nb_labels){0};
    plan->skips = skips.items;
    plan->n_skips = skips.n;
    skips.items = NULL;
    skips.n = 0;
out:
    nb_skips_release(&skips);
    nb_wholes_release(&wholes);
    nb_cells_release(&cells);
    return result;
}

void nb_plan_release(struct nb_plan *plan) {
    for (size_t i = 0; i < plan->n_cases; i++) free(plan->keys[i]);
    for (size_t i = 0; plan->case_labels && i < plan->n_cases; i++) nb_label_set_release(&plan->case_labels[i]);
    nb_labels_release(&plan->labels);
    nb_compare_settings_release(&plan->compare);
    free(plan->case_labels);
    for (size_t i = 0; i < plan->n_groups; i++) free(plan->groups[i].cases);
    struct nb_skips skips = {.items = plan->skips, .n = plan->n_skips};
    nb_skips_release(&skips);
    free(plan->cases);
    free(plan->keys);
    free(plan->groups);
    *plan = (struct nb_plan){0};
}
