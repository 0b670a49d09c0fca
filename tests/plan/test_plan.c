// SPDX-License-Identifier: Apache-2.0
/* Plans: every cell once, nothing left out without a reason. */
#include <criterion/criterion.h>
#include <stdint.h>

#include "src/core/cpu.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/plan/plan.h"
#include "tests/support/files.h"
#include "tests/support/plans.h"

TestSuite(plan, .init = load_kernels);

/* On a CPU without 256 bits, which --max-width 128 makes of any, the presets have those of 128. */
Test(plan, vector_is_256_bits_or_128_where_the_cpu_has_no_more) {
    static const char block[] =
        "{ \"kernel\": \"rmsnorm_twopass\", \"width\": [\"scalar\", \"vector\"], \"shape\": \"4x8\" }";
    const bool has_256 = !nb_cpu_refuses(nb_width_features(NB_256), NB_256);
    struct nb_plan whole = plan_of(block);
    cr_assert_eq(whole.n_cases, 2);
    cr_expect_eq(whole.cases[1].width, has_256 ? NB_256 : NB_128);
    nb_cpu_limit_width(NB_128);
    struct nb_plan limited = plan_of(block);
    cr_assert_eq(limited.n_cases, 2);
    cr_expect_eq(limited.cases[1].width, NB_128);
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
    cr_expect_eq(plan.skips.n, 0, "a cell that is there is not left out");
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
}

Test(plan, exclude_is_applied_after_an_option_and_says_so) {
    struct nb_plan plan = made((struct request){
        .blocks = "{ " TWO_KERNELS ", \"exclude\": { \"root\": \"rsqrt_raw\" } }", .axis = "root=div_sqrt,rsqrt_raw"});
    cr_expect_eq(plan.n_cases, 2);
    cr_expect_eq(left_out(&plan, "excluded at dir/mine.json:2, although --axis root asks for it"), 2);
}

Test(plan, cells_that_do_not_apply_are_counted_by_reason) {
    struct nb_plan plan = plan_of("{ " TWO_KERNELS ", \"shape\": [\"4x8\", \"nchw:2x3x4x5\"] }");
    cr_expect_eq(plan.n_cases, 2);
    cr_expect_eq(left_out(&plan, "NCHW and NHWC shapes are for batchnorm"), 2);
    plan = plan_of("{ " TWO_KERNELS
                   ", \"eps_place\": \"outside\", \"root\": [\"mul_recip\", \"rsqrt_nr\", \"rsqrt_raw\"] }");
    cr_expect_eq(plan.n_cases, 2);
    cr_expect_eq(left_out(&plan, "eps outside the root is not defined"), 4);
    plan = plan_of("{ " TWO_KERNELS ", \"pass\": \"backward\", \"op\": \"dyt\", \"shape\": [\"4x8\", \"4x9\"] }");
    cr_expect_eq(plan.n_cases, 0);
    cr_expect_eq(left_out(&plan, "no kernel for dyt backward f32"), 2, "one for each cell");
    plan = plan_of("{ " TWO_KERNELS ", \"op\": [\"rmsnorm\", \"prmsnorm\"] }");
    cr_expect_eq(plan.n_cases, 1);
    cr_expect_eq(left_out(&plan, "among those selected at dir/mine.json:2"), 1);
    plan = plan_of("{ " TWO_KERNELS
                   ", \"backend\": [\"cpu\", \"cuda\", \"cuda-emulated\", \"peer:onednn\", \"plugin:mine\"] }");
    cr_expect_eq(plan.n_cases, 2);
    cr_expect_eq(left_out(&plan, "backend cuda: not built; `make cuda` builds it"), 1);
    cr_expect_eq(left_out(&plan, "backend cuda-emulated: not built; `make cuda-emulated` builds it"), 1);
    cr_expect_eq(left_out(&plan, "backend peer:onednn: not loaded"), 1);
    cr_expect_eq(left_out(&plan, "backend plugin:mine: not loaded"), 1);
    plan = plan_of("{ \"kernel\": \"rmsnorm_twopas?s\", \"width\": \"native\" }");
    cr_expect_eq(left_out(&plan, "kernel rmsnorm_twopas?s: none has a name that matches"), 1);
    cr_expect_eq(left_out(&plan, "width native: no kernel is built for it"), 1);
}

Test(plan, a_kernel_that_is_not_there_is_an_error_that_names_the_nearest) {
    refused((struct request){.blocks = "{ " TWO_KERNELS ", \"include\":\n{ \"kernel\": \"rmsnorm_twopas\" } }"},
            "dir/mine.json:3: kernel 'rmsnorm_twopas': no kernel has this name; near it: rmsnorm_twopass, ");
    refused((struct request){.blocks = "{ " TWO_KERNELS ", \"exclude\": { \"kernel\": \"rmsnorm_twopas\" } }"},
            "near it: rmsnorm_twopass");
    refused((struct request){.blocks = "{}", .axis = "kernel=py:py"}, "--plugin FILE or --peer NAME loads");
}

