// SPDX-License-Identifier: Apache-2.0
/* A budget is held by what was measured. Whole runs are played with made-up times, step by step as src/measure/launch.c makes them. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/core/case.h"
#include "src/core/files.h"
#include "src/core/random.h"
#include "src/measure/schedule.h"
#include "src/measure/session.h"

enum { GROUPS = 60, LAUNCHES = 6 };

/* What is estimated, and how many times longer it takes. */
struct world {
    double factor[NB_N_STAGES];
    double slow_library; /* launches of every third group */
    double late_factor;  /* of everything, from half of the budget on */
    double hang_s;       /* one launch, of group 7, the third */
};

struct game {
    struct nb_plan plan;
    struct nb_group groups[GROUPS];
    struct nb_case cases[GROUPS];
    size_t numbers[GROUPS];
    char *keys[GROUPS];
    struct nb_schedule schedule;
    struct world world;
    double now_s, longest_s;
    int round;
    double tenth_s; /* the whole run, as foreseen after a tenth of the budget */
};

static struct game g; /* of the test */
static void release(void) { nb_schedule_release(&g.schedule); }
TestSuite(budget, .fini = release);

/* A third of the groups are a hundred times as large as the others. */
static void begin(double budget_s, struct world world) {
    nb_schedule_release(&g.schedule);
    g = (struct game){.plan = {.cases = g.cases,
                               .keys = g.keys,
                               .n_cases = GROUPS,
                               .groups = g.groups,
                               .n_groups = GROUPS,
                               .launches = LAUNCHES,
                               .most_launches = LAUNCHES,
                               .budget_s = budget_s,
                               .order_seed = 1},
                      .world = world};
    static char key[] = "key";
    for (size_t i = 0; i < GROUPS; i++) {
        const double size = i % 3 == 2 ? 1 : 0.01;
        nb_case_init(&g.cases[i]);
        g.keys[i] = key;
        g.numbers[i] = i;
        g.groups[i] = (struct nb_group){.cases = &g.numbers[i], .n = 1, .family = i, .index = i};
        const double step_s[] = {5 * size, 0.5 * size, 0.05 + size, 0.05 + 0.2 * size};
        for (int stage = 0; stage < NB_N_STAGES; stage++) g.groups[i].step_s[stage] = step_s[stage];
        g.plan.estimate_s += step_s[0] + NB_COPY_TRIALS * step_s[1] + LAUNCHES * step_s[2] + step_s[3];
    }
    nb_schedule_init(&g.schedule, &g.plan, 1, true);
}

static double left_s(void) { return g.plan.budget_s - g.now_s; }

static double step(int group, enum nb_stage stage) {
    const struct world *w = &g.world;
    const struct nb_random random = nb_random_stream(3, (uint64_t)(group * NB_N_STAGES + (int)stage));
    const int n = g.schedule.groups[group].spent[stage].n;
    double s = g.groups[group].step_s[stage] * w->factor[stage] * (0.9 + 0.2 * nb_random_open(random, (uint64_t)n));
    if (stage == NB_STAGE_LAUNCH && w->slow_library > 0 && group % 3 == 2) s *= w->slow_library;
    if (stage == NB_STAGE_LAUNCH && group == 7 && n == 2) s += w->hang_s;
    if (w->late_factor > 0 && g.now_s > g.plan.budget_s / 2) s *= w->late_factor;
    g.now_s += s;
    g.longest_s = fmax(g.longest_s, s);
    if (g.now_s > 0.1 * g.plan.budget_s && !(g.tenth_s > 0))
        g.tenth_s = g.now_s + nb_schedule_to_come_s(&g.schedule, left_s());
    return s;
}

static void launches(bool fewest) {
    int units[GROUPS + 1];
    for (int n = 1; n > 0; g.round++) {
        cr_assert(g.round < 3000);
        if (fewest && !nb_schedule_lacks(&g.schedule)) break;
        n = nb_schedule_round(&g.schedule, g.round, left_s(), units);
        for (int i = 0; i < n; i++) {
            if (!nb_schedule_may_launch(&g.schedule, units[i], left_s())) continue;
            const int launch = nb_schedule_next(&g.schedule, units[i]);
            nb_schedule_tried(&g.schedule, units[i], launch, step(units[i], NB_STAGE_LAUNCH));
        }
    }
}

