// SPDX-License-Identifier: Apache-2.0
/* Figures of training claims from answers made by hand: each comes out as the measurements say, whichever way. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/claims.h"
#include "src/claims/training.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/models/study.h"
#include "tests/support/files.h"
#include "tests/support/runs.h"

TestSuite(claims_training, .init = quiet);

#define WORKLOAD "tiny-transformer"
#define LN "layernorm"
#define RMS "rmsnorm"

static void __attribute__((format(printf, 2, 3))) add(struct nb_torch_results *r, const char *format, ...) {
    char text[4000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cJSON *answer = cJSON_Parse(text);
    cr_assert_not_null(answer, "%s", text);
    nb_torch_results_add(r, answer);
}

#define REQUEST(measure, steps, arms)                                                                                  \
    "{\"request\":{\"measure\":\"" measure "\",\"workload\":\"" WORKLOAD "\",\"round\":%d,\"steps\":" steps            \
    ",\"arms\":[" arms "]},\"status\":\"ok\",\"arms\":["

/* Blocks drift by a factor that both arms share; rms: what a step with RMSNorm takes of one with LayerNorm, in this launch. */
static void add_steps(struct nb_torch_results *r, int round, double rms) {
    const double d = 1 + round;
    add(r,
        REQUEST("steps", "0", "\"" LN "\",\"" RMS "\"") "{\"arm\":\"" LN
                                                        "\",\"step\":[%g,%g],\"forward\":[%g,%g]},{\"arm\":\"" RMS
                                                        "\",\"step\":[%g,%g],\"forward\":[%g,null]}]}",
        round, d, 3 * d, d / 4, d, rms * d, rms * 3 * d, d / 4);
}

static const char steps_text[] =
    "{\"title\":\"t\",\"statement\":\"s\",\"scope\":\"s\",\"sources\":[{\"cite\":\"c\"}],\"experiments\":{\"e\":{"
    "\"kind\":"
    "\"training\",\"workload\":\"" WORKLOAD
    "\",\"measure\":\"steps\",\"arms\":[\"layernorm\",\"rmsnorm\"],\"compare\":{\"of\":{\"norm\":\"rmsnorm\"},\"against\":{\"norm\":\"layernorm\"}}}},\"readings\":[{"
    "\"id\":\"cut\",\"text\":\"t\",\"experiment\":\"e\",\"expect\":[{\"figure\":\"cut\",\"form\":\"between\",\"least\":"
    "0.2,\"most\":0.4,\"where\":{\"part\":\"step\",\"norm\":\"rmsnorm\",\"style\":\"printed\",\"against\":"
    "\"layernorm\"}}]}]}";

/* The verdict of the claim on these answers. f, if given, keeps its findings. */
static enum nb_claim_verdict judged(const char *text, const struct nb_torch_results *r, struct nb_findings *f) {
    struct nb_claim claim released_by(nb_claim_release);
    struct nb_claim_result result = {.claim = &claim};
    cr_assert_eq(nb_claim_parse(&claim, "dir/mine.json", text, strlen(text)), 0);
    const struct nb_experiment *e = &claim.experiments[0];
    struct nb_claims_measured m = {.training = r, .no_training = r ? NULL : "nothing was trained"};
    result.findings = nb_alloc(2, sizeof *result.findings);
    e->kind->find(e, &m, &result.findings[0]);
    struct nb_rulings rulings released_by(nb_rulings_release) = {0};
    char *reason freed = NULL;
    for (size_t i = 0; i < claim.readings[0].n_rules; i++)
        nb_rule_apply(&claim.readings[0].rules[i], &result.findings[0], NULL, NULL, &rulings);
    const enum nb_claim_verdict v = nb_verdict_of(&rulings, &reason);
    if (f)
        *f = result.findings[0];
    else
        nb_findings_release(&result.findings[0]);
    free(result.findings);
    return v;
}

static enum nb_claim_verdict of_launches(int n, double rms, double spread, struct nb_findings *f) {
    struct nb_torch_results r released_by(nb_torch_results_release) = {0};
    for (int i = 0; i < n; i++) add_steps(&r, i, rms * (1 + spread * (i % 2 ? 1 : -1)));
    return judged(steps_text, &r, f);
}

