// SPDX-License-Identifier: Apache-2.0
/* Which products, at which sizes; the launches; what their answers come to. */
#include "src/models/rates.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/timer.h"
#include "src/measure/core_state.h"
#include "src/measure/launcher.h"
#include "src/measure/paired.h"

static const double SILENCE_S = 60;

/* ---- which products ---- */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The product cut to at most these rows, this inner size, and as many columns as have these operations. One row has no inner blocks, and is cut by its bytes
 * alone. */
static struct nb_rate_size cut(struct nb_rate_size p, int64_t rows, int64_t inner, double flops) {
    enum { STEP = 16 };
    struct nb_rate_size s = {least(p.rows, rows),
                             p.rows == 1 ? least(p.inner, NB_TIMED_FLOATS / STEP) : least(p.inner, inner), p.cols};
    const double by_flops = flops / 2 / ((double)s.rows * (double)s.inner);
    int64_t most = least((int64_t)fmin(by_flops, 1e9), NB_TIMED_FLOATS / (s.inner > s.rows ? s.inner : s.rows));
    if (most < STEP) most = STEP;
    if (s.cols > most) s.cols = most / STEP * STEP;
    return s;
}

static double scale(struct nb_rate_size timed, struct nb_rate_size s) {
    return (double)s.rows / (double)timed.rows * ((double)s.inner / (double)timed.inner) *
           ((double)s.cols / (double)timed.cols);
}

static struct nb_rate_product *find(const struct nb_rates *rates, const struct nb_step_work *w) {
    for (size_t i = 0; i < rates->n; i++) {
        struct nb_rate_product *p = &rates->products[i];
        const struct nb_rate_size *s = &p->size;
        if (s->rows == w->rows && s->inner == w->inner && s->cols == w->cols && p->hot == w->hot) return p;
    }
    return NULL;
}

void nb_rates_add(struct nb_rates *rates, const struct nb_model_step *step) {
    for (size_t i = 0; i < step->n_works && step->dtype == NB_F32; i++) {
        const struct nb_step_work *w = &step->works[i];
        if (w->kind != NB_WORK_PRODUCT) continue;
        struct nb_rate_product *p = find(rates, w);
        if (!p) {
            p = NB_PUSH(rates->products, rates->n);
            *p = (struct nb_rate_product){
                .size = {w->rows, w->inner, w->cols}, .hot = w->hot, .seconds = NB_NO_INTERVAL};
            p->timed = cut(p->size, NB_TIMED_ROWS, NB_TIMED_INNER, NB_TIMED_FLOPS);
        }
        p->flops += w->count * w->flops;
    }
}

/* The one that weighs most of those that are larger than they are timed. */
static void choose_check(struct nb_rates *rates) {
    double most = 0;
    rates->check = (struct nb_rate_check){.ratio = NB_NO_INTERVAL};
    for (size_t i = 0; i < rates->n; i++) {
        const struct nb_rate_product *p = &rates->products[i];
        const struct nb_rate_size s = cut(p->size, 2 * NB_TIMED_ROWS, 2 * NB_TIMED_INNER, NB_CHECKED_FLOPS);
        if (p->flops <= most || scale(p->timed, s) <= 1) continue;
        most = p->flops;
        rates->check = (struct nb_rate_check){i, s, NB_NO_INTERVAL};
    }
}

/* ---- launches ---- */

static void add_size(cJSON *json, struct nb_rate_size s, bool hot) {
    nb_json_number(json, "rows", (double)s.rows);
    nb_json_number(json, "inner", (double)s.inner);
    nb_json_number(json, "cols", (double)s.cols);
    cJSON_AddBoolToObject(json, "hot", hot);
}

static cJSON *request_of(const struct nb_rates *rates, int launch) {
    cJSON *json = cJSON_CreateObject(), *products;
    nb_json_text(json, "measure", "rates");
    nb_json_number(json, "launch", launch);
    products = cJSON_AddArrayToObject(json, "products");
    for (size_t i = 0; i < rates->n; i++)
        add_size(nb_json_add_object(products), rates->products[i].timed, rates->products[i].hot);
    if (rates->check.size.rows > 0)
        add_size(cJSON_AddObjectToObject(json, "check"), rates->check.size, rates->products[rates->check.product].hot);
    return json;
}

struct answers { /* by launch; null: not yet */
    const struct nb_rates *rates;
    cJSON **items;
    int n;
};

static int take_answer(const cJSON *line, void *arg) {
    struct answers *a = arg;
    const cJSON *answer = nb_json_get(line, "answer"), *request = nb_json_get(answer, "request");
    const int launch = nb_json_get_index(request, "launch");
    if (!answer || launch < 0 || launch >= a->n || a->items[launch]) return 0;
    cJSON *own released_by(nb_json_release) = request_of(a->rates, launch); /* the list may have changed since */
    if (cJSON_Compare(request, own, true)) a->items[launch] = cJSON_Duplicate(answer, true);
    return 0;
}

