// SPDX-License-Identifier: Apache-2.0
/* The experiments by name, their parameters, and the kind of experiment that runs one in the guard, since it calls kernels. */
#include "src/claims/property.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/experiment.h"
#include "src/core/guard.h"
#include "src/core/json.h"
#include "src/core/json_fields.h"
#include "src/core/json_members.h"
#include "src/core/log.h"
#include "src/core/text.h"

#define NB_PROPERTY_ENTRY(name) extern const struct nb_property nb_property_##name;
#include "property_list.h"
#undef NB_PROPERTY_ENTRY

const struct nb_property *const nb_properties[] = {
#define NB_PROPERTY_ENTRY(name) &nb_property_##name,
#include "property_list.h"
#undef NB_PROPERTY_ENTRY
    NULL};

const struct nb_property *nb_property_find(const char *name) {
    for (size_t i = 0; nb_properties[i]; i++)
        if (strcmp(nb_properties[i]->name, name) == 0) return nb_properties[i];
    return NULL;
}

/* ---- parameters of a run, and findings with its tags ---- */

static const cJSON *item_of(const cJSON *params, const char *name, int i) {
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(params, name);
    if (cJSON_IsArray(node)) return cJSON_GetArrayItem(node, i);
    return i == 0 ? node : NULL;
}

static int count_of(const cJSON *params, const char *name) {
    const cJSON *node = cJSON_GetObjectItemCaseSensitive(params, name);
    return cJSON_IsArray(node) ? cJSON_GetArraySize(node) : node != NULL;
}

double nb_param_number_at(const struct nb_property_call *call, const char *name, int i) {
    const cJSON *node = item_of(call->params, name, i);
    return cJSON_IsNumber(node) ? node->valuedouble : (double)NAN;
}

const char *nb_param_text_at(const struct nb_property_call *call, const char *name, int i) {
    const char *text = cJSON_GetStringValue(item_of(call->params, name, i));
    return text ? text : "";
}

double nb_param_number(const struct nb_property_call *call, const char *name) {
    return nb_param_number_at(call, name, 0);
}

int64_t nb_param_whole(const struct nb_property_call *call, const char *name) {
    return (int64_t)nb_param_number(call, name);
}

const char *nb_param_text(const struct nb_property_call *call, const char *name) {
    return nb_param_text_at(call, name, 0);
}

int nb_param_count(const struct nb_property_call *call, const char *name) { return count_of(call->params, name); }

static const struct nb_property_each *each_of(const struct nb_property *p, const char *param) {
    for (const struct nb_property_each *e = p->each; e->param; e++)
        if (strcmp(e->param, param) == 0) return e;
    return NULL;
}

static struct nb_finding *tag_run(const struct nb_property_call *call, struct nb_finding *f) {
    for (const struct nb_property_param *param = call->property->params; param->name; param++) {
        const struct nb_property_each *e = each_of(call->property, param->name);
        if (!e || !e->tag) continue;
        if (cJSON_IsNumber(item_of(call->params, param->name, 0)))
            nb_finding_tag_number(f, e->tag, nb_param_number(call, param->name));
        else
            nb_finding_tag(f, e->tag, nb_param_text(call, param->name));
    }
    return f;
}

struct nb_finding *nb_property_add(const struct nb_property_call *call, const char *name, const char *unit,
                                   double value) {
    return tag_run(call, nb_findings_add_exact(call->out, name, unit, value));
}

struct nb_finding *nb_property_add_or(const struct nb_property_call *call, const char *name, const char *unit,
                                      double value, const char *reason) {
    if (!isnan(value)) return nb_property_add(call, name, unit, value);
    return tag_run(call, nb_findings_add_missing(call->out, name, "%s", reason));
}

/* ---- all runs ---- */

/* The combination number `at`; the last parameter's values change fastest. */
static cJSON *params_of_run(const struct nb_property *p, const cJSON *params, int at) {
    cJSON *run = cJSON_Duplicate(params, true);
    int n = 0;
    while (p->each[n].param) n++;
    for (int i = n - 1; i >= 0; i--) {
        const char *name = p->each[i].param;
        const int count = count_of(params, name);
        cJSON_ReplaceItemInObjectCaseSensitive(run, name, cJSON_Duplicate(item_of(params, name, at % count), true));
        at /= count;
    }
    return run;
}

void nb_property_run(const struct nb_property *p, const cJSON *params, struct nb_findings *out) {
    assert(p && params && out);
    int n = 1;
    for (const struct nb_property_each *e = p->each; e->param; e++) n *= count_of(params, e->param);
    for (int i = 0; i < n; i++) {
        cJSON *run = params_of_run(p, params, i);
        p->run(&(struct nb_property_call){.property = p, .params = run, .out = out});
        cJSON_Delete(run);
    }
}

