// SPDX-License-Identifier: Apache-2.0
/* The plan behind `run` and `stress`, made from their options, shown by --list, and measured into a folder. */
#include "cmd/shared/run_plan.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "reports/text/output.h"
#include "src/core/axes.h"
#include "src/core/case.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/registry.h"
#include "src/core/timer.h"
#include "src/measure/launcher.h"
#include "src/measure/session.h"
#include "src/plan/cells.h"
#include "src/record/record.h"

/* Of several filters one that matches nothing is easily missed. */
static void warn_of_idle_filters(const struct nb_plan_request *q, const struct nb_plan *plan) {
    for (size_t i = 0; i < q->filters.n && q->filters.n > 1 && q->options.n_shards == 0; i++) {
        const struct nb_filters one = {.texts = (const char *const *)&q->filters.items[i], .n = 1};
        bool matches = false;
        for (size_t j = 0; j < plan->n_cases && !matches; j++) matches = nb_filters_match(&one, plan->keys[j]);
        for (size_t j = 0; j < plan->skips.n && !matches; j++)
            matches = plan->skips.items[j].key && nb_filters_match(&one, plan->skips.items[j].key);
        if (!matches) nb_warn("--filter '%s' matches no case", q->filters.items[i]);
    }
}

static int read_config(const struct nb_plan_request *q, struct nb_config *config) {
    struct nb_config second;
    if (q->config) return nb_config_read(config, q->config);
    if (nb_config_read(config, q->usual[0] ? q->usual[0] : "quick") != 0) return -1;
    if (!q->usual[1]) return 0;
    if (nb_config_read(&second, q->usual[1]) != 0) return -1;
    nb_config_append(config, &second);
    return 0;
}

/* kernel=PLUGIN:*,.. of all plugins loaded. */
static int select_plugins(struct nb_config *config) {
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    nb_strbuf_add(&text, "kernel=");
    const char *last = "";
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const char *plugin = nb_registry_at(i)->plugin;
        if (!plugin || strcmp(plugin, last) == 0) continue;
        nb_strbuf_addf(&text, "%s%s:*", *last ? "," : "", plugin);
        last = plugin;
    }
    return *last ? nb_config_axis(config, text.text) : 0;
}

/* ---- a plugin's kernels in a preset ---- */

/* A kernel that does not implement the usual formula has one of its own. */
static void name_formula(cJSON *block, const struct nb_entry *e) {
    static const char *const axes[] = {"root",   "eps_place",   "cast",     "weight_offset",
                                       "affine", "param_dtype", "round_sum"};
    struct nb_case usual, own;
    nb_case_init(&usual);
    usual.formula.affine = NB_N_AFFINES; /* the usual one of the op */
    nb_case_set_entry(&usual, e);
    nb_case_normalize(&usual);
    own = usual;
    nb_kernel_fit_formula(e->kernel, &own.formula);
    for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++) {
        char *mine freed = nb_case_axis_text(&own, axes[i]), *theirs freed = nb_case_axis_text(&usual, axes[i]);
        if (*mine && strcmp(mine, theirs) != 0) nb_json_text(block, axes[i], mine);
    }
}

cJSON *nb_plugin_block(const struct nb_entry *e, const char *const *kernels, size_t n, bool cold) {
    static const char *const hot_images[] = {"nchw:4x32x14x14", "nhwc:4x14x14x32"}, *const cold_images[] = {
                                                                                        "nchw:8x64x28x28",
                                                                                        "nhwc:8x28x28x64"};
    cJSON *block = cJSON_CreateObject();
    cJSON_AddItemToObject(block, "kernel", cJSON_CreateStringArray(kernels, (int)n));
    nb_json_text(block, "pass", nb_pass_names[e->kernel->pass]);
    nb_json_text(block, "dtype", nb_formats[e->kernel->dtype].name);
    if (e->kernel->op == NB_OP_BATCHNORM) {
        cJSON_AddItemToObject(block, "shape", cJSON_CreateStringArray(cold ? cold_images : hot_images, 2));
    } else {
        nb_json_text(block, "shape", cold ? "1024x1024" : "64x384");
        if (!cold) nb_json_text(block, "data", "minilm_layer0_out");
        nb_json_text(block, "eps", "1e-6");
    }
    if (cold) nb_json_text(block, "cache", "cold");
    name_formula(block, e);
    return block;
}

