// SPDX-License-Identifier: Apache-2.0
/* Which group of a run gets the next launch. Every group has plan->launches launches, in rounds over all groups in random order. Then, while
 * time is left, rounds go on over those groups of which a case is not yet as exact as plan->aim: in each the half that gains most by a launch,
 * in random order, so that the launches of a group lie apart in time. Rules that were compared, and what the intervals hold: README.md.
 *
 * Only the widths of intervals decide, never the ratios themselves. */
#ifndef NB_SCHEDULE_H
#define NB_SCHEDULE_H

#include <cjson/cJSON.h>

#include "src/measure/timing.h"
#include "src/plan/plan.h"

struct nb_schedule {
    const struct nb_plan *plan;
    struct nb_scheduled_group {
        struct nb_launches *cases; /* as the plan's group has them */
        double *widths;   /* nb_launches_width() of each; 1 where it is not known, 0 of a case that does not count */
        bool *launched;   /* by launch: done, or tried in vain */
        int n_launches;   /* of these */
        double elapsed_s; /* by these, from start to end of their processes */
        enum nb_stop stopped; /* NB_STOP_UNKNOWN: not yet */
        int n_when_stopped;   /* launches, as a stop line says */
    } * groups;
};

void nb_schedule_init(struct nb_schedule *s, const struct nb_plan *plan);
void nb_schedule_release(struct nb_schedule *s);
/* The samples of a launch line, or what a stop line says. -1 after nb_error where it cannot be read. */
int nb_schedule_take(struct nb_schedule *s, int group, const cJSON *line);
/* The launch was tried, whether it left a line or not. */
void nb_schedule_tried(struct nb_schedule *s, int group, int launch, double elapsed_s);
/* A case that failed keeps its group waiting no longer. */
void nb_schedule_drop(struct nb_schedule *s, int group, int index);

/* Units: a group, or the groups that width alone parts, which are launched next to each other; a unit is named by its first group. */
int nb_schedule_unit_size(const struct nb_plan *plan, int first);
/* Writes the units of the round into units, which has room for all groups, in the order of their launches. Returns how many; 0: every group
 * has stopped. left_s: time for further launches; infinite: there is no limit. */
int nb_schedule_round(struct nb_schedule *s, int round, double left_s, int *units);
/* The number of the group's next launch; -1: it may have no more. */
int nb_schedule_next(const struct nb_schedule *s, int group);
/* Seconds until every group has reached the aim or its most launches, where widths shrink with the root of the number of launches. */
double nb_schedule_to_come_s(const struct nb_schedule *s);
/* How many times longer than estimated the launches took so far. */
double nb_schedule_slowness(const struct nb_schedule *s);

#endif
