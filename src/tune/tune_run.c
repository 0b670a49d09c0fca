// SPDX-License-Identifier: Apache-2.0
/* Trials of the kernels that are there, their launches, their verdicts. */
#include "src/tune/tune_run.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/core/case.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/random.h"
#include "src/core/registry.h"
#include "src/core/shape.h"
#include "src/core/timer.h"
#include "src/core/tuning.h"
#include "src/measure/launcher.h"
#include "src/measure/paired.h"
#include "src/record/fingerprint.h"

/* ---- what is asked ---- */

enum { N_SETTINGS = 5, N_SHAPES = 8, N_CANDIDATES = 9 };

struct tune_shape {
    int64_t
        size; /* what the field is compared with: bytes of a row, of a call, of a channel; of a choice the columns */
    char text[64];
};

struct tune_topic {
    const char *name;
    const char *field; /* whose value is sought */
    /* A threshold: kernels do one thing up to the field's value and another beyond. settings[0] makes them do what they do
     * beyond it, whatever the size, settings[1] what they do within. A choice: the values themselves. */
    bool is_threshold;
    const char *settings[N_SETTINGS]; /* null-terminated, as nb_tuning_parse() reads them */
    bool zero_is_all;                 /* of a threshold: 0 leaves every size within; else it leaves none */
    const char *kernel;               /* its f32 variants */
    size_t (*shapes)(const struct nb_cpu *cpu, struct tune_shape *out); /* smallest first */
    bool at_first_use;
};

/* One arrangement of the topic's fields. arm: on a shape of each size, which of the settings it is. */
struct tune_candidate {
    struct nb_tuning tuning;
    int arm[N_SHAPES];
};

/* One kernel on one shape. */
struct tune_trial {
    struct nb_case c;
    size_t shape;                             /* which of the topic's */
    int base_arm;                             /* what the default does here */
    struct nb_by_state *gain[N_SETTINGS + 1]; /* by arm, of each launch: ln(time of the base arm / time of the arm) */
    enum nb_state state[N_SETTINGS + 1];      /* of the core, that the gains of an arm are of */
    size_t n_launches;
};

struct tune_verdict {
    int candidate;           /* -1: the default stays */
    struct nb_interval gain; /* of the best candidate, mean over the trials in which it differs; NaN: none differs */
    size_t n_trials;         /* in which it differs */
};

struct tune_outcome {
    const struct tune_topic *topic;
    const struct nb_tuning *base;
    struct tune_shape shapes[N_SHAPES];
    struct nb_tuning arms[N_SETTINGS + 1];
    struct tune_candidate candidates[N_CANDIDATES];
    struct tune_trial trials[N_SHAPES];
    size_t n_shapes, n_candidates, n_trials;
    int n_arms;
    struct tune_verdict verdict;
    char reason[240]; /* why nothing, or not all, was measured; "" */
};

struct tuning_run {
    struct nb_tuning base, tuned; /* the defaults; what the verdicts make of them */
    struct tune_outcome *topics;
    size_t n_topics;
    struct nb_tune_options options;
    struct nb_floors floors;
    double elapsed_s;
};

/* Tensors of one trial together: the default streams beyond. */
static const int64_t most_bytes = NB_MOST_STREAM_BYTES;

enum { ITEM = 4 }; /* bytes of an element of f32 */
static int64_t known(int64_t bytes, int64_t usual) { return bytes > 0 ? bytes : usual; }
static int64_t l2_of(const struct nb_cpu *cpu) { return known(cpu->l2_bytes, 256 << 10); }

static int64_t last_of(const struct nb_cpu *cpu) { return known(cpu->l3_bytes, 64 * l2_of(cpu)); }

int64_t nb_tune_first_size(const struct nb_cpu *cpu) { return 2 * l2_of(cpu); }

