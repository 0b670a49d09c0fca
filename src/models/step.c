// SPDX-License-Identifier: Apache-2.0
/* Norms: their cases and what these took; machines; the sum over a step's work, and what follows from it. */
#include "src/models/step.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "src/core/timer.h"
#include "src/record/fingerprint.h"

/* ---- which kernels ---- */

const char *const nb_norm_style_names[] = {"fused", "keepdim", "composed", NULL};

static void name_kernels(char names[2][NB_VARIANT_MAX], const char *op, const char *style) {
    const bool fused = strcmp(style, "fused") == 0;
    snprintf(names[NB_FORWARD], NB_VARIANT_MAX, "%s_%s", op, fused ? "fast" : style);
    snprintf(names[NB_BACKWARD], NB_VARIANT_MAX, "%s_backward_%s", op, fused ? "fast" : "composed");
}

struct nb_norm_pair nb_norm_pair_of(const char *op, const char *against, const char *style) {
    struct nb_norm_pair p;
    snprintf(p.style, sizeof p.style, "%s", style);
    name_kernels(p.of, op, style);
    name_kernels(p.against, against, style);
    return p;
}

/* ---- their cases ---- */

/* Cases of steps have it, so that no other case of the plan, on other rows or with another formula, is taken for one of them. */
static const char LABEL[] = "norms of a step";
static const double LEAST_BYTES = 8 << 20, MOST_BYTES = 4.0 * NB_NORM_COLUMNS, QUICK_BYTES = 2 << 20;

/* Of a tensor of x, beside which lies at least one of y. */
static int64_t timed_rows_of(int64_t rows, int64_t cols, bool quick) {
    const struct nb_cpu *cpu = nb_cpu_light();
    const double row = (double)cols * sizeof(float), bytes = (double)rows * row;
    double kept = fmax(LEAST_BYTES, 4.0 * (double)cpu->l2_bytes);
    if (2 * bytes > (double)cpu->l3_bytes) kept = fmax(kept, (double)cpu->l3_bytes);
    const double wanted = ceil((quick ? QUICK_BYTES : fmin(kept, MOST_BYTES)) / row);
    return wanted < (double)rows ? (int64_t)wanted : rows;
}

static enum nb_pass pass_of(const struct nb_step_work *w) {
    return w->part == NB_PART_BACKWARD ? NB_BACKWARD : NB_FORWARD;
}

/* A kernel at all shapes of the pass: ours in the width that vectors have here, a plugin's in its own. */
static void add_block(cJSON *blocks, const struct nb_model_step *step, const char *kernel, enum nb_pass pass,
                      bool quick) {
    cJSON *block = cJSON_CreateObject(), *shapes;
    nb_json_text(block, "label", LABEL);
    nb_json_text(block, "pass", nb_pass_names[pass]);
    nb_json_text(block, "dtype", "f32");
    if (!strchr(kernel, ':')) nb_json_text(block, "width", "vector");
    nb_json_text(block, "kernel", kernel);
    shapes = cJSON_AddArrayToObject(block, "shape");
    for (size_t i = 0; i < step->n_works; i++) {
        const struct nb_step_work *w = &step->works[i];
        if (w->kind != NB_WORK_NORM || pass_of(w) != pass) continue;
        char *shape freed =
            nb_textf("%lldx%lld", (long long)timed_rows_of(w->rows, w->cols, quick), (long long)w->cols);
        cJSON_AddItemToArray(shapes, cJSON_CreateString(shape));
    }
    if (shapes->child)
        cJSON_AddItemToArray(blocks, block);
    else
        cJSON_Delete(block);
}

void nb_norms_plan(const struct nb_model_step *step, const struct nb_norm_pair *pairs, size_t n, bool quick,
                   struct nb_config *config) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    struct nb_config more;
    cJSON *json released_by(nb_json_release) = cJSON_CreateObject(), *blocks = cJSON_AddArrayToObject(json, "blocks");
    for (int pass = NB_FORWARD; pass <= NB_BACKWARD; pass++)
        for (size_t i = 0; i < n; i++) {
            add_block(blocks, step, pairs[i].against[pass], (enum nb_pass)pass, quick);
            add_block(blocks, step, pairs[i].of[pass], (enum nb_pass)pass, quick);
        }
    const bool any = blocks->child != NULL;
    nb_json_print(json, &text);
    const int result = any ? nb_config_parse(&more, step->path, text.text, text.len) : -1;
    assert(result == 0 || !any);
    if (result == 0) nb_config_append(config, &more);
}