static bool names_shapes(const struct nb_strings *axes) {
    for (size_t i = 0; i < axes->n; i++)
        if (strncmp(axes->items[i], "shape=", 6) == 0) return true;
    return false;
}

/* The blocks of a preset name the dtypes, passes and layouts that it is about. Here each kernel of a plugin has one of its own, so that
 * none goes unchecked and untimed; a case that the preset has too is there once. Real rows have one length: not with shapes of the user's. */
static int join_plugins(const struct nb_plan_request *q, struct nb_config *config) {
    cJSON *more released_by(nb_json_release) = cJSON_CreateObject(), *blocks = cJSON_AddArrayToObject(more, "blocks");
    struct nb_config own;
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *e = nb_registry_at(i);
        if (!e->plugin || e->is_peer || e->kernel->backend != NB_BACKEND_CPU || e->kernel->op == NB_OP_COPY) continue;
        cJSON *block = nb_plugin_block(e, (const char *const[]){e->kernel_id}, 1, false);
        if (names_shapes(&q->axes)) cJSON_DeleteItemFromObjectCaseSensitive(block, "data");
        cJSON_AddItemToArray(blocks, block);
    }
    char *text = cJSON_GetArraySize(blocks) > 0 ? cJSON_PrintUnformatted(more) : NULL;
    const int result = text ? nb_config_parse(&own, "plugins", text, strlen(text)) : 0;
    if (text && result == 0) nb_config_append(config, &own);
    cJSON_free(text);
    return result;
}

static bool is_preset(const char *name) { return !name || (!strchr(name, '/') && !nb_text_ends(name, ".json")); }

/* ---- options ---- */

static int set_axis(struct nb_config *config, const char *axis, const char *values) {
    if (!values) return 0;
    char *text freed = nb_textf("%s=%s", axis, values);
    return nb_config_axis(config, text);
}

static int apply_options(const struct nb_plan_request *q, struct nb_config *config) {
    int result = q->plugins_alone && q->plugins.n > 0 ? select_plugins(config) : 0;
    if (q->plugins_join && q->plugins.n > 0 && is_preset(q->config) && config->compare.ours.n == 0)
        result = join_plugins(q, config);
    for (size_t i = 0; result == 0 && i < q->axes.n; i++) result = nb_config_axis(config, q->axes.items[i]);
    if (result == 0) result = set_axis(config, "kernel", q->kernels);
    if (result == 0) result = set_axis(config, "width", q->widths);
    return result == 0 && q->dtypes ? nb_config_narrow(config, "dtype", q->dtypes) : result;
}

int nb_plan_request_config(const struct nb_plan_request *q, struct nb_config *config) {
    return read_config(q, config) != 0 ? -1 : apply_options(q, config);
}

int nb_take_launches(void *request, const char *value) {
    struct nb_plan_request *q = request;
    char rest;
    q->most_launches = 0;
    const int n = sscanf(value, "%d:%d%c", &q->launches, &q->most_launches, &rest);
    const bool is_one = sscanf(value, "%d%c", &q->launches, &rest) == 1 && q->launches >= 0 && q->launches <= 1000;
    if (is_one || (n == 2 && q->launches >= 1 && q->most_launches >= q->launches && q->most_launches <= 1000)) return 0;
    return nb_error("--launches %s: a number from 0 to 1000, or the fewest and the most, such as 8:40", value);
}

int nb_take_shard(void *plan_options, const char *value) {
    struct nb_plan_options *o = plan_options;
    char rest;
    if (sscanf(value, "%d/%d%c", &o->shard, &o->n_shards, &rest) == 2 && o->shard >= 1 && o->shard <= o->n_shards &&
        o->n_shards <= 100000)
        return 0;
    return nb_error("--shard %s: I/N with 1 <= I <= N, such as 2/8", value);
}

static void set_effort(const struct nb_plan_request *q, struct nb_config *config) {
    if (q->launches != NB_AS_CONFIGURED) {
        config->launches = q->launches;
        config->most_launches = q->most_launches;
        if (q->most_launches == 0) config->budget_s = 0; /* of what was asked for nothing is dropped unasked */
    }
    if (q->untimed) config->launches = config->most_launches = 0;
    if (q->blocks != NB_AS_CONFIGURED) config->blocks_per_launch = q->blocks;
    if (q->aim_percent > 0) config->aim_percent = q->aim_percent;
}

