// SPDX-License-Identifier: Apache-2.0
/* Groups, shards and budgets: they depend on the plan alone, never on chance or on this CPU. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "src/plan/plan.c"
#include "tests/support/files.h"
#include "tests/support/plans.h"

TestSuite(groups, .init = load_kernels);

static bool share_buffers(const struct nb_case *a, const struct nb_case *b) {
    return a->pass == b->pass && a->dtype == b->dtype && strcmp(a->shape.text, b->shape.text) == 0 &&
           a->seed == b->seed && a->pad == b->pad && a->threads == b->threads && a->cache == b->cache &&
           strcmp(a->data, b->data) == 0;
}

Test(groups, groups_share_their_buffers_and_report_every_case_once) {
    struct nb_plan plan = plan_of(MANY);
    int *reported freed = calloc(plan.n_cases, sizeof *reported);
    double estimate_s = 0;
    cr_assert_eq(plan.n_cases, 2 * 2 * 3 * 4 * 3 * 2 * 2);
    for (size_t g = 0; g < plan.n_groups; g++) {
        const struct nb_group *group = &plan.groups[g];
        const struct nb_case *first = &plan.cases[group->cases[0]];
        cr_assert_lt(group->reference, group->n);
        cr_expect_leq(group->n, NB_GROUP_ARMS + (group->part > 0));
        for (size_t i = 0; i < group->n; i++) {
            cr_expect(share_buffers(first, &plan.cases[group->cases[i]]));
            reported[group->cases[i]] += group->part == 0 || i != group->reference;
        }
        if (group->part > 0) {
            const struct nb_group *before = group - 1;
            cr_expect_eq(group->index, before->index);
            cr_expect_eq(group->part, before->part + 1);
            cr_expect_eq(group->cases[group->reference], before->cases[before->reference],
                         "one reference in all parts");
        }
        cr_expect(isfinite(group->estimate_s) && group->estimate_s > 0);
        estimate_s += group->estimate_s;
    }
    for (size_t i = 0; i < plan.n_cases; i++) cr_expect_eq(reported[i], 1, "%s", plan.keys[i]);
    cr_expect_float_eq(estimate_s, plan.estimate_s, 1e-9 * estimate_s);
}

Test(groups, the_reference_is_the_one_named_else_a_fused_layernorm) {
    struct nb_plan plan = plan_of("{ " TWO_KERNELS ", \"shape\": \"4x8\" }");
    cr_assert_eq(plan.n_groups, 1);
    cr_expect_eq(plan.cases[plan.groups[0].cases[plan.groups[0].reference]].op, NB_OP_LAYERNORM);
    plan = made((struct request){.blocks = "{ " TWO_KERNELS ", \"shape\": \"4x8\", \"eps\": [\"1e-5\", \"1e-8\"] }",
                                 .head = "\"reference\": \"rmsnorm*eps:1e-8*\","});
    const char *key = plan.keys[plan.groups[0].cases[plan.groups[0].reference]];
    cr_expect(strstr(key, "rmsnorm_twopass") == key && strstr(key, "/eps:1e-8/"), "%s", key);
    plan = made(
        (struct request){.blocks = "{ " TWO_KERNELS ", \"shape\": \"4x8\" }", .head = "\"reference\": \"nothing\","});
    cr_expect_eq(plan.cases[plan.groups[0].cases[plan.groups[0].reference]].op, NB_OP_LAYERNORM,
                 "a glob that nothing matches");
    plan = plan_of("{ " TWO_KERNELS
                   ", \"shape\": \"4x8\", \"include\": { \"kernel\": \"layernorm_fast\", \"width\": \"128\" } }");
    key = plan.keys[plan.groups[0].cases[plan.groups[0].reference]];
    cr_expect(strstr(key, "layernorm_twopass_scalar") == key, "the width of most: %s", key);
}

Test(groups, launches_from_memory_have_more_blocks) {
    struct nb_plan plan = plan_of("{ " TWO_KERNELS ", \"shape\": \"4x8\", \"cache\": [\"hot\", \"cold\"] }");
    cr_assert_eq(plan.n_groups, 2);
    for (size_t g = 0; g < plan.n_groups; g++) {
        const bool cold = plan.cases[plan.groups[g].cases[0]].cache == NB_COLD;
        cr_expect_eq(plan.groups[g].blocks > plan.blocks, cold, "%d blocks, of the plan %d", plan.groups[g].blocks,
                     plan.blocks);
    }
}

static void add_keys(struct nb_text_map *map, const struct nb_plan *plan, size_t shard, int n_shards) {
    for (size_t i = 0; i < plan->n_cases; i++)
        cr_expect_eq(nb_text_map_add(map, plan->keys[i], shard), NB_NOWHERE, "in two of %d shards: %s", n_shards,
                     plan->keys[i]);
}

Test(groups, shards_part_the_plan_by_whole_groups) {
    struct nb_plan whole = plan_of(MANY);
    for (int n_shards = 1; n_shards <= 28; n_shards += 9) {
        struct nb_plan plans[30];
        struct nb_text_map owner released_by(nb_text_map_release) = {0};
        double longest = 0, longest_group = 0;
        for (size_t g = 0; g < whole.n_groups; g++)
            if (whole.groups[g].estimate_s > longest_group) longest_group = whole.groups[g].estimate_s;
        for (int shard = 1; shard <= n_shards; shard++) {
            struct nb_plan *plan = &plans[shard - 1];
            *plan = made((struct request){.blocks = MANY, .options = {.shard = shard, .n_shards = n_shards}});
            cr_expect_str_eq(plan->hash, whole.hash, "shards of one matrix know each other by the hash");
            add_keys(&owner, plan, (size_t)shard, n_shards);
            if (plan->estimate_s > longest) longest = plan->estimate_s;
        }
        cr_expect_eq(owner.n, whole.n_cases, "%d shards hold %zu of %zu cases", n_shards, owner.n, whole.n_cases);
        for (size_t g = 1; g < whole.n_groups; g++) {
            const char *one = whole.keys[whole.groups[g].cases[0]],
                       *other = whole.keys[whole.groups[g].cases[whole.groups[g].n - 1]];
            cr_expect_eq(nb_text_map_find(&owner, one), nb_text_map_find(&owner, other), "a group in two shards");
            const char *before = whole.keys[whole.groups[g - 1].cases[whole.groups[g - 1].n - 1]];
            if (whole.groups[g].part > 0)
                cr_expect_eq(nb_text_map_find(&owner, before), nb_text_map_find(&owner, other), "parts in two shards");
        }
        cr_expect_leq(longest, whole.estimate_s / n_shards + 4 * longest_group, "shards are balanced");
    }
}

/* Every sixth takes as long as twenty others. */
Test(groups, of_comparisons_the_longest_go_first) {
    struct whole items[60];
    const struct wholes wholes = {.items = items, .n = 60};
    double seconds[60], all_s = 0;
    size_t keep[60];
    for (size_t i = 0; i < 60; i++) {
        items[i] = (struct whole){.n = 3};
        all_s += seconds[i] = i % 6 == 5 ? 20 : 1;
    }
    for (double budget_s = 0; budget_s <= all_s; budget_s += 2.5) {
        double kept_s = 0;
        int n_cheap = 0, n_dear = 0;
        choose_wholes(&wholes, seconds, budget_s, keep);
        for (size_t i = 0; i < 60; i++) {
            cr_expect(keep[i] == 0 || keep[i] == 3, "all of a group or nothing");
            if (keep[i] == 0) continue;
            kept_s += seconds[i];
            ++*(seconds[i] > 1 ? &n_dear : &n_cheap);
        }
        cr_expect_leq(kept_s, budget_s);
        cr_expect_eq(n_cheap, budget_s < 50 ? (int)budget_s : 50, "%g s", budget_s);
        cr_expect_eq(n_dear, budget_s < 50 ? 0 : (int)((budget_s - 50) / 20), "%g s", budget_s);
    }
}

