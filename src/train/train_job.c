// SPDX-License-Identifier: Apache-2.0
/* A training job: steps of arms that take turns, the memory of one arm, or one run from its beginning (src/train/train_study.h). */
#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "src/core/json.h"
#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/registry.h"
#include "src/core/timer.h"
#include "src/measure/pool.h"
#include "src/measure/worker.h"
#include "src/train/data.h"
#include "src/train/tensor.h"
#include "src/train/train_study.h"
#include "src/train/workload.h"

/* ---- whole steps measured as kernels are: the arms of one workload take turns, step by step, in one process. A block is one step of every
 * arm on the same batch; orders are random, and each is followed by its reverse, so that drift and neighbours weigh on all arms alike.
 * Ratios are formed within blocks ---- */

struct step_arm {
    struct nb_train_options options; /* given */
    struct nb_model model;
    double *seconds[NB_N_STEP_PARTS];                    /* by block */
    double *loss;                                        /* by block */
    double *products, *products_forward;                 /* s, by block */
    double ops[NB_N_STEP_PARTS], flops[NB_N_STEP_PARTS]; /* of a step: all steps are alike */
    size_t kept_bytes;                                   /* activations kept from forward to backward */
};

struct steps_options {
    double launch_s; /* go on for so long, and for two blocks at least */
    int most_blocks;
    uint64_t seed;
    void (*beat)(void *context, int arm); /* a step of the arm begins; may be null */
    void *context;
};

