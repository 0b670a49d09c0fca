// SPDX-License-Identifier: Apache-2.0
/* Which group of a run gets the next launch, and which groups a budget leaves out. Every group has plan->launches launches, in rounds
 * over all groups in random order. Then, while time is left, rounds go on over those groups of which a case is not yet as exact as
 * plan->aim: in each the half that gains most by a launch, in random order, so that the launches of a group lie apart in time. Rules
 * that were compared: src/decisions/0065-how-many-launches.md.
 *
 * Only the widths of intervals decide, never the ratios themselves.
 *
 * A budget is held by what was measured: how long the steps so far took, of each group and stage, says how long those to come will. Where
 * that is more than what is left, groups are left out, whole. Before a step nothing is known but that it began in time, so that one step is
 * the most by which a budget can be overrun (of checks as many as run side by side). */
#pragma once

#include <cjson/cJSON.h>

#include "src/measure/timing.h"
#include "src/plan/plan.h"

/* Steps that were made, or tried in vain, and the time from start to end of their processes. */
struct nb_spent {
    int n;
    double s;
};

struct nb_schedule {
    const struct nb_plan *plan;
    int checks_at_once;
    bool counts;             /* there is a counter pass */
    struct nb_floors floors; /* as known so far */
    struct nb_scheduled_group {
        struct nb_launches *cases; /* as the plan's group has them */
        double *widths; /* nb_launches_width() of each; 1 where it is not known, 0 of a case that does not count */
        bool *launched; /* by launch: done, or tried in vain */
        struct nb_spent spent[NB_N_STAGES];
        enum nb_stop stopped; /* NB_STOP_UNKNOWN: not yet */
        int n_when_stopped;   /* launches, as a stop line says */
        bool left_out;        /* by the budget, with fewer launches than every group has */
        bool was_taken_back;  /* once it had been left out */
    } * groups;
    double measured_s[NB_N_STAGES], estimated_s[NB_N_STAGES], planned_s[NB_N_STAGES]; /* of steps made; of all */
};

void nb_schedule_init(struct nb_schedule *s, const struct nb_plan *plan, int checks_at_once, bool counts);
void nb_schedule_release(struct nb_schedule *s);
/* The samples of a launch line, or what a stop line says. -1 after nb_error where it cannot be read. */
int nb_schedule_take(struct nb_schedule *s, int group, const cJSON *line);
/* A step was made; of a launch nb_schedule_tried() says it. elapsed_s 0: there was nothing to do, which says nothing of the machine. */
void nb_schedule_spent(struct nb_schedule *s, int group, enum nb_stage stage, double elapsed_s);
/* The launch was tried, whether it left a line or not. */
void nb_schedule_tried(struct nb_schedule *s, int group, int launch, double elapsed_s);
/* A case that failed keeps its group waiting no longer. */
void nb_schedule_drop(struct nb_schedule *s, int group, int index);

/* Leaves groups out until all that every group has to have fits into left_s: of those that take more than the mean the fewest that are enough,
 * evenly over the plan; those of the least worth first (plan.h), and those that answer only when there are no others. */
void nb_schedule_keep_budget(struct nb_schedule *s, double left_s);
/* Leaves the group out for good, with those that go with it: the time was over before all of it was checked. */
void nb_schedule_leave_out(struct nb_schedule *s, int group);
/* When the others have what they have to have: takes those back, each once, that fit into left_s after all, since less was needed than was
 * foreseen. Returns how many. */
int nb_schedule_take_back(struct nb_schedule *s, double left_s);
/* Seconds until everything is done, as far as it fits into left_s; with launches that are added, where widths shrink with the root of
 * their number. */
double nb_schedule_to_come_s(const struct nb_schedule *s, double left_s);
/* One step of this stage of the group. */
double nb_schedule_step_s(const struct nb_schedule *s, int group, enum nb_stage stage);

/* Units: a group, or the groups that width alone parts, which are launched next to each other; a unit is named by its first group. */
int nb_schedule_unit_size(const struct nb_plan *plan, int first);
/* Writes the units of the round into units, which has room for all groups, in the order of their launches. Returns how many; 0: every group
 * has stopped. left_s: time for all that is to come; infinite: there is no limit. */
int nb_schedule_round(struct nb_schedule *s, int round, double left_s, int *units);
/* Has a group fewer launches than every group has? */
bool nb_schedule_lacks(const struct nb_schedule *s);
/* Just before the launch of a unit of the round: is there still time for it? Where not, it has stopped. */
bool nb_schedule_may_launch(struct nb_schedule *s, int first, double left_s);
/* The number of the group's next launch; -1: it may have no more. */
int nb_schedule_next(const struct nb_schedule *s, int group);
