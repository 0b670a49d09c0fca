// SPDX-License-Identifier: Apache-2.0
/* Figures of training claims from answers made by hand: each comes out as the measurements say, whichever way. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/claims.h"
#include "src/claims/claims_document.h"
#include "src/claims/training.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/train/train_study.c"
#include "tests/support/files.h"

TestSuite(train_results, .init = quiet);

#define WORKLOAD "tiny-transformer"
#define LN "layernorm composed"
#define RMS "rmsnorm composed"

static void add(struct nb_train_results *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct nb_train_results *r, const char *format, ...) {
    char text[4000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cJSON *answer = cJSON_Parse(text);
    cr_assert_not_null(answer, "%s", text);
    nb_train_results_add(r, answer);
}

#define REQUEST(measure, steps, arms)                                                                                  \
    "{\"request\":{\"measure\":\"" measure "\",\"workload\":\"" WORKLOAD "\",\"round\":%d,\"steps\":" steps            \
    ",\"arms\":[" arms "]},\"status\":\"ok\",\"arms\":["

/* Blocks drift by a factor that both arms share; rms: what a step with RMSNorm takes of one with LayerNorm, in this launch. All that is
 * saved is saved in the norms, half of LayerNorm's step, but for `elsewhere` of the step. */
static void add_launch(struct nb_train_results *r, int round, double rms, double elsewhere) {
    const double d = 1 + round;
    add(r,
        REQUEST("steps", "0",
                "\"" LN "\",\"" RMS
                "\"") "{\"arm\":\"" LN "\",\"step\":[%g,%g],\"passes\":[%g,%g],\"forward\":[1,1],\"backward\":[1,1],"
                      "\"norm\":[%g,%g]},{\"arm\":\"" RMS
                      "\",\"step\":[%g,%g],\"passes\":[%g,%g],\"forward\":[1,1],\"backward\":[1,1],\"norm\":[%g,%g]}]}",
        round, d, 3 * d, 2 * d, 2 * d, d / 2, 3 * d / 2, rms * d, rms * 3 * d, 2 * rms * d, 2 * rms * d,
        (rms - 0.5 + elsewhere) * d, (rms - 0.5 + elsewhere) * 3 * d);
}

static const char steps_text[] =
    "{\"title\":\"t\",\"statement\":\"s\",\"scope\":\"s\",\"sources\":[{\"cite\":\"c\"}],\"experiments\":{\"e\":{"
    "\"kind\":"
    "\"training\",\"workload\":\"" WORKLOAD "\",\"measure\":\"steps\",\"arms\":[\"layernorm\",\"rmsnorm\"],\"common\":"
    "\"composed\",\"compare\":{\"of\":{\"norm\":\"rmsnorm\"},\"against\":{\"norm\":\"layernorm\"}}}},\"readings\":[{"
    "\"id\":\"cut\",\"text\":\"t\",\"experiment\":\"e\",\"expect\":[{\"figure\":\"cut\",\"form\":\"between\",\"least\":"
    "0.2,\"most\":0.4,\"where\":{\"part\":\"step\",\"norm\":\"rmsnorm\",\"style\":\"composed\",\"against\":"
    "\"layernorm\"}}]}]}";

static const struct nb_finding *found(const struct nb_findings *f, const char *name, const char *axis,
                                      const char *tag) {
    for (size_t i = 0; i < f->n; i++) {
        const char *value = nb_finding_get(&f->items[i], axis);
        if (strcmp(f->items[i].name, name) == 0 && value && strcmp(value, tag) == 0) return &f->items[i];
    }
    cr_assert(false, "no %s with %s %s", name, axis, tag);
    return NULL;
}

/* The verdict of the claim on these answers. f, if given, keeps its findings. */
static enum nb_claim_verdict judged(const char *text, const struct nb_train_results *r, struct nb_findings *f) {
    struct nb_claim claim;
    struct nb_claim_result result = {.claim = &claim};
    cr_assert_eq(nb_claim_parse(&claim, "dir/mine.json", text, strlen(text)), 0);
    const struct nb_experiment *e = &claim.experiments[0];
    struct nb_claims_measured m = {.training = r, .no_training = r ? NULL : "nothing was trained"};
    result.findings = nb_alloc(2, sizeof *result.findings);
    e->kind->find(e, &m, &result.findings[0]);
    struct nb_rulings rulings = {0};
    char *reason;
    for (size_t i = 0; i < claim.readings[0].n_rules; i++)
        nb_rule_apply(&claim.readings[0].rules[i], &result.findings[0], NULL, NULL, &rulings);
    const enum nb_claim_verdict v = nb_verdict_of(&rulings, &reason);
    free(reason);
    nb_rulings_release(&rulings);
    if (f)
        *f = result.findings[0];
    else
        nb_findings_release(&result.findings[0]);
    free(result.findings);
    nb_claim_release(&claim);
    return v;
}

