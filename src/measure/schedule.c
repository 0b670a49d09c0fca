// SPDX-License-Identifier: Apache-2.0
/* Gains by a launch, and rounds in random order. */
#include "src/measure/schedule.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/random.h"
#include "src/measure/lines.h"

/* Of these every group has that is not left out. */
static int steps_at_least(const struct nb_schedule *s, int group, enum nb_stage stage) {
    const size_t g = (size_t)group;
    switch (stage) {
    case NB_STAGE_CHECK:
        return 1;
    case NB_STAGE_ROOFS:
        return nb_group_is_timed(s->plan, g) ? NB_COPY_TRIALS : 0;
    case NB_STAGE_LAUNCH:
        return nb_group_is_timed(s->plan, g) ? s->plan->launches : 0;
    default:
        return s->counts && nb_group_is_counted(s->plan, g);
    }
}

void nb_schedule_init(struct nb_schedule *s, const struct nb_plan *plan, int checks_at_once, bool counts) {
    assert(s && plan && checks_at_once > 0);
    assert(plan->budget_s > 0); /* of a plan without a limit it is infinite: 0 would leave everything out */
    *s = (struct nb_schedule){.plan = plan,
                              .checks_at_once = checks_at_once,
                              .counts = counts,
                              .groups = nb_alloc(plan->n_groups, sizeof *s->groups)};
    for (size_t g = 0; g < plan->n_groups; g++) {
        s->groups[g].cases = nb_alloc(plan->groups[g].n, sizeof *s->groups[g].cases);
        s->groups[g].widths = nb_alloc(plan->groups[g].n, sizeof(double));
        s->groups[g].launched = nb_alloc((unsigned)plan->most_launches, sizeof(bool));
        for (size_t i = 0; i < plan->groups[g].n; i++) s->groups[g].cases[i].adaptive = nb_plan_is_adaptive(plan);
        if (!nb_group_is_timed(plan, g)) s->groups[g].stopped = NB_STOP_FIXED;
        for (enum nb_stage stage = 0; stage < NB_N_STAGES; stage++)
            s->planned_s[stage] += steps_at_least(s, (int)g, stage) * plan->groups[g].step_s[stage];
    }
}

void nb_schedule_release(struct nb_schedule *s) {
    for (size_t g = 0; s->groups && g < s->plan->n_groups; g++) {
        for (size_t i = 0; i < s->plan->groups[g].n; i++) nb_launches_release(&s->groups[g].cases[i]);
        nb_free_all(s->groups[g].cases, s->groups[g].widths, s->groups[g].launched);
    }
    free(s->groups);
    nb_floors_release(&s->floors);
    *s = (struct nb_schedule){0};
}

/* ---- what a launch leaves ---------------------------------------------------------------------------------------- */

static int take_launch(struct nb_schedule *s, int group, const cJSON *line) {
    const struct nb_group *planned = &s->plan->groups[group];
    struct nb_scheduled_group *g = &s->groups[group];
    struct nb_launch_line l released_by(nb_launch_line_release);
    if (nb_launch_line_read(&l, line, &s->floors) != 0) return -1;
    for (size_t i = 0; i < planned->n; i++) {
        const struct nb_timed *t = nb_launch_line_case(&l, s->plan->keys[planned->cases[i]]);
        if (!t) continue;
        nb_launch_line_add(&l, t, s->plan->keys[planned->cases[planned->reference]], &g->cases[i]);
        const double width = nb_launches_width(&g->cases[i]);
        g->widths[i] = g->cases[i].n == 0 ? 0 : isfinite(width) ? width : 1;
    }
    return 0;
}

static int take_stop(struct nb_scheduled_group *g, int fewest, const cJSON *line) {
    const int why = nb_name_find(nb_stop_names, nb_json_get_string(line, "why"));
    const int launches = nb_json_get_index(line, "launches");
    g->n_when_stopped = launches > 0 ? launches : 0;
    if (why > NB_STOP_UNKNOWN) g->stopped = (enum nb_stop)why;
    g->left_out = g->stopped == NB_STOP_BUDGET && (g->n_when_stopped < fewest || fewest == 0);
    return 0;
}