static bool names_backend(const struct nb_block *block, const char *backend) {
    const struct nb_values *list = &block->values[nb_axis_find("backend") - nb_axes];
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->texts[i], backend) == 0) return true;
    for (size_t i = 0; i < block->n_includes; i++)
        if (names_backend(&block->includes[i], backend)) return true;
    return false;
}

/* By a plugin that is called as the library of the backend is, wherever its file lies. */
static bool is_given(enum nb_backend backend) {
    const char *name = backend == NB_BACKEND_CUDA ? "cuda" : "cuda_emulated";
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *e = nb_registry_at(i);
        if (e->plugin && strcmp(e->plugin, name) == 0 && e->kernel->backend == backend) return true;
    }
    return false;
}

/* Of the backends that the config names those that are built: what is not is a reason of the plan's. They join the plugins, so that workers
 * load them and the journal names them. */
static int load_backends(struct nb_plan_request *q, const struct nb_config *config) {
    for (int b = NB_BACKEND_CUDA; b < NB_N_BACKENDS; b++) {
        bool is_named = false;
        for (size_t i = 0; i < config->n_blocks && !is_named; i++)
            is_named = names_backend(&config->blocks[i], nb_backend_names[b]);
        char *file freed = is_named ? nb_backend_library((enum nb_backend)b) : NULL;
        if (!file || is_given((enum nb_backend)b)) continue;
        nb_strings_add(&q->plugins, file);
        if (nb_registry_describe(file) != 0) return -1;
    }
    return 0;
}

static bool has_plugin(void) {
    for (size_t i = 0; i < nb_registry_size(); i++)
        if (nb_registry_at(i)->plugin && !nb_registry_at(i)->is_peer) return true;
    return false;
}

int nb_plan_request_make(struct nb_plan_request *q, struct nb_config *config, struct nb_plan *plan) {
    if (read_config(q, config) != 0) return -1;
    if (config->compare.ours.n > 0 && nb_peers_add_built(&q->plugins) != 0) return -1;
    if (nb_load_kernels(&q->plugins, q->max_width) != 0 || apply_options(q, config) != 0) return -1;
    if (load_backends(q, config) != 0) return -1;
    set_effort(q, config);
    q->options.filters = (const char *const *)q->filters.items;
    q->options.n_filters = q->filters.n;
    q->options.kept_share = has_plugin() ? q->kept_for_plugins : 0;
    if (nb_plan_make(plan, config, &q->options) != 0) return -1;
    warn_of_idle_filters(q, plan);
    return 0;
}

void nb_plan_request_release(struct nb_plan_request *q) {
    nb_strings_release(&q->axes);
    nb_strings_release(&q->filters);
    nb_strings_release(&q->plugins);
    *q = (struct nb_plan_request){0};
}

/* ---- the journal's first line --------------------------------------------------------------------------------------- */

static void add_plugins(cJSON *line, const struct nb_strings *plugins) {
    cJSON *array = cJSON_AddArrayToObject(line, "plugins");
    for (size_t p = 0; p < plugins->n; p++) {
        const char *name = NULL;
        for (size_t i = 0; i < nb_registry_size() && !name; i++)
            if (nb_registry_at(i)->plugin && strcmp(nb_registry_at(i)->file, plugins->items[p]) == 0)
                name = nb_registry_at(i)->plugin;
        cJSON *plugin = nb_json_add_object(array);
        nb_json_text(plugin, "name", name ? name : plugins->items[p]);
        char *file freed = nb_path_absolute(plugins->items[p]); /* replay lines work from anywhere */
        nb_json_text(plugin, "file", file);
    }
}

/* What a run's first line says of its plan; owned. */
static cJSON *plan_of_run(const struct nb_measuring *m) {
    cJSON *line = cJSON_CreateObject();
    nb_json_text(line, "config", m->config);
    nb_journal_add_plan(line, m->plan, m->request->options.shard, m->request->options.n_shards);
    struct nb_floors floors released_by(nb_floors_release) = {0};
    nb_floors_load(&floors);
    cJSON_AddItemToObject(line, "floors", nb_floors_to_json(&floors));
    add_plugins(line, &m->request->plugins);
    return line;
}

/* ---- --list -------------------------------------------------------------------------------------------------------- */