Test(claims_training, a_step_claim_comes_out_as_the_steps_do) {
    struct nb_findings f released_by(nb_findings_release);
    cr_expect_eq(of_launches(8, 0.7, 0, &f), NB_REPRODUCED);
    const struct nb_finding *cut = finding_of(&f, "cut", "part=step");
    cr_expect_float_eq(cut->value.value, 0.3, 1e-9, "drift cancels within blocks");
    cr_expect(cut->n_launches == 8 && strstr(cut->evidence, RMS " against " LN));
    cr_expect_float_eq(finding_of(&f, "time_ratio", "part=step")->value.value, 0.7, 1e-9);
    cr_expect_float_eq(finding_of(&f, "time_ratio", "part=forward")->value.value, 1, 1e-9,
                       "of the blocks that both have");
    cr_expect(isnan(finding_of(&f, "time_ratio", "part=update")->value.value));
    cr_expect_str_eq(nb_finding_get(cut, "tokens"), "256");
    cr_expect_eq(of_launches(8, 0.95, 0, NULL), NB_NOT_REPRODUCED);
    cr_expect_eq(of_launches(8, 1.2, 0.01, NULL), NB_NOT_REPRODUCED);
    cr_expect_eq(of_launches(8, 0.8, 0.2, NULL), NB_UNDECIDED_HERE);
    cr_expect_eq(of_launches(5, 0.7, 0, NULL), NB_UNDECIDED_HERE, "fewer launches than an interval needs");
    cr_expect_eq(judged(steps_text, NULL, NULL), NB_NOT_MEASURED);
}

Test(claims_training, the_section_has_what_an_arm_saves_of_the_same_step_with_layernorm) {
    struct nb_torch_results r released_by(nb_torch_results_release) = {0};
    for (int i = 0; i < 8; i++) add_steps(&r, i, 0.7);
    nb_json_text(r.answers->child, "torch", "2.15.0");
    nb_json_text(r.answers->child, "device", "cpu");
    cJSON *section = kept_json(nb_training_to_json(&r));
    const cJSON *steps = nb_json_get(section, "steps"), *rms = nb_json_find(steps, "arm", RMS);
    cr_expect_str_eq(nb_json_get_text(section, "torch"), "2.15.0");
    cr_expect_str_eq(nb_json_get_text(rms, "against"), LN);
    cr_expect_float_eq(nb_json_get_interval(rms, "cut").value, 0.3, 1e-9);
    cr_expect_null(nb_json_get(nb_json_find(steps, "arm", LN), "cut"));
    const cJSON *readings = kept_json(nb_training_readings(section, "a CPU", "2026-11-27"));
    cr_expect_str_eq(nb_json_get_text(readings, "machine"), "a CPU");
    const cJSON *line = cJSON_GetArrayItem(nb_json_get(readings, "readings"), 0);
    cr_expect_str_eq(nb_json_get_text(line, "style"), "printed");
    cr_expect_float_eq(nb_json_get_number(line, "saves"), 0.3, 1e-9);
    cr_expect_float_eq(nb_json_get_number(line, "rmsnorm_ms"), 0.7 * nb_json_get_number(line, "layernorm_ms"), 1e-6);
    cr_expect(isnan(nb_json_get_number(line, "none_ms")), "no arm without a norm");
}

Test(claims_training, what_was_not_run_says_why) {
    struct nb_torch_results r released_by(nb_torch_results_release) = {0};
    struct nb_findings f released_by(nb_findings_release);
    add(&r, "{\"request\":{\"measure\":\"steps\",\"workload\":\"" WORKLOAD "\",\"round\":0,\"steps\":0,\"arms\":[\"" LN
            "\",\"" RMS "\"]},\"status\":\"crashed\",\"reason\":\"signal 11\"}");
    cr_expect_eq(judged(steps_text, &r, &f), NB_NOT_MEASURED);
    cr_expect_str_eq(finding_of(&f, "cut", "part=step")->reason, "signal 11");
}

/* ---- courses ---- */

static const char course_text[] =
    "{\"title\":\"t\",\"statement\":\"s\",\"scope\":\"s\",\"sources\":[{\"cite\":\"c\"}],\"experiments\":{\"e\":{"
    "\"kind\":"
    "\"training\",\"workload\":\"" WORKLOAD "\",\"measure\":\"course\",\"steps\":10,\"arms\":[\"layernorm\","
    "\"none\"],\"compare\":{\"of\":{\"norm\":\"none\"},\"against\":{\"norm\":\"layernorm\"}}}},"
    "\"readings\":[{\"id\":\"worse\",\"text\":\"t\",\"experiment\":\"e\",\"expect\":[{\"figure\":\"loss_ratio\","
    "\"form\":\"at_least\",\"least\":1.02,\"where\":{\"mode\":\"training\"}}]}]}";