int nb_schedule_take(struct nb_schedule *s, int group, const cJSON *line) {
    assert(s && group >= 0 && (size_t)group < s->plan->n_groups && line);
    if (nb_json_is(line, "type", "stop")) return take_stop(&s->groups[group], s->plan->launches, line);
    if (!nb_json_is(line, "type", "launch")) return 0;
    nb_floors_take_line(&s->floors, line);
    return nb_plan_is_adaptive(s->plan) ? take_launch(s, group, line) : 0;
}

void nb_schedule_spent(struct nb_schedule *s, int group, enum nb_stage stage, double elapsed_s) {
    assert(s && group >= 0 && (size_t)group < s->plan->n_groups && stage < NB_N_STAGES);
    struct nb_spent *spent = &s->groups[group].spent[stage];
    spent->n++;
    if (!(elapsed_s > 0)) return;
    spent->s += elapsed_s;
    s->measured_s[stage] += elapsed_s;
    s->estimated_s[stage] += s->plan->groups[group].step_s[stage];
}

void nb_schedule_tried(struct nb_schedule *s, int group, int launch, double elapsed_s) {
    assert(s && launch >= 0 && launch < s->plan->most_launches);
    struct nb_scheduled_group *g = &s->groups[group];
    if (g->launched[launch]) return;
    g->launched[launch] = true;
    nb_schedule_spent(s, group, NB_STAGE_LAUNCH, elapsed_s);
}

void nb_schedule_drop(struct nb_schedule *s, int group, int index) {
    assert(s && index >= 0 && (size_t)index < s->plan->groups[group].n);
    nb_launches_release(&s->groups[group].cases[index]);
    s->groups[group].widths[index] = 0;
}

int nb_schedule_next(const struct nb_schedule *s, int group) {
    assert(s && group >= 0 && (size_t)group < s->plan->n_groups);
    for (int launch = 0; launch < s->plan->most_launches; launch++)
        if (!s->groups[group].launched[launch]) return launch;
    return -1;
}

/* ---- what the next one would gain -------------------------------------------------------------------------------- */

/* Half-widths shrink with the root of the number of launches: h sqrt(n / (n + 1)), so that one more takes h / 2n off. Summed over the
 * cases that miss the aim. 0: none does. */
static double gain(const struct nb_schedule *s, int group) {
    const struct nb_scheduled_group *g = &s->groups[group];
    double sum = 0;
    for (size_t i = 0; i < s->plan->groups[group].n; i++)
        if (g->widths[i] > s->plan->aim) sum += g->widths[i] / (2 * (double)g->cases[i].n);
    return sum;
}

/* How many more launches bring the widest case to the aim. */
static double launches_to_come(const struct nb_schedule *s, int group) {
    const struct nb_scheduled_group *g = &s->groups[group];
    const int n = g->spent[NB_STAGE_LAUNCH].n;
    double widest = 0;
    if (g->stopped != NB_STOP_UNKNOWN) return 0;
    if (n < s->plan->launches) return s->plan->launches - n;
    for (size_t i = 0; i < s->plan->groups[group].n; i++) widest = fmax(widest, g->widths[i]);
    const double factor = widest / s->plan->aim;
    return fmin(fmax(n * (factor * factor - 1), 1), s->plan->most_launches - n);
}

/* ---- how long it takes -------------------------------------------------------------------------------------------- */

/* How many times longer than estimated the steps of this stage take. The estimate counts as much as a thirtieth of the stage would, so that
 * the first few steps, with all that is done but once, do not decide it. Before its first step the stages before speak for it. */
static double slowness(const struct nb_schedule *s, enum nb_stage stage) {
    const double prior = 1.0 / 30;
    double measured_s = s->measured_s[stage], estimated_s = s->estimated_s[stage], planned_s = s->planned_s[stage];
    for (enum nb_stage other = 0; other < NB_N_STAGES && !(s->estimated_s[stage] > 0); other++) {
        measured_s += s->measured_s[other];
        estimated_s += s->estimated_s[other];
        planned_s += s->estimated_s[other];
    }
    const double weight_s = prior * planned_s;
    return estimated_s + weight_s > 0 ? (measured_s + weight_s) / (estimated_s + weight_s) : 1;
}