/* The entries of a reason stand together (nb_skips_sort()). */
static void print_skips(const struct nb_plan *plan, FILE *out) {
    for (size_t i = 0, next; i < plan->skips.n; i = next) {
        const char *reason = plan->skips.items[i].reason;
        size_t n = 0;
        for (next = i; next < plan->skips.n && strcmp(plan->skips.items[next].reason, reason) == 0; next++)
            n += plan->skips.items[next].n;
        struct nb_strbuf line = {0};
        nb_strbuf_addf(&line, "%8zu left out: ", n);
        nb_escape_terminal(&line, reason, true);
        nb_output_folded(&line, out);
    }
}

static cJSON *plan_to_json(const struct nb_plan *plan, const struct nb_config *config) {
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "config", config->name);
    cJSON_AddNumberToObject(json, "n_cases", (double)plan->n_cases);
    cJSON_AddNumberToObject(json, "n_groups", (double)plan->n_groups);
    nb_json_number(json, "estimate_s", plan->estimate_s);
    cJSON *keys = cJSON_AddArrayToObject(json, "cases"), *skips = cJSON_AddArrayToObject(json, "left_out");
    for (size_t i = 0; i < plan->n_cases; i++) cJSON_AddItemToArray(keys, cJSON_CreateString(plan->keys[i]));
    for (size_t i = 0; i < plan->skips.n; i++) {
        cJSON *skip = nb_json_add_object(skips);
        nb_json_text(skip, "reason", plan->skips.items[i].reason);
        cJSON_AddNumberToObject(skip, "count", (double)plan->skips.items[i].n);
        if (plan->skips.items[i].key) nb_json_text(skip, "key", plan->skips.items[i].key);
    }
    return json;
}

/* Seconds for one comparison measured again: its two sides and their copy, of what a group takes on average. */
static double confirmed_s(const struct nb_plan *plan) {
    double s = 0;
    for (size_t g = 0; g < plan->n_groups; g++) {
        const struct nb_group *group = &plan->groups[g];
        const double arms = (double)group->n + 1, share = arms > 3 ? 3 / arms : 1;
        s += share * (plan->compare.confirm_launches * group->step_s[NB_STAGE_LAUNCH] +
                      NB_COPY_TRIALS * group->step_s[NB_STAGE_ROOFS] + group->step_s[NB_STAGE_CHECK]);
    }
    return s / (double)plan->n_groups;
}

/* "154 cases in 26 groups, 8 launches of 20 blocks each, about 40 s"; "..., 8 to 40
 * launches ..., until ratios are known to 3 %, 35 to 75 s" */
static void describe_plan(struct nb_strbuf *out, const struct nb_plan *plan, bool no_counters, bool confirms) {
    const double least_s = nb_run_estimate_s(plan, plan->launches, no_counters);
    const double most_s =
        fmax(fmin(nb_run_estimate_s(plan, plan->most_launches, no_counters), plan->budget_s), least_s);
    nb_strbuf_addf(out, "%zu case%s in %zu group%s, ", plan->n_cases, plan->n_cases == 1 ? "" : "s", plan->n_groups,
                   plan->n_groups == 1 ? "" : "s");
    if (plan->n_over_budget > 0)
        nb_strbuf_addf(out, "%zu of %zu cases left out to hold the budget, ", plan->n_over_budget,
                       plan->n_cases + plan->n_over_budget);
    if (nb_plan_is_adaptive(plan))
        nb_strbuf_addf(out, "%d to %d launches of %d blocks each, until ratios are known to %g%%, ", plan->launches,
                       plan->most_launches, plan->blocks, 100 * plan->aim);
    else if (plan->launches > 0)
        nb_strbuf_addf(out, "%d launches of %d blocks each, ", plan->launches, plan->blocks);
    else
        nb_strbuf_add(out, "checked, not timed, ");
    if (most_s > 1.1 * least_s)
        nb_strbuf_addf(out, "%.0f to %.0f s", least_s, most_s);
    else
        nb_strbuf_addf(out, "about %.0f s", most_s);
    if (confirms && plan->compare.ours.n > 0 && plan->compare.confirm_launches > 0 && plan->n_groups > 0)
        nb_strbuf_addf(out, " and %.1f s more for each comparison that looks behind, on %d fresh launches",
                       confirmed_s(plan), plan->compare.confirm_launches);
}