static void shuffle(int *order, int n, uint64_t *state) {
    for (int i = n - 1; i > 0; i--) {
        const int j = (int)(nb_random_next(state) % (uint64_t)(i + 1)), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

static void reverse(int *order, int n) {
    for (int i = 0; i < n / 2; i++) {
        const int t = order[i];
        order[i] = order[n - 1 - i];
        order[n - 1 - i] = t;
    }
}

/* What the last step consisted of. */
static void count(struct step_arm *arm) {
    const struct nb_model *m = &arm->model;
    const struct nb_train_work *forward = &m->forward_work, *passes = &m->passes_work;
    double *ops = arm->ops, *flops = arm->flops;
    ops[NB_STEP_WHOLE] = (double)nb_train_work.ops;
    ops[NB_STEP_FORWARD] = (double)forward->ops;
    ops[NB_STEP_PASSES] = (double)passes->ops;
    ops[NB_STEP_BACKWARD] = ops[NB_STEP_PASSES] - ops[NB_STEP_FORWARD];
    ops[NB_STEP_UPDATE] = ops[NB_STEP_WHOLE] - ops[NB_STEP_PASSES];
    ops[NB_STEP_NORM_FORWARD] = (double)m->norm_ops[NB_FORWARD];
    ops[NB_STEP_NORM_BACKWARD] = (double)m->norm_ops[NB_BACKWARD];
    ops[NB_STEP_NORM] = ops[NB_STEP_NORM_FORWARD] + ops[NB_STEP_NORM_BACKWARD];
    flops[NB_STEP_WHOLE] = flops[NB_STEP_PASSES] = passes->product_flops;
    flops[NB_STEP_FORWARD] = forward->product_flops;
    flops[NB_STEP_BACKWARD] = passes->product_flops - forward->product_flops;
}

static void step(struct step_arm *arm, const struct nb_text *text, int block) {
    struct nb_model *m = &arm->model;
    m->norm_seconds[NB_FORWARD] = m->norm_seconds[NB_BACKWARD] = m->forward_seconds = m->backward_seconds = 0;
    m->norm_ops[NB_FORWARD] = m->norm_ops[NB_BACKWARD] = 0;
    const double start = nb_now_s();
    const double loss = nb_model_step(m, text, block);
    const double whole = nb_now_s() - start;
    arm->kept_bytes = m->activation_bytes;
    arm->seconds[NB_STEP_WHOLE][block] = whole;
    arm->seconds[NB_STEP_PASSES][block] = m->forward_seconds + m->backward_seconds;
    arm->seconds[NB_STEP_FORWARD][block] = m->forward_seconds;
    arm->seconds[NB_STEP_BACKWARD][block] = m->backward_seconds;
    arm->seconds[NB_STEP_UPDATE][block] = whole - m->forward_seconds - m->backward_seconds;
    arm->seconds[NB_STEP_NORM][block] = m->norm_seconds[NB_FORWARD] + m->norm_seconds[NB_BACKWARD];
    arm->seconds[NB_STEP_NORM_FORWARD][block] = m->norm_seconds[NB_FORWARD];
    arm->seconds[NB_STEP_NORM_BACKWARD][block] = m->norm_seconds[NB_BACKWARD];
    arm->products[block] = nb_train_work.product_seconds;
    arm->products_forward[block] = m->forward_work.product_seconds;
    arm->loss[block] = loss;
    count(arm);
}

static void beat_arm(const struct steps_options *options, int arm) {
    if (options->beat) options->beat(options->context, arm);
}

/* What an arm as wide drew before it: nine arms of one model share most of their first values, and to draw them costs more than two steps. */
static const struct nb_parameters *drawn_before(const struct step_arm *arms, int arm) {
    for (int a = arm - 1; a >= 0; a--)
        if (arms[a].options.hidden == arms[arm].options.hidden) return &arms[a].model.parameters;
    return NULL;
}

/* The first step allocates, touches every page and lets the matrix library settle. */
static int make_arms(struct step_arm *arms, int n_arms, const struct nb_workload *workload, const struct nb_text *text,
                     const struct steps_options *options) {
    for (int a = 0; a < n_arms; a++) {
        beat_arm(options, a);
        for (int p = 0; p < NB_N_STEP_PARTS; p++)
            arms[a].seconds[p] = nb_alloc((unsigned)options->most_blocks, sizeof(double));
        arms[a].loss = nb_alloc((unsigned)options->most_blocks, sizeof(double));
        arms[a].products = nb_alloc((unsigned)options->most_blocks, sizeof(double));
        arms[a].products_forward = nb_alloc((unsigned)options->most_blocks, sizeof(double));
        arms[a].options.drawn = drawn_before(arms, a);
        if (nb_model_init(&arms[a].model, workload, &arms[a].options) != 0) return -1;
    }
    for (int a = 0; a < n_arms; a++) {
        beat_arm(options, a);
        step(&arms[a], text, 0);
    }
    return 0;
}

/* Makes the models, warms each by a step, measures. *n_blocks: even. -1 after nb_error; release in either case. */
static int steps_measure(struct step_arm *arms, int n_arms, const struct nb_workload *workload,
                         const struct nb_text *text, const struct steps_options *options, int *n_blocks) {
    assert(arms && n_arms > 0 && workload && text && n_blocks);
    int *order = nb_alloc((unsigned)n_arms, sizeof *order), block = 0;
    uint64_t state = options->seed;
    const int result = make_arms(arms, n_arms, workload, text, options);
    const double start = nb_now_s();
    for (int a = 0; a < n_arms; a++) order[a] = a;
    while (result == 0 && block + 2 <= options->most_blocks && (block == 0 || nb_now_s() - start < options->launch_s)) {
        shuffle(order, n_arms, &state);
        for (int half = 0; half < 2; half++, block++) {
            for (int i = 0; i < n_arms; i++) {
                beat_arm(options, order[i]);
                step(&arms[order[i]], text, block);
            }
            reverse(order, n_arms);
        }
    }
    *n_blocks = block;
    free(order);
    return result;
}

static void steps_release(struct step_arm *arms, int n_arms) {
    for (int a = 0; a < n_arms; a++) {
        for (int p = 0; p < NB_N_STEP_PARTS; p++) free(arms[a].seconds[p]);
        free(arms[a].loss);
        free(arms[a].products);
        free(arms[a].products_forward);
        if (arms[a].model.workload) nb_model_release(&arms[a].model);
    }
}

/* ---- one run from its beginning, and its curves: how wide activations and gradients are while a model trains, as the standard deviation of
 * each tensor that the model names, in the steps that are recorded. A place is added when it is first observed ---- */

struct curve {
    char place[96]; /* "layer3.attention.input" */
    bool gradient;  /* of the loss by it */
    double *std;    /* by record; NaN where the place was not observed */
};
struct curves {
    struct curve *items;
    int n;
    int *steps; /* by record */
    int n_records, most_records;
    double scale;                /* of the loss, which gradients carry */
    struct nb_observer observer; /* for nb_model.observer; context is this struct, which must stay where it is */
};

/* One training run from its beginning: the loss of each step, how many steps failed, curves, and the loss in inference mode on batches
 * behind those that were trained on. */

struct course_options {
    int steps;
    int records; /* steps that curves are taken of, evenly over the run, the first and the last among them */
    void (*beat)(void *context, int step); /* may be null */
    void *context;
};

struct course {
    double *loss;        /* by step; NaN is a result */
    int n_steps;         /* fewer than asked for once the loss is no number: it stays so */
    int n_failed;        /* steps without a finite loss and gradient, and all that were not made after one */
    double unseen_loss;  /* in inference mode */
    double uniform_loss; /* of the first step, made from weights that know nothing */
    size_t kept_bytes;
    struct curves curves;
};

/* Population standard deviation, two passes in double; NaN and infinities go through. */
static double standard_deviation(const float *values, int64_t n) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)values[i];
    const double mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++) squares += ((double)values[i] - mean) * ((double)values[i] - mean);
    return sqrt(squares / (double)n);
}