/* ---- what they took ---- */

static const struct nb_record *record_of(const struct nb_results *results, const char *kernel,
                                         const struct nb_norm_time *t) {
    for (size_t i = 0; results && i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        if (r->c.pass != (uint32_t)t->pass || r->c.shape.rows != t->timed_rows || r->c.shape.cols != t->cols ||
            !nb_record_has_label(r, LABEL))
            continue;
        char *name freed = nb_kernel_text(&r->c);
        if (strcmp(name, kernel) == 0) return r;
    }
    return NULL;
}

/* A kernel that keeps its statistics, or tensors, between its phases runs as so many operations; functions of plugins are out of reach. */
static int dispatches_of(const struct nb_entry *e, const struct nb_norm_time *t) {
    struct nb_call call = {.struct_size = sizeof call,
                           .rows = t->rows,
                           .cols = t->cols,
                           .x_stride = t->cols,
                           .y_stride = t->cols,
                           .n_threads = 1,
                           .formula = {.struct_size = sizeof call.formula, .affine = NB_AFFINE_GAMMA_BETA}};
    const struct nb_kernel *k = e->kernel;
    if (k->op == NB_OP_RMSNORM || k->op == NB_OP_PRMSNORM) call.formula.affine = NB_AFFINE_GAMMA;
    const bool at_once = k->style == NB_FUSED && k->stats == NB_STATS_REGISTER;
    return e->plugin || at_once ? 1 : nb_kernel_n_phases(k, &call);
}

static void describe(const char *kernel, const struct nb_norm_time *t, int *dispatches, double *bytes) {
    const struct nb_entry *e = nb_registry_widest(kernel, NB_F32);
    *dispatches = e ? dispatches_of(e, t) : 0;
    *bytes = e ? (double)sizeof(float) * (double)t->rows * (double)t->cols *
                     ((double)e->kernel->loads + (double)e->kernel->stores)
               : (double)NAN;
}

static void time_norm(struct nb_norm_time *t, const struct nb_norm_pair *pair, const struct nb_results *results,
                      const struct nb_sample_table *samples) {
    const struct nb_record *of = record_of(results, pair->of[t->pass], t),
                           *against = record_of(results, pair->against[t->pass], t);
    const double scale = 1e-9 * (double)t->rows / (double)t->timed_rows;
    t->against_s = t->ratio = NB_NO_INTERVAL;
    describe(pair->of[t->pass], t, &t->of_dispatches, &t->of_bytes);
    describe(pair->against[t->pass], t, &t->against_dispatches, &t->against_bytes);
    if (!of || !against) {
        t->reason = nb_textf("%s was not planned at %lldx%lld", of ? pair->against[t->pass] : pair->of[t->pass],
                             (long long)t->timed_rows, (long long)t->cols);
    } else if (!samples || !of->has_timing || !against->has_timing) {
        const struct nb_record *r = against->has_timing ? of : against;
        t->reason = nb_textf("%s: %s", r->key,
                             r->timing_reason ? r->timing_reason
                             : r->reason      ? r->reason
                                              : "not timed");
    } else {
        t->against_s = nb_interval_times(nb_timing_as_measured(&against->timing), scale); /* as the products' */
        t->ratio = nb_paired_ratio(samples, of->key, against->key, NULL).ratio;
        if (isnan(t->ratio.value)) t->reason = nb_textf("%s: no launch in which both were timed", of->key);
    }
}

void nb_norm_times_find(struct nb_norm_times *times, const struct nb_norm_pair *pair, const struct nb_model_step *step,
                        bool quick, const struct nb_results *results, const struct nb_sample_table *samples) {
    *times = (struct nb_norm_times){.pair = *pair, .items = nb_alloc(step->n_works + 1, sizeof *times->items)};
    for (size_t i = 0; i < step->n_works; i++) {
        const struct nb_step_work *w = &step->works[i];
        if (w->kind != NB_WORK_NORM) continue;
        struct nb_norm_time *t = &times->items[times->n++];
        t->rows = w->rows;
        t->cols = w->cols;
        t->timed_rows = timed_rows_of(w->rows, w->cols, quick);
        t->pass = pass_of(w);
        time_norm(t, pair, results, samples);
    }
}

