// SPDX-License-Identifier: Apache-2.0
/* Plans: every cell once, nothing left out without a reason, shards and budgets that depend on the plan alone. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cpu.h"
#include "src/plan.h"
#include "src/share.h"
#include "src/text_map.h"
#include "tests/test_support_runs.h"

#define TWO_KERNELS "\"kernel\": [\"rmsnorm_twopass\", \"layernorm_twopass\"], \"width\": \"scalar\""

static void load(void) { cr_assert_eq(nb_registry_load_builtin(), 0); }

TestSuite(plan, .init = load);

struct request {
    const char *blocks; /* the list's inside */
    const char *head;   /* more top-level keys, ending in a comma; or null */
    const char *axis;   /* --axis, or null */
    struct nb_plan_options options;
    struct nb_plan plan;
};

static int make(void *arg) {
    struct request *r = arg;
    struct nb_config config;
    struct nb_strbuf text = {0};
    nb_strbuf_addf(&text, "{ %s \"blocks\": [\n%s\n] }", r->head ? r->head : "", r->blocks);
    int result = nb_config_parse(&config, "dir/mine.json", text.text, text.len);
    nb_strbuf_release(&text);
    if (result != 0) return -1;
    if (r->axis) result = nb_config_axis(&config, r->axis);
    if (result == 0) result = nb_plan_make(&r->plan, &config, &r->options);
    nb_config_release(&config);
    return result;
}

static struct nb_plan made(struct request r) {
    int result;
    char *errors = errors_of(make, &r, &result);
    cr_assert_eq(result, 0, "%s\n%s", r.blocks, errors);
    free(errors);
    return r.plan;
}

static struct nb_plan plan_of(const char *blocks) { return made((struct request){.blocks = blocks}); }

static void refused(struct request r, const char *words) {
    int result;
    char *errors = errors_of(make, &r, &result);
    cr_expect_eq(result, -1, "was planned: %s", r.blocks);
    cr_expect(strstr(errors, words), "wanted \"%s\" in: %s", words, errors);
    nb_plan_release(&r.plan);
    free(errors);
}

/* Cells that were left out for a reason with these words in it. */
static size_t left_out(const struct nb_plan *plan, const char *words) {
    size_t n = 0;
    for (size_t i = 0; i < plan->n_skips; i++)
        if (strstr(plan->skips[i].reason, words)) n += plan->skips[i].n;
    return n;
}

static size_t n_cases_of(const char *blocks) {
    struct nb_plan plan = plan_of(blocks);
    size_t n = plan.n_cases;
    nb_plan_release(&plan);
    return n;
}

Test(plan, a_block_is_the_product_of_its_lists) {
    cr_expect_eq(n_cases_of("{ " TWO_KERNELS " }"), 2);
    cr_expect_eq(n_cases_of("{ " TWO_KERNELS
                            ", \"eps\": [\"1e-5\", \"1e-8\"], \"root\": [\"div_sqrt\", \"mul_recip\", \"rsqrt_nr\"] }"),
                 12);
    cr_expect_eq(n_cases_of("{ " TWO_KERNELS ", \"shape\": [\"4x8\", \"rnnsearch\"], \"seed\": [1, 2] }"), 12);
    cr_expect_eq(n_cases_of("{ " TWO_KERNELS " }, { " TWO_KERNELS ", \"eps\": \"1e-3\" }"), 4);
}

Test(plan, the_same_cell_is_planned_once) {
    cr_expect_eq(n_cases_of("{ " TWO_KERNELS " }, { " TWO_KERNELS " }"), 2);
    cr_expect_eq(n_cases_of("{ " TWO_KERNELS ", \"eps\": [\"1e-5\", \"1e-05\", \"0.00001\"] }"), 2,
                 "one number, one case");
    cr_expect_eq(
        n_cases_of("{ " TWO_KERNELS ", \"cast\": [\"after\", \"before\"], \"param_dtype\": [\"f32\", \"x\"] }"), 2,
        "in f32 there is no cast");
    cr_expect_eq(n_cases_of("{ " TWO_KERNELS ", \"affine\": \"none\", \"weight_offset\": [0, 1] }"), 2);
    cr_expect_eq(n_cases_of("{ \"kernel\": \"prmsnorm_twopass\", \"width\": \"scalar\", \"shape\": \"2x384\", \"k\": "
                            "[\"6.25%\", 24] }"),
                 1);
    struct nb_plan plan = plan_of("{ " TWO_KERNELS " }, { " TWO_KERNELS " }");
    cr_expect_eq(plan.n_skips, 0, "a cell that is there is not left out");
    nb_plan_release(&plan);
}

