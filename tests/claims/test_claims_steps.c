// SPDX-License-Identifier: Apache-2.0
/* Steps as lists, in claims: a step of round figures (a product of 8 ms, two calls of LayerNorm of a millisecond each, 12 operations a call;
 * RMSNorm takes half as long, 8 operations), what is found of it and said of it, and what is refused. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "src/claims/claims.h"
#include "src/claims/experiment_step.c"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "tests/support/files.h"
#include "tests/support/plans.h"

TestSuite(claims_steps, .init = load_kernels_quietly, .fini = nb_registry_release);

static const char list[] =
    "{\"title\":\"a step\",\"source\":\"s\",\"work\":\"inference\",\"tokens\":10,\"operations\":["
    "{\"op\":\"product\",\"shape\":\"100x100x100\"},{\"op\":\"norm\",\"shape\":\"10x20\",\"count\":2}]}";

/* more: members of the experiment in place of those of a right one. */
static int read_claim(struct nb_claim *claim, const char *more) {
    static char *dir;
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    if (!dir) put_text(dir = new_folder(), "step.json", list);
    nb_strbuf_addf(
        &text,
        "{\"title\":\"t\",\"statement\":\"s\",\"scope\":\"s\",\"sources\":[{\"cite\":\"c\"}],\"experiments\":{\"step\":{"
        "\"kind\":\"step\",\"model\":\"%s/step.json\",%s}},\"readings\":[{\"id\":\"r\",\"text\":\"t\",\"experiment\":\"step\","
        "\"expect\":[{\"figure\":\"cut\",\"form\":\"at_least\",\"least\":0.1}]}]}",
        dir, more);
    return nb_claim_parse(claim, "steps.json", text.text, text.len);
}

#define RIGHT "\"norms\":\"rmsnorm\",\"styles\":\"composed\""
#define PUBLISHED(cut, gpu)                                                                                            \
    ",\"published\":[{\"row\":\"r\",\"gpu\":\"" gpu "\",\"cut\":" cut ",\"low\":0.1,\"high\":1}]"

struct made {
    struct nb_claim claim;
    struct nb_results results;
    struct nb_rates rates;
    struct nb_claims_measured measured;
    struct asked asked;
};

/* What was measured of the step, as above. */
static void make(struct made *m, const char *more) {
    *m = (struct made){0};
    cr_assert_eq(read_claim(&m->claim, more), 0);
    const struct step_experiment *s = m->claim.experiments[0].own;
    nb_rates_add(&m->rates, &s->model);
    cr_assert_eq(m->rates.n, 1);
    m->rates.products[0].seconds = nb_exactly(0.008);
    m->measured = (struct nb_claims_measured){.rates = &m->rates};
    m->measured.results[NB_PLAN_TIMING] = &m->results;
    struct nb_norm_time *norm = nb_alloc(1, sizeof *norm);
    *norm = (struct nb_norm_time){.rows = 10,
                                  .cols = 20,
                                  .timed_rows = 10,
                                  .pass = NB_FORWARD,
                                  .against_s = nb_exactly(0.001),
                                  .ratio = nb_exactly(0.5),
                                  .of_dispatches = 8,
                                  .against_dispatches = 12};
    m->asked = (struct asked){.s = s, .m = &m->measured, .times = {.pair = s->pairs[0], .items = norm, .n = 1}};
}

static void release(struct made *m) {
    nb_norm_times_release(&m->asked.times);
    nb_rates_release(&m->rates);
    nb_claim_release(&m->claim);
}

static double value_of(const struct nb_findings *f, const char *name, const char *part) {
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->items[i].name, name) == 0 && strcmp(nb_finding_get(&f->items[i], "part"), part) == 0)
            return f->items[i].value.value;
    return (double)NAN;
}

Test(claims_steps, the_parts_of_a_step_follow_from_its_operations) {
    struct made m released_by(release);
    struct nb_findings found released_by(nb_findings_release) = {0};
    make(&m, RIGHT);
    find_parts(&m.asked, &found);
    cr_expect_float_eq(value_of(&found, "seconds", "forward"), 0.010, 1e-9);
    cr_expect_float_eq(value_of(&found, "norm_share", "step"), 0.2, 1e-9);
    cr_expect_float_eq(value_of(&found, "norm_cut", "step"), 0.5, 1e-9);
    cr_expect_float_eq(value_of(&found, "cut", "step"), 0.1, 1e-9, "half of the fifth");
    cr_expect(isnan(value_of(&found, "cut", "backward")), "inference has none");
    cr_expect_str_eq(nb_finding_get(&found.items[0], "style"), "composed");
}