Test(groups, another_cpu_deals_the_same_shards) {
    const char *blocks =
        "{ \"kernel\": [\"rmsnorm_twopass\", \"layernorm_twopass\"], \"width\": [\"scalar\", \"256\"], "
        "\"shape\": [\"4x8\", \"64x4096\", \"8x16\", \"256x1024\"], \"cache\": [\"hot\", \"cold\"] }";
    struct nb_plan here[3];
    for (int i = 0; i < 3; i++)
        here[i] = made((struct request){.blocks = blocks, .options = {.shard = i + 1, .n_shards = 3}});
    nb_cpu_limit_width(NB_SCALAR);
    ((struct nb_cpu *)(uintptr_t)nb_cpu_light())->l3_bytes *= 8; /* cold sets are as large */
    for (int i = 0; i < 3; i++) {
        struct nb_plan there = made((struct request){.blocks = blocks, .options = {.shard = i + 1, .n_shards = 3}});
        struct nb_text_map keys released_by(nb_text_map_release) = {0};
        cr_expect_str_eq(there.hash, here[i].hash);
        for (size_t k = 0; k < here[i].n_cases; k++) nb_text_map_add(&keys, here[i].keys[k], 1);
        cr_expect_gt(there.n_cases, 0);
        for (size_t k = 0; k < there.n_cases; k++)
            cr_expect_eq(nb_text_map_find(&keys, there.keys[k]), 1, "moved to another shard: %s", there.keys[k]);
    }
}

/* What is named so, in a shard, and in no other. */
static void stays(struct nb_text_map *shard_of, const char *name, int shard) {
    const size_t before = nb_text_map_add(shard_of, kept(strdup(name)), (size_t)shard);
    cr_expect(before == NB_NOWHERE || before == (size_t)shard, "%s is in shards %zu and %d", name, before, shard);
}

