// SPDX-License-Identifier: Apache-2.0
/* Kernels as what a gate compares: the cells of a config as cases of both builds, whether what both compute is right and the candidate as
 * accurate as the baseline, how many instructions a small call is, and whether injected work is what it says. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/accuracy/accuracy.h"
#include "src/accuracy/gradient.h"
#include "src/core/axes.h"
#include "src/core/guard.h"
#include "src/core/json.h"
#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "src/gate/gate.h"
#include "src/measure/buffers.h"
#include "src/measure/counters.h"
#include "src/measure/launcher.h"
#include "src/measure/measure.h"
#include "src/measure/pool.h"
#include "src/plan/cells.h"

struct parts {
    const struct nb_entry *entries[NB_N_BUILDS]; /* null: the build has no such kernel */
};

static const struct nb_entry *entry_of(const struct nb_gate_case *c, int build) {
    return ((const struct parts *)c->parts)->entries[build];
}

/* ---- the cases ------------------------------------------------------------------------------------------------------- */

struct making {
    struct nb_gate *g;
    const char *const *kernels;
    size_t n_kernels;
    const struct nb_filters *filters;
    struct nb_text_map known; /* keys without the build */
    size_t *n_elsewhere;
    struct nb_skips *skips;
};

/* "candidate:rmsnorm_.." -> "rmsnorm_.."; also of a name that begins with the name of the build's own file. */
static const char *without_build(const char *key) {
    const char *colon = strchr(key, ':');
    return colon ? colon + 1 : key;
}

static bool is_wanted(const struct making *m, const struct nb_entry *entry) {
    for (size_t i = 0; i < m->n_kernels; i++)
        if (nb_entry_is_named(entry, without_build(m->kernels[i]))) return true;
    return m->n_kernels == 0;
}

/* A kernel's name in a config or an option may say the file as for any plugin ("mine:rms"); here its plugin is the build. */
static void drop_files(struct nb_block *block) {
    struct nb_values *names = &block->values[nb_axis_find("kernel") - nb_axes];
    for (size_t i = 0; i < names->n; i++) {
        const char *name = without_build(names->texts[i]);
        memmove(names->texts[i], name, strlen(name) + 1);
    }
    for (size_t i = 0; i < block->n_includes; i++) drop_files(&block->includes[i]);
    for (size_t i = 0; i < block->n_excludes; i++) drop_files(&block->excludes[i]);
}

/* A glob of --kernel may match nothing; a name is that of a kernel, or a mistake. */
static int check_names(const struct making *m) {
    for (size_t k = 0; k < m->n_kernels; k++) {
        const char *name = without_build(m->kernels[k]);
        struct nb_strbuf near released_by(nb_strbuf_release) = {0};
        bool known = strpbrk(name, "*?[") != NULL;
        for (size_t i = 0; i < nb_registry_size() && !known; i++)
            known = nb_registry_at(i)->plugin && nb_entry_is_named(nb_registry_at(i), name);
        if (known) continue;
        char *of_build freed = nb_textf("%s:%s", nb_build_names[NB_BUILD_CANDIDATE], name);
        nb_registry_suggest(of_build, &near);
        return nb_error("--kernel '%s': no kernel has this name%s", m->kernels[k], near.text ? near.text : "");
    }
    return 0;
}

static const struct nb_entry *counterpart(const struct nb_entry *entry, int build) {
    char *id freed = nb_textf("%s:%s", nb_build_names[build], without_build(entry->id));
    return nb_registry_find(id);
}

static void add_case(struct making *m, const struct nb_cell *cell) {
    struct nb_gate *g = m->g;
    const char *key = without_build(cell->key);
    if (!is_wanted(m, cell->entry) || !nb_filters_match(m->filters, key)) return;
    if (cell->refused) {
        nb_skips_count(m->skips, 1, "%s", cell->refused);
        ++*m->n_elsewhere;
        return;
    }
    if (nb_text_map_find(&m->known, key) != NB_NOWHERE) return;
    struct nb_gate_case *c = nb_gate_add_case(g, key, sizeof(struct parts));
    nb_text_map_add(&m->known, c->key, g->n_cases - 1);
    c->c = cell->c;
    for (int b = 0; b < NB_N_BUILDS; b++) ((struct parts *)c->parts)->entries[b] = counterpart(cell->entry, b);
}

