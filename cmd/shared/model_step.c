// SPDX-License-Identifier: Apache-2.0
/* The norms by the ordinary pipeline, in DIR/timing; products, copies and a call in DIR/rates; the sum in DIR/step.json. */
#include <stdio.h>
#include <string.h>

#include "cmd/shared/run_plan.h"
#include "reports/claims/claims_report.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/timer.h"
#include "src/models/blas.h"
#include "src/models/step.h"
#include "src/record/record.h"

enum { USUAL_LAUNCHES = 6, MOST_PAIRS = 16 };

struct measured {
    struct nb_model_step step;
    struct nb_norm_pair pairs[MOST_PAIRS];
    struct nb_norm_times norms[MOST_PAIRS];
    size_t n_pairs;
    struct nb_results results;
    struct nb_sample_table samples;
    struct nb_rates rates;
    int ended; /* the number of a signal */
};

/* ---- which norms: ours fused and unfused, and each RMSNorm and LayerNorm of a plugin beside our other one ---- */

static const struct nb_entry *backward_of(const char *plugin, enum nb_op op) {
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *e = nb_registry_at(i);
        if (e->plugin && strcmp(e->plugin, plugin) == 0 && e->kernel->op == op && e->kernel->pass == NB_BACKWARD &&
            e->kernel->dtype == NB_F32)
            return e;
    }
    return NULL;
}

static void add_plugin(struct measured *m, const struct nb_entry *e) {
    const bool is_of = e->kernel->op == NB_OP_RMSNORM;
    struct nb_norm_pair pair = nb_norm_pair_of("rmsnorm", "layernorm", "fused");
    char(*side)[NB_VARIANT_MAX] = is_of ? pair.of : pair.against;
    const struct nb_entry *backward = backward_of(e->plugin, e->kernel->op);
    if (m->n_pairs == MOST_PAIRS || strcmp(m->pairs[m->n_pairs - 1].of[NB_FORWARD], e->kernel_id) == 0 ||
        strcmp(m->pairs[m->n_pairs - 1].against[NB_FORWARD], e->kernel_id) == 0)
        return; /* another width of the same */
    snprintf(pair.style, sizeof pair.style, "plugin");
    snprintf(side[NB_FORWARD], NB_VARIANT_MAX, "%s", e->kernel_id);
    if (backward) snprintf(side[NB_BACKWARD], NB_VARIANT_MAX, "%s", backward->kernel_id);
    m->pairs[m->n_pairs++] = pair;
}

static void choose_pairs(struct measured *m) {
    m->pairs[m->n_pairs++] = nb_norm_pair_of("rmsnorm", "layernorm", "fused");
    m->pairs[m->n_pairs++] = nb_norm_pair_of("rmsnorm", "layernorm", "composed");
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *e = nb_registry_at(i);
        const struct nb_kernel *k = e->kernel;
        if (e->plugin && (k->op == NB_OP_RMSNORM || k->op == NB_OP_LAYERNORM) && k->pass == NB_FORWARD &&
            k->dtype == NB_F32 && k->backend == NB_BACKEND_CPU)
            add_plugin(m, e);
    }
}

/* ---- measuring ---- */

static int launches_of(const struct nb_measuring *q) {
    return q->request->launches == NB_AS_CONFIGURED ? USUAL_LAUNCHES : q->request->launches;
}

static int time_norms(const struct nb_measuring *q, const char *dir, struct measured *m) {
    struct nb_config config released_by(nb_config_release) = {.name = nb_strdup("timing"),
                                                              .path = nb_strdup(m->step.path),
                                                              .launches = launches_of(q),
                                                              .blocks_per_launch = 8,
                                                              .sample_ms = 0.06,
                                                              .order_seed = 1};
    struct nb_plan plan released_by(nb_plan_release) = {0};
    char *folder freed = nb_path_join(dir, config.name);
    nb_norms_plan(&m->step, m->pairs, m->n_pairs, false, &config);
    int result = config.n_blocks > 0 ? nb_plan_make(&plan, &config, &q->request->options) : 0;
    if (result == 0 && plan.n_cases > 0) {
        m->ended = nb_measuring_beside(q, &plan, config.name, dir, config.name, NULL);
        result = m->ended >= 0 && nb_results_fold(&m->results, folder) == 0 ? 0 : -1;
        if (result == 0) result = nb_results_write(&m->results, folder);
        if (result == 0) result = nb_sample_table_read(&m->samples, folder);
    }
    return result;
}