static struct curve *curve_of(struct curves *c, const char *place, bool gradient) {
    for (int i = 0; i < c->n; i++)
        if (c->items[i].gradient == gradient && strcmp(c->items[i].place, place) == 0) return &c->items[i];
    c->items = nb_realloc(c->items, (unsigned)c->n + 1, sizeof *c->items);
    struct curve *one = &c->items[c->n++];
    *one = (struct curve){.gradient = gradient};
    snprintf(one->place, sizeof one->place, "%s", place);
    one->std = nb_alloc((unsigned)c->most_records, sizeof *one->std);
    for (int r = 0; r < c->most_records; r++) one->std[r] = NAN;
    return one;
}

/* Of a tensor that comes in parts the widest part counts. */
static void keep(struct curves *c, const char *place, bool gradient, double std) {
    struct curve *one = curve_of(c, place, gradient);
    double *at = &one->std[c->n_records - 1];
    if (isnan(*at) || !(std <= *at)) *at = std;
}

static void see(void *context, enum nb_observed what, const char *place, const float *values, int64_t n) {
    struct curves *c = context;
    const double std = standard_deviation(values, n);
    keep(c, place, what == NB_GRADIENT, what == NB_GRADIENT ? std / c->scale : std);
}

static void curves_init(struct curves *c, int most_records) {
    *c = (struct curves){.most_records = most_records,
                         .steps = nb_alloc((unsigned)most_records + 1, sizeof *c->steps),
                         .scale = 1,
                         .observer = {.see = see, .context = c}};
}

/* A step to be recorded begins. */
static void curves_begin(struct curves *c, int step, double loss_scale) {
    assert(c->n_records < c->most_records);
    c->steps[c->n_records++] = step;
    c->scale = loss_scale;
}

static void curves_release(struct curves *c) {
    for (int i = 0; i < c->n; i++) free(c->items[i].std);
    free(c->items);
    free(c->steps);
    *c = (struct curves){0};
}

/* ---- the run ---- */

enum { UNSEEN_BATCHES = 16, UNSEEN_FROM = 1 << 24 };

static bool is_recorded(int step, const struct course_options *how) {
    const int last = how->steps - 1, parts = how->records - 1;
    if (step == last) return true;
    if (parts < 1) return false;
    for (int r = 0; r < parts; r++)
        if (step == (int)((double)last * r / parts + 0.5)) return true;
    return false;
}

static bool succeeded(const struct nb_model *m, double loss, int64_t skipped_before) {
    return isfinite(loss) && isfinite(m->gradient_norm) && m->loss_scale.skipped_steps == skipped_before;
}

static void course_train(struct course *c, struct nb_model *m, const struct nb_text *text,
                         const struct course_options *how) {
    for (int s = 0; s < how->steps; s++) {
        const bool recorded = is_recorded(s, how) && c->curves.n_records < c->curves.most_records;
        const int64_t skipped = m->loss_scale.skipped_steps;
        if (how->beat) how->beat(how->context, s);
        if (recorded) curves_begin(&c->curves, s, m->loss_scale.scale);
        m->observer = recorded ? &c->curves.observer : NULL;
        c->loss[s] = nb_model_step(m, text, s);
        c->n_steps = s + 1;
        c->n_failed += !succeeded(m, c->loss[s], skipped);
        if (!isfinite(c->loss[s]) && !m->loss_scale.dynamic) {
            c->n_failed += how->steps - c->n_steps;
            break;
        }
    }
    m->observer = NULL;
    c->kept_bytes = m->activation_bytes;
}

