// SPDX-License-Identifier: Apache-2.0
/* What PyTorch is asked, each once; answers that are read back; and what fits into the time allowed. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "src/core/log.h"
#include "src/models/study.c"
#include "tests/support/files.h"
#include "tests/support/played_time.h"

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
    struct nb_torch_plan p released_by(nb_torch_plan_release) = small_plan();
    cr_assert_eq(p.n, 4);
    cr_expect_eq(p.groups[0].n_arms, 2);
    cr_expect_eq(p.groups[2].n_arms, 2);
    cr_expect_eq(arm_rounds(&p.groups[2], 0, 6), 12, "who asks for most");
    cr_expect_eq(arm_rounds(&p.groups[2], 0, 20), 20);
    cr_expect_eq(arm_rounds(&p.groups[2], 1, 6), 6, "of the other arm nobody asked for more");
    cr_expect_eq(arm_rounds(&p.groups[0], 0, 8), 8);
    nb_torch_plan_usual_seeds(&p);
    cr_expect_eq(arm_rounds(&p.groups[2], 0, 6), 6);
}

static const struct nb_torch_study on_cpu = {.device = "cpu", .rounds = {8, 8, 6, 6}, .launch_s = 4};

/* A party of which nothing is answered yet. */
struct asked {
    struct nb_torch_plan plan;
    struct nb_torch_study study;
    struct nb_torch_results results;
    struct party p;
};

static void begin(struct asked *a, struct nb_torch_plan plan, struct nb_torch_study study) {
    *a = (struct asked){.plan = plan, .study = study};
    a->study.plan = &a->plan;
    a->p = (struct party){.study = &a->study, .results = &a->results, .n_cpus = 2, .n_seats = 2};
    a->p.kernels = kept(nb_strdup("/k.so"));
    a->p.budget.n = plan.n;
    a->p.budget.shares = nb_alloc((unsigned)plan.n, sizeof *a->p.budget.shares);
    for (int g = 0; g < plan.n; g++) guess(&a->p, g);
}

static void asked_release(struct asked *a) {
    for (int j = 0; j < a->p.n_jobs; j++) free(a->p.jobs[j].arms);
    nb_free_all(a->p.jobs, a->p.budget.shares);
    nb_torch_plan_release(&a->plan);
    nb_torch_results_release(&a->results);
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
    struct asked a released_by(asked_release);
    struct party *p = &a.p;
    int due[2];
    begin(&a, small_plan(), on_cpu);
    cr_expect_eq(p->budget.shares[0].n_left, 8, "steps: a launch of all arms");
    cr_expect_eq(p->budget.shares[2].n_left, 12 + 6, "a training: each arm and seed");
    add_jobs(p, 2);
    cr_assert_eq(p->n_jobs, 2, "side by side");
    nb_torch_results_add(&a.results, answer_to(p, &p->jobs[0], "ok"));
    cr_assert_eq(arms_due(p, 2, 0, due), 1);
    cr_expect_eq(due[0], 1);
    cr_expect_eq(arms_due(p, 2, 7, due), 1, "the other arm has six seeds");
    cr_expect_eq(arms_due(p, 2, 12, due), 0);
    cJSON *message = kept_json(message_of(p, &p->jobs[1]));
    cr_expect_str_eq(nb_json_get_text(message, "seed"), "1");
    cr_expect_str_eq(nb_json_get_text(message, "kernels"), "/k.so");
    cr_expect_str_eq(nb_json_get_text(cJSON_GetArrayItem(nb_json_get(message, "arms"), 0), "norm"), "rmsnorm");
    a.study.device = "cuda";
    cr_expect(is_alone(p, 2), "a GPU is one");
}

Test(models_study, time_grows_with_what_is_asked) {
    struct nb_torch_plan one released_by(nb_torch_plan_release) = {0}, two released_by(nb_torch_plan_release) = {0};
    const struct nb_model_workload *w = nb_model_workload_find("tiny-transformer");
    nb_torch_plan_add(&one, NB_TORCH_COURSE, w, 300, 0, LN);
    nb_torch_plan_add(&two, NB_TORCH_COURSE, w, 300, 12, LN " layers=12");
    const double a = nb_torch_plan_s(&one), b = nb_torch_plan_s(&two);
    cr_expect(a > 6 * 300 * w->step_s && b > 4 * a, "%g %g", a, b);
}

