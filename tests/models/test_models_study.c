// SPDX-License-Identifier: Apache-2.0
/* What PyTorch is asked, each once; answers that are read back; and what fits into the time allowed. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "src/core/log.h"
#include "src/models/study.c"
#include "tests/support/files.h"

TestSuite(models_study, .init = quiet);

#define LN "layernorm"
#define RMS "rmsnorm"

static struct nb_torch_plan small_plan(void) {
    struct nb_torch_plan p = {0};
    const struct nb_model_workload *w = nb_model_workload_find("tiny-transformer"),
                                   *other = nb_model_workload_find("tiny-convpool");
    nb_torch_plan_add(&p, NB_TORCH_STEPS, w, 0, 0, LN);
    nb_torch_plan_add(&p, NB_TORCH_STEPS, w, 77, 0, RMS);
    nb_torch_plan_add(&p, NB_TORCH_STEPS, w, 0, 0, LN);
    nb_torch_plan_add(&p, NB_TORCH_COURSE, w, 10, 0, LN);
    nb_torch_plan_add(&p, NB_TORCH_COURSE, w, 20, 12, LN);
    nb_torch_plan_add(&p, NB_TORCH_COURSE, w, 20, 0, RMS);
    nb_torch_plan_add(&p, NB_TORCH_COURSE, w, 20, 8, LN);
    nb_torch_plan_add(&p, NB_TORCH_MEMORY, other, 0, 0, LN);
    return p;
}

Test(models_study, arms_that_two_claims_need_are_asked_for_once) {
    struct nb_torch_plan p = small_plan();
    cr_assert_eq(p.n, 4);
    cr_expect_eq(p.groups[0].n_arms, 2);
    cr_expect_eq(p.groups[2].n_arms, 2);
    cr_expect_eq(arm_rounds(&p.groups[2], 0, 6), 12, "who asks for most");
    cr_expect_eq(arm_rounds(&p.groups[2], 0, 20), 20);
    cr_expect_eq(arm_rounds(&p.groups[2], 1, 6), 6, "of the other arm nobody asked for more");
    cr_expect_eq(arm_rounds(&p.groups[0], 0, 8), 8);
    nb_torch_plan_usual_seeds(&p);
    cr_expect_eq(arm_rounds(&p.groups[2], 0, 6), 6);
    nb_torch_plan_release(&p);
}

static void init_party(struct party *p, struct nb_torch_study *study, struct nb_torch_results *r) {
    *p = (struct party){.study = study, .results = r, .n_cpus = 2, .n_seats = 2, .kernels = kept(nb_strdup("/k.so"))};
    p->budget.n = study->plan->n;
    p->budget.shares = nb_alloc((unsigned)study->plan->n, sizeof *p->budget.shares);
    for (int g = 0; g < p->budget.n; g++) guess(p, g);
}

/* An answer of a round's arms, as one that has been read back. */
static cJSON *answer_to(const struct party *p, const struct job *j, const char *status) {
    cJSON *answer = cJSON_CreateObject(), *arms = cJSON_AddArrayToObject(answer, "arms");
    cJSON_AddItemToObject(answer, "request", request_of(p, j));
    nb_json_text(answer, "status", status);
    nb_json_number(answer, "elapsed_s", 1);
    for (int a = 0; a < j->n_arms; a++)
        nb_json_text(nb_json_add_object(arms), "arm", group_at(p, j->group)->arms[j->arms[a]]);
    return answer;
}

Test(models_study, a_round_asks_for_what_has_not_been_answered) {
    struct nb_torch_plan plan = small_plan();
    struct nb_torch_results r = {0};
    struct nb_torch_study study = {.plan = &plan, .device = "cpu", .rounds = {8, 8, 6, 6}, .launch_s = 4};
    struct party p;
    int due[2];
    init_party(&p, &study, &r);
    cr_expect_eq(p.budget.shares[0].n_left, 8, "steps: a launch of all arms");
    cr_expect_eq(p.budget.shares[2].n_left, 12 + 6, "a training: each arm and seed");
    add_jobs(&p, 2, 0);
    cr_assert_eq(p.n_jobs, 2, "side by side");
    nb_torch_results_add(&r, answer_to(&p, &p.jobs[0], "ok"));
    cr_assert_eq(arms_due(&p, 2, 0, due), 1);
    cr_expect_eq(due[0], 1);
    cr_expect_eq(arms_due(&p, 2, 7, due), 1, "the other arm has six seeds");
    cr_expect_eq(arms_due(&p, 2, 12, due), 0);
    cJSON *message = kept_json(message_of(&p, &p.jobs[1]));
    cr_expect_str_eq(nb_json_get_text(message, "seed"), "1");
    cr_expect_str_eq(nb_json_get_text(message, "kernels"), "/k.so");
    cr_expect_str_eq(nb_json_get_text(cJSON_GetArrayItem(nb_json_get(message, "arms"), 0), "norm"), "rmsnorm");
    const double cpu_s = p.budget.shares[0].job_s;
    study.device = "cuda";
    cr_expect(is_alone(&p, 2), "a GPU is one");
    p.budget.shares[0] = (struct share){0};
    guess(&p, 0);
    cr_expect_geq(p.budget.shares[0].job_s, cpu_s, "a launch is as long there, on one seat");
    study.launch_s = 0;
    p.budget.shares[0] = p.budget.shares[3] = (struct share){0};
    guess(&p, 0);
    cr_expect_lt(p.budget.shares[0].job_s, cpu_s, "and its steps are shorter");
}