static double unseen(struct nb_model *m, const struct nb_text *text) {
    double sum = 0;
    for (int i = 0; i < UNSEEN_BATCHES; i++) sum += nb_model_forward(m, text, UNSEEN_FROM + i, false);
    return sum / UNSEEN_BATCHES;
}

/* -1 after nb_error; release in either case. */
static int course_run(struct course *c, const struct nb_workload *workload, const struct nb_train_options *options,
                      const struct nb_text *text, const struct course_options *how) {
    assert(c && workload && options && text && how && how->steps > 0);
    struct nb_model model;
    *c = (struct course){.loss = nb_alloc((unsigned)how->steps, sizeof *c->loss), .unseen_loss = NAN};
    curves_init(&c->curves, how->records + 1);
    if (nb_model_init(&model, workload, options) != 0) return -1;
    course_train(c, &model, text, how);
    c->uniform_loss = c->loss[0];
    c->unseen_loss = c->n_steps == how->steps && isfinite(c->loss[how->steps - 1]) ? unseen(&model, text) : NAN;
    nb_model_release(&model);
    return 0;
}

/* Mean over the last tenth of the steps; that of knowing nothing where the run ended in no number. */
static double course_final_loss(const double *loss, int n_steps, int n_wanted) {
    const int tail = n_wanted < 10 ? 1 : n_wanted / 10;
    double sum = 0;
    if (n_steps < n_wanted) return loss[0];
    for (int s = n_wanted - tail; s < n_wanted; s++) sum += loss[s];
    return isfinite(sum) ? sum / tail : loss[0];
}

static void course_release(struct course *c) {
    free(c->loss);
    curves_release(&c->curves);
    *c = (struct course){0};
}

enum { MOST_BLOCKS = 256, RECORDS = 11, MEMORY_STEPS = 2 };

struct order { /* the job's options, read */
    const struct nb_workload *workload;
    struct nb_train_options *arms;
    const char **names; /* borrowed */
    int n, steps;
    double launch_s;
    struct nb_text text;
    struct nb_workplace *place;
};

static int read_arm(struct order *o, const cJSON *item, int threads, int round) {
    char reason[200];
    struct nb_train_options *arm = &o->arms[o->n];
    if (!cJSON_IsString(item)) return nb_error("a training job's arm is no text");
    if (nb_arm_parse(arm, NULL, item->valuestring, reason, sizeof reason)) return nb_error("%s", reason);
    if (arm->n_threads == 0) arm->n_threads = threads;
    arm->seed = (uint64_t)round + 1;
    o->names[o->n++] = item->valuestring;
    return 0;
}

static int read_order(struct order *o, struct nb_workplace *w) {
    const cJSON *json = w->job.options, *arms = cJSON_GetObjectItemCaseSensitive(json, "arms"), *item;
    const char *name = nb_json_get_text(json, "workload");
    const unsigned n = (unsigned)cJSON_GetArraySize(arms);
    *o = (struct order){.workload = name ? nb_workload_find(name) : NULL,
                        .arms = nb_alloc(n + 1, sizeof *o->arms),
                        .names = nb_alloc(n + 1, sizeof *o->names),
                        .steps = nb_json_get_index(json, "steps"),
                        .launch_s = nb_json_get_number(json, "launch_s"),
                        .place = w};
    if (!o->workload) return nb_error("no workload %s", name ? name : "(none)");
    const int threads = nb_json_get_index(json, "threads"), round = nb_json_get_index(json, "round");
    cJSON_ArrayForEach(item, arms) {
        if (read_arm(o, item, threads, round) != 0) return -1;
    }
    if (o->n == 0) return nb_error("a training job without arms");
    return nb_text_open(&o->text, nb_json_get_text(json, "text"));
}