/* A group's own steps speak for it, where it has made some of the stage. */
double nb_schedule_step_s(const struct nb_schedule *s, int group, enum nb_stage stage) {
    assert(s && group >= 0 && (size_t)group < s->plan->n_groups && stage < NB_N_STAGES);
    const struct nb_spent *spent = &s->groups[group].spent[stage];
    if (spent->s > 0 && spent->n > 0) return spent->s / spent->n;
    return s->plan->groups[group].step_s[stage] * slowness(s, stage);
}

static double stage_s(const struct nb_schedule *s, int group, enum nb_stage stage) {
    const int n = steps_at_least(s, group, stage) - s->groups[group].spent[stage].n;
    if (n <= 0) return 0;
    return n * nb_schedule_step_s(s, group, stage) / (stage == NB_STAGE_CHECK ? s->checks_at_once : 1);
}

/* All that the group has to have, left out or not, but its counters. */
static double whole_s(const struct nb_schedule *s, int group) {
    double sum = 0;
    for (enum nb_stage stage = 0; stage < NB_STAGE_COUNTERS; stage++) sum += stage_s(s, group, stage);
    return sum;
}

static double least_s(const struct nb_schedule *s, int group) {
    return s->groups[group].left_out ? 0 : whole_s(s, group);
}

static double all_s(const struct nb_schedule *s, double (*of)(const struct nb_schedule *s, int group)) {
    double sum = 0;
    for (int g = 0; g < (int)s->plan->n_groups; g++) sum += of(s, g);
    return sum;
}

static double counters_s(const struct nb_schedule *s, int group) {
    return s->groups[group].left_out ? 0 : stage_s(s, group, NB_STAGE_COUNTERS);
}

/* What is kept for the counters: no more than a tenth of the budget, since they come last and can be done without. */
static double kept_s(const struct nb_schedule *s) { return fmin(all_s(s, counters_s), s->plan->budget_s / 10); }

static double launch_s(const struct nb_schedule *s, int first) {
    double sum = 0;
    for (int g = first; g < first + nb_schedule_unit_size(s->plan, first); g++)
        sum += nb_schedule_step_s(s, g, NB_STAGE_LAUNCH);
    return sum;
}

/* Launches beyond those that every group has, each unit's number by its first group. */
static double added_s(const struct nb_schedule *s, int first) {
    if (s->groups[first].spent[NB_STAGE_LAUNCH].n < s->plan->launches) return 0;
    return launches_to_come(s, first) * launch_s(s, first);
}

double nb_schedule_to_come_s(const struct nb_schedule *s, double left_s) {
    const double least = all_s(s, least_s) + kept_s(s);
    double added = all_s(s, whole_s) - all_s(s, least_s); /* what was left out, and may be taken back */
    for (int g = 0; g < (int)s->plan->n_groups; g += nb_schedule_unit_size(s->plan, g)) added += added_s(s, g);
    return least + fmax(fmin(added, left_s - least), 0);
}

/* ---- what a budget leaves out ------------------------------------------------------------------------------------- */

/* What goes as a whole: a group in all its parts, and all widths of what width alone parts. */
struct part {
    int first, n;
    double s;
    enum nb_worth worth;
};

static int part_size(const struct nb_plan *plan, int first) {
    int n = 1;
    while ((size_t)(first + n) < plan->n_groups && plan->groups[first + n].family == plan->groups[first].family) n++;
    return n;
}

static bool is_open(const struct nb_schedule *s, int group) {
    const struct nb_spent *spent = s->groups[group].spent;
    return !s->groups[group].left_out && (spent[NB_STAGE_CHECK].n < steps_at_least(s, group, NB_STAGE_CHECK) ||
                                          spent[NB_STAGE_LAUNCH].n < steps_at_least(s, group, NB_STAGE_LAUNCH));
}

/* Those that may still be left out, of no more than this worth. Returns how many. */
static int open_parts(const struct nb_schedule *s, enum nb_worth most, struct part *parts) {
    int n_parts = 0;
    struct part part;
    for (int g = 0; g < (int)s->plan->n_groups; g += part.n) {
        part = (struct part){.first = g, .n = part_size(s->plan, g), .worth = s->plan->groups[g].worth};
        bool open = false;
        for (int i = g; i < g + part.n; i++) {
            part.s += least_s(s, i);
            open |= is_open(s, i);
        }
        if (open && part.worth <= most) parts[n_parts++] = part;
    }
    return n_parts;
}