static enum nb_claim_verdict of_launches(int n, double rms, double spread, struct nb_findings *f) {
    struct nb_train_results r = {0};
    for (int i = 0; i < n; i++) add_launch(&r, i, rms * (1 + spread * (i % 2 ? 1 : -1)), 0);
    const enum nb_claim_verdict v = judged(steps_text, &r, f);
    nb_train_results_release(&r);
    return v;
}

Test(train_results, a_step_claim_comes_out_as_the_steps_do) {
    struct nb_findings f;
    cr_expect_eq(of_launches(8, 0.7, 0, &f), NB_REPRODUCED);
    const struct nb_finding *cut = found(&f, "cut", "part", "step");
    cr_expect_float_eq(cut->value.value, 0.3, 1e-9, "drift cancels within blocks");
    cr_expect(cut->n_launches == 8 && strstr(cut->evidence, RMS " against " LN));
    cr_expect_float_eq(found(&f, "time_ratio", "part", "passes")->value.value, 0.7, 1e-9);
    cr_expect_float_eq(found(&f, "norm_share", "part", "step")->value.value, 0.5, 1e-9);
    cr_expect_float_eq(found(&f, "elsewhere", "part", "step")->value.value, 0, 1e-9);
    cr_expect_str_eq(nb_finding_get(cut, "tokens"), "256");
    nb_findings_release(&f);
    cr_expect_eq(of_launches(8, 0.95, 0, NULL), NB_NOT_REPRODUCED);
    cr_expect_eq(of_launches(8, 1.2, 0.01, NULL), NB_NOT_REPRODUCED);
    cr_expect_eq(of_launches(8, 0.8, 0.2, NULL), NB_UNDECIDED_HERE);
    cr_expect_eq(of_launches(5, 0.7, 0, NULL), NB_UNDECIDED_HERE, "fewer launches than an interval needs");
    cr_expect_eq(judged(steps_text, NULL, NULL), NB_NOT_MEASURED);
}

Test(train_results, what_is_saved_elsewhere_is_no_cut) {
    struct nb_train_results r = {0};
    struct nb_findings f;
    for (int i = 0; i < 8; i++) add_launch(&r, i, 0.7, 0.25); /* a step is 30 % faster, its norms save 5 % of it */
    cr_expect_eq(judged(steps_text, &r, &f), NB_NOT_REPRODUCED);
    cr_expect_float_eq(found(&f, "cut", "part", "step")->value.value, 0.05, 1e-9);
    cr_expect_float_eq(found(&f, "elsewhere", "part", "step")->value.value, 0.25, 1e-9);
    cr_expect_float_eq(found(&f, "time_ratio", "part", "step")->value.value, 0.7, 1e-9);
    nb_findings_release(&f);
    nb_train_results_release(&r);
}

/* ---- courses ---- */

static const char course_text[] =
    "{\"title\":\"t\",\"statement\":\"s\",\"scope\":\"s\",\"sources\":[{\"cite\":\"c\"}],\"experiments\":{\"e\":{"
    "\"kind\":"
    "\"training\",\"workload\":\"" WORKLOAD "\",\"measure\":\"course\",\"steps\":10,\"arms\":[\"layernorm composed\","
    "\"none\"],\"compare\":{\"of\":{\"norm\":\"none\"},\"against\":{\"norm\":\"layernorm\"}}}},\"readings\":[{\"id\":"
    "\"worse\",\"text\":\"t\",\"experiment\":\"e\",\"expect\":[{\"figure\":\"loss_ratio\",\"form\":\"at_least\","
    "\"least\":"
    "1.02,\"where\":{\"mode\":\"training\"}}]}]}";