static int time_rates(const struct nb_measuring *q, const char *dir, struct measured *m) {
    struct nb_journal journal = {0};
    char *folder freed = nb_path_join(dir, "rates");
    nb_rates_add(&m->rates, &m->step);
    const int result = nb_measuring_begin(q, dir, "rates", &journal);
    if (result == 0) m->ended = nb_rates_measure(&m->rates, folder, &journal, launches_of(q));
    nb_journal_close(&journal);
    return result != 0 || m->ended < 0 ? -1 : 0;
}

/* ---- the answer ---- */

/* A folder that holds such a run already would be written over. */
static bool is_taken(const struct nb_measuring *q, const char *dir) {
    const bool taken = !q->resume && nb_dir_holds(dir, NB_STEP_FILE);
    if (taken) nb_error("--out %s holds a model's step already; name another folder, or --resume it", dir);
    return taken;
}

static int report(const struct nb_measuring *q, const char *format, const char *dir, struct measured *m,
                  double elapsed_s) {
    for (size_t i = 0; i < m->n_pairs; i++)
        nb_norm_times_find(&m->norms[i], &m->pairs[i], &m->step, false, m->results.meta ? &m->results : NULL,
                           m->results.meta ? &m->samples : NULL);
    cJSON *document released_by(nb_json_release) = nb_step_document(&(struct nb_step_about){.step = &m->step,
                                                                                            .rates = &m->rates,
                                                                                            .norms = m->norms,
                                                                                            .n_norms = m->n_pairs,
                                                                                            .argc = q->argc,
                                                                                            .argv = q->argv,
                                                                                            .elapsed_s = elapsed_s,
                                                                                            .complete = m->ended == 0});
    char *path freed = nb_path_join(dir, NB_STEP_FILE);
    int result = nb_model_answer_print(document, format ? format : "table", stdout);
    if (result == 0) result = nb_json_write(document, path);
    if (result == 0) nb_note("figures: %s", path);
    return result;
}

static void release(struct measured *m) {
    for (size_t i = 0; i < m->n_pairs; i++) nb_norm_times_release(&m->norms[i]);
    if (m->results.meta) nb_results_release(&m->results);
    nb_sample_table_release(&m->samples);
    nb_rates_release(&m->rates);
    nb_model_step_release(&m->step);
}

static int read_model(struct nb_model_step *step, const char *model, int tokens) {
    const char *lacks = nb_blas_lacks();
    if (lacks) return nb_error("--model needs %s", lacks);
    if (nb_model_step_read(step, model, tokens) != 0) return -1;
    for (size_t i = 0; i < step->n_works; i++)
        if (step->works[i].kind == NB_WORK_NORM) return 0;
    return nb_error("%s: none of its operations is a norm: there is nothing that RMSNorm could save", step->path);
}

int nb_model_question_run(const struct nb_measuring *q, const char *model, int tokens, const char *format) {
    struct measured m released_by(release) = {0};
    const double start = nb_now_s();
    if (read_model(&m.step, model, tokens) != 0) return NB_EXIT_USAGE;
    char *dir freed = nb_measuring_folder(q);
    choose_pairs(&m);
    if (!dir || is_taken(q, dir) || time_norms(q, dir, &m) != 0 || time_rates(q, dir, &m) != 0 ||
        report(q, format, dir, &m, nb_now_s() - start) != 0)
        return NB_EXIT_USAGE;
    return m.ended > 0 ? nb_ended_by(m.ended, "claims", dir) : NB_EXIT_OK;
}