/* ---- parameters as a claim gives them ---- */

/* Of one type: both numbers, both texts, both lists, or a single value and a list of such. */
static bool fits(const cJSON *given, const cJSON *fallback) {
    const cJSON *kind = cJSON_IsArray(fallback) ? fallback->child : fallback;
    const bool list = cJSON_IsArray(given);
    for (const cJSON *item = list ? given->child : given; item; item = list ? item->next : NULL)
        if (item->type != kind->type || (cJSON_IsNumber(item) && !isfinite(item->valuedouble))) return false;
    return list ? given->child && cJSON_IsArray(fallback) : true;
}

static int check_count(const struct nb_jsonc *file, const cJSON *given) {
    const bool list = cJSON_IsArray(given);
    for (const cJSON *item = list ? given->child : given; item; item = list ? item->next : NULL)
        if (item->valuedouble < 1 || item->valuedouble > NB_PROPERTY_MOST ||
            item->valuedouble != floor(item->valuedouble))
            return nb_error("%s:%d: \"%s\": %.10g is not a whole number from 1 to %d", file->path,
                            nb_jsonc_line(file, given), given->string, item->valuedouble, NB_PROPERTY_MOST);
    return 0;
}

static int read_param(const struct nb_property *p, const struct nb_jsonc *file, const cJSON *given, cJSON *out) {
    const char *names[sizeof p->params / sizeof p->params[0]];
    size_t n = 0;
    for (const struct nb_property_param *param = p->params; param->name; param++) {
        names[n++] = param->name;
        if (strcmp(given->string, param->name) != 0) continue;
        const cJSON *fallback = cJSON_GetObjectItemCaseSensitive(out, param->name);
        if (!fits(given, fallback))
            return nb_jsonc_wrong_type(file, given, given->string,
                                       cJSON_IsArray(fallback)    ? "one value of its kind, or a list of them"
                                       : cJSON_IsNumber(fallback) ? "a number"
                                                                  : "a text");
        if (param->count && check_count(file, given) != 0) return -1;
        cJSON_ReplaceItemInObjectCaseSensitive(out, param->name, cJSON_Duplicate(given, true));
        return 0;
    }
    return nb_jsonc_unknown_key(file, given, names, n);
}

int nb_property_params(const struct nb_property *p, const struct nb_jsonc *file, const cJSON *given, cJSON **out) {
    assert(p && out);
    *out = cJSON_CreateObject();
    for (const struct nb_property_param *param = p->params; param->name; param++)
        cJSON_AddItemToObject(*out, param->name, cJSON_Parse(param->fallback));
    if (given && !cJSON_IsObject(given)) return nb_jsonc_wrong_type(file, given, "params", "an object");
    for (const cJSON *item = given ? given->child : NULL; item; item = item->next)
        if (read_param(p, file, item, *out) != 0) return -1;
    return 0;
}

/* ---- the kind of experiment ---- */

/* Seconds; the longest take a tenth of it. */
static const double limit_s = 60;

struct named {
    const struct nb_property *property;
    cJSON *params;
};

static int read_name(const struct nb_jsonc *file, const cJSON *node, void *into) {
    const char *names[64], *text = cJSON_GetStringValue(node);
    size_t n = 0;
    for (; nb_properties[n]; n++) names[n] = nb_properties[n]->name;
    struct named *own = into;
    own->property = text ? nb_property_find(text) : NULL;
    if (own->property) return 0;
    const char *nearest = text ? nb_nearest(text, names, n) : NULL;
    return nb_error(
        "%s:%d: \"property\" must name an experiment (`normbench claims --explain properties` lists them)%s%s%s",
        file->path, nb_jsonc_line(file, node), nearest ? "; did you mean '" : "", nearest ? nearest : "",
        nearest ? "'?" : "");
}

static int property_read(struct nb_experiment *e, const struct nb_jsonc *file, const cJSON *node) {
    static const struct nb_field fields[] = {{"kind", NB_FIELD_ELSEWHERE, .required = true},
                                             {"property", NB_FIELD_READ, .required = true, .read = read_name},
                                             {"params", NB_FIELD_ELSEWHERE, .required = false}};
    struct named *own = e->own = nb_alloc(1, sizeof *own);
    if (nb_fields_read(file, node, fields, 3, "a property experiment", own) != 0) return -1;
    return nb_property_params(own->property, file, cJSON_GetObjectItemCaseSensitive(node, "params"), &own->params);
}