Test(models_study, time_grows_with_what_is_asked) {
    struct nb_torch_plan one = {0}, two = {0};
    const struct nb_model_workload *w = nb_model_workload_find("tiny-transformer");
    nb_torch_plan_add(&one, NB_TORCH_COURSE, w, 300, 0, LN);
    nb_torch_plan_add(&two, NB_TORCH_COURSE, w, 300, 12, LN " layers=12");
    const double a = nb_torch_plan_s(&one), b = nb_torch_plan_s(&two);
    cr_expect(a > 6 * 300 * w->step_s && b > 4 * a, "%g %g", a, b);
    nb_torch_plan_release(&one);
    nb_torch_plan_release(&two);
}

Test(models_study, answers_are_read_back_and_a_torn_one_is_not) {
    struct nb_torch_plan plan = small_plan();
    struct nb_torch_results r = {0}, back = {0};
    struct nb_torch_study study = {.plan = &plan, .device = "cpu", .rounds = {8, 8, 6, 6}};
    struct party p;
    struct nb_journal journal;
    int arms[] = {0, 1};
    const struct nb_torch_question q = {NB_TORCH_STEPS, "tiny-transformer", 0};
    char *dir = new_folder();
    init_party(&p, &study, &r);
    for (int i = 0; i < 2; i++)
        nb_torch_results_add(&r, answer_to(&p, &(struct job){.group = 0, .round = i, .arms = arms, .n_arms = 2}, "ok"));
    cr_assert_eq(nb_journal_create(&journal, dir), 0);
    cJSON *run = kept_json(cJSON_CreateObject());
    nb_json_text(run, "type", "run");
    nb_json_text(run, "schema", NB_SCHEMA_VERSION);
    cr_assert_eq(nb_journal_write(&journal, run), 0);
    cr_assert_eq(nb_journal_write_answer(&journal, r.answers->child), 0);
    cr_assert_eq(nb_journal_write_answer(&journal, r.answers->child->next), 0);
    nb_journal_close(&journal);
    char *text = get_file(dir, NB_JOURNAL_FILE);
    put_file(dir, NB_JOURNAL_FILE, text, strlen(text) - 20);
    cr_assert_eq(nb_journal_append_to(&journal, dir), 0);
    cr_assert_eq(nb_journal_write_answer(&journal, r.answers->child->next), 0, "behind the torn line");
    nb_journal_close(&journal);
    cr_assert_eq(nb_journal_read(dir, take_answer, &back), 0);
    cr_expect_eq(cJSON_GetArraySize(back.answers), 2);
    cr_expect(cJSON_Compare(answer_in(&back, &q, RMS, 1), r.answers->child->next, true));
    cr_expect_null(answer_in(&back, &q, RMS, 2));
    nb_torch_results_release(&r);
    nb_torch_results_release(&back);
}

/* ---- which groups fit, and what comes in again when the others took less than was thought ---- */

/* 40, 30 and 100 s: four jobs of 10 s, six on two seats, ten. */
static struct budget budget_of(struct share shares[3]) {
    shares[0] = (struct share){.job_s = 10, .n_left = 4, .n_seats = 1};
    shares[1] = (struct share){.job_s = 10, .n_left = 6, .n_seats = 2};
    shares[2] = (struct share){.job_s = 10, .n_left = 10, .n_seats = 1};
    return (struct budget){shares, 3};
}

Test(models_study, the_most_expensive_is_left_out_until_the_others_fit) {
    struct share s[3];
    struct budget b = budget_of(s);
    cr_expect_float_eq(budget_cost(&b), 170, 1e-9);
    budget_fit(&b, 170, 0);
    cr_expect(!s[0].dropped && !s[1].dropped && !s[2].dropped);
    budget_fit(&b, 169, 1);
    cr_expect(!s[0].dropped && !s[1].dropped && s[2].dropped);
    cr_expect_eq(s[2].dropped_at, 1);
    budget_fit(&b, 30, 2);
    cr_expect(s[0].dropped && !s[1].dropped);
    cr_expect_float_eq(budget_wanted(&b, 20), 120, 1e-9, "140 s are out, 20 are left");
}

Test(models_study, what_took_less_than_guessed_makes_room) {
    struct share s[3];
    struct budget b = budget_of(s);
    share_settle(&s[2], 2, 1);
    cr_expect_float_eq(share_cost(&s[2]), 18, 1e-9, "nine more as long as the first");
    share_settle(&s[2], 10, 2);
    cr_expect_float_eq(share_cost(&s[2]), 28, 1e-9, "the mean of three");
    budget_fit(&b, 98, 0);
    cr_expect(!s[0].dropped && !s[1].dropped && !s[2].dropped);
}

Test(models_study, what_is_out_comes_in_once_when_it_fits) {
    struct share s[3];
    struct budget b = budget_of(s);
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
    cr_expect_not(budget_readmit(&b, 1000));
    budget_fit(&b, 0, 4);
    cr_expect_geq(budget_wanted(&b, 1e9), 1);
}