static void release_order(struct order *o) {
    nb_text_release(&o->text);
    free(o->arms);
    free(o->names);
}

static void beat(void *context, int at) {
    struct nb_workplace *w = context;
    (void)at;
    nb_worker_at(w, -1);
}

static void add_numbers(cJSON *json, const char *name, const double *values, int n) {
    cJSON *list = cJSON_AddArrayToObject(json, name);
    for (int i = 0; i < n; i++)
        cJSON_AddItemToArray(list, isfinite(values[i]) ? cJSON_CreateNumber(values[i]) : cJSON_CreateNull());
}

static cJSON *new_answer(cJSON **arms) {
    cJSON *answer = cJSON_CreateObject();
    nb_json_text(answer, "type", "answer");
    nb_json_text(answer, "status", "ok");
    *arms = cJSON_AddArrayToObject(answer, "arms");
    return answer;
}

static cJSON *new_arm(cJSON *arms, const char *name) {
    cJSON *json = nb_json_add_object(arms);
    nb_json_text(json, "arm", name);
    return json;
}

static void add_parts(cJSON *json, const char *name, const double *values) {
    cJSON *object = cJSON_AddObjectToObject(json, name);
    for (int p = 0; p < NB_N_STEP_PARTS; p++) nb_json_number(object, nb_step_part_names[p], values[p]);
}

/* ---- two rates of this machine that a model of other machines scales by; the best of a few tries ---- */

/* Bytes read and written a second by a copy of what no cache holds. */
static double memory_rate(void) {
    enum { TRIES = 3, BYTES = 1 << 26 };
    char *from = nb_alloc(BYTES, 1), *to = nb_alloc(BYTES, 1);
    double best = INFINITY;
    memset(from, 1, BYTES);
    for (int i = 0; i < TRIES; i++) {
        const double start = nb_now_s();
        memcpy(to, from, BYTES);
        __asm__ volatile("" : : "r"(to) : "memory");
        if (i > 0) best = fmin(best, nb_now_s() - start); /* the first touches the pages */
    }
    free(from);
    free(to);
    return 2.0 * BYTES / best;
}

/* Seconds that an operation of a composed kernel takes on a row of few numbers, where its work is next to nothing. */
static double call_seconds(void) {
    enum { TRIES = 5, CALLS = 2000, COLS = 16 };
    const struct nb_entry *e = nb_registry_widest("rmsnorm_composed", NB_F32);
    _Alignas(64) float scratch[1 << 12];
    float x[COLS], y[COLS], gamma[COLS], rstd;
    struct nb_call call = {.struct_size = sizeof call,
                           .rows = 1,
                           .cols = COLS,
                           .x_stride = COLS,
                           .y_stride = COLS,
                           .n_threads = 1,
                           .eps = 1e-5,
                           .formula = {.struct_size = sizeof call.formula, .affine = NB_AFFINE_GAMMA},
                           .x = x,
                           .y = y,
                           .gamma = gamma,
                           .rstd = &rstd,
                           .scratch = scratch};
    double best = INFINITY;
    for (int i = 0; i < COLS; i++) x[i] = gamma[i] = 1;
    if (!e || nb_kernel_scratch_bytes(e->kernel, &call) > sizeof scratch) return (double)NAN;
    for (int i = 0; i < TRIES; i++) {
        const double start = nb_now_s();
        for (int c = 0; c < CALLS; c++) nb_run_in_ranges(e->kernel, &call, 0);
        best = fmin(best, nb_now_s() - start);
    }
    return best / CALLS / nb_kernel_n_phases(e->kernel, &call);
}