/* One step of a stage for each group that has fewer than n. */
static void steps(enum nb_stage stage, int n) {
    for (int i = 0; i < GROUPS; i++) {
        const struct nb_scheduled_group *group = &g.schedule.groups[i];
        nb_schedule_keep_budget(&g.schedule, left_s());
        if (!group->left_out && group->spent[stage].n < n) nb_schedule_spent(&g.schedule, i, stage, step(i, stage));
    }
}

static void play(void) {
    struct nb_schedule *s = &g.schedule;
    do {
        steps(NB_STAGE_CHECK, 1);
        for (int n = 1; n <= NB_COPY_TRIALS; n++) steps(NB_STAGE_ROOFS, n);
        launches(true);
    } while (nb_schedule_take_back(s, left_s()) > 0);
    launches(false);
    for (int i = 0; i < GROUPS; i++)
        if (!s->groups[i].left_out && nb_schedule_step_s(s, i, NB_STAGE_COUNTERS) <= left_s())
            nb_schedule_spent(s, i, NB_STAGE_COUNTERS, step(i, NB_STAGE_COUNTERS));
}

static int n_left_out(void) {
    int n = 0;
    for (int i = 0; i < GROUPS; i++) n += g.schedule.groups[i].left_out;
    return n;
}

/* Whatever happens: no more than one step too long, and every group has all its launches or is left out. */
static void holds(const char *name) {
    play();
    cr_log_info("%s: %.0f of %.0f s, %d of %d groups left out, %.0f s foreseen after a tenth", name, g.now_s,
                g.plan.budget_s, n_left_out(), GROUPS, g.tenth_s);
    cr_expect_leq(g.now_s, g.plan.budget_s + g.longest_s, "%s: %g s, the longest step %g s", name, g.now_s,
                  g.longest_s);
    for (int i = 0; i < GROUPS; i++)
        cr_expect(g.schedule.groups[i].left_out || g.schedule.groups[i].spent[NB_STAGE_LAUNCH].n == LAUNCHES,
                  "%s: group %d has %d launches", name, i, g.schedule.groups[i].spent[NB_STAGE_LAUNCH].n);
}

static struct world times(double check, double copies, double launch, double counters) {
    return (struct world){.factor = {check, copies, launch, counters}};
}

/* A tenth of the run is all checks: what they take beyond the estimate is thought of all that follows. */
Test(budget, a_machine_of_another_speed_is_foreseen_after_a_tenth) {
    const double speeds[] = {0.3, 1, 4};
    for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++) {
        begin(INFINITY, times(speeds[i], speeds[i], speeds[i], speeds[i]));
        g.plan.budget_s = 1.05 * speeds[i] * g.plan.estimate_s;
        holds("another speed");
        cr_expect(fabs(g.tenth_s / g.now_s - 1) < 0.2, "%g times as slow: %.0f s foreseen, %.0f were", speeds[i],
                  g.tenth_s, g.now_s);
    }
}

Test(budget, it_holds_whatever_is_slower_than_estimated) {
    const struct {
        const char *name;
        struct world world;
        double least_used; /* of the budget: no more is left out than must be */
    } worlds[] = {
        {"everything twice as slow", times(2, 2, 2, 2), 0.85},
        {"launches", times(1, 1, 3, 1), 0.85},
        {"checks", times(8, 1, 1, 1), 0.85},
        {"trials of copies", times(1, 6, 1, 1), 0.85},
        {"counters", times(1, 1, 1, 20), 0.85},
        {"a slow library", {.factor = {1, 1, 1, 1}, .slow_library = 5}, 0.85},
        {"a neighbour comes", {.factor = {1, 1, 1, 1}, .late_factor = 4}, 0.8},
        {"a launch hangs", {.factor = {1, 1, 1, 1}, .hang_s = 100}, 0.8},
        {"faster checks, slower launches", times(0.3, 1, 3, 1), 0.85},
    };
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        begin(INFINITY, worlds[i].world);
        g.plan.budget_s = g.plan.estimate_s;
        holds(worlds[i].name);
        cr_expect_geq(g.now_s, worlds[i].least_used * g.plan.budget_s, "%s: %.0f of %.0f s were used", worlds[i].name,
                      g.now_s, g.plan.budget_s);
    }
}