void nb_norm_times_release(struct nb_norm_times *times) {
    for (size_t i = 0; i < times->n; i++) free(times->items[i].reason);
    free(times->items);
    *times = (struct nb_norm_times){0};
}

/* ---- machines: peak rate of f32 products and of memory, from the vendor's specifications (boost clock) ---- */

static const struct nb_machine machines[] = {{"titan-x-pascal", "a TITAN X (Pascal)", 10.97e12, 480e9},
                                             {"v100", "a V100", 15.7e12, 900e9},
                                             {"rtx-2080-ti", "an RTX 2080 Ti", 13.45e12, 616e9},
                                             {"rtx-3090", "an RTX 3090", 35.6e12, 936e9},
                                             {"h100", "an H100", 67e12, 3350e9}};
enum { N_MACHINES = sizeof machines / sizeof machines[0] };

const struct nb_machine *nb_machine_of(const char *name) {
    for (int i = 0; i < N_MACHINES; i++)
        if (strcmp(machines[i].name, name) == 0) return &machines[i];
    return NULL;
}

void nb_machine_names(struct nb_strbuf *out) {
    for (int i = 0; i < N_MACHINES; i++) nb_strbuf_addf(out, "%s%s", i ? ", " : "", machines[i].name);
}

/* ---- the sum ---- */

static void add(struct nb_interval *sum, double n, struct nb_interval v) {
    sum->value += n * v.value;
    sum->low += n * v.low;
    sum->high += n * v.high;
}

static struct nb_interval plus(struct nb_interval a, struct nb_interval b) {
    add(&a, 1, b);
    return a;
}

/* t (1 - r), with the bounds of both. */
static struct nb_interval gain(const struct nb_norm_time *n) {
    const struct nb_interval *t = &n->against_s, *r = &n->ratio;
    return (struct nb_interval){t->value * (1 - r->value), (r->high <= 1 ? t->low : t->high) * (1 - r->high),
                                (r->low <= 1 ? t->high : t->low) * (1 - r->low)};
}

static const struct nb_norm_time *time_of(const struct nb_norm_times *norms, const struct nb_step_work *w) {
    for (size_t i = 0; i < norms->n; i++) {
        const struct nb_norm_time *t = &norms->items[i];
        if (t->rows == w->rows && t->cols == w->cols && t->pass == pass_of(w)) return t;
    }
    return NULL;
}

struct sum {
    struct nb_step_side *side;
    const struct nb_rates *rates;
    const struct nb_norm_times *norms;
    const struct nb_machine *machine;
    enum nb_dtype dtype;
};

static const char *why_no_product(const struct sum *s) {
    if (s->dtype != NB_F32) return "products of 16 bits are not timed on a CPU";
    if (!s->rates) return "nothing was timed";
    return s->rates->reason ? s->rates->reason : "its products were not timed";
}

static void add_product(const struct sum *s, const struct nb_step_work *w) {
    struct nb_interval t = NB_NO_INTERVAL;
    if (s->machine)
        t = nb_exactly(w->flops / s->machine->flops);
    else if (s->rates && s->dtype == NB_F32)
        t = nb_rate_of_product(s->rates, w);
    if (isnan(t.value) && !s->side->reason) s->side->reason = why_no_product(s);
    add(&s->side->products_s, w->count, t);
    s->side->flops += w->count * w->flops;
}

static void add_move(const struct sum *s, const struct nb_step_work *w) {
    const double bytes = w->reads + w->writes;
    struct nb_interval t = NB_NO_INTERVAL;
    if (s->machine)
        t = nb_exactly(bytes / s->machine->bytes);
    else if (s->rates)
        t = nb_rate_of_bytes(s->rates, bytes);
    if (isnan(t.value) && !s->side->reason) s->side->reason = "no copy was timed";
    add(&s->side->moved_s, w->count, t);
    s->side->bytes += w->count * bytes;
}