/* From just outside the second cache to twice the last. */
static size_t whole_calls(const struct nb_cpu *cpu, struct tune_shape *out) {
    const int64_t cols = 2048, row = 2 * cols * ITEM, last = last_of(cpu);
    size_t n = 0;
    for (int64_t size = nb_tune_first_size(cpu); size <= 2 * last && size <= most_bytes && n < N_SHAPES; size *= 2) {
        const int64_t rows = size / row;
        out[n].size = rows * row;
        snprintf(out[n++].text, sizeof out->text, "%lldx%lld", (long long)rows, (long long)cols);
    }
    return n;
}

/* Rows whose sums do not fit the first cache, in half of the second and in all of it; and
 * rows whose sums the second does not hold beside them. */
static size_t long_rows(const struct nb_cpu *cpu, struct tune_shape *out) {
    const int64_t l2 = l2_of(cpu);
    const struct { int64_t cols, bytes; } all[] = {{4096, l2 / 2}, {16384, l2}, {131072, 12 * l2}};
    size_t n = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const int64_t rows = all[i].bytes / (3 * ITEM * all[i].cols);
        out[n].size = all[i].cols;
        snprintf(out[n++].text, sizeof out->text, "%lldx%lld", (long long)(rows > 4 ? rows : 4),
                 (long long)all[i].cols);
    }
    return n;
}

/* Channels of an eighth of the second cache to twice it, 8 of them, 8 images. */
static size_t channels(const struct nb_cpu *cpu, struct tune_shape *out) {
    size_t n = 0;
    for (int64_t size = l2_of(cpu) / 8; size <= 2 * l2_of(cpu); size *= 2) {
        const int64_t positions = size / 8 / ITEM;
        out[n].size = 8 * positions * ITEM;
        snprintf(out[n++].text, sizeof out->text, "nchw:8x8x%lld", (long long)positions);
    }
    return n;
}

static const struct tune_topic all_topics[] = {
    {.name = "non-temporal stores",
     .field = "stream_bytes",
     .is_threshold = true,
     .zero_is_all = true,
     .settings = {"stream_bytes=1", "stream_bytes=0"},
     .kernel = "rmsnorm_fast",
     .shapes = whole_calls,
     .at_first_use = true},
    {.name = "columns of a backward call",
     .field = "column_tile",
     .settings = {"column_tile=1024", "column_tile=2048", "column_tile=4096", "column_tile=16384"},
     .kernel = "layernorm_backward_fast",
     .shapes = long_rows,
     .at_first_use = true},
    {.name = "a channel read twice",
     .field = "slab_bytes",
     .is_threshold = true,
     .settings = {"slab_bytes=0", "slab_bytes=1G"},
     .kernel = "batchnorm_fast",
     .shapes = channels},
};
enum { N_TOPICS = sizeof all_topics / sizeof all_topics[0] };

/* ---- arrangements ---- */

enum { BEYOND, WITHIN }; /* arms of a threshold */

static void apply(struct nb_tuning *t, const char *setting) {
    char reason[200];
    const int result = nb_tuning_parse(t, setting, reason, sizeof reason);
    assert(result == 0);
    (void)result;
}

/* The settings as tunings that differ from base in nothing else; of a choice whose base is none of them, base too. */
static void add_arms(struct tune_outcome *o) {
    bool has_base = o->topic->is_threshold;
    for (; o->n_arms < N_SETTINGS && o->topic->settings[o->n_arms]; o->n_arms++) {
        o->arms[o->n_arms] = *o->base;
        apply(&o->arms[o->n_arms], o->topic->settings[o->n_arms]);
        has_base |= nb_tuning_equal(&o->arms[o->n_arms], o->base);
    }
    if (!has_base) o->arms[o->n_arms++] = *o->base;
}

static int64_t base_value(const struct tune_outcome *o) {
    return nb_tuning_get(o->base, nb_tuning_field_find(o->topic->field));
}