static void add_course(struct nb_torch_results *r, int seed, const char *arm, double loss, double last_layer) {
    add(r,
        "{\"request\":{\"measure\":\"course\",\"workload\":\"" WORKLOAD
        "\",\"round\":%d,\"steps\":10,\"arms\":[\"%s\"]},\"status\":\"ok\",\"arms\":[{\"arm\":\"%s\","
        "\"wanted_steps\":10,\"failed_steps\":2,\"final_loss\":%g,\"unseen_loss\":null,\"recorded_steps\":[0,9],"
        "\"curves\":[{\"place\":\"layer0.a.input\",\"gradient\":false,\"std\":[1,2]},{\"place\":\"layer1.a.input\","
        "\"gradient\":false,\"std\":[0.5,3]},{\"place\":\"layer2.a.input\",\"gradient\":false,\"std\":[%g,null]},"
        "{\"place\":\"layer0.a.input\",\"gradient\":true,\"std\":[8,4]},{\"place\":\"layer1.a.input\","
        "\"gradient\":true,\"std\":[2,4]}]}]}",
        seed, arm, arm, loss, last_layer);
}

static enum nb_claim_verdict of_seeds(int n, double none, struct nb_findings *f) {
    struct nb_torch_results r released_by(nb_torch_results_release) = {0};
    for (int i = 0; i < n; i++) {
        add_course(&r, i, LN, 2 + 0.1 * i, 0.25);
        add_course(&r, i, "none", none * (2 + 0.1 * i), 0.25);
    }
    return judged(course_text, &r, f);
}

Test(claims_training, a_loss_claim_comes_out_as_the_losses_do) {
    struct nb_findings f released_by(nb_findings_release);
    cr_expect_eq(of_seeds(6, 1.1, &f), NB_REPRODUCED);
    cr_expect_float_eq(finding_of(&f, "loss_ratio", "mode=training")->value.value, 1.1, 1e-9, "seeds are paired");
    cr_expect_eq(finding_of(&f, "loss_ratio", "mode=training")->n_launches, 6);
    cr_expect(isnan(finding_of(&f, "loss_ratio", "mode=inference")->value.value));
    cr_expect_float_eq(finding_of(&f, "failed_steps", "norm=none")->value.value, 0.2, 1e-12);
    cr_expect_eq(of_seeds(6, 1.0, NULL), NB_NOT_REPRODUCED);
    cr_expect_eq(of_seeds(5, 1.1, NULL), NB_UNDECIDED_HERE);
}

Test(claims_training, the_mean_over_a_course_is_that_of_all_of_its_steps) {
    cJSON *arm = kept_json(cJSON_Parse("{\"loss\":[3,2,1]}")), *against = kept_json(cJSON_Parse("{\"loss\":[6,5,1]}"));
    cJSON *failed = kept_json(cJSON_Parse("{\"loss\":[3,null,1]}"));
    cr_expect_float_eq(nb_training_mean_of(arm, NULL, "loss"), 2, 1e-12);
    cr_expect_float_eq(nb_training_mean_ratio(arm, against, "loss"), 0.5, 1e-12);
    cr_expect(isnan(nb_training_mean_ratio(failed, against, "loss")), "a step without a loss");
    cr_expect(isnan(nb_training_mean_of(arm, NULL, "losses")));
}

Test(claims_training, layers_become_figures) {
    struct nb_findings f released_by(nb_findings_release);
    int n;
    of_seeds(6, 1, &f);
    const struct nb_finding *last = finding_of(&f, "std_last", "at=start");
    cr_expect_float_eq(last->value.value, 0.25, 1e-9);
    cr_expect_str_eq(nb_finding_get(last, "site"), "a.input");
    cr_expect_float_eq(finding_of(&f, "std_drift", "at=start")->value.value, 4, 1e-9);
    cr_expect_float_eq(finding_of(&f, "std_spread", "at=start")->value.value, 4, 1e-9);
    cr_expect(isnan(finding_of(&f, "std_last", "at=end")->value.value), "no number is no figure");
    cr_expect_float_eq(finding_of(&f, "gradient_first_over_last", "at=start")->value.value, 4, 1e-9);
    cr_expect_float_eq(finding_of(&f, "gradient_spread", "at=end")->value.value, 1, 1e-9);
    struct nb_torch_results r released_by(nb_torch_results_release) = {0};
    add_course(&r, 0, LN, 1, 7);
    const cJSON *arm = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(r.answers->child, "arms"), 0);
    double *layers freed = nb_training_layers(arm, "a.input", false, false, &n);
    cr_assert_eq(n, 3);
    cr_expect(layers[0] == 1 && layers[1] == 0.5 && layers[2] == 7);
    cr_expect_null(nb_training_layers(arm, "a.inp", false, false, &n));
}