/* Small groups save nothing; of the large ones some stay, all over the plan. */
Test(budget, what_costs_much_is_left_out_and_not_all_of_its_kind) {
    int n_large = 0, first_half = 0;
    begin(INFINITY, times(1, 1, 2, 1));
    g.plan.budget_s = g.plan.estimate_s;
    holds("launches twice as slow");
    for (int i = 0; i < GROUPS; i++) {
        if (!g.schedule.groups[i].left_out) continue;
        cr_expect_eq(i % 3, 2, "group %d is small", i);
        n_large++;
        first_half += i < GROUPS / 2;
    }
    cr_expect(n_large > 3 && n_large < GROUPS / 3 - 3, "%d of %d", n_large, GROUPS / 3);
    cr_expect(abs(2 * first_half - n_large) <= n_large / 2 + 1, "%d of %d in the first half", first_half, n_large);
}

/* First long groups that compare nothing, then others; what answers stays although it is the longest. */
Test(budget, what_answers_first_is_left_out_last) {
    int n_left_out_of[3] = {0}, n_of[3] = {0};
    begin(INFINITY, times(1, 1, 3, 1));
    for (int i = 0; i < GROUPS; i++) g.groups[i].worth = i % 6 == 2 ? NB_WORTH_LITTLE : NB_WORTH_COMPARES;
    g.groups[5].worth = g.groups[29].worth = NB_WORTH_ANSWERS;
    g.plan.budget_s = g.plan.estimate_s;
    holds("launches three times as slow");
    for (int i = 2; i < GROUPS; i += 3) {
        n_of[g.groups[i].worth]++;
        n_left_out_of[g.groups[i].worth] += g.schedule.groups[i].left_out;
    }
    cr_expect_eq(n_left_out_of[NB_WORTH_ANSWERS], 0);
    cr_expect_gt(n_left_out_of[NB_WORTH_LITTLE], 0);
    cr_expect(n_left_out_of[NB_WORTH_COMPARES] == 0 || n_left_out_of[NB_WORTH_LITTLE] == n_of[NB_WORTH_LITTLE],
              "%d and %d", n_left_out_of[NB_WORTH_COMPARES], n_left_out_of[NB_WORTH_LITTLE]);
}

/* Launches that are added beyond those that every group has end with the budget too. */
Test(budget, added_launches_end_in_time) {
    begin(INFINITY, times(1, 1, 1, 1));
    nb_schedule_release(&g.schedule);
    g.plan.most_launches = 1000;
    g.plan.aim = 1e-9;
    g.plan.budget_s = 1.5 * g.plan.estimate_s;
    nb_schedule_init(&g.schedule, &g.plan, 1, true);
    for (int i = 0; i < GROUPS; i++) g.schedule.groups[i].widths[0] = 1;
    for (int i = 0; i < GROUPS; i++) g.schedule.groups[i].cases[0].n = LAUNCHES;
    play();
    int least = 1000, most = 0;
    for (int i = 0; i < GROUPS; i++) {
        const int n = g.schedule.groups[i].spent[NB_STAGE_LAUNCH].n;
        least = n < least ? n : least;
        most = n > most ? n : most;
        cr_expect_eq(g.schedule.groups[i].spent[NB_STAGE_COUNTERS].n, 1, "group %d", i);
    }
    cr_expect(least >= LAUNCHES && most > LAUNCHES, "%d to %d launches", least, most);
    cr_expect_leq(g.now_s, g.plan.budget_s + 2);
    cr_expect_geq(g.now_s, 0.95 * g.plan.budget_s);
}

/* Both widths of a family, and all parts of a group, or none. */
Test(budget, what_belongs_together_goes_together) {
    begin(INFINITY, times(1, 1, 4, 1));
    for (size_t i = 0; i < GROUPS; i++) g.groups[i].family = i / 2;
    g.plan.budget_s = g.plan.estimate_s;
    play();
    cr_expect_gt(n_left_out(), 0);
    for (int i = 0; i < GROUPS; i += 2)
        cr_expect_eq(g.schedule.groups[i].left_out, g.schedule.groups[i + 1].left_out, "groups %d and %d", i, i + 1);
}

