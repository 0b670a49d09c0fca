// SPDX-License-Identifier: Apache-2.0
/* The ladder: for each event the first source that opens it and then counts its known work right. What was found is kept, since
 * probing takes some hundredths of a second. */
#include "src/measure/counters.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/measure/counter_source.h"

#define MAX_EVENTS (NB_MAX_COUNTERS - 1)

struct found {
    const struct nb_counter_source *source; /* null: none */
    struct nb_counter_info info;
};

static const struct nb_counter_source *const ladder[] = {&nb_source_papi, &nb_source_perf_event, &nb_source_getrusage};
enum { N_RUNGS = sizeof ladder / sizeof ladder[0] };

static const char *source_name(const struct nb_counter_source *s, const struct nb_event *e) {
    return e->software ? s->software_name : s->name;
}

/* Runs work under an open event; -1: the source failed. */
static int count(const struct nb_counter_source *s, struct nb_open_event *o, nb_work work, void *arg, int calls,
                 double *value) {
    if (s->begin(o) != 0) return -1;
    for (int i = 0; i < calls; i++) work(arg);
    return s->end(o, value);
}

static bool believe(const struct nb_counter_source *s, struct nb_open_event *o, char *reason, size_t n) {
    double value = 0;
    if (o->event->can_happen && !o->event->can_happen()) return true;
    if (count(s, o, o->event->known, NULL, 1, &value) != 0) {
        snprintf(reason, n, "%s opens it but cannot count", source_name(s, o->event));
        return false;
    }
    if (value >= o->event->low && value <= o->event->high) return true;
    snprintf(reason, n, "%s counted %.0f in work that makes %.0f at least", source_name(s, o->event), value,
             o->event->low);
    return false;
}

/* Of the reasons along the ladder the last one said stands: it names the cause nearest to the machine. */
static void probe_event(struct found *f, const struct nb_event *e) {
    *f = (struct found){0};
    snprintf(f->info.name, sizeof f->info.name, "%s", e->name);
    for (int i = 0; i < N_RUNGS && !f->source; i++) {
        struct nb_open_event open;
        if (!e->software && ladder[i] == &nb_source_getrusage) continue;
        snprintf(f->info.source, sizeof f->info.source, "%s", source_name(ladder[i], e));
        if (ladder[i]->open(&open, e, f->info.reason, sizeof f->info.reason) != 0) continue;
        if (believe(ladder[i], &open, f->info.reason, sizeof f->info.reason)) f->source = ladder[i];
        ladder[i]->close(&open);
    }
    f->info.available = f->source != NULL;
    if (f->source) f->info.reason[0] = '\0';
}

static const struct found *probe(void) {
    static struct found found[MAX_EVENTS];
    static bool probed;
    assert(nb_n_events <= MAX_EVENTS);
    for (size_t i = 0; i < nb_n_events && !probed; i++) probe_event(&found[i], &nb_events[i]);
    probed = true;
    return found;
}

size_t nb_counters_list(struct nb_counter_info *list, size_t max) {
    const struct found *found = probe();
    size_t n = 0;
    for (; n < nb_n_events && n < max; n++) list[n] = found[n].info;
    if (n == max) return n;
    struct nb_counter_info exact = {.name = "instructions_exact", .source = "single_step"};
    exact.available = nb_single_step_probe(exact.reason, sizeof exact.reason) == 0;
    list[n++] = exact;
    return n;
}

bool nb_counters_have_hardware(void) {
    const struct found *found = probe();
    for (size_t i = 0; i < nb_n_events; i++)
        if (!nb_events[i].software && found[i].source) return true;
    return false;
}

static void nothing(void *arg) { __asm__ volatile("" : : "r"(arg) : "memory"); }

static void measure_event(const struct found *f, const struct nb_event *e, nb_work work, void *arg, int calls,
                          struct nb_counter *out) {
    struct nb_open_event open;
    double with = NAN, without = NAN;
    *out = (struct nb_counter){.value = NAN};
    snprintf(out->name, sizeof out->name, "%s", e->name);
    snprintf(out->source, sizeof out->source, "%s", f->info.source);
    snprintf(out->reason, sizeof out->reason, "%s", f->info.reason);
    if (!f->source || f->source->open(&open, e, out->reason, sizeof out->reason) != 0) return;
    bool counted = count(f->source, &open, nothing, NULL, calls, &without) == 0 &&
                   count(f->source, &open, work, arg, calls, &with) == 0;
    f->source->close(&open);
    if (counted)
        out->value = fmax(0, with - without) / calls;
    else
        snprintf(out->reason, sizeof out->reason, "%s stopped counting", f->info.source);
}

size_t nb_counters_measure(nb_work work, void *arg, int calls, struct nb_counter *out, size_t max) {
    const struct found *found = probe();
    assert(calls > 0);
    size_t n = nb_n_events < max ? nb_n_events : max;
    for (size_t i = 0; i < n; i++) measure_event(&found[i], &nb_events[i], work, arg, calls, &out[i]);
    return n;
}

/* ---- as JSON ------------------------------------------------------------------------------------------------------ */

cJSON *nb_counter_to_json(const struct nb_counter *c) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "name", c->name);
    nb_json_number(json, "value", c->value);
    nb_json_text(json, "source", c->source);
    if (c->reason[0]) nb_json_text(json, "reason", c->reason);
    return json;
}

int nb_counter_from_json(struct nb_counter *c, const cJSON *json) {
    if (!nb_json_get_text(json, "name") || !nb_json_get_text(json, "source"))
        return nb_error("a counter without \"name\" or \"source\"");
    *c = (struct nb_counter){.value = nb_json_get_number(json, "value")};
    if (nb_json_copy_text(c->name, sizeof c->name, json, "name") != 0) return -1;
    if (nb_json_copy_text(c->source, sizeof c->source, json, "source") != 0) return -1;
    return nb_json_copy_text(c->reason, sizeof c->reason, json, "reason");
}