static int steps_job(struct order *o) {
    struct step_arm *arms = nb_alloc((unsigned)o->n, sizeof *arms);
    const struct steps_options options = {.launch_s = o->launch_s,
                                          .most_blocks = MOST_BLOCKS,
                                          .seed = o->place->job.seed,
                                          .beat = beat,
                                          .context = o->place};
    int n_blocks;
    const double rate = memory_rate(), call_s = call_seconds();
    for (int i = 0; i < o->n; i++) arms[i].options = o->arms[i];
    const int result = steps_measure(arms, o->n, o->workload, &o->text, &options, &n_blocks);
    if (result == 0) {
        cJSON *list, *answer = new_answer(&list);
        for (int i = 0; i < o->n; i++) {
            cJSON *json = new_arm(list, o->names[i]);
            for (int p = 0; p < NB_N_STEP_PARTS; p++)
                add_numbers(json, nb_step_part_names[p], arms[i].seconds[p], n_blocks);
            add_numbers(json, "loss", arms[i].loss, n_blocks);
            nb_json_number(json, "kept_bytes", (double)arms[i].kept_bytes);
            add_numbers(json, "products", arms[i].products, n_blocks);
            add_numbers(json, "products_forward", arms[i].products_forward, n_blocks);
            add_parts(json, "ops", arms[i].ops);
            add_parts(json, "flops", arms[i].flops);
            nb_json_number(json, "memory_rate", rate);
            nb_json_number(json, "call_s", call_s);
        }
        nb_worker_say(answer);
    }
    steps_release(arms, o->n);
    free(arms);
    return result;
}

/* The peak of the process so far: it made nothing but this model. */
static double peak_bytes(void) {
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? 1024.0 * (double)usage.ru_maxrss : (double)NAN;
}

static int memory_job(struct order *o) {
    struct nb_model model;
    if (nb_model_init(&model, o->workload, &o->arms[0]) != 0) return -1;
    for (int s = 0; s < MEMORY_STEPS; s++) {
        nb_worker_at(o->place, -1);
        nb_model_step(&model, &o->text, s);
    }
    cJSON *list, *answer = new_answer(&list), *json = new_arm(list, o->names[0]);
    nb_json_number(json, "peak_bytes", peak_bytes());
    nb_json_number(json, "kept_bytes", (double)model.activation_bytes);
    nb_json_number(json, "parameter_bytes", (double)nb_parameters_count(&model.parameters) * sizeof(float));
    nb_worker_say(answer);
    nb_model_release(&model);
    return 0;
}

static void add_curves(cJSON *json, const struct curves *c) {
    cJSON_AddItemToObject(json, "recorded_steps", cJSON_CreateIntArray(c->steps, c->n_records));
    cJSON *list = cJSON_AddArrayToObject(json, "curves");
    for (int i = 0; i < c->n; i++) {
        cJSON *one = nb_json_add_object(list);
        nb_json_text(one, "place", c->items[i].place);
        cJSON_AddBoolToObject(one, "gradient", c->items[i].gradient);
        add_numbers(one, "std", c->items[i].std, c->n_records);
    }
}

static int course_job(struct order *o) {
    struct course c;
    const struct course_options how = {.steps = o->steps, .records = RECORDS, .beat = beat, .context = o->place};
    const int result = course_run(&c, o->workload, &o->arms[0], &o->text, &how);
    if (result == 0) {
        cJSON *list, *answer = new_answer(&list), *json = new_arm(list, o->names[0]);
        add_numbers(json, "loss", c.loss, c.n_steps);
        nb_json_number(json, "wanted_steps", o->steps);
        nb_json_number(json, "failed_steps", c.n_failed);
        nb_json_number(json, "final_loss", course_final_loss(c.loss, c.n_steps, o->steps));
        nb_json_number(json, "unseen_loss", c.unseen_loss);
        nb_json_number(json, "kept_bytes", (double)c.kept_bytes);
        add_curves(json, &c.curves);
        nb_worker_say(answer);
    }
    course_release(&c);
    return result;
}

static int train_job(struct nb_workplace *w) {
    struct order o;
    const char *measure = nb_json_get_text(w->job.options, "measure");
    int result = read_order(&o, w);
    if (result == 0 && measure && strcmp(measure, nb_train_measure_names[NB_TRAIN_STEPS]) == 0)
        result = steps_job(&o);
    else if (result == 0 && measure && strcmp(measure, nb_train_measure_names[NB_TRAIN_MEMORY]) == 0)
        result = memory_job(&o);
    else if (result == 0)
        result = o.steps > 0 ? course_job(&o) : -1;
    if (result != 0) nb_worker_say_skipped("the model cannot be made or trained here (stderr says why)");
    release_order(&o);
    return 0;
}

const struct nb_job_type nb_train_job = {.work = train_job, .own_inputs = true, .no_cases = true};