/* 0, -1 or a signal, as nb_launcher_ends(). */
static int ask(const struct nb_rates *rates, struct nb_journal *journal, int launch, cJSON **out) {
    int cpus[NB_MOST_MOVES];
    struct nb_outcome o;
    cJSON *request = request_of(rates, launch);
    const struct nb_job job = {.kind = "rates",
                               .launch = launch,
                               .digests_at = -1,
                               .seed = nb_random_bits(nb_random_stream(1, (uint64_t)launch), 0),
                               .cpus = cpus,
                               .n_cpus = nb_launcher_cpus(cpus, 1, launch),
                               .floor = NAN,
                               .options = request};
    cJSON *answer = nb_launcher_ask(&job, SILENCE_S, &o);
    int result = nb_launcher_ends(&o);
    if (answer) {
        cJSON_AddItemToObject(answer, "request", request);
        if (nb_journal_write_answer(journal, answer) != 0) result = -1;
        *out = answer;
    } else {
        cJSON_Delete(request);
    }
    return result;
}

/* ---- what the answers come to ---- */

/* Of an answer the samples by the member's name, or with `list` the index-th of its list. */
static const cJSON *samples_in(const cJSON *answer, const char *member, int index) {
    const cJSON *found = nb_json_get(answer, member);
    return index < 0 ? found : cJSON_GetArrayItem(found, index);
}

static void take_probes(struct nb_floors *floors, const cJSON *answer, const cJSON *samples) {
    struct nb_samples s released_by(nb_samples_release) = {0};
    if (!samples || nb_samples_from_json(&s, samples, NAN) != 0) return;
    if (s.probe) nb_floors_take(floors, nb_json_get_index(answer, "cpu"), 1, s.probe, s.n);
}

static struct nb_by_state ln_of(const struct nb_floors *floors, const cJSON *answer, const char *member, int index) {
    struct nb_samples s released_by(nb_samples_release) = {0};
    const cJSON *samples = samples_in(answer, member, index);
    const double floor = nb_floors_get(floors, nb_json_get_index(answer, "cpu"), 1);
    return samples && nb_samples_from_json(&s, samples, floor) == 0 ? nb_samples_ln(&s) : NB_NO_STATE;
}

/* Seconds, of the state that serves. */
static struct nb_interval seconds_of(const struct answers *a, const struct nb_floors *floors, const char *member,
                                     int index, double factor) {
    struct nb_by_state *v freed = nb_alloc((unsigned)a->n + 1, sizeof *v);
    for (int l = 0; l < a->n; l++) v[l] = ln_of(floors, a->items[l], member, index);
    const enum nb_state state = nb_state_over_launches(v, (size_t)a->n, 0.95);
    return nb_interval_times(nb_ratio_in_state(v, (size_t)a->n, state, 0.95), 1e-9 * factor);
}

static void find_check(struct nb_rates *rates, const struct answers *a, const struct nb_floors *floors) {
    struct nb_rate_check *c = &rates->check;
    if (c->size.rows == 0) return;
    const double factor = scale(rates->products[c->product].timed, c->size);
    struct nb_by_state *v freed = nb_alloc((unsigned)a->n + 1, sizeof *v);
    for (int l = 0; l < a->n; l++) {
        const struct nb_by_state scaled = ln_of(floors, a->items[l], "products", (int)c->product);
        v[l] = ln_of(floors, a->items[l], "check", -1);
        for (int s = 0; s < NB_N_STATES; s++) v[l].ln[s] -= scaled.ln[s] + log(factor);
    }
    c->ratio = nb_ratio_in_state(v, (size_t)a->n, nb_state_over_launches(v, (size_t)a->n, 0.95), 0.95);
}

static void evaluate(struct nb_rates *rates, const struct answers *a) {
    struct nb_floors floors released_by(nb_floors_release) = {0};
    nb_floors_load(&floors);
    rates->n_launches = 0;
    for (int l = 0; l < a->n; l++) {
        const char *reason = nb_json_get_text(a->items[l], "reason");
        rates->n_launches += nb_json_get(a->items[l], "products") != NULL;
        if (reason && !rates->reason) rates->reason = nb_strdup(reason);
        for (size_t i = 0; i < rates->n; i++)
            take_probes(&floors, a->items[l], samples_in(a->items[l], "products", (int)i));
        for (int i = 0; i < NB_N_COPY_SIZES; i++)
            take_probes(&floors, a->items[l], samples_in(a->items[l], "copies", i));
    }
    for (size_t i = 0; i < rates->n; i++) {
        struct nb_rate_product *p = &rates->products[i];
        p->seconds = seconds_of(a, &floors, "products", (int)i, scale(p->timed, p->size));
    }
    for (int i = 0; i < NB_N_COPY_SIZES; i++)
        rates->copies[i] = (struct nb_rate_copy){nb_copy_bytes(i), seconds_of(a, &floors, "copies", i, 1)};
    rates->call_s = seconds_of(a, &floors, "call", -1, 1);
    find_check(rates, a, &floors);
}