/* Moves those of the least worth among those that take at least the mean to the front, in their order. Returns how many. */
static int long_parts(struct part *parts, int n) {
    double mean = 0;
    int n_long = 0;
    enum nb_worth least = NB_WORTH_ANSWERS;
    for (int i = 0; i < n; i++) mean += parts[i].s / n;
    mean *= 1 - 1e-9;
    for (int i = 0; i < n; i++)
        if (parts[i].s >= mean && parts[i].worth < least) least = parts[i].worth;
    for (int i = 0; i < n; i++)
        if (parts[i].s >= mean && parts[i].worth == least) parts[n_long++] = parts[i];
    return n_long;
}

/* The i-th of k that are spread evenly over n. */
static int spread(int i, int k, int n) { return (int)((2 * (int64_t)i + 1) * n / (2 * (int64_t)k)); }

static void set_left_out(struct nb_schedule *s, const struct part *part, bool left_out) {
    for (int g = part->first; g < part->first + part->n; g++) {
        const bool is_timed = nb_group_is_timed(s->plan, (size_t)g);
        s->groups[g].left_out = left_out;
        s->groups[g].stopped = left_out ? NB_STOP_BUDGET : is_timed ? NB_STOP_UNKNOWN : NB_STOP_FIXED;
    }
}

void nb_schedule_leave_out(struct nb_schedule *s, int group) {
    assert(s && group >= 0 && (size_t)group < s->plan->n_groups);
    int first = group;
    while (first > 0 && s->plan->groups[first - 1].family == s->plan->groups[group].family) first--;
    const struct part part = {.first = first, .n = part_size(s->plan, first)};
    set_left_out(s, &part, true);
    for (int g = first; g < first + part.n; g++) s->groups[g].was_taken_back = true;
}

void nb_schedule_keep_budget(struct nb_schedule *s, double left_s) {
    const bool holds = isfinite(left_s) && !s->plan->leaves_none_out;
    struct part *parts freed = holds ? nb_alloc(s->plan->n_groups + 1, sizeof *parts) : NULL;
    for (double over_s; parts && (over_s = all_s(s, least_s) + kept_s(s) - left_s) > 0;) {
        int n = open_parts(s, NB_WORTH_COMPARES, parts), k = 0;
        if (n == 0) n = open_parts(s, NB_WORTH_ANSWERS, parts);
        n = long_parts(parts, n);
        for (double gone_s = 0; k < n && gone_s < over_s;) {
            gone_s = 0;
            k++;
            for (int i = 0; i < k; i++) gone_s += parts[spread(i, k, n)].s;
        }
        for (int i = 0; i < k; i++) set_left_out(s, &parts[spread(i, k, n)], true);
        if (k == 0) break;
    }
}

int nb_schedule_take_back(struct nb_schedule *s, double left_s) {
    int n_back = 0;
    double least = all_s(s, least_s) + kept_s(s);
    for (int g = 0, n; g < (int)s->plan->n_groups; g += n) {
        n = part_size(s->plan, g);
        if (!s->groups[g].left_out || s->groups[g].was_taken_back) continue;
        const struct part part = {.first = g, .n = n};
        double own_s = 0;
        for (int i = g; i < g + n; i++) own_s += whole_s(s, i);
        if (least + own_s > left_s) continue;
        set_left_out(s, &part, false);
        for (int i = g; i < g + n; i++) s->groups[i].was_taken_back = true;
        least += own_s;
        n_back += n;
    }
    return n_back;
}

/* ---- rounds ------------------------------------------------------------------------------------------------------- */

int nb_schedule_unit_size(const struct nb_plan *plan, int first) {
    return plan->groups[first].single_width ? part_size(plan, first) : 1;
}

struct unit {
    int first;
    double gain_per_s;
};

static int most_gain_first(const void *a, const void *b) {
    const struct unit *p = a, *q = b;
    if (p->gain_per_s != q->gain_per_s) return p->gain_per_s < q->gain_per_s ? 1 : -1;
    return (p->first > q->first) - (p->first < q->first);
}