/* Which arm base is on a shape. */
static int base_arm_of(const struct tune_outcome *o, size_t shape) {
    const int64_t threshold = base_value(o);
    int arm = 0;
    if (o->topic->is_threshold)
        return (threshold == 0 && o->topic->zero_is_all) || o->shapes[shape].size <= threshold ? WITHIN : BEYOND;
    while (arm < o->n_arms - 1 && !nb_tuning_equal(&o->arms[arm], o->base)) arm++;
    return arm;
}

/* Between two sizes that were looked at; beyond the last of them nothing is known, and the threshold stays at it, unless kernels
 * have a word for all. */
static int64_t threshold_after(const struct tune_outcome *o, size_t n_within) {
    if (n_within == 0) return o->shapes[0].size - 1;
    if (n_within == o->n_shapes) return o->topic->zero_is_all ? 0 : o->shapes[n_within - 1].size;
    return (int64_t)sqrt((double)o->shapes[n_within - 1].size * (double)o->shapes[n_within].size);
}

/* All arrangements worth a thought: of a threshold one between each two sizes. */
static void add_candidates(struct tune_outcome *o) {
    const bool is_threshold = o->topic->is_threshold;
    o->n_candidates = is_threshold ? o->n_shapes + 1 : (size_t)o->n_arms;
    for (size_t i = 0; i < o->n_candidates; i++) {
        struct tune_candidate *c = &o->candidates[i];
        c->tuning = is_threshold ? *o->base : o->arms[i];
        if (is_threshold) nb_tuning_set(&c->tuning, nb_tuning_field_find(o->topic->field), threshold_after(o, i));
        for (size_t s = 0; s < o->n_shapes; s++) c->arm[s] = !is_threshold ? (int)i : s < i ? WITHIN : BEYOND;
    }
}

/* ---- trials ---- */

static int make_case(struct nb_case *c, const struct nb_entry *entry, const char *shape, const struct nb_tuning *base) {
    struct nb_call call;
    char reason[256];
    nb_case_init(c);
    c->formula.affine = NB_N_AFFINES; /* the op's usual one */
    nb_case_set_entry(c, entry);
    if (nb_shape_parse(&c->shape, shape, reason, sizeof reason) != 0) return -1;
    nb_case_normalize(c);
    c->tuning = base;
    nb_case_call(c, &call);
    return nb_ask_applicable(entry, &call) ? -1 : 0;
}

static void add_trials(struct tune_outcome *o, const struct nb_entry *entry, int launches) {
    for (size_t s = 0; s < o->n_shapes; s++) {
        struct tune_trial *t = &o->trials[o->n_trials];
        *t = (struct tune_trial){.shape = s, .base_arm = base_arm_of(o, s)};
        if (make_case(&t->c, entry, o->shapes[s].text, o->base) != 0) continue;
        for (int a = 0; a < o->n_arms; a++) t->gain[a] = nb_alloc((unsigned)launches, sizeof *t->gain[a]);
        o->n_trials++;
    }
}

/* What is compared on which shapes, but for the trials. */
static void plan_topic(struct tune_outcome *o, const struct tune_topic *topic, const struct nb_tuning *base) {
    *o = (struct tune_outcome){.topic = topic, .base = base};
    add_arms(o);
    o->n_shapes = topic->shapes(nb_cpu_light(), o->shapes);
    add_candidates(o);
}

/* ---- launches ---- */

static const double silence_s = 20;

/* What one launch of a trial found: a worker process times one kernel on one shape under several tunings, interleaved. */
struct answer {
    struct nb_by_state gain[N_SETTINGS + 1]; /* ln(time of the base arm / time of the arm), median over blocks */
    bool differs;     /* an arm's output has other bits than the first one's: a tuning must not change any */
    char reason[200]; /* why there are no gains; "" when there are */
};