Test(plan, include_adds_cells_and_exclude_takes_them_away) {
    cr_expect_eq(n_cases_of("{ " TWO_KERNELS ", \"eps\": [\"1e-5\", \"1e-8\"], \"include\": { \"eps\": \"1e-3\", "
                            "\"root\": [\"div_sqrt\", \"rsqrt_nr\"] } }"),
                 8);
    struct nb_plan plan =
        plan_of("{ " TWO_KERNELS ", \"eps\": [\"1e-5\", \"1e-8\"], \"root\": [\"div_sqrt\", \"mul_recip\"],\n"
                "\"exclude\": { \"op\": \"layernorm\", \"eps\": \"0.00001\" } }");
    cr_expect_eq(plan.n_cases, 6);
    cr_expect_eq(left_out(&plan, "excluded at dir/mine.json:3"), 2);
    for (size_t i = 0; i < plan.n_cases; i++)
        cr_expect(plan.cases[i].op != NB_OP_LAYERNORM || plan.cases[i].eps != 1e-5, "%s", plan.keys[i]);
    nb_plan_release(&plan);
}

Test(plan, exclude_is_applied_after_an_option_and_says_so) {
    struct nb_plan plan = made((struct request){
        .blocks = "{ " TWO_KERNELS ", \"exclude\": { \"root\": \"rsqrt_raw\" } }", .axis = "root=div_sqrt,rsqrt_raw"});
    cr_expect_eq(plan.n_cases, 2);
    cr_expect_eq(left_out(&plan, "excluded at dir/mine.json:2, although --axis root asks for it"), 2);
    nb_plan_release(&plan);
}

Test(plan, an_axis_that_means_nothing_for_the_op_excludes_nothing) {
    cr_expect_eq(n_cases_of("{ \"kernel\": \"twin_copy\", \"width\": \"scalar\", \"exclude\": { \"eps\": \"1e-5\" } }"),
                 1);
}

Test(plan, cells_that_do_not_apply_are_counted_by_reason) {
    struct nb_plan plan = plan_of("{ " TWO_KERNELS ", \"shape\": [\"4x8\", \"nchw:2x3x4x5\"] }");
    cr_expect_eq(plan.n_cases, 2);
    cr_expect_eq(left_out(&plan, "NCHW and NHWC shapes are for batchnorm"), 2);
    nb_plan_release(&plan);
    plan = plan_of("{ " TWO_KERNELS
                   ", \"eps_place\": \"outside\", \"root\": [\"mul_recip\", \"rsqrt_nr\", \"rsqrt_raw\"] }");
    cr_expect_eq(plan.n_cases, 2);
    cr_expect_eq(left_out(&plan, "eps outside the root is not defined"), 4);
    nb_plan_release(&plan);
    plan = plan_of("{ " TWO_KERNELS ", \"pass\": \"backward\", \"op\": \"dyt\", \"shape\": [\"4x8\", \"4x9\"] }");
    cr_expect_eq(plan.n_cases, 0);
    cr_expect_eq(left_out(&plan, "no kernel for dyt backward f32"), 2, "one for each cell");
    nb_plan_release(&plan);
    plan = plan_of("{ " TWO_KERNELS ", \"op\": [\"rmsnorm\", \"prmsnorm\"] }");
    cr_expect_eq(plan.n_cases, 1);
    cr_expect_eq(left_out(&plan, "among those selected at dir/mine.json:2"), 1);
    nb_plan_release(&plan);
    plan = plan_of("{ " TWO_KERNELS ", \"backend\": [\"cpu\", \"cuda\", \"peer:onednn\", \"plugin:mine\"] }");
    cr_expect_eq(plan.n_cases, 2);
    cr_expect_eq(left_out(&plan, "backend cuda: not built"), 1);
    cr_expect_eq(left_out(&plan, "backend peer:onednn: not built"), 1);
    cr_expect_eq(left_out(&plan, "backend plugin:mine: not loaded"), 1);
    nb_plan_release(&plan);
    plan = plan_of("{ \"kernel\": \"rmsnorm_twopas\", \"width\": \"native\" }");
    cr_expect_eq(left_out(&plan, "did you mean rmsnorm_twopass?"), 1);
    cr_expect_eq(left_out(&plan, "width native: no kernel is built for it"), 1);
    nb_plan_release(&plan);
}