/* For the candidate first, then for the baseline to see which kernels are gone. */
static int expand(struct making *m, struct nb_config *config, int build) {
    static const struct nb_filters none = {0};
    struct nb_cells cells released_by(nb_cells_release) = {0};
    char *backend freed = nb_textf("backend=plugin:%s", nb_build_names[build]);
    int result = nb_config_axis(config, backend);
    if (result == 0) result = nb_cells_expand(&cells, config, &none, m->skips);
    for (size_t i = 0; i < cells.n && result == 0; i++) add_case(m, &cells.items[i]);
    return result;
}

int nb_gate_cases_make(struct nb_gate *g, struct nb_config *config, const char *const *kernels, size_t n_kernels,
                       const struct nb_filters *filters, struct nb_skips *skips, size_t *n_elsewhere) {
    struct making m = {.g = g,
                       .kernels = kernels,
                       .n_kernels = n_kernels,
                       .filters = filters,
                       .n_elsewhere = n_elsewhere,
                       .skips = skips};
    struct nb_skips again released_by(nb_skips_release) = {0}; /* the same cells fall away a second time */
    *n_elsewhere = 0;
    g->subject = &nb_gate_kernels;
    for (size_t i = 0; i < config->n_blocks; i++) drop_files(&config->blocks[i]);
    int result = check_names(&m);
    if (result == 0) result = expand(&m, config, NB_BUILD_CANDIDATE);
    m.skips = &again;
    size_t elsewhere_again = 0;
    m.n_elsewhere = &elsewhere_again;
    if (result == 0) result = expand(&m, config, NB_BUILD_BASELINE);
    nb_text_map_release(&m.known);
    return result;
}

/* ---- instructions ------------------------------------------------------------------------------------------------------- */

/* The build whose case a worker's line is about; -1: it is no such line. */
static int build_of(const struct nb_gate_case *c, const cJSON *line) {
    const char *type = nb_json_get_text(line, "type"), *key = nb_json_get_text(line, "key");
    for (int b = 0; b < NB_N_BUILDS && type && key && strcmp(type, "case") == 0; b++)
        if (strcmp(key, c->arm_keys[b]) == 0) return b;
    return -1;
}

static void take_count(cJSON *line, void *arg) {
    struct nb_gate_case *c = arg;
    const int b = build_of(c, line);
    const cJSON *counters = nb_json_get(b >= 0 ? line : NULL, "counters"), *counter;
    cJSON_ArrayForEach(counter, counters) {
        const char *name = nb_json_get_text(counter, "name"), *reason = nb_json_get_text(counter, "reason");
        if (!name || strcmp(name, "instructions_exact") != 0) continue;
        c->instructions[b] = nb_json_get_number(counter, "value");
        if (reason) snprintf(c->uncounted, sizeof c->uncounted, "%s: %.100s", nb_build_names[b], reason);
    }
    cJSON_Delete(line);
}

/* A worker's, before anything is timed. */
static struct nb_job job_of(const char *kind, const char *const *files, int n_files, struct nb_asked *asked, int n) {
    return (struct nb_job){.kind = kind,
                           .launch = -1,
                           .plugins = (const char **)(uintptr_t)files,
                           .n_plugins = n_files,
                           .asked = asked,
                           .n_cases = n,
                           .check_only = true,
                           .digests_at = -1};
}

/* Fills the case's instructions, or uncounted with the reason. One worker counts both builds; the control need not be counted. 0, -1 after
 * nb_error, or a signal's number. */
static int count_instructions(const struct nb_gate *g, struct nb_gate_case *c) {
    struct nb_asked asked[] = {{.key = c->arm_keys[NB_BUILD_BASELINE], .step = true},
                               {.key = c->arm_keys[NB_BUILD_CANDIDATE], .step = true}};
    struct nb_outcome o;
    const struct nb_job job = job_of("counters", g->builds.files[0], NB_N_BUILDS, asked, 2);
    snprintf(c->uncounted, sizeof c->uncounted, "the count did not come to its end");
    nb_process_run(NULL, &job, -1, g->plan.case_timeout_s, take_count, c, &o);
    if (nb_launcher_ends(&o) != 0) return nb_launcher_ends(&o);
    if (isfinite(c->instructions[NB_BUILD_BASELINE]) && isfinite(c->instructions[NB_BUILD_CANDIDATE]))
        c->uncounted[0] = '\0';
    return 0;
}