static int print_plan(const struct nb_plan *plan, const struct nb_config *config, const char *format, FILE *out) {
    if (format && strcmp(format, "json") == 0) return nb_output_json(plan_to_json(plan, config), out);
    for (size_t i = 0; i < plan->n_cases; i++) nb_print_line(out, "%s", plan->keys[i]);
    fflush(out);
    print_skips(plan, stderr);
    struct nb_strbuf how released_by(nb_strbuf_release) = {0};
    describe_plan(&how, plan, false, true);
    nb_note("%s", how.text);
    return 0;
}

/* ---- the folder, its journal, the measuring -------------------------------------------------------------------------- */

/* results/20250131T120000Z-quick, with -2, -3 ... when it is there already; made, so that it is this run's alone. */
static char *default_folder(const struct nb_plan_request *q, const char *name) {
    struct nb_strbuf base released_by(nb_strbuf_release) = {0}, dir = {0};
    char when[32];
    nb_utc_now("%Y%m%dT%H%M%SZ", when, sizeof when);
    if (nb_dir_make("results") != 0) return NULL;
    nb_strbuf_addf(&base, "results/%s-%s", when, name);
    if (q->options.n_shards > 0) nb_strbuf_addf(&base, "-%d-of-%d", q->options.shard, q->options.n_shards);
    for (int i = 1; i < 1000; i++) {
        nb_strbuf_clear(&dir);
        nb_strbuf_add(&dir, base.text);
        if (i > 1) nb_strbuf_addf(&dir, "-%d", i);
        if (mkdir(dir.text, 0777) == 0 || errno != EEXIST) break;
    }
    return dir.text;
}

struct nb_measuring nb_measuring_of(const struct nb_plan_request *q, const struct nb_output_options *o, int argc,
                                    char **argv) {
    return (struct nb_measuring){.request = q,
                                 .out = o->out,
                                 .resume = o->resume,
                                 .case_timeout_s = o->case_timeout_s,
                                 .argc = argc,
                                 .argv = argv};
}

char *nb_measuring_folder(const struct nb_measuring *m) {
    return m->resume ? nb_strdup(m->resume) : m->out ? nb_strdup(m->out) : default_folder(m->request, m->config);
}

int nb_measuring_run(const struct nb_measuring *m, const char *dir, bool *began) {
    struct nb_journal journal = {0};
    const struct nb_run_options options = {.plugins = (const char **)m->request->plugins.items,
                                           .n_plugins = (int)m->request->plugins.n,
                                           .no_counters = m->no_counters,
                                           .case_timeout_s = m->case_timeout_s,
                                           .late_timeout_s = m->late_timeout_s};
    const int first = dir && !m->resume ? nb_first_use(m->plan, m->request->max_width) : 0;
    *began = false;
    if (first != 0) return first;
    int ended = dir ? nb_run_begin(&journal, dir, m->resume, plan_of_run(m), m->argc, m->argv) : -1;
    *began = ended == 0;
    if (*began) {
        struct nb_strbuf how released_by(nb_strbuf_release) = {0};
        describe_plan(&how, m->plan, m->no_counters, m->confirms);
        if (!m->silent) nb_note("%s; into %s", how.text, dir);
        ended = nb_run_plan(m->plan, &journal, dir, &options);
        if (ended < 0 && !m->silent)
            nb_note("what was measured is kept; `normbench %s --resume %s` goes on", m->argv[0],
                    m->whole ? m->whole : dir);
    }
    nb_journal_close(&journal);
    return ended;
}

static bool resumed(const struct nb_measuring *m, const char *folder) {
    return m->resume && nb_dir_holds(folder, NB_JOURNAL_FILE);
}

int nb_measuring_beside(const struct nb_measuring *first, const struct nb_plan *plan, const char *config,
                        const char *dir, const char *below, bool *began) {
    char *folder freed = nb_path_join(dir, below);
    struct nb_measuring m = *first;
    bool unasked;
    if (!began) began = &unasked;
    m.plan = plan;
    m.config = config;
    m.whole = dir;
    m.resume = resumed(first, folder) ? folder : NULL;
    m.no_counters = true;
    m.confirms = false;
    const int ended = nb_measuring_run(&m, folder, began);
    return *began ? ended : -1;
}