Test(plan, data_that_does_not_fit_is_counted_and_data_that_is_not_there_is_an_error) {
    struct nb_plan plan =
        plan_of("{ " TWO_KERNELS ", \"data\": \"minilm_embed\", \"shape\": [\"64x384\", \"64x385\"] }");
    cr_expect_eq(plan.n_cases, 2);
    cr_expect_eq(left_out(&plan, "rows of 384 values"), 2);
    refused((struct request){.blocks = "{ " TWO_KERNELS ",\n\n\"data\": [\"normal\", \"minilm_embd\"] }"},
            "dir/mine.json:4: \"data\":");
    refused((struct request){.blocks = "{ \"data\": \"norml\" }"}, "did you mean normal");
    refused((struct request){.blocks = "{ \"data\": \"offset(x)\" }"}, "offset");
    refused((struct request){.blocks = "{ \"data\": \"no/such.npy\" }"}, "no/such.npy");
    refused((struct request){.blocks = "{}", .axis = "data=norml"}, "--axis data:");
}

Test(plan, absurd_products_cost_an_error_and_no_time) {
    refused((struct request){.blocks = "{},\n{ \"seed\": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],\n\"shape\": "
                                       "\"1:60:+1x1:60:+1\", \"threads\": [1, 2, 3, 4, 5, 6] }"},
            "dir/mine.json:3: this block makes 2.16e+05 cells, more than 200000; its longest list is \"shape\" with "
            "3600 values");
    refused((struct request){.blocks =
                                 "{ " TWO_KERNELS
                                 ", \"shape\": \"1:60:+1x1:60:+1\", \"seed\": \"1\", \"eps\": [0, 1, 2, 3, 4, 5, 6], "
                                 "\"root\": [\"div_sqrt\", \"mul_recip\", \"rsqrt_nr\", \"rsqrt_raw\"] }"},
            "this block makes 2.016e+05 cells with the kernels that it selects, more than");
}

Test(plan, copies_take_part_only_when_named) {
    struct nb_plan plan = plan_of(
        "{ \"shape\": \"4x8\" }, { \"op\": \"all\", \"shape\": \"4x8\" }, { \"kernel\": \"*\", \"shape\": \"4x8\" }");
    cr_expect_gt(plan.n_cases, 5);
    for (size_t i = 0; i < plan.n_cases; i++) cr_expect_neq(plan.cases[i].op, NB_OP_COPY, "%s", plan.keys[i]);
    cr_expect_eq(n_cases_of("{ \"kernel\": \"copy\", \"width\": \"scalar\" }"), 1);
    plan = plan_of("{ \"op\": \"copy\", \"width\": \"scalar\" }");
    cr_expect_geq(plan.n_cases, 2);
    for (size_t i = 0; i < plan.n_cases; i++) cr_expect_eq(plan.cases[i].op, NB_OP_COPY);
}

/* A plugin that chooses its width itself would else meet no preset at all. */
Test(plan, a_list_of_widths_keeps_no_kernel_out_that_chooses_its_own) {
    cr_assert_eq(nb_registry_load(plugin_path("example")), 0);
    cr_expect_eq(n_cases_of("{ \"kernel\": [\"example\", \"rmsnorm_twopass\"], \"width\": \"scalar\" }"), 2);
    cr_expect_eq(n_cases_of("{ \"kernel\": [\"example\", \"rmsnorm_twopass\"], \"width\": \"native\" }"), 1);
    cr_expect_eq(n_cases_of("{ \"width\": \"scalar\", \"op\": \"rmsnorm\", \"kernel\": \"example\", "
                            "\"exclude\": { \"width\": \"scalar\" } }"),
                 1);
}

Test(plan, a_kernel_that_does_not_run_on_the_cpu_is_selected_by_its_backend_alone) {
    cr_assert_eq(nb_registry_load(plugin_path("emulated")), 0);
    struct nb_plan plan = plan_of("{ \"op\": \"rmsnorm\", \"shape\": \"4x8\" }");
    for (size_t i = 0; i < plan.n_cases; i++) cr_expect_eq(plan.cases[i].backend, NB_BACKEND_CPU, "%s", plan.keys[i]);
    cr_expect_eq(left_out(&plan, "kernels of a plugin, which --axis backend=cuda-emulated selects"), 1);
    cr_expect_eq(n_cases_of("{ \"kernel\": \"emulated:*\" }"), 1, "the one for the CPU");
    cr_expect_eq(n_cases_of("{ \"kernel\": \"emulated:*\", \"backend\": \"all\" }"), 1);
    cr_expect_eq(n_cases_of("{ \"kernel\": \"emulated:*\", \"backend\": \"plugin:emulated\" }"), 1);
    cr_expect_eq(n_cases_of("{ \"backend\": \"cuda\" }"), 0);
    plan = plan_of("{ \"backend\": \"cuda-emulated\", \"width\": \"256\" }");
    cr_expect_eq(plan.n_cases, 2);
    for (size_t i = 0; i < plan.n_cases; i++) cr_expect_eq(plan.cases[i].backend, NB_BACKEND_CUDA_EMULATED);
}

