// SPDX-License-Identifier: Apache-2.0
/* The experiments by name, their parameters, and the kind of experiment that runs one in the guard, since it calls kernels. */
#include "src/claims/property.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/experiment.h"
#include "src/core/axes.h"
#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/guard.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "src/measure/paired.h"
#include "src/plan/inputs.h"

#define NB_PROPERTY_ENTRY(name) extern const struct nb_property nb_property_##name[];
#include "property_list.h"
#undef NB_PROPERTY_ENTRY

static const struct nb_property *const files[] = {
#define NB_PROPERTY_ENTRY(name) nb_property_##name,
#include "property_list.h"
#undef NB_PROPERTY_ENTRY
};

/* The first by name behind another, null: of all. */
static const struct nb_property *next_by_name(const struct nb_property *before) {
    const struct nb_property *next = NULL;
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++)
        for (const struct nb_property *p = files[f]; p->name; p++)
            if ((!before || strcmp(p->name, before->name) > 0) && (!next || strcmp(p->name, next->name) < 0)) next = p;
    return next;
}

const struct nb_property *nb_property_at(size_t i) {
    const struct nb_property *p = next_by_name(NULL);
    while (p && i-- > 0) p = next_by_name(p);
    return p;
}

static const struct nb_property *find_property(const char *name) {
    const struct nb_property *p;
    for (size_t i = 0; (p = nb_property_at(i)); i++)
        if (strcmp(p->name, name) == 0) break;
    return p;
}

/* ---- parameters of a run, and findings with its tags ---- */

static const cJSON *item_of(const cJSON *params, const char *name, int i) {
    const cJSON *node = nb_json_get(params, name);
    if (cJSON_IsArray(node)) return cJSON_GetArrayItem(node, i);
    return i == 0 ? node : NULL;
}