static int read_answer(const struct tune_trial *t, int n_arms, const cJSON *answer, struct nb_floors *floors,
                       struct answer *out) {
    const cJSON *arms = nb_json_get(answer, "arms"), *arm;
    const char *reason = nb_json_get_text(answer, "reason");
    struct nb_samples samples[N_SETTINGS + 1] = {{0}};
    int n = 0, result = cJSON_GetArraySize(arms) == n_arms ? 0 : -1;
    nb_floors_take_line(floors, answer);
    out->differs = nb_json_get_bool(answer, "differs");
    if (reason) snprintf(out->reason, sizeof out->reason, "%s", reason);
    cJSON_ArrayForEach(arm, arms) {
        if (result == 0) result = nb_samples_from_json(&samples[n++], arm, nb_floors_of_line(floors, answer));
    }
    for (int a = 0; a < n_arms && result == 0; a++) out->gain[a] = nb_pairs_ln(&samples[t->base_arm], &samples[a]);
    for (int a = 0; a < n; a++) nb_samples_release(&samples[a]);
    return result;
}

/* 0, -1 after nb_error (no process can be started), or the number of the signal that ended it. */
static int ask(struct tuning_run *run, const struct tune_outcome *o, const struct tune_trial *t, int launch,
               struct answer *out) {
    char *key freed = nb_case_key(&t->c);
    struct nb_asked asked[N_SETTINGS + 1];
    int cpus[NB_MOST_MOVES];
    struct nb_outcome outcome;
    cJSON *json released_by(nb_json_release) = cJSON_CreateObject(), *tunings = cJSON_AddArrayToObject(json, "tunings");
    *out = (struct answer){.reason = ""};
    for (int a = 0; a < o->n_arms; a++) {
        asked[a] = (struct nb_asked){.key = key};
        cJSON_AddItemToArray(tunings, nb_tuning_to_json(&o->arms[a]));
    }
    struct nb_job job = {.kind = "tune",
                         .launch = launch,
                         .asked = asked,
                         .n_cases = o->n_arms,
                         .blocks = run->options.blocks,
                         .sample_s = 1e-3 * run->options.sample_ms,
                         .digests_at = -1,
                         .seed = nb_random_bits(nb_random_stream(1, (uint64_t)launch), 0),
                         .cpus = cpus,
                         .n_cpus = nb_launcher_cpus(cpus, 1, launch),
                         .options = json};
    job.floor = nb_floors_get(&run->floors, cpus[0], 1);
    cJSON *answer released_by(nb_json_release) = nb_launcher_ask(&job, silence_s, &outcome);
    if (answer && read_answer(t, o->n_arms, answer, &run->floors, out) != 0 && !out->reason[0])
        snprintf(out->reason, sizeof out->reason, "what its worker said cannot be read");
    return nb_launcher_ends(&outcome);
}

/* A trial that went wrong is out, and says why. */
static int launch_trial(struct tuning_run *run, struct tune_outcome *o, struct tune_trial *t, int launch) {
    struct answer answer;
    if (t->n_launches < (size_t)launch) return 0;
    const int ended = ask(run, o, t, launch, &answer);
    if (ended != 0) return ended;
    if (answer.differs)
        snprintf(answer.reason, sizeof answer.reason, "its results depend on the tuning; they must not");
    if (answer.reason[0]) {
        snprintf(o->reason, sizeof o->reason, "%.80s on %.60s: %.80s", t->c.variant, t->c.shape.text, answer.reason);
        nb_warn("tune: %s", o->reason);
        t->n_launches = 0;
        return 0;
    }
    for (int a = 0; a < o->n_arms; a++) t->gain[a][t->n_launches] = answer.gain[a];
    t->n_launches++;
    return 0;
}

static int launch_all(struct tuning_run *run, double start_s) {
    size_t total = 0, done = 0;
    for (size_t i = 0; i < run->n_topics; i++) total += run->topics[i].n_trials * (size_t)run->options.launches;
    for (int l = 0; l < run->options.launches; l++)
        for (size_t i = 0; i < run->n_topics; i++)
            for (size_t t = 0; t < run->topics[i].n_trials; t++) {
                nb_progress((double)done++, (double)total, nb_now_s() - start_s, run->topics[i].topic->name);
                const int ended = launch_trial(run, &run->topics[i], &run->topics[i].trials[t], l);
                if (ended != 0) return ended;
                if (nb_interrupted()) return nb_interrupted();
            }
    return 0;
}