static void add_norm(const struct sum *s, const struct nb_step_work *w) {
    const struct nb_norm_time *t = time_of(s->norms, w);
    struct nb_interval norm = NB_NO_INTERVAL, saved = NB_NO_INTERVAL;
    if (t && s->machine) {
        norm = nb_exactly(t->against_bytes / s->machine->bytes);
        saved = nb_exactly((t->against_bytes - t->of_bytes) / s->machine->bytes);
    } else if (t && !t->reason) {
        norm = t->against_s;
        saved = gain(t);
    }
    if (isnan(saved.value) && !s->side->reason)
        s->side->reason = t && t->reason ? t->reason : "a norm of its shape was not timed";
    add(&s->side->norms_s, w->count, norm);
    add(&s->side->saved_s, w->count, saved);
    s->side->norm_dispatches += t ? w->count * t->against_dispatches : 0;
    s->side->of_norm_dispatches += t ? w->count * t->of_dispatches : 0;
}

struct nb_step_side nb_step_sum(const struct nb_model_step *step, int part, const struct nb_rates *rates,
                                const struct nb_norm_times *norms, const struct nb_machine *machine) {
    struct nb_step_side side = {0};
    const struct sum s = {&side, rates, norms, machine, step->dtype};
    for (size_t i = 0; i < step->n_works; i++) {
        const struct nb_step_work *w = &step->works[i];
        if (!nb_part_has(part, w->part)) continue;
        if (w->kind == NB_WORK_PRODUCT)
            add_product(&s, w);
        else if (w->kind == NB_WORK_MOVE)
            add_move(&s, w);
        else
            add_norm(&s, w);
        side.dispatches += w->count * w->dispatches;
    }
    side.dispatches += side.norm_dispatches;
    return side;
}

/* ---- what follows ---- */

static struct nb_interval others(const struct nb_step_side *s, double dispatch_s) {
    return plus(plus(s->products_s, s->moved_s), nb_exactly(dispatch_s * s->dispatches));
}

struct nb_interval nb_step_seconds(const struct nb_step_side *s, double dispatch_s) {
    return plus(others(s, dispatch_s), s->norms_s);
}

struct nb_interval nb_step_share(const struct nb_step_side *s) {
    const struct nb_interval o = others(s, 0), *n = &s->norms_s;
    return (struct nb_interval){n->value / (o.value + n->value), n->low / (o.high + n->low),
                                n->high / (o.low + n->high)};
}

/* At the ends of the interval the norms' time in the step is that which the saving was computed with. */
struct nb_interval nb_step_cut(const struct nb_step_side *s, double dispatch_s) {
    const struct nb_interval o = others(s, dispatch_s), *n = &s->norms_s, *saved = &s->saved_s;
    const double by_dispatch = dispatch_s * (s->norm_dispatches - s->of_norm_dispatches);
    return (struct nb_interval){(saved->value + by_dispatch) / (o.value + n->value),
                                (saved->low + by_dispatch) / (o.high + (saved->low > 0 ? n->low : n->high)),
                                (saved->high + by_dispatch) / (o.low + (saved->high > 0 ? n->high : n->low))};
}

double nb_step_cut_limit(const struct nb_step_side *s) {
    return (s->norm_dispatches - s->of_norm_dispatches) / s->dispatches;
}

static double dispatch_for(const struct nb_step_side *s, double cut, double step_s, double saved_s) {
    const double missing = cut * step_s - saved_s;
    const double gained =
        s->norm_dispatches - s->of_norm_dispatches - cut * s->dispatches; /* with each second of dispatch */
    if (isnan(missing)) return (double)NAN;
    if (missing <= 0) return 0;
    return gained > 0 ? missing / gained : INFINITY;
}

struct nb_interval nb_step_dispatch_for(const struct nb_step_side *s, double cut) {
    const struct nb_interval o = others(s, 0), *n = &s->norms_s, *saved = &s->saved_s;
    return (struct nb_interval){dispatch_for(s, cut, o.value + n->value, saved->value),
                                dispatch_for(s, cut, o.low + (saved->high > 0 ? n->high : n->low), saved->high),
                                dispatch_for(s, cut, o.high + (saved->low > 0 ? n->low : n->high), saved->low)};
}

static cJSON *model_json(const struct nb_model_step *s) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "name", s->name);
    nb_json_text(json, "title", s->title);
    nb_json_text(json, "source", s->source);
    nb_json_text(json, "work", s->training ? "training" : "inference");
    nb_json_text(json, "dtype", nb_dtype_names[s->dtype]);
    nb_json_number(json, "tokens", s->tokens);
    nb_json_number(json, "context", s->context > 0 ? s->context : (double)NAN);
    nb_json_number(json, "parameters", s->parameters);
    nb_json_number(json, "operations", (double)s->n_operations);
    return json;
}

