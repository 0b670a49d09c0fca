// SPDX-License-Identifier: Apache-2.0
/* Folder, journal, run. */
#include "cmd/run_measure.h"

#include <stdlib.h>

#include "src/core/files.h"
#include "src/core/log.h"
#include "src/measure/launch.h"

/* results/20250131T120000Z-quick, with -2, -3 ... when it is there already. */
static char *default_folder(const struct nb_plan_request *q, const char *name) {
    struct nb_strbuf base = {0}, dir = {0};
    char when[32];
    nb_utc_now("%Y%m%dT%H%M%SZ", when, sizeof when);
    nb_strbuf_addf(&base, "results/%s-%s", when, name);
    if (q->options.n_shards > 0) nb_strbuf_addf(&base, "-%d-of-%d", q->options.shard, q->options.n_shards);
    for (int i = 1; i < 1000; i++) {
        nb_strbuf_clear(&dir);
        nb_strbuf_add(&dir, base.text);
        if (i > 1) nb_strbuf_addf(&dir, "-%d", i);
        if (!nb_path_exists(dir.text)) break;
    }
    nb_strbuf_release(&base);
    return dir.text;
}

char *nb_measuring_folder(const struct nb_measuring *m) {
    return m->resume ? nb_strdup(m->resume) : m->out ? nb_strdup(m->out) : default_folder(m->request, m->config);
}

static void say_plan(const struct nb_measuring *m, const char *dir) {
    const struct nb_plan *plan = m->plan;
    struct nb_strbuf how = {0};
    nb_add_effort(&how, plan, m->no_counters, m->confirms);
    nb_note("%zu case%s in %zu group%s, %s; into %s", plan->n_cases, plan->n_cases == 1 ? "" : "s", plan->n_groups,
            plan->n_groups == 1 ? "" : "s", how.text, dir);
    nb_strbuf_release(&how);
}

int nb_measuring_run(const struct nb_measuring *m, const char *dir, bool *began) {
    struct nb_journal journal = {0};
    const struct nb_first_line first = {m->plan, m->config, m->request, m->argc, m->argv, m->resume != NULL};
    const struct nb_run_options options = {.plugins = m->request->plugins.items,
                                           .n_plugins = (int)m->request->plugins.n,
                                           .max_width = m->request->max_width,
                                           .no_counters = m->no_counters,
                                           .case_timeout_s = m->case_timeout_s};
    int ended = m->resume ? nb_journal_append_to(&journal, dir) : nb_journal_create(&journal, dir);
    if (ended == 0) ended = nb_journal_begin(&journal, &first);
    *began = ended == 0;
    if (*began) {
        say_plan(m, dir);
        ended = nb_run_plan(m->plan, &journal, dir, &options);
    }
    nb_journal_close(&journal);
    return ended;
}

static int nothing_to_run(const struct nb_plan *plan) {
    if (plan->n_runnable_elsewhere > 0) {
        nb_note("nothing of what was selected can run on this machine");
        return NB_EXIT_NOTHING_RUNS;
    }
    nb_error("no case is left: what was left out, and why, stands above");
    return NB_EXIT_USAGE;
}

bool nb_plan_only_shown(const struct nb_plan *plan, const struct nb_config *config, bool list, const char *format,
                        int *exit_code) {
    if (!list && plan->n_cases > 0) return false;
    *exit_code = NB_EXIT_OK;
    if (!list)
        nb_plan_print_skips(plan, stderr);
    else if (nb_plan_print(plan, config, format, stdout) != 0)
        *exit_code = NB_EXIT_USAGE;
    if (*exit_code == NB_EXIT_OK && plan->n_cases == 0) *exit_code = nothing_to_run(plan);
    return true;
}