/* ---- verdicts ---- */

static double gain_at(const struct tune_trial *trial, int arm, size_t launch) {
    return trial->gain[arm][launch].ln[trial->state[arm]];
}

/* 95 %, on the logarithm; NaN bounds below six launches. */
static struct nb_interval gain_of(const struct tune_trial *trial, int arm) {
    double *gains freed = nb_alloc(trial->n_launches + 1, sizeof *gains);
    for (size_t l = 0; l < trial->n_launches; l++) gains[l] = gain_at(trial, arm, l);
    return nb_over_launches(gains, trial->n_launches, 0.95);
}

/* Of all trials in which the candidate is not what the default is what is beyond the margin for sure. */
static double score(const struct tune_outcome *o, const struct tune_candidate *candidate) {
    double sum = 0;
    for (size_t t = 0; t < o->n_trials; t++) {
        const int arm = candidate->arm[o->trials[t].shape];
        if (arm == o->trials[t].base_arm || o->trials[t].n_launches == 0) continue;
        const struct nb_interval gain = gain_of(&o->trials[t], arm);
        if (gain.low > NB_TUNE_MARGIN || gain.high < -NB_TUNE_MARGIN) sum += gain.value;
    }
    return sum;
}

/* Of each launch the mean over those trials. */
static struct nb_interval mean_gain(const struct tune_outcome *o, const struct tune_candidate *candidate,
                                    size_t *n_differ) {
    size_t n_launches = 0;
    for (size_t t = 0; t < o->n_trials; t++)
        if (o->trials[t].n_launches > n_launches) n_launches = o->trials[t].n_launches;
    double *means freed = nb_alloc(n_launches + 1, sizeof *means);
    for (size_t l = 0; l < n_launches; l++) {
        size_t counted = 0;
        for (size_t t = 0; t < o->n_trials; t++) {
            const struct tune_trial *trial = &o->trials[t];
            const int arm = candidate->arm[trial->shape];
            if (arm == trial->base_arm || l >= trial->n_launches || !isfinite(gain_at(trial, arm, l))) continue;
            means[l] += gain_at(trial, arm, l);
            counted++;
        }
        means[l] = counted ? means[l] / (double)counted : (double)NAN;
        if (counted > *n_differ) *n_differ = counted;
    }
    return nb_over_launches(means, n_launches, 0.95);
}

/* The candidate with the largest sum of gains, counting of each trial only what is beyond the margin with its whole interval, gain or
 * loss. It wins over the default when the mean gain is, too. */
static void judge(struct tune_outcome *o) {
    double best = -INFINITY; /* score of the best so far */
    struct tune_verdict *v = &o->verdict;
    *v = (struct tune_verdict){.candidate = -1, .gain = {NAN, NAN, NAN}};
    for (size_t c = 0; c < o->n_candidates; c++) {
        size_t n_differ = 0;
        const struct nb_interval gain = mean_gain(o, &o->candidates[c], &n_differ);
        const double own = score(o, &o->candidates[c]);
        /* Of two that are as good where it is sure, the one that leaves more of what is not sure alone. */
        const bool as_good = own >= best - 1e-12, surer = !(gain.low <= v->gain.low);
        if (n_differ == 0 || !as_good || (own <= best + 1e-12 && !surer)) continue;
        best = own;
        *v = (struct tune_verdict){own > 0 && gain.low > NB_TUNE_MARGIN ? (int)c : -1, gain, n_differ};
    }
}

/* The fields in which the candidate is not like the defaults; two topics share none. */
static void take_over(struct nb_tuning *t, const struct nb_tuning *candidate, const struct nb_tuning *base) {
    for (size_t i = 0; i < nb_n_tuning_fields; i++) {
        const int64_t value = nb_tuning_get(candidate, &nb_tuning_fields[i]);
        if (value != nb_tuning_get(base, &nb_tuning_fields[i])) nb_tuning_set(t, &nb_tuning_fields[i], value);
    }
}