/* ---- accuracy --------------------------------------------------------------------------------------------------------- */

/* The margins of accuracy: worse by more than this is LESS ACCURATE. */
#define ULP_FACTOR 1.1 /* of the largest error, and */
#define ULP_MORE 0.1   /* in ulp besides */
#define BIAS_MORE_U 0.05
#define NORM_FACTOR 2 /* more, of the norm of a parameter's error: its few sums over rows are chance too */

static int64_t strange(const struct nb_accuracy *a) {
    return a->nan_unexpected + a->inf_unexpected + a->zero_unexpected + a->nan_missing + a->inf_missing;
}

static bool is_beyond(double candidate, double baseline) { return candidate > ULP_FACTOR * baseline + ULP_MORE; }

/* Elements of dx may cancel to anything: which is off by most ulp, and by how many, is chance, and another order of a sum draws again. So
 * is the bias of those near 0. */
static double error_of(const struct nb_accuracy *a) { return a->has_parameters ? a->p99_ulp : a->max_ulp; }
static double bias_of(const struct nb_accuracy *a) { return a->has_parameters ? a->bias_large_u : a->bias_u; }

/* Null, or the gradient of a parameter that is worse in norm. */
static const char *worse_parameter(const struct nb_accuracy *baseline, const struct nb_accuracy *candidate) {
    const struct nb_parameter_error *before[] = {&baseline->dgamma, &baseline->dbeta, &baseline->dalpha};
    const struct nb_parameter_error *after[] = {&candidate->dgamma, &candidate->dbeta, &candidate->dalpha};
    static const char *const names[] = {"dgamma", "dbeta", "dalpha"};
    for (int i = 0; i < 3; i++)
        if (before[i]->n > 0 && after[i]->n > 0 && is_beyond(after[i]->norm_u, NORM_FACTOR * before[i]->norm_u))
            return names[i];
    return NULL;
}

/* Null, or in what the candidate is less accurate; the text is good until the next call. */
static const char *gate_less_accurate(const struct nb_accuracy *baseline, const struct nb_accuracy *candidate) {
    static char text[200];
    const char *parameter = worse_parameter(baseline, candidate);
    if (strange(candidate) > strange(baseline))
        snprintf(text, sizeof text, "%lld NaN, Inf or lost zeros where the baseline has %lld",
                 (long long)strange(candidate), (long long)strange(baseline));
    else if (is_beyond(error_of(candidate), error_of(baseline)))
        snprintf(text, sizeof text, "%s error %.4g ulp, the baseline's %.4g",
                 candidate->has_parameters ? "99th percentile of the" : "largest", error_of(candidate),
                 error_of(baseline));
    else if (fabs(bias_of(candidate)) > fabs(bias_of(baseline)) + BIAS_MORE_U)
        snprintf(text, sizeof text, "bias %+.3g u, the baseline's %+.3g", bias_of(candidate), bias_of(baseline));
    else if (parameter)
        snprintf(text, sizeof text, "%s is further off in norm than the baseline's", parameter);
    else
        return NULL;
    return text;
}

/* ---- the worker ------------------------------------------------------------------------------------------------------- */

struct checks {
    struct nb_gate_case *c;
    enum nb_status status[NB_N_BUILDS];
    bool answered[NB_N_BUILDS];
    char reason[NB_N_BUILDS][160];
};

static void take_check(cJSON *line, void *arg) {
    struct checks *checks = arg;
    const int b = build_of(checks->c, line);
    if (b >= 0) {
        const char *status = nb_json_get_text(line, "status"), *reason = nb_json_get_text(line, "reason");
        const cJSON *accuracy = nb_json_get(line, "accuracy");
        checks->answered[b] = true;
        checks->status[b] = status ? nb_status_parse(status) : NB_CRASHED;
        snprintf(checks->reason[b], sizeof checks->reason[b], "%s", reason ? reason : "");
        if (accuracy && nb_accuracy_from_json(&checks->c->accuracy[b], accuracy) == 0)
            checks->c->has_accuracy[b] = true;
    }
    cJSON_Delete(line);
}