static void add_course(struct nb_train_results *r, int seed, const char *arm, double loss, double last_layer) {
    add(r,
        "{\"request\":{\"measure\":\"course\",\"workload\":\"" WORKLOAD
        "\",\"round\":%d,\"steps\":10,\"arms\":[\"%s\"]},\"status\":\"ok\",\"arms\":[{\"arm\":\"%s\",\"wanted_steps\":"
        "10,"
        "\"failed_steps\":2,\"final_loss\":%g,\"unseen_loss\":null,\"recorded_steps\":[0,9],\"curves\":[{\"place\":"
        "\"layer0.a.input\",\"gradient\":false,\"std\":[1,2]},{\"place\":\"layer1.a.input\",\"gradient\":false,\"std\":"
        "["
        "0.5,3]},{\"place\":\"layer2.a.input\",\"gradient\":false,\"std\":[%g,null]},{\"place\":\"layer0.a.input\","
        "\"gradient\":true,\"std\":[8,4]},{\"place\":\"layer1.a.input\",\"gradient\":true,\"std\":[2,4]}]}]}",
        seed, arm, arm, loss, last_layer);
}

static enum nb_claim_verdict of_seeds(int n, double none, struct nb_findings *f) {
    struct nb_train_results r = {0};
    for (int i = 0; i < n; i++) {
        add_course(&r, i, LN, 2 + 0.1 * i, 0.25);
        add_course(&r, i, "none", none * (2 + 0.1 * i), 0.25);
    }
    const enum nb_claim_verdict v = judged(course_text, &r, f);
    nb_train_results_release(&r);
    return v;
}

Test(train_results, a_loss_claim_comes_out_as_the_losses_do) {
    struct nb_findings f;
    cr_expect_eq(of_seeds(6, 1.1, &f), NB_REPRODUCED);
    cr_expect_float_eq(found(&f, "loss_ratio", "mode", "training")->value.value, 1.1, 1e-9, "seeds are paired");
    cr_expect_eq(found(&f, "loss_ratio", "mode", "training")->n_launches, 6);
    cr_expect(isnan(found(&f, "loss_ratio", "mode", "inference")->value.value));
    cr_expect_float_eq(found(&f, "failed_steps", "norm", "none")->value.value, 0.2, 1e-12);
    nb_findings_release(&f);
    cr_expect_eq(of_seeds(6, 1.0, NULL), NB_NOT_REPRODUCED);
    cr_expect_eq(of_seeds(5, 1.1, NULL), NB_UNDECIDED_HERE);
}

Test(train_results, the_mean_over_a_course_is_that_of_all_of_its_steps) {
    cJSON *arm = kept_json(cJSON_Parse("{\"loss\":[3,2,1]}")), *against = kept_json(cJSON_Parse("{\"loss\":[6,5,1]}"));
    cJSON *failed = kept_json(cJSON_Parse("{\"loss\":[3,null,1]}"));
    cr_expect_float_eq(nb_training_mean_of(arm, NULL, "loss"), 2, 1e-12);
    cr_expect_float_eq(nb_training_mean_ratio(arm, against, "loss"), 0.5, 1e-12);
    cr_expect(isnan(nb_training_mean_ratio(failed, against, "loss")), "a step without a loss");
    cr_expect(isnan(nb_training_mean_of(arm, NULL, "losses")));
}

Test(train_results, layers_become_figures) {
    struct nb_findings f;
    int n;
    of_seeds(6, 1, &f);
    const struct nb_finding *last = found(&f, "std_last", "at", "start");
    cr_expect_float_eq(last->value.value, 0.25, 1e-9);
    cr_expect_str_eq(nb_finding_get(last, "site"), "a.input");
    cr_expect_float_eq(found(&f, "std_drift", "at", "start")->value.value, 4, 1e-9);
    cr_expect_float_eq(found(&f, "std_spread", "at", "start")->value.value, 4, 1e-9);
    cr_expect(isnan(found(&f, "std_last", "at", "end")->value.value), "no number is no figure");
    cr_expect_float_eq(found(&f, "gradient_first_over_last", "at", "start")->value.value, 4, 1e-9);
    cr_expect_float_eq(found(&f, "gradient_spread", "at", "end")->value.value, 1, 1e-9);
    nb_findings_release(&f);
    struct nb_train_results r = {0};
    add_course(&r, 0, LN, 1, 7);
    const cJSON *arm = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(r.answers->child, "arms"), 0);
    double *layers = nb_training_layers(arm, "a.input", false, false, &n);
    cr_assert_eq(n, 3);
    cr_expect(layers[0] == 1 && layers[1] == 0.5 && layers[2] == 7);
    free(layers);
    cr_expect_null(nb_training_layers(arm, "a.inp", false, false, &n));
    nb_train_results_release(&r);
}