/* The gains of an arm are those in the state of the core that serves for it. */
static void choose_states(struct tune_outcome *o) {
    for (size_t i = 0; i < o->n_trials; i++)
        for (int a = 0; a < o->n_arms; a++)
            o->trials[i].state[a] = nb_state_over_launches(o->trials[i].gain[a], o->trials[i].n_launches, 0.95);
}

static void judge_all(struct tuning_run *run) {
    run->tuned = run->base;
    for (size_t i = 0; i < run->n_topics; i++) {
        struct tune_outcome *o = &run->topics[i];
        choose_states(o);
        judge(o);
        if (o->verdict.candidate >= 0) take_over(&run->tuned, &o->candidates[o->verdict.candidate].tuning, &run->base);
    }
}

/* ---- as the file has it ---- */

/* The tuning first, then for each topic what speaks for it. */

/* A logarithm's interval as percent faster. */
static void add_gain(cJSON *json, const struct nb_interval *ln) {
    const struct nb_interval percent = {100 * expm1(ln->value), 100 * expm1(ln->low), 100 * expm1(ln->high)};
    nb_json_interval(json, "faster_percent", &percent);
}

static void add_cpu(cJSON *json) {
    const struct nb_cpu *cpu = nb_cpu_light();
    cJSON *object = cJSON_AddObjectToObject(json, "cpu");
    char *identity freed = nb_tuning_cpu();
    nb_json_text(object, "identity", identity);
    nb_json_text(object, "vendor", cpu->vendor);
    nb_json_text(object, "model", cpu->model);
    cJSON_AddNumberToObject(object, "family", cpu->family);
    cJSON_AddNumberToObject(object, "model_number", cpu->model_number);
    cJSON_AddNumberToObject(object, "stepping", cpu->stepping);
    cJSON_AddNumberToObject(object, "l1d_bytes", (double)cpu->l1d_bytes);
    cJSON_AddNumberToObject(object, "l2_bytes", (double)cpu->l2_bytes);
    cJSON_AddNumberToObject(object, "l3_bytes", (double)cpu->l3_bytes);
}

/* The setting that makes an arm what it is; of a default that is none of the settings its own value. */
static void add_setting(cJSON *json, const struct tune_outcome *o, int arm) {
    char *own freed = nb_textf("%s=%lld", o->topic->field, (long long)base_value(o));
    const bool is_base = arm == N_SETTINGS || !o->topic->settings[arm] || nb_tuning_equal(&o->arms[arm], o->base);
    nb_json_text(json, "setting", is_base ? own : o->topic->settings[arm]);
}

static void add_trial(cJSON *trials, const struct tune_outcome *o, const struct tune_trial *trial) {
    char *key freed = nb_case_key(&trial->c);
    cJSON *json = nb_json_add_object(trials);
    nb_json_text(json, "key", key);
    cJSON_AddNumberToObject(json, "size", (double)o->shapes[trial->shape].size);
    cJSON_AddNumberToObject(json, "launches", (double)trial->n_launches);
    cJSON *arms = cJSON_AddArrayToObject(json, "arms");
    for (int a = 0; a < o->n_arms; a++) {
        cJSON *arm = nb_json_add_object(arms);
        const struct nb_interval gain = gain_of(trial, a);
        add_setting(arm, o, a);
        cJSON_AddBoolToObject(arm, "default", a == trial->base_arm);
        add_gain(arm, &gain);
    }
}

static bool is_measured(const struct tune_outcome *o) {
    bool measured = false;
    for (size_t t = 0; t < o->n_trials; t++) measured |= o->trials[t].n_launches > 0;
    return measured;
}