Test(plan, data_that_does_not_fit_is_counted_and_data_that_is_not_there_is_an_error) {
    struct nb_plan plan =
        plan_of("{ " TWO_KERNELS ", \"data\": \"minilm_embed\", \"shape\": [\"64x384\", \"64x385\"] }");
    cr_expect_eq(plan.n_cases, 2);
    cr_expect_eq(left_out(&plan, "rows of 384 values"), 2);
    nb_plan_release(&plan);
    refused((struct request){.blocks = "{ " TWO_KERNELS ",\n\n\"data\": [\"normal\", \"minilm_embd\"] }"},
            "dir/mine.json:4: \"data\":");
    refused((struct request){.blocks = "{ \"data\": \"norml\" }"}, "did you mean normal");
    refused((struct request){.blocks = "{ \"data\": \"offset(x)\" }"}, "offset");
    refused((struct request){.blocks = "{ \"data\": \"no/such.npy\" }"}, "no/such.npy");
    refused((struct request){.blocks = "{}", .axis = "data=norml"}, "--axis data:");
}

Test(plan, what_this_machine_refuses_has_a_record) {
    struct nb_plan plan = plan_of("{ " TWO_KERNELS ", \"threads\": [1, 1024] }");
    cr_expect_eq(plan.n_cases, 2);
    cr_expect_eq(plan.n_runnable_elsewhere, 2);
    cr_expect_eq(left_out(&plan, "threads 1024: this process may run on"), 2);
    for (size_t i = 0; i < plan.n_skips; i++) {
        struct nb_case c;
        cr_assert(plan.skips[i].key);
        cr_expect_eq(nb_case_parse(&c, plan.skips[i].key), 0);
        cr_expect_eq(c.threads, 1024);
        cr_expect_eq(plan.skips[i].n, 1);
    }
    nb_plan_release(&plan);
    nb_cpu_limit_width(NB_SCALAR);
    plan = plan_of("{ \"kernel\": \"rmsnorm_twopass\", \"width\": [\"scalar\", \"256\"] }");
    cr_expect_eq(plan.n_cases, 1);
    cr_expect_eq(left_out(&plan, "width 256: wider than --max-width"), 1);
    nb_plan_release(&plan);
}

Test(plan, absurd_products_cost_an_error_and_no_time) {
    refused((struct request){.blocks = "{},\n{ \"seed\": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],\n\"shape\": "
                                       "\"1:60:+1x1:60:+1\", \"threads\": [1, 2, 3, 4, 5, 6] }"},
            "dir/mine.json:3: this block makes 2.16e+05 cells, more than 200000; its longest list is \"shape\" with "
            "3600 values");
    refused((struct request){.blocks = "{ " TWO_KERNELS
                                       ", \"shape\": \"1:60:+1x1:60:+1\", \"eps\": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], "
                                       "\"include\": { \"seed\": [1, 2, 3, 4, 5, 6] } }"},
            "this include makes 2.16e+05 cells, more than");
    refused((struct request){.blocks =
                                 "{ " TWO_KERNELS
                                 ", \"shape\": \"1:60:+1x1:60:+1\", \"seed\": \"1\", \"eps\": [0, 1, 2, 3, 4, 5, 6], "
                                 "\"root\": [\"div_sqrt\", \"mul_recip\", \"rsqrt_nr\", \"rsqrt_raw\"] }"},
            "this block makes 2.016e+05 cells with the kernels that it selects, more than");
    refused(
        (struct request){
            .blocks =
                "{ " TWO_KERNELS
                ", \"shape\": \"1:60:+1x1:60:+1\", \"eps\": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14] }, "
                "{ " TWO_KERNELS
                ", \"shape\": \"1:60:+1x1:60:+1\", \"eps\": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14] }"},
        "this block makes 2.16e+05 cells with the blocks before it");
}