/* A step has 2 x 12 operations of norms and a product, 2 x 4 fewer with RMSNorm. */
Test(claims_steps, a_published_cut_needs_so_much_dispatch) {
    static const struct {
        const char *more;
        double us;
    } cases[] = {{RIGHT PUBLISHED("0.2", "v100"), 1e6 * 0.001 / 3},
                 {RIGHT PUBLISHED("0.1", "v100"), 0},
                 {RIGHT PUBLISHED("0.33", "v100"), MOST_DISPATCH_US}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct made m released_by(release);
        struct nb_findings found released_by(nb_findings_release) = {0};
        make(&m, cases[i].more);
        find_dispatch(&m.asked, &m.asked.s->published[0], NULL, &found);
        cr_expect_float_eq(value_of(&found, "dispatch_needed", "step"), cases[i].us, 1e-3);
        cr_expect_float_eq(value_of(&found, "cut_limit", "step"), 0.32, 1e-9, "8 of 25");
        cr_expect_float_eq(value_of(&found, "dispatch_cut", "step"), 0.1, 1e-9, "the first is without dispatch");
        cr_expect_str_eq(nb_finding_get(&found.items[0], "machine"), "here");
    }
}

Test(claims_steps, what_it_comes_to_is_said) {
    struct made m released_by(release);
    make(&m, RIGHT PUBLISHED("0.33", "v100"));
    cJSON *models = kept_json(cJSON_CreateArray()), *entry = find_entry(models, &m.asked);
    add_row(nb_json_get(entry, "dispatch"), &m.asked, &m.asked.s->published[0]);
    const cJSON *row = nb_json_get(entry, "dispatch")->child;
    const char *said = nb_json_get_string(row, "sentence");
    HAS(said, "step, r: ", "33.0%", "the cut would be 32.0%", "Here the sum gives 10%");
    cr_expect_eq(nb_json_get_interval(row, "needed_here_us").value, MOST_DISPATCH_US);
    cr_expect_eq(find_entry(models, &m.asked), entry, "another claim's step of the same model is this one");
    cr_expect_eq(cJSON_GetArraySize(models), 1);
}

Test(claims_steps, without_times_each_figure_is_missing_and_says_why) {
    struct nb_claim claim released_by(nb_claim_release);
    struct nb_findings found released_by(nb_findings_release) = {0};
    const struct nb_claims_measured nothing = {0};
    cr_assert_eq(read_claim(&claim, RIGHT PUBLISHED("0.2", "v100")), 0);
    nb_experiment_step.find(&claim.experiments[0], &nothing, &found);
    cr_assert_gt(found.n, 0);
    for (size_t i = 0; i < found.n; i++) cr_expect(found.items[i].reason, "%s", found.items[i].name);
}

Test(claims_steps, a_step_that_quick_leaves_out_is_neither_planned_nor_found) {
    struct nb_config configs[NB_N_CLAIMS_PLANS] = {{0}};
    const struct nb_claims_measured nothing = {0};
    struct nb_findings found released_by(nb_findings_release) = {0};
    struct nb_rates rates = {0};
    struct nb_claim claim released_by(nb_claim_release);
    cr_assert_eq(read_claim(&claim, RIGHT ",\"quick\":false"), 0);
    nb_experiment_step.plan(&claim.experiments[0], true, configs);
    nb_experiment_step.rates(&claim.experiments[0], &rates);
    nb_experiment_step.find(&claim.experiments[0], &nothing, &found);
    cr_expect_eq(configs[NB_PLAN_TIMING].n_blocks, 0);
    cr_expect_eq(rates.n, 0);
    cr_expect(found.n > 0 && strstr(found.items[0].reason, "--quick"), "%s", found.n ? found.items[0].reason : "");
    nb_experiment_step.plan(&claim.experiments[0], false, configs);
    cr_expect_gt(configs[NB_PLAN_TIMING].n_blocks, 0);
    nb_config_release(&configs[NB_PLAN_TIMING]);
}

Test(claims_steps, what_is_wrong_in_a_file_is_named) {
    static const char *const cases[][2] = {
        {"\"norms\":\"rmsnrom\",\"styles\":\"fused\"", "\"norms\": 'rmsnrom' is not known; did you mean 'rmsnorm'"},
        {"\"norms\":\"rmsnorm\",\"styles\":\"fuse\"", "\"styles\": 'fuse' is not known; did you mean 'fused'"},
        {"\"norms\":[],\"styles\":\"fused\"", "\"norms\""},
        {"\"norms\":\"rmsnorm\"", "\"styles\""},
        {RIGHT PUBLISHED("0.2", "v10"), "the GPU 'v10' are not known"},
        {RIGHT ",\"published\":{}", "\"published\" is a list"},
        {RIGHT ",\"published\":[{\"row\":\"r\",\"gpu\":\"v100\",\"part\":\"whole\",\"cut\":0,\"low\":0,\"high\":1}]",
         "\"part\" is 'whole'"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nb_claim claim released_by(nb_claim_release);
        expect_refused(read_claim(&claim, cases[i][0]), cases[i][0], cases[i][1]);
    }
}