static void stop(struct nb_schedule *s, int first, enum nb_stop why) {
    for (int g = first; g < first + nb_schedule_unit_size(s->plan, first); g++) s->groups[g].stopped = why;
}

/* Why the unit has no further launch, beyond those that every group has; NB_STOP_UNKNOWN: it may have one, with this gain. */
static enum nb_stop why_stop(const struct nb_schedule *s, int first, double left_s, double *gained) {
    *gained = 0;
    if (!nb_plan_is_adaptive(s->plan)) return NB_STOP_FIXED;
    for (int g = first; g < first + nb_schedule_unit_size(s->plan, first); g++) *gained += gain(s, g);
    if (!(*gained > 0)) return NB_STOP_AIM;
    if (s->groups[first].spent[NB_STAGE_LAUNCH].n >= s->plan->most_launches) return NB_STOP_MOST;
    return launch_s(s, first) > left_s - kept_s(s) ? NB_STOP_BUDGET : NB_STOP_UNKNOWN;
}

static void shuffle(struct unit *units, int n, uint64_t seed, int round) {
    const struct nb_random random = nb_random_stream(seed, (uint64_t)round);
    for (int i = n - 1; i > 0; i--) {
        const int other = (int)(nb_random_bits(random, (uint64_t)i) % (unsigned)(i + 1));
        const struct unit swapped = units[i];
        units[i] = units[other];
        units[other] = swapped;
    }
}

static bool lacks(const struct nb_schedule *s, int group) {
    const struct nb_scheduled_group *g = &s->groups[group];
    return g->stopped == NB_STOP_UNKNOWN && g->spent[NB_STAGE_LAUNCH].n < s->plan->launches;
}

/* The units that lack launches which every group has. */
static int lacking(const struct nb_schedule *s, struct unit *due) {
    int n = 0;
    for (int g = 0; g < (int)s->plan->n_groups; g += nb_schedule_unit_size(s->plan, g))
        if (lacks(s, g)) due[n++] = (struct unit){g, 0};
    return n;
}

/* The half of the units that gains most per second; stops those that have no further launch. */
static int gaining(struct nb_schedule *s, double left_s, struct unit *due) {
    int n = 0;
    for (int g = 0; g < (int)s->plan->n_groups; g += nb_schedule_unit_size(s->plan, g)) {
        double gained;
        if (s->groups[g].stopped != NB_STOP_UNKNOWN) continue;
        const enum nb_stop why = why_stop(s, g, left_s, &gained);
        if (why == NB_STOP_UNKNOWN)
            due[n++] = (struct unit){g, gained / launch_s(s, g)};
        else
            stop(s, g, why);
    }
    if (n > 1) qsort(due, (size_t)n, sizeof *due, most_gain_first);
    return (n + 1) / 2;
}

bool nb_schedule_lacks(const struct nb_schedule *s) {
    bool any = false;
    for (int g = 0; g < (int)s->plan->n_groups; g++) any |= lacks(s, g);
    return any;
}

int nb_schedule_round(struct nb_schedule *s, int round, double left_s, int *units) {
    assert(s && units && round >= 0);
    struct unit *due freed = nb_alloc(s->plan->n_groups + 1, sizeof *due);
    int n = lacking(s, due);
    if (n == 0) n = gaining(s, left_s, due);
    shuffle(due, n, s->plan->order_seed, round);
    for (int i = 0; i < n; i++) units[i] = due[i].first;
    return n;
}

bool nb_schedule_may_launch(struct nb_schedule *s, int first, double left_s) {
    assert(s && first >= 0 && (size_t)first < s->plan->n_groups);
    const struct nb_scheduled_group *g = &s->groups[first];
    nb_schedule_keep_budget(s, left_s);
    if (g->stopped == NB_STOP_UNKNOWN && g->spent[NB_STAGE_LAUNCH].n >= s->plan->launches &&
        launch_s(s, first) > left_s - kept_s(s))
        stop(s, first, NB_STOP_BUDGET);
    return g->stopped == NB_STOP_UNKNOWN;
}