/* Their launches stand next to each other in time. */
Test(groups, widths_that_are_timed_apart_stay_in_one_shard) {
    struct nb_text_map shard_of released_by(nb_text_map_release) = {0};
    for (int shard = 1; shard <= 3; shard++) {
        const struct nb_plan plan = made((struct request){
            .blocks = "{ \"kernel\": \"rmsnorm_twopass\", \"width\": [\"scalar\", \"128\"], \"shape\": [\"4x8\", "
                      "\"64x4096\", \"8x16\", \"256x1024\", \"3x5\"] }",
            .options = {.shard = shard, .n_shards = 3},
            .isolate_width = true});
        for (size_t g = 0; g < plan.n_groups; g++) {
            cr_expect(plan.groups[g].single_width && plan.groups[g].n == 1);
            stays(&shard_of, plan.cases[plan.groups[g].cases[0]].shape.text, shard);
        }
    }
    cr_expect_eq(shard_of.n, 5);
}

/* Grades and searches are a kernel's; and so many groups that each shard has some. */
Test(groups, without_launches_a_kernel_stays_in_one_shard) {
    struct request r = {
        .blocks = "{ \"op\": [\"rmsnorm\", \"layernorm\"], \"width\": [\"scalar\", \"128\"], \"dtype\": [\"f32\", "
                  "\"bf16\"], \"shape\": [\"4x8\", \"64x96\", \"8x16\"], \"eps\": [\"1e-5\", \"1e-8\"] }",
        .head = "\"launches\": 0,"};
    const struct nb_plan whole = made(r);
    struct nb_text_map shard_of released_by(nb_text_map_release) = {0}, keys released_by(nb_text_map_release) = {0};
    char hash[sizeof whole.hash] = "";
    for (int shard = 1; shard <= 4; shard++) {
        r.options = (struct nb_plan_options){.shard = shard, .n_shards = 4, .by_kernel = true};
        const struct nb_plan plan = made(r);
        if (shard > 1) cr_expect_str_eq(plan.hash, hash);
        memcpy(hash, plan.hash, sizeof hash);
        cr_expect_gt(plan.n_groups, 1, "shard %d has %zu groups", shard, plan.n_groups);
        add_keys(&keys, &plan, (size_t)shard, 4);
        for (size_t i = 0; i < plan.n_cases; i++) {
            char name[200];
            const struct nb_entry *entry = nb_registry_find(plan.cases[i].variant);
            snprintf(name, sizeof name, "%s %d", entry->kernel_id, (int)entry->kernel->dtype);
            stays(&shard_of, name, shard);
        }
    }
    cr_expect_eq(keys.n, whole.n_cases);
}

Test(groups, a_budget_drops_cases_evenly_and_never_launches) {
    const char *head = "\"launches\": 10,";
    struct nb_plan whole = made((struct request){.blocks = MANY, .head = head});
    size_t last = whole.n_cases + 1;
    for (double share = 0.9; share > 0.04; share *= 0.6) {
        double budget_s = share * whole.estimate_s;
        struct request r = {.blocks = MANY, .head = head, .options = {.budget_s = budget_s}};
        struct nb_plan plan = made(r), again = made(r);
        cr_expect_leq(plan.estimate_s, budget_s);
        if (plan.n_cases >=
            24) /* one of each group; the next may cost more than a third of what is left of so little */
            cr_expect_gt(plan.estimate_s, 0.7 * budget_s - 0.5, "%g of %g s are used", plan.estimate_s, budget_s);
        cr_expect_eq(plan.launches, whole.launches);
        cr_expect_lt(plan.n_cases, last);
        cr_expect_eq(plan.n_cases + left_out(&plan, "over the budget of"), whole.n_cases);
        cr_assert_eq(again.n_cases, plan.n_cases);
        for (size_t i = 0; i < plan.n_cases; i++) cr_expect_str_eq(plan.keys[i], again.keys[i], "chosen by chance");
        size_t least = SIZE_MAX, most = 0, n[24] = {0};
        for (size_t g = 0; g < plan.n_groups; g++)
            n[plan.groups[g].index] += plan.groups[g].n - (plan.groups[g].part > 0);
        for (size_t g = 0; g < 24; g++) {
            if (n[g] < least) least = n[g];
            if (n[g] > most) most = n[g];
        }
        cr_expect_leq(most - least, 1, "from %zu to %zu cases of equal groups", least, most);
        last = plan.n_cases;
    }
    refused((struct request){.blocks = MANY, .options = {.budget_s = 1e-6}},
            "a budget of 1e-06 s: a single case takes about");
    refused((struct request){.blocks = MANY,
                             .head = "\"compare\": { \"ours\": \"rmsnorm*\" },",
                             .options = {.budget_s = 1e-6}},
            "a budget of 1e-06 s: a single comparison takes about");
}