static int count_of(const cJSON *params, const char *name) {
    const cJSON *node = nb_json_get(params, name);
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

static struct nb_finding *tag_run(const struct nb_property_call *call, struct nb_finding *f) {
    for (const struct nb_property_param *param = call->property->params; param->name; param++) {
        if (!param->tag || !*param->tag) continue;
        if (cJSON_IsNumber(item_of(call->params, param->name, 0)))
            nb_finding_tag_number(f, param->tag, nb_param_number(call, param->name));
        else
            nb_finding_tag(f, param->tag, nb_param_text(call, param->name));
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

struct nb_finding *nb_property_add_seeds(const struct nb_property_call *call, const char *name, const char *unit,
                                         double *values, size_t n, const char *reason) {
    const bool one = n == 1;
    const struct nb_interval over = one ? nb_exactly(values[0]) : nb_over_launches(values, n, 0.95);
    struct nb_finding *f = nb_property_add_or(call, name, unit, over.value, reason);
    f->value = over;
    f->units = values;
    f->n_units = one ? 0 : n;
    return f;
}

/* ---- all runs ---- */

/* The combination number `at`; the last parameter's values change fastest. */
static cJSON *params_of_run(const struct nb_property *p, const cJSON *params, int at) {
    cJSON *run = cJSON_Duplicate(params, true);
    int n = 0;
    while (p->params[n].name) n++;
    for (int i = n - 1; i >= 0; i--) {
        const char *name = p->params[i].name;
        const int count = count_of(params, name);
        if (!p->params[i].tag) continue;
        cJSON_ReplaceItemInObjectCaseSensitive(run, name, cJSON_Duplicate(item_of(params, name, at % count), true));
        at /= count;
    }
    return run;
}

/* All runs of an experiment with such params. */
static void property_run(const struct nb_property *p, const cJSON *params, struct nb_findings *out) {
    int n = 1;
    for (const struct nb_property_param *param = p->params; param->name; param++)
        if (param->tag) n *= count_of(params, param->name);
    for (int i = 0; i < n; i++) {
        cJSON *run released_by(nb_json_release) = params_of_run(p, params, i);
        p->run(&(struct nb_property_call){.property = p, .params = run, .out = out});
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
            return nb_jsonc_error(file, given, "\"%s\": %.10g is not a whole number from 1 to %d", given->string,
                                  item->valuedouble, NB_PROPERTY_MOST);
    return 0;
}

static int read_param(const struct nb_property *p, const struct nb_jsonc *file, const cJSON *given, cJSON *out) {
    const char *names[sizeof p->params / sizeof p->params[0]];
    size_t n = 0;
    for (const struct nb_property_param *param = p->params; param->name; param++) {
        names[n++] = param->name;
        if (strcmp(given->string, param->name) != 0) continue;
        const cJSON *fallback = nb_json_get(out, param->name);
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

/* An owned object: the params given, and the fallbacks of those that are not. -1 after nb_error. */
static int property_params(const struct nb_property *p, const struct nb_jsonc *file, const cJSON *given, cJSON **out) {
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
    for (; nb_property_at(n); n++) names[n] = nb_property_at(n)->name;
    struct named *own = into;
    own->property = text ? find_property(text) : NULL;
    if (own->property) return 0;
    return nb_jsonc_error(file, node,
                          "\"property\" must name an experiment (`normbench claims --explain properties` lists them)%s",
                          nb_did_you_mean(text ? text : "", names, n).text);
}

static int property_read(struct nb_experiment *e, const struct nb_jsonc *file, const cJSON *node) {
    static const struct nb_field fields[] = {{"kind", NB_FIELD_ELSEWHERE, .required = true},
                                             {"property", NB_FIELD_READ, .required = true, .read = read_name},
                                             {"params", NB_FIELD_ELSEWHERE, .required = false}};
    struct named *own = e->own = nb_alloc(1, sizeof *own);
    if (nb_fields_read(file, node, fields, 3, "a property experiment", own) != 0) return -1;
    return property_params(own->property, file, nb_json_get(node, "params"), &own->params);
}

/* "saturation: slopes of sigmoid and tanh behind a norm (norm ["none"], scale [1,10,100])" */
static void property_describe(const struct nb_experiment *e, struct nb_strbuf *out) {
    const struct named *own = e->own;
    nb_strbuf_addf(out, "%s: %s", own->property->name, own->property->summary);
    for (const cJSON *item = own->params->child; item; item = item->next) {
        char *value freed = cJSON_PrintUnformatted(item);
        nb_strbuf_addf(out, "%s%s %s", item == own->params->child ? " (" : ", ", item->string, value);
    }
    if (own->params->child) nb_strbuf_add(out, ")");
}

static void property_release(struct nb_experiment *e) { cJSON_Delete(((struct named *)e->own)->params); }

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
    cJSON *units = cJSON_AddObjectToObject(json, "units");
    for (size_t i = 0; i < f->n_units; i++) {
        char number[24];
        snprintf(number, sizeof number, "%zu", i);
        nb_json_exact(units, number, f->units[i]);
    }
    return json;
}

static int finding_from_json(struct nb_findings *out, const cJSON *json, const char *what) {
    struct nb_finding *f = NB_PUSH(out->items, out->n);
    *f = (struct nb_finding){0};
    if (nb_json_get_members(json, members, f, what) != 0 || !f->name || !f->unit) {
        nb_free_all(f->name, f->unit, f->evidence, f->reason);
        out->n--;
        return -1;
    }
    const cJSON *item, *units = nb_json_get(json, "units");
    cJSON_ArrayForEach(item, nb_json_get(json, "tags")) nb_finding_tag(f, item->string, cJSON_GetStringValue(item));
    f->units = nb_alloc((unsigned)cJSON_GetArraySize(units) + 1, sizeof *f->units);
    cJSON_ArrayForEach(item, units) f->units[f->n_units++] = nb_json_get_exact(units, item->string);
    return 0;
}

struct work {
    const struct named *own;
    bool fits;
    char text[NB_GUARD_BYTES - 64];
};

static void work(void *arg) {
    struct work *w = arg;
    struct nb_findings found released_by(nb_findings_release) = {0};
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    cJSON *list released_by(nb_json_release) = cJSON_CreateArray();
    property_run(w->own->property, w->own->params, &found);
    for (size_t i = 0; i < found.n; i++) cJSON_AddItemToArray(list, finding_to_json(&found.items[i]));
    nb_json_print(list, &text);
    if ((w->fits = text.len < sizeof w->text)) memcpy(w->text, text.text, text.len + 1);
}

static int read_findings(struct nb_findings *out, const char *text, const char *what) {
    cJSON *list released_by(nb_json_release) = cJSON_Parse(text);
    const cJSON *item;
    int result = cJSON_IsArray(list) ? 0 : -1;
    cJSON_ArrayForEach(item, list) if (result == 0) result = finding_from_json(out, item, what);
    return result;
}

/* What was found before a crash is not kept: it cannot be trusted. */
static void property_find(const struct nb_experiment *e, const struct nb_claims_measured *m, struct nb_findings *out) {
    static struct work w;
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

/* ---- a kernel of the registry called on plain numbers ---- */

static int make_case(struct nb_case *c, const struct nb_norm *n, const struct nb_entry *entry, char *reason,
                     size_t reason_n) {
    const struct nb_shape shape = nb_shape_of(n->rows, n->cols);
    nb_case_init(c);
    nb_case_set_entry(c, entry);
    snprintf(c->data, sizeof c->data, "zeros"); /* until x is set */
    if (nb_axis_set(nb_axis_find("shape"), c, n->shape ? n->shape : shape.text, reason, reason_n) != 0) return -1;
    c->eps = n->eps;
    c->formula = n->formula;
    c->formula.struct_size = sizeof c->formula;
    c->formula.affine = n->beta ? NB_AFFINE_GAMMA_BETA : n->gamma ? NB_AFFINE_GAMMA : NB_AFFINE_NONE;
    c->formula.param = NB_PARAM_F32;
    c->mode = n->mode;
    if (n->momentum > 0) c->momentum = n->momentum;
    nb_case_normalize(c);
    const char *refused = nb_kernel_refuses(entry->kernel, &c->formula);
    if (!refused) refused = nb_case_conflict(c);
    return refused ? nb_reason(reason, reason_n, "%s: %s", n->kernel, refused) : 0;
}

/* From the numbers, else all `otherwise`. */
static void set_running(const struct nb_trial *t, enum nb_tensor_id id, const float *from, float otherwise) {
    float *to = t->buffers.tensors[id].data;
    for (int64_t i = 0; to && i < t->in.n_params; i++) to[i] = from ? from[i] : otherwise;
}

int nb_norm_prepare(struct nb_trial *t, const struct nb_norm *n, char *reason, size_t reason_n) {
    struct nb_case c;
    const struct nb_entry *entry = nb_registry_widest(n->kernel, n->dtype);
    *t = (struct nb_trial){.entry = entry};
    if (!entry)
        return nb_reason(reason, reason_n, "no kernel %s in %s runs here", n->kernel, nb_formats[n->dtype].name);
    if (make_case(&c, n, entry, reason, reason_n) != 0) return -1;
    if (nb_trial_init(t, &c, entry) != 0) return nb_reason(reason, reason_n, "%s: %s", n->kernel, t->reason);
    nb_trial_set_params(t, n->gamma, n->beta);
    nb_trial_set_x(t, n->x, NULL);
    set_running(t, NB_T_RUNNING_MEAN_IN, n->running_mean, 0);
    set_running(t, NB_T_RUNNING_VAR_IN, n->running_var, 1);
    return 0;
}

/* -1 with the reason written. */
static int norm_run(const struct nb_norm *n, double *y, char *reason, size_t reason_n) {
    struct nb_trial t released_by(nb_trial_release) = {0};
    if (nb_norm_prepare(&t, n, reason, reason_n) != 0) return -1;
    if (nb_trial_run(&t) != 0) return nb_reason(reason, reason_n, "%s: %s", t.entry->id, t.reason);
    const struct nb_tensor *mean = &t.buffers.tensors[NB_T_RUNNING_MEAN_OUT],
                           *var = &t.buffers.tensors[NB_T_RUNNING_VAR_OUT]; /* BatchNorm in training */
    const size_t bytes = (size_t)t.in.n_params * sizeof(float);
    for (int64_t i = 0; i < n->rows * n->cols; i++) y[i] = nb_trial_y(&t, i / t.in.cols, i % t.in.cols);
    if (mean->data && n->running_mean) memcpy(n->running_mean, mean->data, bytes);
    if (var->data && n->running_var) memcpy(n->running_var, var->data, bytes);
    return 0;
}

int nb_norm_found(const struct nb_property_call *call, const struct nb_norm *n, double *y, const char *figure) {
    char reason[300];
    if (norm_run(n, y, reason, sizeof reason) == 0) return 0;
    nb_findings_add_missing(call->out, figure, "%s", reason);
    return -1;
}

int nb_norm_plain(const struct nb_property_call *call, const char *kernel, double eps, const double *x, int64_t rows,
                  int64_t cols, double *y, const char *figure) {
    const struct nb_norm n = {.kernel = kernel, .eps = eps, .rows = rows, .cols = cols, .x = x};
    if (strcmp(kernel, "none") != 0) return nb_norm_found(call, &n, y, figure);
    memcpy(y, x, (size_t)(rows * cols) * sizeof *y);
    return 0;
}

double *nb_norm_rows(const struct nb_property_call *call, const char *data, int64_t rows, int64_t cols,
                     const char *figure) {
    struct nb_case c;
    struct nb_inputs in released_by(nb_inputs_release) = {0};
    const struct nb_entry *entry = nb_registry_widest("rmsnorm_twopass", NB_F32);
    nb_case_init(&c);
    if (entry) nb_case_set_kernel(&c, entry->kernel, NULL);
    c.shape = nb_shape_of(rows, cols);
    snprintf(c.data, sizeof c.data, "%s", data);
    c.seed = 1;
    char *refused freed = nb_inputs_refuse(&c);
    if (refused || nb_inputs_init(&in, &c) != 0) {
        nb_findings_add_missing(call->out, figure, "data %s: %s", data, refused ? refused : "cannot be made");
        return NULL;
    }
    double *x = nb_alloc((unsigned long long)(rows * cols), sizeof *x);
    for (int64_t i = 0; i < rows * cols; i++) x[i] = nb_get(in.x, i, NB_F32);
    return x;
}

double *nb_norm_normal(int64_t n, int64_t all) {
    const struct nb_random random = nb_random_stream(1, 0);
    double *x = nb_alloc((unsigned long long)all, sizeof *x);
    for (int64_t i = 0; i < n; i++) x[i] = nb_random_normal(random, (uint64_t)i);
    return x;
}

/* ---- figures of rows ---- */

double nb_mean_of(const double *v, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += v[i];
    return sum / (double)n;
}

double nb_variance_of(const double *v, int64_t n) {
    const double mean = nb_mean_of(v, n);
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (v[i] - mean) * (v[i] - mean);
    return sum / (double)n;
}

double nb_rms_of(const double *v, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += v[i] * v[i];
    return sqrt(sum / (double)n);
}

void nb_minmax(const double *x, int64_t n, int64_t step, double *y) {
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        low = fmin(low, x[i * step]);
        high = fmax(high, x[i * step]);
    }
    for (int64_t i = 0; i < n; i++) y[i * step] = (x[i * step] - low) / (high - low);
}

double nb_largest_difference(const double *a, const double *b, int64_t n) {
    double most = 0;
    for (int64_t i = 0; i < n; i++) {
        const double d = fabs(a[i] - b[i]);
        if (isnan(d) && !(isnan(a[i]) && isnan(b[i]))) return INFINITY;
        most = d > most ? d : most;
    }
    return most;
}