Test(models_study, answers_are_read_back_and_a_torn_one_is_not) {
    struct asked a released_by(asked_release);
    struct nb_torch_results back released_by(nb_torch_results_release) = {0};
    struct nb_journal journal;
    int arms[] = {0, 1};
    const struct nb_torch_question q = {NB_TORCH_STEPS, "tiny-transformer", 0};
    char *dir = new_folder();
    begin(&a, small_plan(), on_cpu);
    for (int i = 0; i < 2; i++)
        nb_torch_results_add(&a.results,
                             answer_to(&a.p, &(struct job){.group = 0, .round = i, .arms = arms, .n_arms = 2}, "ok"));
    const cJSON *first = a.results.answers->child, *second = first->next;
    cr_assert_eq(nb_journal_create(&journal, dir), 0);
    cJSON *run = kept_json(cJSON_CreateObject());
    nb_json_text(run, "type", "run");
    nb_json_text(run, "schema", NB_SCHEMA_VERSION);
    cr_assert_eq(nb_journal_write(&journal, run), 0);
    cr_assert_eq(nb_journal_write_answer(&journal, first), 0);
    cr_assert_eq(nb_journal_write_answer(&journal, second), 0);
    nb_journal_close(&journal);
    char *text = get_file(dir, NB_JOURNAL_FILE);
    put_file(dir, NB_JOURNAL_FILE, text, strlen(text) - 20);
    cr_assert_eq(nb_journal_append_to(&journal, dir), 0);
    cr_assert_eq(nb_journal_write_answer(&journal, second), 0, "behind the torn line");
    nb_journal_close(&journal);
    cr_assert_eq(nb_journal_read(dir, take_answer, &back), 0);
    cr_expect_eq(cJSON_GetArraySize(back.answers), 2);
    cr_expect(cJSON_Compare(answer_in(&back, &q, RMS, 1), second, true));
    cr_expect_null(answer_in(&back, &q, RMS, 2));
}

/* ---- which groups fit ---- */

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
    budget_fit(&b, 170);
    cr_expect(!s[0].out && !s[1].out && !s[2].out);
    budget_fit(&b, 169);
    cr_expect(!s[0].out && !s[1].out && s[2].out);
    budget_fit(&b, 30);
    cr_expect(s[0].out && !s[1].out);
    budget_fit(&b, 70);
    cr_expect(!s[0].out && !s[1].out && s[2].out, "in again where there is room");
}

Test(models_study, what_took_less_than_guessed_makes_room) {
    struct share s[3];
    struct budget b = budget_of(s);
    share_settle(&s[2], 2, 1);
    cr_expect_float_eq(share_cost(&s[2]), 18, 1e-9, "nine more as long as the first");
    share_settle(&s[2], 10, 2);
    cr_expect_float_eq(share_cost(&s[2]), 28, 1e-9, "the mean of three");
    budget_fit(&b, 98);
    cr_expect(!s[0].out && !s[1].out && !s[2].out);
}

Test(models_study, a_first_job_is_asked_for_where_it_fits) {
    struct share s[3];
    struct budget b = budget_of(s);
    cr_expect(budget_takes(&b, 0, 80) && budget_takes(&b, 1, 80));
    cr_expect(budget_takes(&b, 2, 80), "100 s are a guess, and 10 are left beside the others");
    cr_expect_not(budget_takes(&b, 2, 79));
    share_settle(&s[2], 10, 1);
    cr_expect_not(budget_takes(&b, 2, 80), "90 s are not");
}

/* The groups of the jobs of a sweep, in order; one of group g takes seconds[g] of played time. */
static char *swept(struct party *p, const double *seconds) {
    struct nb_strbuf order = nb_strbuf_empty();
    for (int g = 0; g < p->budget.n; g++) add_jobs(p, g);
    for (int j; (j = next_job(p, 0)) >= 0;) {
        const int group = p->jobs[j].group;
        cJSON *answer = answer_to(p, &p->jobs[j], "ok");
        nb_strbuf_addf(&order, "%d", group);
        nb_played_work(seconds[group]);
        cJSON_ReplaceItemInObjectCaseSensitive(answer, "elapsed_s", cJSON_CreateNumber(seconds[group]));
        cJSON_AddItemToArray(p->seats[0].answers = cJSON_CreateArray(), answer);
        settle_job(p, j, 0);
    }
    for (int j = 0; j < p->n_jobs; j++) free(p->jobs[j].arms);
    p->n_jobs = 0;
    return kept(order.text);
}

Test(models_study, what_first_jobs_took_decides) {
    static const char *const names[] = {"rnnsearch", "norm", "tiny-transformer"};
    static const double seconds[] = {10, 1, 2};
    struct asked a released_by(asked_release);
    struct party *p = &a.p;
    struct nb_torch_plan plan = {0};
    struct nb_journal journal;
    const struct nb_torch_question q = {NB_TORCH_STEPS, "rnnsearch", 0};
    const char *reason = NULL;
    for (int i = 0; i < 3; i++) nb_torch_plan_add(&plan, NB_TORCH_STEPS, nb_model_workload_find(names[i]), 0, 0, LN);
    cr_assert_eq(nb_journal_create(&journal, new_folder()), 0);
    begin(&a, plan,
          (struct nb_torch_study){.device = "cuda", .rounds = {3}, .launch_s = 1, .budget_s = 24, .journal = &journal});
    p->start_s = nb_now_s();
    cr_expect_str_eq(swept(p, seconds), "012", "of steps on a GPU nothing is guessed");
    cr_expect_str_eq(swept(p, seconds), "12", "20 s of 11 that are left");
    cr_expect_str_eq(swept(p, seconds), "12");
    cr_expect_str_eq(swept(p, seconds), "");
    say_out(p, 0);
    cr_expect_not_null(arm_in(&a.results, &q, LN, 0, &reason));
    cr_expect_null(arm_in(&a.results, &q, LN, 1, &reason));
    cr_assert_not_null(reason);
    cr_expect_not_null(strstr(reason, "about 20 s more (--train-budget SECONDS)"), "%s", reason);
    nb_journal_close(&journal);
}