/* Of the cases of its kernel: that one is called on and on. */
static bool is_smallest(const struct nb_gate *g, const struct nb_gate_case *c) {
    for (size_t i = 0; i < g->n_cases; i++) {
        const struct nb_gate_case *other = &g->cases[i];
        const double more = nb_case_bytes(&other->c) - nb_case_bytes(&c->c);
        if (entry_of(other, NB_BUILD_CANDIDATE) == entry_of(c, NB_BUILD_CANDIDATE) &&
            (more < 0 || (more == 0 && other < c)))
            return false;
    }
    return true;
}

/* One worker for each build, on the same inputs. */
static int run_checks(const struct nb_gate *g, struct checks *checks) {
    static const int builds[] = {NB_BUILD_BASELINE, NB_BUILD_CANDIDATE};
    for (int i = 0; i < 2; i++) {
        const int b = builds[i];
        struct nb_asked asked = {.key = checks->c->arm_keys[b], .many = is_smallest(g, checks->c)};
        struct nb_outcome o;
        /* What the others do is no matter of this one's. */
        const struct nb_job job = job_of("check", &g->builds.files[0][b], 1, &asked, 1);
        nb_process_run(NULL, &job, -1, g->plan.case_timeout_s, take_check, checks, &o);
        if (nb_launcher_ends(&o) != 0) return nb_launcher_ends(&o);
        if (checks->answered[b]) continue;
        checks->status[b] = nb_outcome_blame(&o, checks->reason[b], sizeof checks->reason[b]);
    }
    return 0;
}

static void judge_checks(const struct checks *checks) {
    struct nb_gate_case *c = checks->c;
    const enum nb_status baseline = checks->status[NB_BUILD_BASELINE], candidate = checks->status[NB_BUILD_CANDIDATE];
    if (nb_status_failed(candidate) || nb_status_failed(baseline)) {
        const int b = nb_status_failed(candidate) ? NB_BUILD_CANDIDATE : NB_BUILD_BASELINE;
        nb_gate_decide(c, b == NB_BUILD_CANDIDATE ? NB_VERDICT_WRONG : NB_VERDICT_NOT_COMPARABLE, "%s%s%s%s",
                       nb_status_name(checks->status[b]), checks->reason[b][0] ? ": " : "", checks->reason[b],
                       b == NB_BUILD_BASELINE       ? " (the baseline; the candidate is right)"
                       : nb_status_failed(baseline) ? " (the baseline fails too)"
                                                    : "");
    } else if (!nb_status_timed(candidate) || !nb_status_timed(baseline)) {
        nb_gate_decide(c, NB_VERDICT_NOT_COMPARABLE, "%s",
                       checks->reason[nb_status_timed(candidate) ? NB_BUILD_BASELINE : NB_BUILD_CANDIDATE]);
    } else if (c->has_accuracy[NB_BUILD_BASELINE] && c->has_accuracy[NB_BUILD_CANDIDATE]) {
        const char *worse = gate_less_accurate(&c->accuracy[NB_BUILD_BASELINE], &c->accuracy[NB_BUILD_CANDIDATE]);
        if (worse) nb_gate_decide(c, NB_VERDICT_LESS_ACCURATE, "%s", worse);
    }
}

static int check_kernel(const struct nb_gate *g, struct nb_gate_case *c) {
    struct checks checks = {.c = c};
    const int result = run_checks(g, &checks);
    if (result == 0) judge_checks(&checks);
    return result;
}

/* ---- injected work --------------------------------------------------------------------------------------------------- */

/* Is a sample that does p % more rows really p % more work? Counted, instruction by instruction, in two calls on the first rows of one
 * set of buffers. */
enum { COLS = 64, LIMIT = 400000 };

struct work {
    const struct nb_kernel *kernel;
    struct nb_call call;
};

static void run_work(void *arg) {
    struct work *w = arg;
    nb_run_in_ranges(w->kernel, &w->call, 0);
}