Test(plan, twins_take_part_only_when_named) {
    struct nb_plan plan = plan_of(
        "{ \"shape\": \"4x8\" }, { \"op\": \"all\", \"shape\": \"4x8\" }, { \"kernel\": \"*\", \"shape\": \"4x8\" }");
    cr_expect_gt(plan.n_cases, 5);
    for (size_t i = 0; i < plan.n_cases; i++) cr_expect_neq(plan.cases[i].op, NB_OP_TWIN, "%s", plan.keys[i]);
    nb_plan_release(&plan);
    cr_expect_eq(n_cases_of("{ \"kernel\": \"twin_copy\", \"width\": \"scalar\" }"), 1);
    plan = plan_of("{ \"op\": \"twin\", \"width\": \"scalar\" }");
    cr_expect_geq(plan.n_cases, 2);
    for (size_t i = 0; i < plan.n_cases; i++) cr_expect_eq(plan.cases[i].op, NB_OP_TWIN);
    nb_plan_release(&plan);
}

/* ---- groups ---- */

#define MANY                                                                                                           \
    "{ " TWO_KERNELS ", \"dtype\": [\"f32\", \"bf16\"], \"shape\": [\"4x8\", \"8x16\", \"16x24\"], \"eps\": [0, "      \
    "\"1e-8\", \"1e-5\", \"1e-3\"], "                                                                                  \
    "\"root\": [\"div_sqrt\", \"mul_recip\", \"rsqrt_nr\"], \"cache\": [\"hot\", \"cold\"], \"stride\": [\"packed\", " \
    "3] }"

static bool share_buffers(const struct nb_case *a, const struct nb_case *b) {
    return a->pass == b->pass && a->dtype == b->dtype && strcmp(a->shape.text, b->shape.text) == 0 &&
           a->seed == b->seed && a->pad == b->pad && a->threads == b->threads && a->cache == b->cache &&
           strcmp(a->data, b->data) == 0;
}

Test(plan, groups_share_their_buffers_and_report_every_case_once) {
    struct nb_plan plan = plan_of(MANY);
    int *reported = calloc(plan.n_cases, sizeof *reported);
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
    free(reported);
    nb_plan_release(&plan);
}

Test(plan, comparable_cases_stay_together) {
    struct nb_plan plan = plan_of(MANY);
    for (size_t g = 0; g < plan.n_groups; g++) {
        const struct nb_group *group = &plan.groups[g];
        size_t n_rms = 0;
        for (size_t i = 0; i < group->n; i++) n_rms += plan.cases[group->cases[i]].op == NB_OP_RMSNORM;
        cr_expect(2 * n_rms + 3 >= group->n && 2 * n_rms <= group->n + 3, "group %zu: %zu of %zu are rmsnorm", g, n_rms,
                  group->n);
    }
    nb_plan_release(&plan);
}

Test(plan, the_reference_is_the_one_named_else_a_fused_layernorm) {
    struct nb_plan plan = plan_of("{ " TWO_KERNELS ", \"shape\": \"4x8\" }");
    cr_assert_eq(plan.n_groups, 1);
    cr_expect_eq(plan.cases[plan.groups[0].cases[plan.groups[0].reference]].op, NB_OP_LAYERNORM);
    nb_plan_release(&plan);
    plan = made((struct request){.blocks = "{ " TWO_KERNELS ", \"shape\": \"4x8\", \"eps\": [\"1e-5\", \"1e-8\"] }",
                                 .head = "\"reference\": \"rmsnorm*eps:1e-8*\","});
    const char *key = plan.keys[plan.groups[0].cases[plan.groups[0].reference]];
    cr_expect(strstr(key, "rmsnorm_twopass") == key && strstr(key, "/eps:1e-8/"), "%s", key);
    nb_plan_release(&plan);
    plan = made(
        (struct request){.blocks = "{ " TWO_KERNELS ", \"shape\": \"4x8\" }", .head = "\"reference\": \"nothing\","});
    cr_expect_eq(plan.cases[plan.groups[0].cases[plan.groups[0].reference]].op, NB_OP_LAYERNORM,
                 "a glob that nothing matches");
    nb_plan_release(&plan);
}

Test(plan, the_key_finds_the_case_again) {
    struct nb_plan plan = plan_of(MANY);
    for (size_t i = 0; i < plan.n_cases; i++) {
        struct nb_case c;
        struct nb_strbuf key = {0};
        cr_assert_eq(nb_case_parse(&c, plan.keys[i]), 0);
        const struct nb_entry *entry = nb_registry_find(c.variant);
        cr_assert(entry);
        nb_case_set_kernel(&c, entry->kernel, entry->plugin);
        nb_case_key(&c, &key);
        cr_expect_str_eq(key.text, plan.keys[i]);
        nb_strbuf_release(&key);
    }
    nb_plan_release(&plan);
}

