// SPDX-License-Identifier: Apache-2.0
/* Gains by a launch, and rounds in random order. */
#include "src/measure/schedule.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/random.h"

void nb_schedule_init(struct nb_schedule *s, const struct nb_plan *plan) {
    assert(s && plan);
    *s = (struct nb_schedule){.plan = plan, .groups = nb_alloc(plan->n_groups, sizeof *s->groups)};
    for (size_t g = 0; g < plan->n_groups; g++) {
        s->groups[g].cases = nb_alloc(plan->groups[g].n, sizeof *s->groups[g].cases);
        s->groups[g].widths = nb_alloc(plan->groups[g].n, sizeof(double));
        s->groups[g].launched = nb_alloc((unsigned)plan->most_launches, sizeof(bool));
        for (size_t i = 0; i < plan->groups[g].n; i++) s->groups[g].cases[i].adaptive = nb_plan_is_adaptive(plan);
        if (!nb_group_is_timed(plan, g)) s->groups[g].stopped = NB_STOP_FIXED;
    }
}

void nb_schedule_release(struct nb_schedule *s) {
    assert(s);
    for (size_t g = 0; s->groups && g < s->plan->n_groups; g++) {
        for (size_t i = 0; i < s->plan->groups[g].n; i++) nb_launches_release(&s->groups[g].cases[i]);
        free(s->groups[g].cases);
        free(s->groups[g].widths);
        free(s->groups[g].launched);
    }
    free(s->groups);
    *s = (struct nb_schedule){0};
}

/* ---- what a launch leaves ---------------------------------------------------------------------------------------- */

/* null: s stays empty. */
static int read_samples(struct nb_samples *s, const cJSON *arm) {
    *s = (struct nb_samples){0};
    return arm ? nb_samples_from_json(s, arm) : 0;
}

static int take_case(struct nb_launches *launches, const cJSON *line, const cJSON *arm,
                     const struct nb_samples *reference) {
    static const struct nb_noise unused = {0};
    struct nb_samples own, copy;
    int result = read_samples(&own, arm);
    if (result == 0)
        result = read_samples(&copy, nb_json_find(cJSON_GetObjectItemCaseSensitive(line, "copies"), "variant",
                                                  nb_json_get_text(arm, "copy")));
    else
        copy = (struct nb_samples){0};
    if (result == 0) nb_launches_add(launches, &own, copy.n ? &copy : NULL, reference->n ? reference : NULL, &unused);
    nb_samples_release(&own);
    nb_samples_release(&copy);
    return result;
}

static int take_launch(struct nb_schedule *s, int group, const cJSON *line) {
    const struct nb_group *planned = &s->plan->groups[group];
    struct nb_scheduled_group *g = &s->groups[group];
    const cJSON *cases = cJSON_GetObjectItemCaseSensitive(line, "cases");
    struct nb_samples reference;
    int result =
        read_samples(&reference, nb_json_find(cases, "key", s->plan->keys[planned->cases[planned->reference]]));
    for (size_t i = 0; result == 0 && i < planned->n; i++) {
        const cJSON *arm = nb_json_find(cases, "key", s->plan->keys[planned->cases[i]]);
        if (!arm) continue;
        result = take_case(&g->cases[i], line, arm, &reference);
        const double width = nb_launches_width(&g->cases[i]);
        g->widths[i] = g->cases[i].n == 0 ? 0 : isfinite(width) ? width : 1;
    }
    nb_samples_release(&reference);
    return result;
}

static int take_stop(struct nb_scheduled_group *g, const cJSON *line) {
    const char *why = nb_json_get_text(line, "why");
    const double launches = nb_json_get_number(line, "launches");
    g->n_when_stopped = launches >= 0 && launches <= INT_MAX ? (int)launches : 0;
    for (int i = 0; why && nb_stop_names[i]; i++)
        if (strcmp(nb_stop_names[i], why) == 0) g->stopped = (enum nb_stop)i;
    return 0;
}