static void add_topic(cJSON *topics, const struct tune_outcome *o) {
    const bool changed = o->verdict.candidate >= 0;
    struct nb_strbuf chosen released_by(nb_strbuf_release) = {0};
    cJSON *json = nb_json_add_object(topics);
    nb_json_text(json, "name", o->topic->name);
    nb_json_text(json, "field", o->topic->field);
    nb_json_text(json, "verdict", !is_measured(o) ? "not_measured" : changed ? "measured" : "default");
    if (changed) nb_tuning_print(&o->candidates[o->verdict.candidate].tuning, o->base, &chosen);
    nb_json_text(json, "setting", changed ? chosen.text : NULL);
    nb_json_text(json, "reason", o->reason[0] ? o->reason : NULL);
    add_gain(json, &o->verdict.gain);
    cJSON_AddNumberToObject(json, "trials_that_differ", (double)o->verdict.n_trials);
    cJSON *trials = cJSON_AddArrayToObject(json, "trials");
    for (size_t t = 0; t < o->n_trials; t++) add_trial(trials, o, &o->trials[t]);
}

static cJSON *tuning_json(const struct tuning_run *run) {
    char when[32];
    const char *file = nb_registry_file(0);
    char hash[20] = "";
    cJSON *json = nb_json_document(NB_TUNING_SCHEMA);
    nb_utc_now("%Y-%m-%dT%H:%M:%SZ", when, sizeof when);
    if (file) nb_file_hash(file, hash);
    nb_json_text(json, "measured", when);
    nb_json_number(json, "elapsed_s", run->elapsed_s);
    add_cpu(json);
    nb_json_text(json, "kernels_hash", hash[0] ? hash : NULL);
    cJSON_AddNumberToObject(json, "launches", run->options.launches);
    cJSON_AddNumberToObject(json, "blocks", run->options.blocks);
    cJSON_AddItemToObject(json, "tuning", nb_tuning_to_json(&run->tuned));
    cJSON_AddItemToObject(json, "defaults", nb_tuning_to_json(&run->base));
    cJSON *topics = cJSON_AddArrayToObject(json, "topics");
    for (size_t i = 0; i < run->n_topics; i++) add_topic(topics, &run->topics[i]);
    return json;
}

/* ---- the whole ---- */

int nb_tune_run(const struct nb_tune_options *options, cJSON **file, size_t *n_measured) {
    const double start_s = nb_now_s();
    struct tuning_run run = {.options = *options};
    *n_measured = 0;
    nb_tuning_default(&run.base);
    run.topics = nb_alloc(N_TOPICS, sizeof *run.topics);
    for (size_t i = 0; i < N_TOPICS; i++) {
        if (options->first_use && !all_topics[i].at_first_use) continue;
        struct tune_outcome *o = &run.topics[run.n_topics++];
        const struct nb_entry *entry = nb_registry_widest(all_topics[i].kernel, NB_F32);
        plan_topic(o, &all_topics[i], &run.base);
        if (entry) add_trials(o, entry, options->launches);
        if (o->n_trials == 0) snprintf(o->reason, sizeof o->reason, "this build has no %s", o->topic->kernel);
    }
    nb_watch_interrupts();
    nb_floors_load(&run.floors);
    const int ended = launch_all(&run, start_s);
    nb_progress_end();
    nb_floors_keep(&run.floors);
    nb_floors_release(&run.floors);
    run.elapsed_s = nb_now_s() - start_s;
    for (size_t i = 0; i < run.n_topics && ended > 0; i++)
        snprintf(run.topics[i].reason, sizeof run.topics[i].reason, "signal %d ended it early", ended);
    if (ended >= 0) judge_all(&run);
    for (size_t i = 0; i < run.n_topics; i++) *n_measured += is_measured(&run.topics[i]);
    *file = ended >= 0 ? tuning_json(&run) : NULL;
    for (size_t i = 0; i < run.n_topics; i++)
        for (size_t t = 0; t < run.topics[i].n_trials; t++)
            for (int a = 0; a < run.topics[i].n_arms; a++) free(run.topics[i].trials[t].gain[a]);
    free(run.topics);
    return ended;
}