/* ---- filters, shards, budget ---- */

Test(plan, filters_are_globs_on_the_whole_key_or_parts_of_it) {
    static const struct {
        const char *filter;
        size_t n;
    } wants[] = {{"rmsnorm", 1}, {"norm", 2},   {"layernorm_*", 1}, {"*/eps:1e-5/*", 2}, {"shape:4x8", 2},
                 {"norm*", 0},   {"*norm*", 2}, {"[lr]*", 2},       {"shape:2x[4]", 0},  {"", 2}};
    for (size_t i = 0; i < sizeof wants / sizeof wants[0]; i++) {
        struct nb_plan plan = made((struct request){.blocks = "{ " TWO_KERNELS ", \"shape\": \"4x8\" }",
                                                    .options = {.filters = &wants[i].filter, .n_filters = 1}});
        cr_expect_eq(plan.n_cases, wants[i].n, "%s: %zu", wants[i].filter, plan.n_cases);
        cr_expect_eq(left_out(&plan, "--filter"), 2 - wants[i].n);
        nb_plan_release(&plan);
    }
    const char *const both[] = {"rmsnorm", "layernorm"};
    struct nb_plan plan =
        made((struct request){.blocks = "{ " TWO_KERNELS " }", .options = {.filters = both, .n_filters = 2}});
    cr_expect_eq(plan.n_cases, 2, "any filter may match");
    nb_plan_release(&plan);
}

static void add_keys(struct nb_text_map *map, const struct nb_plan *plan, size_t shard, int n_shards) {
    for (size_t i = 0; i < plan->n_cases; i++)
        cr_expect_eq(nb_text_map_add(map, plan->keys[i], shard), NB_NOWHERE, "in two of %d shards: %s", n_shards,
                     plan->keys[i]);
}

Test(plan, shards_part_the_plan_by_whole_groups) {
    struct nb_plan whole = plan_of(MANY);
    for (int n_shards = 1; n_shards <= 30; n_shards += 3) {
        struct nb_plan plans[30];
        struct nb_text_map owner = {0};
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
        }
        cr_expect_leq(longest, whole.estimate_s / n_shards + 4 * longest_group, "shards are balanced");
        nb_text_map_release(&owner);
        for (int i = 0; i < n_shards; i++) nb_plan_release(&plans[i]);
    }
    nb_plan_release(&whole);
}

Test(plan, the_parts_of_a_group_stay_in_one_shard) {
    struct nb_plan whole = plan_of(MANY);
    struct nb_text_map shard_of = {0};
    struct nb_plan plans[5];
    for (int shard = 1; shard <= 5; shard++) {
        plans[shard - 1] = made((struct request){.blocks = MANY, .options = {.shard = shard, .n_shards = 5}});
        add_keys(&shard_of, &plans[shard - 1], (size_t)shard, 5);
    }
    for (size_t g = 0; g < whole.n_groups; g++)
        for (size_t h = 0; h < whole.n_groups; h++)
            if (whole.groups[g].index == whole.groups[h].index)
                cr_expect_eq(nb_text_map_find(&shard_of, whole.keys[whole.groups[g].cases[0]]),
                             nb_text_map_find(&shard_of, whole.keys[whole.groups[h].cases[whole.groups[h].n - 1]]));
    for (int i = 0; i < 5; i++) nb_plan_release(&plans[i]);
    nb_text_map_release(&shard_of);
    nb_plan_release(&whole);
}

Test(plan, another_cpu_deals_the_same_shards) {
    const char *blocks =
        "{ \"kernel\": [\"rmsnorm_twopass\", \"layernorm_twopass\"], \"width\": [\"scalar\", \"256\"], "
        "\"shape\": [\"4x8\", \"64x4096\", \"8x16\", \"256x1024\"], \"cache\": [\"hot\", \"cold\"] }";
    struct nb_plan here[3];
    for (int i = 0; i < 3; i++)
        here[i] = made((struct request){.blocks = blocks, .options = {.shard = i + 1, .n_shards = 3}});
    nb_cpu_limit_width(NB_SCALAR);
    for (int i = 0; i < 3; i++) {
        struct nb_plan there = made((struct request){.blocks = blocks, .options = {.shard = i + 1, .n_shards = 3}});
        struct nb_text_map keys = {0};
        cr_expect_str_eq(there.hash, here[i].hash);
        for (size_t k = 0; k < here[i].n_cases; k++) nb_text_map_add(&keys, here[i].keys[k], 1);
        cr_expect_gt(there.n_cases, 0);
        for (size_t k = 0; k < there.n_cases; k++)
            cr_expect_eq(nb_text_map_find(&keys, there.keys[k]), 1, "moved to another shard: %s", there.keys[k]);
        nb_text_map_release(&keys);
        nb_plan_release(&there);
        nb_plan_release(&here[i]);
    }
}