static double count_injected(const struct nb_case *c, const struct nb_entry *entry, int percent, char *reason,
                             size_t n) {
    struct nb_case small = *c;
    struct nb_inputs in released_by(nb_inputs_release) = {0};
    struct nb_buffers b released_by(nb_buffers_release) = {0};
    double ratio = NAN;
    if (c->shape.layout != NB_ROWS) {
        snprintf(reason, n, "not counted for BatchNorm");
        return NAN;
    }
    small.shape.rows = 100 + percent;
    if (small.shape.cols > COLS) small.shape.cols = COLS;
    if (small.k > small.shape.cols) small.k = small.shape.cols;
    snprintf(small.data, sizeof small.data, "normal");
    small.pad = 0;
    struct work w = {.kernel = entry->kernel};
    nb_case_call(&small, &w.call);
    const struct nb_layout_request q = {.wants = nb_buffers_wants(&small, false),
                                        .placement = NB_PLACE_SLAB,
                                        .rows = small.shape.rows,
                                        .n_stats = small.shape.rows,
                                        .seed = 1,
                                        .scratch_bytes = nb_kernel_scratch_bytes(entry->kernel, &w.call),
                                        .poison = NB_POISON_NUMBER};
    if (nb_inputs_init(&in, &small) == 0 && nb_saved_statistics_add(&in, &small) == 0 &&
        nb_buffers_init(&b, &in, &q) == 0) {
        nb_buffers_attach(&b, &small, &w.call);
        const bool by_rows = nb_measure_goes_by_rows(entry->kernel, &w.call);
        if (!by_rows) snprintf(reason, n, "the first kernel takes all its rows together, and is slowed by time");
        const int64_t more = by_rows ? nb_single_step(run_work, &w, LIMIT, reason, n) : -1;
        w.call.rows = 100;
        const int64_t plain = more > 0 ? nb_single_step(run_work, &w, LIMIT, reason, n) : -1;
        if (plain > 0) ratio = (double)more / (double)plain - 1;
    } else {
        snprintf(reason, n, "no memory for the counted call");
    }
    return ratio;
}

struct injection {
    struct nb_case c;
    char kernel[NB_VARIANT_MAX], reason[200];
    int percent;
    double ratio;
};
static void count_there(void *arg) {
    struct injection *q = arg;
    const struct nb_entry *entry = nb_registry_find(q->kernel);
    q->ratio = entry ? count_injected(&q->c, entry, q->percent, q->reason, sizeof q->reason) : NAN;
}

static double injected_into_kernel(const struct nb_gate_case *c, int percent, char *reason, size_t n) {
    enum { LIMIT_S = 60 };
    struct injection q = {.c = c->c, .percent = percent, .ratio = NAN};
    snprintf(q.kernel, sizeof q.kernel, "%s", entry_of(c, NB_BUILD_CANDIDATE)->id);
    nb_guard_end(); /* what the case points to is younger than the last guard */
    const char *why = nb_guarded(count_there, &q, sizeof q, LIMIT_S);
    if (why) q.ratio = NAN;
    snprintf(reason, n, "%s%.120s", why ? "its code " : "", why ? why : q.reason);
    return q.ratio;
}

/* ---- the subject ----------------------------------------------------------------------------------------------------- */

static bool has_kernel(const struct nb_gate_case *c, int build) { return entry_of(c, build) != NULL; }

static const char *refuses_kernel(const struct nb_gate_case *c) {
    if (strcmp(entry_of(c, NB_BUILD_BASELINE)->code_file, entry_of(c, NB_BUILD_CANDIDATE)->code_file) != 0) return NULL;
    return "both builds run the same function of one loaded file: build them with hidden visibility and -Bsymbolic";
}

static int digest_kernel(const struct nb_code *code, const struct nb_gate_case *c, int build, enum nb_code_part part,
                         uint64_t digest[2], char *reason, size_t n) {
    return nb_code_digest(code, entry_of(c, build), part, digest, reason, n);
}

const struct nb_gate_subject nb_gate_kernels = {
    .noun = "kernel",
    .job = "gate",
    .injects = "more rows, or time behind the calls of a kernel that takes all its rows together",
    .instructions = "instr. (1 row)",
    .has = has_kernel,
    .refuses = refuses_kernel,
    .digest = digest_kernel,
    .check = check_kernel,
    .count = count_instructions,
    .doubt = nb_gate_doubt_copy,
    .injected = injected_into_kernel};