Test(claims_training, a_gradient_that_vanished_altogether_is_a_share_of_nothing) {
    struct nb_torch_results r released_by(nb_torch_results_release) = {0};
    struct nb_findings f released_by(nb_findings_release);
    for (int i = 0; i < 6; i++)
        add(&r,
            REQUEST(
                "course", "10",
                "\"" LN
                "\"") "{\"arm\":\"" LN
                      "\",\"wanted_steps\":10,\"failed_steps\":0,\"final_loss\":1,\"unseen_loss\":null,\"recorded_steps\":[0],\"curves\":["
                      "{\"place\":\"layer0.a.input\",\"gradient\":true,\"std\":[0]},{\"place\":\"layer1.a.input\",\"gradient\":true,\"std\":[2]}]}]}",
            i);
    judged(course_text, &r, &f);
    const struct nb_interval first = finding_of(&f, "gradient_first_over_last", "at=start")->value;
    cr_expect(first.value == 0 && first.low == 0 && first.high == 0, "%g [%g, %g]", first.value, first.low, first.high);
}

/* ---- padding, which is a claim's own comparison ---- */

static bool is_padded(const char *arm) { return strstr(arm, " padded") != NULL; }

static cJSON *answer_of(const struct nb_training *t, int arm, int seed, double padded) {
    const double loss = (2 + 0.3 * seed) * (is_padded(t->arms.items[arm]) ? padded : 1);
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_strbuf_addf(
        &text,
        "{\"request\":{\"measure\":\"course\",\"workload\":\"%s\",\"round\":%d,\"steps\":%d,\"arms\":[\"%s\"]},"
        "\"status\":\"ok\",\"arms\":[{\"arm\":\"%s\",\"final_loss\":%g,\"unseen_loss\":%g,\"failed_steps\":0,"
        "\"wanted_steps\":%d}]}",
        t->workload_name, seed, t->steps, t->arms.items[arm], t->arms.items[arm], loss, loss, t->steps);
    cJSON *answer = cJSON_Parse(text.text);
    return answer;
}

/* The claim's reading about learning, where padding multiplies the loss by padded. */
static enum nb_claim_verdict learning_judged(double padded, double noise) {
    static const char *const id = "bn-padding";
    struct nb_claims claims released_by(nb_claims_release);
    struct nb_torch_results results released_by(nb_torch_results_release) = {0};
    struct nb_findings findings released_by(nb_findings_release) = {0};
    struct nb_rulings rulings released_by(nb_rulings_release) = {0};
    char *reason freed = NULL;
    cr_assert_eq(nb_claims_read(&claims, &id, 1), 0);
    const struct nb_reading *r = nb_claim_reading(&claims.items[0], "learning");
    cr_assert_not_null(r);
    const struct nb_training *t = claims.items[0].experiments[r->experiment].own;
    for (int seed = 0; seed < 6; seed++)
        for (size_t a = 0; a < t->arms.n; a++)
            nb_torch_results_add(&results, answer_of(t, (int)a, seed, padded + noise * (seed - 2.5)));
    nb_training_find(t, &results, NULL, &findings);
    for (size_t i = 0; i < r->n_rules; i++) nb_rule_apply(&r->rules[i], &findings, NULL, NULL, &rulings);
    cr_expect_eq(rulings.n, 2, "statistics by feature and by position");
    return nb_verdict_of(&rulings, &reason);
}

Test(claims_training, the_claim_about_padding_comes_out_as_the_losses_do) {
    cr_expect_eq(learning_judged(1.1, 0), NB_REPRODUCED, "seeds differ by more, and are paired");
    cr_expect_eq(learning_judged(1.005, 0), NB_NOT_REPRODUCED);
    cr_expect_eq(learning_judged(0.9, 0), NB_NOT_REPRODUCED);
    cr_expect_eq(learning_judged(1.02, 0.02), NB_UNDECIDED_HERE);
}