/* "saturation: slopes of sigmoid and tanh behind a norm (norm ["none"], scale [1,10,100])" */
static void property_describe(const struct nb_experiment *e, struct nb_strbuf *out) {
    const struct named *own = e->own;
    nb_strbuf_addf(out, "%s: %s", own->property->name, own->property->summary);
    for (const cJSON *item = own->params->child; item; item = item->next) {
        char *value = cJSON_PrintUnformatted(item);
        nb_strbuf_addf(out, "%s%s %s", item == own->params->child ? " (" : ", ", item->string, value);
        cJSON_free(value);
    }
    if (own->params->child) nb_strbuf_add(out, ")");
}

static void property_release(struct nb_experiment *e) {
    cJSON_Delete(((struct named *)e->own)->params);
    free(e->own);
}

/* ---- findings, which are exact, come from the guard as text ---- */

static const struct nb_member members[] = {NB_MEMBER(STRING, struct nb_finding, name),
                                           NB_MEMBER(STRING, struct nb_finding, unit),
                                           NB_MEMBER_AS("value", EXACT, struct nb_finding, value.value),
                                           NB_MEMBER_AS("low", EXACT, struct nb_finding, value.low),
                                           NB_MEMBER_AS("high", EXACT, struct nb_finding, value.high),
                                           NB_MEMBER(STRING, struct nb_finding, evidence),
                                           NB_MEMBER(STRING, struct nb_finding, reason),
                                           NB_MEMBERS_END};

static cJSON *finding_to_json(const struct nb_finding *f) {
    cJSON *json = nb_json_of_members(members, f), *tags = cJSON_AddObjectToObject(json, "tags");
    for (size_t i = 0; i < f->n_tags; i++) cJSON_AddStringToObject(tags, f->tags[i].axis, f->tags[i].value);
    return json;
}

static int finding_from_json(struct nb_findings *out, const cJSON *json, const char *what) {
    struct nb_finding read = {0};
    if (nb_json_get_members(json, members, &read, what) != 0 || !read.name || !read.unit) {
        nb_findings_release(
            &(struct nb_findings){.items = memcpy(nb_alloc(1, sizeof read), &read, sizeof read), .n = 1});
        return -1;
    }
    struct nb_finding *f = nb_findings_add(out, "", "", read.value);
    free(f->name);
    free(f->unit);
    *f = read;
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(json, "tags"))
        nb_finding_tag(f, item->string, cJSON_GetStringValue(item));
    return 0;
}

struct work {
    const struct named *own;
    bool fits;
    char text[NB_GUARD_BYTES - 64];
};

static void work(void *arg) {
    struct work *w = arg;
    struct nb_findings found = {0};
    struct nb_strbuf text = {0};
    cJSON *list = cJSON_CreateArray();
    nb_property_run(w->own->property, w->own->params, &found);
    for (size_t i = 0; i < found.n; i++) cJSON_AddItemToArray(list, finding_to_json(&found.items[i]));
    nb_json_print(list, &text);
    if ((w->fits = text.len < sizeof w->text)) memcpy(w->text, text.text, text.len + 1);
    nb_strbuf_release(&text);
    nb_findings_release(&found);
    cJSON_Delete(list);
}

static int read_findings(struct nb_findings *out, const char *text, const char *what) {
    cJSON *list = cJSON_Parse(text);
    const cJSON *item;
    int result = cJSON_IsArray(list) ? 0 : -1;
    cJSON_ArrayForEach(item, list) if (result == 0) result = finding_from_json(out, item, what);
    cJSON_Delete(list);
    return result;
}

/* What was found before a crash is not kept: it cannot be trusted. */
static void property_find(const struct nb_experiment *e, const struct nb_claims_measured *m, struct nb_findings *out) {
    static struct work w;
    (void)m;
    w = (struct work){.own = e->own};
    nb_guard_end(); /* what the experiment points to is younger than the last guard */
    const char *why = nb_guarded(work, &w, sizeof w, limit_s);
    if (!why && !w.fits) why = "found more than can be passed on";
    if (!why && read_findings(out, w.text, w.own->property->name) != 0) why = "found something that cannot be read";
    if (why) nb_findings_add_missing(out, "", "the experiment %s: its code %s", w.own->property->name, why);
}

const struct nb_experiment_kind nb_experiment_property = {
    .name = "property",
    .summary = "a small experiment with a known answer",
    .read = property_read,
    .release = property_release,
    .describe = property_describe,
    .find = property_find,
};