Test(plan, a_group_is_of_one_backend_and_an_emulated_one_is_not_timed) {
    cr_assert_eq(nb_registry_load(plugin_path("emulated")), 0);
    struct nb_plan plan =
        plan_of("{ \"kernel\": [\"rmsnorm_rows\", \"rmsnorm_twopass\"], \"backend\": [\"all\", \"cuda-emulated\"] }");
    cr_assert_eq(plan.n_groups, 2);
    for (size_t g = 0; g < 2; g++) {
        const uint32_t backend = plan.cases[plan.groups[g].cases[0]].backend;
        for (size_t i = 1; i < plan.groups[g].n; i++)
            cr_expect_eq(plan.cases[plan.groups[g].cases[i]].backend, backend);
        cr_expect_eq(nb_group_is_timed(&plan, g), backend == NB_BACKEND_CPU);
        cr_expect_eq(plan.groups[g].step_s[NB_STAGE_LAUNCH] > 0, backend == NB_BACKEND_CPU);
    }
}

Test(plan, filters_are_globs_on_the_whole_key_or_parts_of_it) {
    static const struct {
        const char *filter;
        size_t n;
    } wants[] = {{"rmsnorm", 1},       {"norm", 2},        {"layernorm_*", 1},
                 {"*/eps:1e-5/*", 2},  {"shape:4x8", 2},   {"*rmsnorm_*/shape:4x8", 1},
                 {"[lr]*/shape:4", 0}, {"norm*", 0},       {"*norm*", 2},
                 {"[lr]*", 2},         {"shape:2x[4]", 0}, {"", 2}};
    for (size_t i = 0; i < sizeof wants / sizeof wants[0]; i++) {
        struct nb_plan plan = made((struct request){.blocks = "{ " TWO_KERNELS ", \"shape\": \"4x8\" }",
                                                    .options = {.filters = &wants[i].filter, .n_filters = 1}});
        cr_expect_eq(plan.n_cases, wants[i].n, "%s: %zu", wants[i].filter, plan.n_cases);
        cr_expect_eq(left_out(&plan, "--filter"), 2 - wants[i].n);
    }
    const char *const both[] = {"rmsnorm", "layernorm"};
    struct nb_plan plan =
        made((struct request){.blocks = "{ " TWO_KERNELS " }", .options = {.filters = both, .n_filters = 2}});
    cr_expect_eq(plan.n_cases, 2, "any filter may match");
}

Test(plan, every_preset_makes_a_plan) {
    struct nb_strings names released_by(nb_strings_release);
    nb_config_list(&names);
    for (size_t i = 0; i < names.n; i++) {
        const char *name = names.items[i];
        struct nb_config config released_by(nb_config_release);
        struct nb_plan plan released_by(nb_plan_release);
        const struct nb_plan_options options = {0};
        cr_assert_eq(nb_config_read(&config, name), 0, "%s", name);
        cr_expect(config.description && *config.description, "%s has no description", name);
        cr_expect_str_neq(name, "shapes", "shapes.json is no config");
        cr_assert_eq(nb_plan_make(&plan, &config, &options), 0, "%s", name);
        cr_expect_gt(plan.n_cases, 0, "%s", name);
        cr_expect_eq(left_out(&plan, "none has this name"), 0, "%s names a kernel that does not exist", name);
    }
}

/* One place in a cache and one in memory, where LayerNorm and RMSNorm stand side by side; what has none of them is worth little. */
Test(plan, what_answers_first_is_known) {
    struct nb_config config released_by(nb_config_release);
    struct nb_plan plan released_by(nb_plan_release);
    const struct nb_plan_options options = {0};
    size_t answers[2] = {0}, of_worth[3] = {0};
    cr_assert_eq(nb_config_read(&config, "quick"), 0);
    cr_assert_eq(nb_plan_make(&plan, &config, &options), 0);
    for (size_t g = 0; g < plan.n_groups; g++) {
        const struct nb_case *c = &plan.cases[plan.groups[g].cases[0]];
        of_worth[plan.groups[g].worth]++;
        if (plan.groups[g].worth != NB_WORTH_ANSWERS) continue;
        answers[c->cache == NB_COLD]++;
        cr_expect_str_eq(c->shape.text, c->cache == NB_COLD ? "1024x1024" : "64x384");
        cr_expect_eq(c->dtype, NB_F32);
    }
    cr_expect(answers[0] > 0 && answers[1] > 0);
    cr_expect(of_worth[NB_WORTH_LITTLE] > 0 && of_worth[NB_WORTH_COMPARES] > 0);
}