Test(plan, a_budget_drops_cases_evenly_and_never_launches) {
    struct nb_plan whole = plan_of(MANY);
    size_t last = whole.n_cases + 1;
    for (double share = 0.9; share > 0.04; share *= 0.6) {
        double budget_s = share * whole.estimate_s;
        struct request r = {.blocks = MANY, .options = {.budget_s = budget_s}};
        struct nb_plan plan = made(r), again = made(r);
        cr_expect_leq(plan.estimate_s, budget_s);
        cr_expect_gt(plan.estimate_s, 0.7 * budget_s - 0.5, "the budget is used");
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
        nb_plan_release(&plan);
        nb_plan_release(&again);
    }
    nb_plan_release(&whole);
    refused((struct request){.blocks = MANY, .options = {.budget_s = 1e-6}},
            "--budget 1e-06: a single case takes about");
}

Test(plan, thinning_is_even_and_keeps_the_first) {
    for (size_t n = 1; n < 40; n++)
        for (size_t keep = 1; keep <= n; keep++) {
            size_t which[40];
            nb_thin(n, keep, which);
            cr_expect_eq(which[0], 0);
            for (size_t i = 1; i < keep; i++) {
                size_t gap = which[i] - which[i - 1];
                cr_expect(gap >= n / keep && gap <= (n + keep - 1) / keep);
            }
            cr_expect_lt(which[keep - 1], n);
        }
}

Test(plan, the_hash_is_that_of_what_is_measured) {
    struct nb_plan a = plan_of("{ " TWO_KERNELS " }"), b = plan_of("{ " TWO_KERNELS " }"),
                   c = plan_of("{ " TWO_KERNELS ", \"eps\": \"1e-3\" }"),
                   d = made((struct request){.blocks = "{ " TWO_KERNELS " }", .head = "\"launches\": 8,"});
    cr_expect_str_eq(a.hash, b.hash);
    cr_expect_str_neq(a.hash, c.hash);
    cr_expect_str_neq(a.hash, d.hash);
    nb_plan_release(&a);
    nb_plan_release(&b);
    nb_plan_release(&c);
    nb_plan_release(&d);
}

Test(plan, reasons_come_most_frequent_first_and_together) {
    struct nb_plan plan =
        plan_of("{ " TWO_KERNELS ", \"threads\": [1, 1023, 1024], \"eps_place\": [\"inside\", \"outside\"], "
                "\"root\": [\"mul_recip\", \"rsqrt_nr\", \"rsqrt_raw\"] }");
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < plan.n_skips;) {
        size_t total = 0, j = i;
        for (; j < plan.n_skips && strcmp(plan.skips[j].reason, plan.skips[i].reason) == 0; j++)
            total += plan.skips[j].n;
        cr_expect_leq(total, last);
        for (size_t k = j; k < plan.n_skips; k++) cr_expect_str_neq(plan.skips[k].reason, plan.skips[i].reason);
        last = total;
        i = j;
    }
    nb_plan_release(&plan);
}

Test(plan, every_preset_makes_a_plan) {
    char **names;
    int n = nb_config_list(&names);
    for (int i = 0; i < n; i++) {
        struct nb_config config;
        struct nb_plan plan;
        const struct nb_plan_options options = {0};
        cr_assert_eq(nb_config_read(&config, names[i]), 0);
        cr_assert_eq(nb_plan_make(&plan, &config, &options), 0, "%s", names[i]);
        cr_expect_gt(plan.n_cases, 0, "%s", names[i]);
        cr_expect_eq(left_out(&plan, "none has this name"), 0, "%s names a kernel that does not exist", names[i]);
        nb_plan_release(&plan);
        nb_config_release(&config);
        free(names[i]);
    }
    free(names);
}