int nb_schedule_take(struct nb_schedule *s, int group, const cJSON *line) {
    assert(s && group >= 0 && (size_t)group < s->plan->n_groups && line);
    const char *type = nb_json_get_text(line, "type");
    if (type && strcmp(type, "stop") == 0) return take_stop(&s->groups[group], line);
    const bool is_used = type && strcmp(type, "launch") == 0 && nb_plan_is_adaptive(s->plan);
    return is_used ? take_launch(s, group, line) : 0;
}

void nb_schedule_tried(struct nb_schedule *s, int group, int launch, double elapsed_s) {
    assert(s && launch >= 0 && launch < s->plan->most_launches);
    struct nb_scheduled_group *g = &s->groups[group];
    if (g->launched[launch]) return;
    g->launched[launch] = true;
    g->n_launches++;
    g->elapsed_s += elapsed_s;
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
    double widest = 0;
    if (g->stopped != NB_STOP_UNKNOWN) return 0;
    if (g->n_launches < s->plan->launches) return s->plan->launches - g->n_launches;
    for (size_t i = 0; i < s->plan->groups[group].n; i++) widest = fmax(widest, g->widths[i]);
    const double factor = widest / s->plan->aim;
    return fmin(fmax(g->n_launches * (factor * factor - 1), 1), s->plan->most_launches - g->n_launches);
}

/* As measured so far, or as estimated. */
static double mean_s(const struct nb_schedule *s, int group) {
    const struct nb_scheduled_group *g = &s->groups[group];
    return g->elapsed_s > 0 ? g->elapsed_s / g->n_launches : s->plan->groups[group].estimate.launch;
}

static double launch_s(const struct nb_schedule *s, int first) {
    double sum = 0;
    for (int g = first; g < first + nb_schedule_unit_size(s->plan, first); g++) sum += mean_s(s, g);
    return sum;
}

double nb_schedule_to_come_s(const struct nb_schedule *s) {
    double sum = 0;
    for (int g = 0; g < (int)s->plan->n_groups; g += nb_schedule_unit_size(s->plan, g))
        sum += launches_to_come(s, g) * launch_s(s, g);
    return sum;
}

double nb_schedule_slowness(const struct nb_schedule *s) {
    double estimated_s = 0, elapsed_s = 0;
    for (size_t g = 0; g < s->plan->n_groups; g++) {
        estimated_s += s->groups[g].n_launches * s->plan->groups[g].estimate.launch;
        elapsed_s += s->groups[g].elapsed_s;
    }
    return estimated_s > 0 && elapsed_s > 0 ? elapsed_s / estimated_s : 1;
}

/* ---- rounds ------------------------------------------------------------------------------------------------------- */

int nb_schedule_unit_size(const struct nb_plan *plan, int first) {
    int n = 1;
    while (plan->groups[first].single_width && (size_t)(first + n) < plan->n_groups &&
           plan->groups[first + n].family == plan->groups[first].family)
        n++;
    return n;
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
    if (s->groups[first].n_launches >= s->plan->most_launches) return NB_STOP_MOST;
    return launch_s(s, first) > left_s ? NB_STOP_BUDGET : NB_STOP_UNKNOWN;
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

/* The units that lack launches which every group has. */
static int lacking(const struct nb_schedule *s, struct unit *due) {
    int n = 0;
    for (int g = 0; g < (int)s->plan->n_groups; g += nb_schedule_unit_size(s->plan, g))
        if (s->groups[g].n_launches < s->plan->launches && nb_group_is_timed(s->plan, (size_t)g))
            due[n++] = (struct unit){g, 0};
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

int nb_schedule_round(struct nb_schedule *s, int round, double left_s, int *units) {
    assert(s && units && round >= 0);
    struct unit *due = nb_alloc(s->plan->n_groups + 1, sizeof *due);
    int n = lacking(s, due);
    if (n == 0) n = gaining(s, left_s, due);
    shuffle(due, n, s->plan->order_seed, round);
    for (int i = 0; i < n; i++) units[i] = due[i].first;
    free(due);
    return n;
}