Test(train_results, a_gradient_that_vanished_altogether_is_a_share_of_nothing) {
    struct nb_train_results r = {0};
    struct nb_findings f;
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
    const struct nb_interval first = found(&f, "gradient_first_over_last", "at", "start")->value;
    cr_expect(first.value == 0 && first.low == 0 && first.high == 0, "%g [%g, %g]", first.value, first.low, first.high);
    nb_findings_release(&f);
    nb_train_results_release(&r);
}

/* ---- plan, journal ---- */

Test(train_results, arms_that_two_claims_need_are_trained_once) {
    struct nb_train_plan p = {0};
    const struct nb_workload *w = nb_workload_find(WORKLOAD), *other = nb_workload_find("minimind2-small");
    nb_train_plan_add(&p, NB_TRAIN_STEPS, w, 0, 0, LN);
    nb_train_plan_add(&p, NB_TRAIN_STEPS, w, 77, 0, RMS);
    nb_train_plan_add(&p, NB_TRAIN_STEPS, w, 0, 0, LN);
    nb_train_plan_add(&p, NB_TRAIN_COURSE, w, 10, 0, LN);
    nb_train_plan_add(&p, NB_TRAIN_COURSE, w, 20, 12, LN);
    nb_train_plan_add(&p, NB_TRAIN_COURSE, w, 20, 0, RMS);
    nb_train_plan_add(&p, NB_TRAIN_COURSE, w, 20, 8, LN);
    nb_train_plan_add(&p, NB_TRAIN_MEMORY, other, 0, 0, LN);
    cr_assert_eq(p.n, 4);
    cr_expect(p.groups[0].n_arms == 2 && group_jobs(&p.groups[0]) == 1);
    cr_expect(p.groups[2].n_arms == 2 && group_jobs(&p.groups[2]) == 2);
    cr_expect_eq(job_rounds(&p.groups[2], 0, 6), 12, "who asks for most");
    cr_expect_eq(job_rounds(&p.groups[2], 0, 20), 20);
    cr_expect_eq(job_rounds(&p.groups[2], 1, 6), 6, "of the other arm nobody asked for more");
    cr_expect_eq(job_rounds(&p.groups[0], 0, 8), 8);
    nb_train_plan_usual_seeds(&p);
    cr_expect_eq(job_rounds(&p.groups[2], 0, 6), 6);
    cJSON *one = kept_json(train_request(&p.groups[2], 3, 1)), *same = kept_json(train_request(&p.groups[2], 3, 1)),
          *next = kept_json(train_request(&p.groups[2], 4, 1));
    cr_expect(cJSON_Compare(one, same, true) && !cJSON_Compare(one, next, true));
    const double both = job_flops(&p.groups[0], 0), single = job_flops(&p.groups[1], 0);
    cr_expect_float_eq(both, 2 * single, 1e-6 * both);
    nb_train_plan_release(&p);
}

Test(train_results, answers_are_read_back_and_a_torn_one_is_not) {
    struct nb_train_results r = {0}, back = {0};
    char *dir = new_folder();
    add_launch(&r, 0, 0.5, 0);
    add_launch(&r, 1, 0.5, 0);
    struct nb_journal journal;
    cr_assert_eq(nb_journal_create(&journal, dir), 0);
    cJSON *run = kept_json(cJSON_CreateObject());
    nb_json_text(run, "type", "run");
    nb_json_text(run, "schema", NB_SCHEMA_VERSION);
    cr_assert_eq(nb_journal_write(&journal, run), 0);
    cr_assert_eq(append(&journal, r.answers->child), 0);
    cr_assert_eq(append(&journal, r.answers->child->next), 0);
    nb_journal_close(&journal);
    char *text = get_file(dir, NB_JOURNAL_FILE);
    put_file(dir, NB_JOURNAL_FILE, text, strlen(text) - 20);
    cr_assert_eq(nb_journal_append_to(&journal, dir), 0);
    cr_assert_eq(append(&journal, r.answers->child->next), 0, "behind the torn line");
    nb_journal_close(&journal);
    cr_assert_eq(nb_journal_read(dir, take_answer, &back), 0);
    cr_expect_eq(cJSON_GetArraySize(back.answers), 2);
    const cJSON *request = cJSON_GetObjectItemCaseSensitive(r.answers->child->next, "request");
    cr_expect(results_find(&back, request) &&
              cJSON_Compare(results_find(&back, request), r.answers->child->next, true));
    nb_train_results_release(&r);
    nb_train_results_release(&back);
}