int nb_measuring_begin(const struct nb_measuring *m, const char *dir, const char *below, struct nb_journal *journal) {
    char *folder freed = nb_path_join(dir, below);
    cJSON *run = cJSON_CreateObject();
    nb_json_text(run, "config", below);
    return nb_run_begin(journal, folder, resumed(m, folder), run, m->argc, m->argv);
}

/* ---- of a plugin's kernels: the rows of `stress`, unasked ------------------------------------------------------------ */

static bool has_hung(const struct nb_results *results, const char *variant) {
    bool has = false;
    for (size_t i = 0; i < results->n; i++)
        has |= results->records[i].status == NB_TIMED_OUT && strcmp(results->records[i].c.variant, variant) == 0;
    return has;
}

/* The kernels of plugins that have been right so far, with commas between. One that crashed or hung would do so in every case. */
static char *foreign_kernels(const struct nb_results *results) {
    struct nb_strbuf names = {0};
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        const struct nb_entry *entry =
            r->c.is_peer || !nb_status_timed(r->status) ? NULL : nb_registry_find(r->c.variant);
        if (!entry || !entry->plugin || !nb_case_is_timed(&r->c) ||
            nb_text_lists(names.text ? names.text : "", entry->kernel_id) || has_hung(results, r->c.variant))
            continue;
        nb_strbuf_addf(&names, "%s%s", names.text ? "," : "", entry->kernel_id);
    }
    return names.text;
}

static int check_kernels(const struct nb_measuring *first, const char *kernels, double budget_s, bool holds,
                         const char *dir) {
    const struct nb_plan_request request = {.usual = {"stress", "bugs"}, .kernels = kernels};
    const struct nb_plan_options some = {.budget_s = budget_s};
    struct nb_config config released_by(nb_config_release) = {0};
    struct nb_plan plan released_by(nb_plan_release) = {0};
    int result = nb_plan_request_config(&request, &config);
    config.launches = 0;
    if (result == 0) result = nb_plan_make(&plan, &config, &some);
    if (result == 0 && plan.n_cases > 0) {
        plan.leaves_none_out = !holds;
        nb_note("kernels of plugins are checked on the rows of `normbench stress` too");
        result = nb_measuring_beside(first, &plan, config.name, dir, NB_CHECKS_FOLDER, NULL);
    }
    return result;
}

int nb_measuring_check_plugins(const struct nb_measuring *m, double budget_s, bool holds, const char *dir) {
    struct nb_results results released_by(nb_results_release) = {0};
    int result = m->request->plugins.n > 0 ? nb_results_fold(&results, dir) : 0;
    char *kernels freed = result == 0 ? foreign_kernels(&results) : NULL;
    if (kernels && holds && budget_s < 1)
        nb_warn("the budget is over: kernels of plugins are not checked on the rows of `normbench stress`");
    else if (kernels)
        result = check_kernels(m, kernels, budget_s, holds, dir);
    return result;
}

/* ---- what kernels do inside ---- */

static void take_answer(int i, cJSON *answer, void *answers) { ((cJSON **)answers)[i] = answer; }

int nb_probe_cases(const struct nb_case *cases, int n, const struct nb_strings *plugins, double silence_s,
                   cJSON **answers) {
    const struct nb_study study = {.kind = "probe",
                                   .cases = cases,
                                   .n_cases = n,
                                   .plugins = (const char **)plugins->items,
                                   .n_plugins = (int)plugins->n,
                                   .silence_s = silence_s,
                                   .label = "probing"};
    return nb_study_run(&study, take_answer, answers);
}

static int nothing_to_run(const struct nb_plan *plan) {
    if (plan->n_runnable_elsewhere > 0) {
        nb_note("nothing of what was selected can run on this machine");
        return NB_EXIT_NOTHING_RUNS;
    }
    nb_error("no case is left; what was left out, and why, is listed above");
    return NB_EXIT_USAGE;
}

bool nb_plan_only_shown(const struct nb_plan *plan, const struct nb_config *config, bool list, const char *format,
                        int *exit_code) {
    if (!list && (plan->n_cases > 0 || plan->is_shard)) return false; /* a shard without cases is merged as any other */
    *exit_code = NB_EXIT_OK;
    if (!list)
        print_skips(plan, stderr);
    else if (print_plan(plan, config, format, stdout) != 0)
        *exit_code = NB_EXIT_USAGE;
    if (*exit_code == NB_EXIT_OK && plan->n_cases == 0) *exit_code = nothing_to_run(plan);
    return true;
}
