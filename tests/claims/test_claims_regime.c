// SPDX-License-Identifier: Apache-2.0
/* The model of what a dispatch costs, on steps of round figures: LayerNorm takes 10 ms and 1000 operations, of which norms are 2 ms and 300;
 * RMSNorm's norms take 1 ms and 100 operations. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "src/claims/claims.h"
#include "src/claims/claims_document.h"
#include "src/claims/regime.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "tests/support/files.h"
#include "tests/support/plans.h"

TestSuite(claims_regime, .init = load_kernels_quietly, .fini = nb_registry_release);

enum { ROUNDS = 6 };

/* more: members of the experiment. */
static struct nb_claim claim_of(const char *more) {
    struct nb_claim claim;
    char text[1200];
    snprintf(
        text, sizeof text,
        "{\"title\":\"t\",\"statement\":\"s\",\"scope\":\"s\",\"sources\":[{\"cite\":\"c\"}],\"experiments\":{\"step\":{"
        "\"kind\":\"training\",\"workload\":\"convpool\",\"measure\":\"steps\",\"common\":\"batch=2\",\"arms\":["
        "\"layernorm composed\",\"rmsnorm composed\"],\"compare\":{\"of\":{\"norm\":\"rmsnorm\"},\"against\":{\"norm\":"
        "\"layernorm\"}},%s}},\"readings\":[{\"id\":\"r\",\"text\":\"t\",\"experiment\":\"step\",\"expect\":[{\"figure\":\"cut\","
        "\"form\":\"at_least\",\"least\":0.1}]}]}",
        more);
    cr_assert_eq(nb_claim_parse(&claim, "regime.json", text, strlen(text)), 0);
    return claim;
}

static const char layernorm[] = "\"step\":[0.010],\"norm\":[0.002],\"ops\":{\"step\":1000,\"norm\":300,\"update\":100}",
                  rmsnorm[] = "\"step\":[0.009],\"norm\":[0.001],\"ops\":{\"step\":800,\"norm\":100,\"update\":100}";

/* Half of LayerNorm's step are products, of a millisecond on a V100, whose memory is ten times as fast. */
static struct nb_train_results results_of(const struct nb_training *t) {
    struct nb_train_results r = {0};
    for (int round = 0; round < ROUNDS; round++) {
        char text[1200];
        static const char both[] =
            "\"products\":[0.005],\"products_forward\":[0.002],\"update\":[0.001],\"flops\":{\"step\":15.7e9},"
            "\"memory_rate\":90e9,\"call_s\":1e-7";
        snprintf(
            text, sizeof text,
            "{\"request\":{\"measure\":\"steps\",\"workload\":\"convpool\",\"round\":%d,\"steps\":0,\"arms\":[\"%s\",\"%s\"]},"
            "\"status\":\"ok\",\"arms\":[{\"arm\":\"%s\",%s,%s},{\"arm\":\"%s\",%s,%s}]}",
            round, t->arms[0], t->arms[1], t->arms[0], layernorm, both, t->arms[1], rmsnorm, both);
        nb_train_results_add(&r, cJSON_Parse(text));
    }
    return r;
}

static double value_of(const struct nb_findings *f, const char *name, const char *machine) {
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->items[i].name, name) == 0 && strcmp(nb_finding_get(&f->items[i], "machine"), machine) == 0)
            return f->items[i].value.value;
    cr_expect(false, "nothing was found of %s, %s", name, machine);
    return NAN;
}

/* The dispatch that the cut needs, in us. */
static double needed(double cut, const char *machine, const char *more) {
    char text[400];
    snprintf(text, sizeof text, "%s\"published\":[{\"row\":\"r\",\"gpu\":\"v100\",\"cut\":%g,\"low\":0,\"high\":1}]",
             more, cut);
    struct nb_claim claim = claim_of(text);
    const struct nb_training *t = claim.experiments[0].own;
    struct nb_train_results results = results_of(t);
    struct nb_findings found = {0};
    nb_regime_find(t, &results, NULL, &found);
    const double us = value_of(&found, "dispatch_needed", machine);
    nb_findings_release(&found);
    nb_train_results_release(&results);
    nb_claim_release(&claim);
    return us;
}

Test(claims_regime, the_dispatch_follows_from_times_and_counted_operations) {
    cr_expect_float_eq(needed(0.15, "here", ""), 10, 1e-6, "(0.15 10 - 1) ms / (200 - 150)");
    cr_expect_float_eq(needed(0.15, "v100", ""), 2.5, 1e-6, "(0.15 1.5 - 0.1) ms / (200 - 150)");
    cr_expect_eq(needed(0.1, "here", ""), 0, "a millisecond of ten without dispatch");
    cr_expect_eq(needed(0.2, "here", ""), 1000, "the limit of 200 operations of 1000 is not reached");
    cr_expect_eq(needed(0.5, "v100", ""), 1000);
}

/* The passes of 9 ms are made twice, the update of 1 ms once; operations double where they are more steps of time. */
Test(claims_regime, a_step_grows_to_the_size_of_the_source) {
    cr_expect_float_eq(needed(0.15, "here", "\"full_tokens\":128,"), 17, 1e-6, "(0.15 19 - 2) ms / (200 - 150)");
    cr_expect_float_eq(needed(0.15, "here", "\"full_tokens\":128,\"full_steps\":true,"), 850. / 115, 1e-6,
                       "(0.15 19 - 2) ms / (400 - 0.15 1900)");
}

Test(claims_regime, what_it_comes_to_is_said) {
    const double eager_us = 1.5;
    struct nb_claim claim =
        claim_of("\"published\":[{\"row\":\"r\",\"gpu\":\"v100\",\"cut\":0.3,\"low\":0.15,\"high\":1}]");
    struct nb_train_results results = results_of(claim.experiments[0].own);
    struct nb_claim_result result = {.claim = &claim,
                                     .findings = nb_alloc(1, sizeof *result.findings),
                                     .reads = nb_alloc(1, sizeof *result.reads),
                                     .main = NB_NO_READING};
    result.reads[0].reading = &claim.readings[0];
    const struct nb_claims_about about = {
        .started = "2026-11-23T00:00:00Z", .training = &results, .eager_us = {eager_us, eager_us, eager_us}};
    cJSON *document = kept_json(nb_claims_document(&result, 1, &about));
    const cJSON *training = cJSON_GetObjectItemCaseSensitive(document, "training");
    const cJSON *row = cJSON_GetObjectItemCaseSensitive(training, "regime")->child;
    const char *said = nb_json_get_text(row, "sentence");
    cr_expect(strstr(said, "no dispatch is enough for 30.0 %") && strstr(said, "though 15.0 %, the lower end"), "%s",
              said);
    said = nb_json_get_text(cJSON_GetObjectItemCaseSensitive(training, "eager"), "sentence");
    cr_expect(strstr(said, "d = 1.5 us"), "%s", said);
    nb_claim_result_release(&result);
    nb_train_results_release(&results);
    nb_claim_release(&claim);
}