Test(budget, a_plan_that_leaves_none_out_takes_its_time) {
    begin(INFINITY, times(3, 3, 3, 3));
    g.plan.budget_s = g.plan.estimate_s;
    g.plan.leaves_none_out = true;
    play();
    cr_expect_eq(n_left_out(), 0);
    for (int i = 0; i < GROUPS; i++) cr_expect_eq(g.schedule.groups[i].spent[NB_STAGE_LAUNCH].n, LAUNCHES);
}

/* ---- a run that is resumed ---- */

static void write_line(struct nb_journal *journal, const char *text, ...) {
    char line[400];
    va_list args;
    va_start(args, text);
    vsnprintf(line, sizeof line, text, args);
    va_end(args);
    cJSON *json released_by(nb_json_release) = cJSON_Parse(line);
    cr_assert(json && nb_journal_write(journal, json) == 0, "%s", line);
}

/* The first n groups are checked, tried for copies, launched as often as need be and counted; the next is checked alone. A second each. */
static void write_journal(const char *dir, int n) {
    struct nb_journal journal;
    char groups[3 * GROUPS + 1] = "";
    cr_assert_eq(nb_journal_create(&journal, dir), 0);
    for (int i = 0; i < GROUPS; i++) snprintf(groups + 3 * i, 4, "%s{}", i ? "," : " ");
    write_line(&journal, "{\"type\":\"run\",\"schema\":\"3.0\",\"plan\":{\"hash\":\"hash\"},\"groups\":[%s]}", groups);
    for (int i = 0; i <= n; i++)
        for (int step = 0; step < (i < n ? LAUNCHES + 3 : 1); step++)
            write_line(&journal,
                       step == 0 ? "{\"type\":\"check\",\"group\":%d,\"cases\":[{\"key\":\"key\",\"status\":\"ok\"}],"
                                   "\"copies\":[],\"elapsed_s\":1}"
                       : step == 1
                           ? "{\"type\":\"check\",\"group\":%d,\"cases\":[],\"copies\":[{\"variant\":\"x\",\"ns\":1}],"
                             "\"elapsed_s\":1}"
                       : step == 2 ? "{\"type\":\"counters\",\"group\":%d,\"cases\":[],\"elapsed_s\":1}"
                                   : "{\"type\":\"launch\",\"group\":%d,\"launch\":%d,\"cases\":[{\"key\":\"key\"}],"
                                     "\"elapsed_s\":1}",
                       i, step - 3);
    nb_journal_close(&journal);
}

static double group_s(const struct nb_group *group) {
    const double *step_s = group->step_s;
    return step_s[NB_STAGE_CHECK] + NB_COPY_TRIALS * step_s[NB_STAGE_ROOFS] + LAUNCHES * step_s[NB_STAGE_LAUNCH] +
           step_s[NB_STAGE_COUNTERS];
}

/* Every stage has used its time, and what is done is no work to come: else groups would be left out for want of time that nothing takes. */
Test(budget, of_a_run_that_goes_on_knows_what_is_done) {
    enum { DONE = 5 };
    char dir[] = "/tmp/normbench-budget-XXXXXX";
    const struct nb_run_options options = {0};
    struct nb_journal journal = {0};
    double open_s = 0;
    cr_assert(mkdtemp(dir));
    begin(1e6, times(1, 1, 1, 1));
    snprintf(g.plan.hash, sizeof g.plan.hash, "hash");
    struct nb_run run released_by(nb_run_release) = {
        .plan = &g.plan, .journal = &journal, .options = &options, .digests_fd = -1, .n_cpus = 1};
    write_journal(dir, DONE);
    cr_assert_eq(nb_run_init(&run, dir), 0);
    cr_expect_float_eq(run.used_s, DONE * (LAUNCHES + 3) + 1, 1e-9, "%g s", run.used_s);
    for (int i = DONE; i < GROUPS; i++) open_s += group_s(&g.groups[i]);
    const double to_come_s = nb_schedule_to_come_s(&run.schedule, INFINITY);
    cr_expect_float_eq(to_come_s, open_s, 1e-6 * open_s, "%g s to come, %g are open", to_come_s, open_s);
    nb_schedule_keep_budget(&run.schedule, 1.001 * open_s);
    for (int i = 0; i < GROUPS; i++) cr_expect_not(run.schedule.groups[i].left_out, "group %d", i);
    char *file freed = nb_path_join(dir, NB_JOURNAL_FILE);
    unlink(file);
    rmdir(dir);
}