int nb_rates_measure(struct nb_rates *rates, const char *dir, struct nb_journal *journal, int launches) {
    assert(rates && dir && journal && launches > 0);
    struct answers a = {rates, nb_alloc((unsigned)launches, sizeof *a.items), launches};
    const double start = nb_now_s();
    choose_check(rates);
    int result = nb_journal_read(dir, take_answer, &a) < 0 ? -1 : 0;
    nb_watch_interrupts();
    for (int l = 0; l < launches && result == 0; l++) {
        nb_progress(l, launches, nb_now_s() - start, "timing products");
        result = nb_interrupted();
        if (result == 0 && !a.items[l]) result = ask(rates, journal, l, &a.items[l]);
    }
    nb_progress_end();
    evaluate(rates, &a);
    for (int l = 0; l < launches; l++) cJSON_Delete(a.items[l]);
    free(a.items);
    return result;
}

void nb_rates_release(struct nb_rates *rates) {
    free(rates->products);
    free(rates->reason);
    *rates = (struct nb_rates){0};
}

/* ---- what an operation takes ---- */

struct nb_interval nb_rate_of_product(const struct nb_rates *rates, const struct nb_step_work *work) {
    const struct nb_rate_product *p = find(rates, work);
    return p ? nb_interval_times(p->seconds, (double)work->batch) : NB_NO_INTERVAL;
}

/* Between two sizes the seconds a byte go with the logarithm of the size. */
struct nb_interval nb_rate_of_bytes(const struct nb_rates *rates, double bytes) {
    const struct nb_rate_copy *c = rates->copies;
    int i = 0;
    if (!(bytes > 0)) return nb_exactly(0);
    while (i < NB_N_COPY_SIZES - 2 && bytes > c[i + 1].bytes) i++;
    const double at = fmin(1, fmax(0, log(bytes / c[i].bytes) / log(c[i + 1].bytes / c[i].bytes)));
    const struct nb_interval *a = &c[i].s_a_byte, *b = &c[i + 1].s_a_byte;
    const struct nb_interval between = {a->value + at * (b->value - a->value), a->low + at * (b->low - a->low),
                                        a->high + at * (b->high - a->high)};
    return nb_interval_times(between, bytes);
}

/* ---- JSON ---- */

#define OF_PRODUCT(KIND, key, field) NB_MEMBER_AS(key, KIND, struct nb_rate_product, field)
static const struct nb_member product_members[] = {
    OF_PRODUCT(COUNT, "rows", size.rows),        OF_PRODUCT(COUNT, "inner", size.inner),
    OF_PRODUCT(COUNT, "cols", size.cols),        OF_PRODUCT(BOOL, "hot", hot),
    OF_PRODUCT(COUNT, "timed_rows", timed.rows), OF_PRODUCT(COUNT, "timed_inner", timed.inner),
    OF_PRODUCT(COUNT, "timed_cols", timed.cols), OF_PRODUCT(NUMBER, "flops", flops),
    OF_PRODUCT(INTERVAL, "seconds", seconds),    NB_MEMBERS_END};
static const struct nb_member copy_members[] = {NB_MEMBER(NUMBER, struct nb_rate_copy, bytes),
                                                NB_MEMBER(INTERVAL, struct nb_rate_copy, s_a_byte), NB_MEMBERS_END};
static const struct nb_member check_members[] = {NB_MEMBER(COUNT, struct nb_rate_check, product),
                                                 NB_MEMBER_AS("rows", POSITIVE, struct nb_rate_check, size.rows),
                                                 NB_MEMBER_AS("inner", POSITIVE, struct nb_rate_check, size.inner),
                                                 NB_MEMBER_AS("cols", POSITIVE, struct nb_rate_check, size.cols),
                                                 NB_MEMBER(INTERVAL, struct nb_rate_check, ratio),
                                                 NB_MEMBERS_END};

cJSON *nb_rates_to_json(const struct nb_rates *rates) {
    cJSON *json = cJSON_CreateObject(), *products, *copies;
    nb_json_number(json, "threads", 1);
    nb_json_number(json, "launches", rates->n_launches);
    nb_json_text(json, "reason", rates->reason);
    products = cJSON_AddArrayToObject(json, "products");
    for (size_t i = 0; i < rates->n; i++)
        cJSON_AddItemToArray(products, nb_json_of_members(product_members, &rates->products[i]));
    copies = cJSON_AddArrayToObject(json, "copies");
    for (int i = 0; i < NB_N_COPY_SIZES; i++)
        cJSON_AddItemToArray(copies, nb_json_of_members(copy_members, &rates->copies[i]));
    nb_json_interval(json, "call_s", &rates->call_s);
    cJSON_AddItemToObject(json, "check", nb_json_of_members(check_members, &rates->check));
    return json;
}