static void add_interval(cJSON *json, const char *name, struct nb_interval value) {
    nb_json_interval(json, name, &value);
}

/* Savings that readers ask about, and which cost of dispatch each would need. */
static void add_dispatch(cJSON *json, const struct nb_step_side *side) {
    static const double cuts[] = {0.01, 0.05, 0.10, 0.25};
    cJSON *list = cJSON_AddArrayToObject(json, "dispatch");
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        const struct nb_interval d = nb_step_dispatch_for(side, cuts[i]);
        cJSON *one = nb_json_add_object(list);
        nb_json_number(one, "cut", cuts[i]);
        cJSON_AddBoolToObject(one, "never", isinf(d.value));
        add_interval(one, "seconds", d);
    }
}

static void add_norms(cJSON *json, const struct nb_norm_times *norms) {
    cJSON *list = cJSON_AddArrayToObject(json, "norms");
    for (size_t i = 0; i < norms->n; i++) {
        const struct nb_norm_time *t = &norms->items[i];
        cJSON *one = nb_json_add_object(list);
        nb_json_text(one, "pass", nb_pass_names[t->pass]);
        nb_json_text(one, "of", norms->pair.of[t->pass]);
        nb_json_text(one, "against", norms->pair.against[t->pass]);
        nb_json_number(one, "rows", (double)t->rows);
        nb_json_number(one, "cols", (double)t->cols);
        nb_json_number(one, "timed_rows", (double)t->timed_rows);
        add_interval(one, "against_s", t->against_s);
        add_interval(one, "ratio", t->ratio);
        nb_json_text(one, "reason", t->reason);
    }
}

static void add_pair(cJSON *pairs, const struct nb_step_about *a, const struct nb_norm_times *norms) {
    const struct nb_step_side side = nb_step_sum(a->step, NB_PART_STEP, a->rates, norms, NULL);
    cJSON *json = nb_json_add_object(pairs);
    nb_json_text(json, "style", norms->pair.style);
    nb_json_text(json, "of", norms->pair.of[NB_FORWARD]);
    nb_json_text(json, "against", norms->pair.against[NB_FORWARD]);
    add_interval(json, "cut", nb_step_cut(&side, 0));
    add_interval(json, "share", nb_step_share(&side));
    add_interval(json, "saved_s", side.saved_s);
    add_interval(json, "step_s", nb_step_seconds(&side, 0));
    add_interval(json, "products_s", side.products_s);
    add_interval(json, "norms_s", side.norms_s);
    add_interval(json, "moved_s", side.moved_s);
    nb_json_number(json, "flops", side.flops);
    nb_json_number(json, "bytes", side.bytes);
    nb_json_number(json, "dispatches", side.dispatches);
    nb_json_number(json, "norm_dispatches", side.norm_dispatches);
    nb_json_number(json, "of_norm_dispatches", side.of_norm_dispatches);
    nb_json_number(json, "limit", nb_step_cut_limit(&side));
    nb_json_text(json, "reason", side.reason);
    add_dispatch(json, &side);
    add_norms(json, norms);
}

cJSON *nb_step_document(const struct nb_step_about *about) {
    cJSON *json = nb_json_document(NB_SCHEMA_VERSION), *argv, *pairs;
    char now[32];
    nb_utc_now("%Y-%m-%dT%H:%M:%SZ", now, sizeof now);
    nb_json_text(json, "ended", now);
    argv = cJSON_AddArrayToObject(json, "argv");
    for (int i = 0; i < about->argc; i++) cJSON_AddItemToArray(argv, cJSON_CreateString(about->argv[i]));
    cJSON_AddBoolToObject(json, "complete", about->complete);
    nb_json_number(json, "elapsed_s", about->elapsed_s);
    cJSON_AddItemToObject(json, "model", model_json(about->step));
    pairs = cJSON_AddArrayToObject(json, "pairs");
    for (size_t i = 0; i < about->n_norms; i++) add_pair(pairs, about, &about->norms[i]);
    cJSON_AddItemToObject(json, "rates", nb_rates_to_json(about->rates));
    cJSON_AddItemToObject(json, "fingerprint", nb_fingerprint());
    return json;
}