/* ---- which groups of training jobs fit, and what comes in again when the others took less than was thought ---- */

/* 40, 30 and 100 s: four jobs of 10 s, six on two seats, ten. */
static struct train_budget budget_of(struct train_share shares[3]) {
    shares[0] = (struct train_share){.job_s = 10, .n_left = 4, .n_seats = 1};
    shares[1] = (struct train_share){.job_s = 10, .n_left = 6, .n_seats = 2};
    shares[2] = (struct train_share){.job_s = 10, .n_left = 10, .n_seats = 1};
    return (struct train_budget){shares, 3, false};
}

Test(train_budget, the_most_expensive_is_left_out_until_the_others_fit) {
    struct train_share s[3];
    struct train_budget b = budget_of(s);
    cr_expect_float_eq(budget_cost(&b), 170, 1e-9);
    budget_fit(&b, 170, 0);
    cr_expect(!s[0].dropped && !s[1].dropped && !s[2].dropped);
    budget_fit(&b, 169, 1);
    cr_expect(!s[0].dropped && !s[1].dropped && s[2].dropped);
    cr_expect_eq(s[2].dropped_at, 1);
    budget_fit(&b, 30, 2);
    cr_expect(s[0].dropped && !s[1].dropped);
    cr_expect_eq(s[0].dropped_at, 2);
    cr_expect_float_eq(budget_cost(&b), 30, 1e-9);
    cr_expect_float_eq(budget_wanted(&b, 20), 120, 1e-9, "140 s are out, 20 are left");
}

Test(train_budget, what_stays_is_left_out_last_or_never) {
    struct train_share s[3];
    struct train_budget b = budget_of(s);
    s[2].stays = true;
    budget_fit(&b, 169, 0);
    cr_expect(s[0].dropped && !s[1].dropped && !s[2].dropped, "40 s go in place of the 100 s that stay");
    budget_fit(&b, 120, 1);
    cr_expect(s[1].dropped && !s[2].dropped);
    b.may_overrun = true;
    budget_fit(&b, 10, 2);
    cr_expect_not(s[2].dropped, "it takes 100 s of 10");
    b.may_overrun = false;
    budget_fit(&b, 10, 3);
    cr_expect(s[2].dropped, "10 s were asked for");
}

Test(train_budget, what_took_less_than_guessed_makes_room) {
    struct train_share s[3];
    struct train_budget b = budget_of(s);
    share_settle(&s[2], 2);
    cr_expect_float_eq(share_cost(&s[2]), 18, 1e-9, "nine more as long as the first");
    share_settle(&s[2], 4);
    cr_expect_float_eq(share_cost(&s[2]), 24, 1e-9, "the mean of both");
    budget_fit(&b, 94, 0);
    cr_expect(!s[0].dropped && !s[1].dropped && !s[2].dropped);
}

Test(train_budget, what_is_out_comes_in_once_when_it_fits) {
    struct train_share s[3];
    struct train_budget b = budget_of(s);
    budget_fit(&b, 35, 0);
    cr_expect(s[0].dropped && s[2].dropped);
    s[1].n_left = 0;
    cr_expect_not(budget_readmit(&b, 39));
    cr_expect(budget_readmit(&b, 40), "the cheapest");
    cr_expect(!s[0].dropped && s[2].dropped);
    s[0].job_s = 50; /* and is longer than thought */
    budget_fit(&b, 40, 3);
    cr_expect(s[0].dropped);
    cr_expect_not(budget_readmit(&b, 99), "not again, and the other does not fit");
    cr_expect(budget_readmit(&b, 100));
    cr_expect_not(s[2].dropped);
    cr_expect_not(budget_readmit(&b, 1000));
    budget_fit(&b, 0, 4);
    cr_expect_geq(budget_wanted(&b, 1e9), 1);
}
