// SPDX-License-Identifier: Apache-2.0
/* Questions to plugins go through a guard; the built-in kernels are ours. Who failed to answer is the process's own memory, as the
 * registry is. */
#include "src/core/ask.h"

#include <stdio.h>

#include "src/core/foreign.h"
#include "src/core/log.h"

enum { LIMIT_S = 2 };

static const struct nb_entry **silent; /* entries that failed to answer */
static size_t n_silent;

struct question {
    const struct nb_kernel *kernel;
    const struct nb_call *call;
    char refusal[200];
    bool refused, row_local;
};

static void ask_applicable(void *arg) {
    struct question *q = arg;
    const char *reason = nb_kernel_applicable(q->kernel, q->call);
    if (!reason) return;
    snprintf(q->refusal, sizeof q->refusal, "%s", reason); /* read in here: it may point anywhere */
    q->refused = true;
}

static void ask_row_local(void *arg) {
    struct question *q = arg;
    q->row_local = nb_kernel_row_local(q->kernel, q->call) != 0;
}

/* False when there was no answer. */
static bool ask(const struct nb_entry *entry, void (*how)(void *arg), struct question *q, const char *what) {
    if (!entry->plugin) {
        how(q);
        return true;
    }
    for (size_t i = 0; i < n_silent; i++)
        if (silent[i] == entry) return false;
    const char *why = nb_guarded(how, q, LIMIT_S);
    if (!why) return true;
    nb_warn("%s: %s() does not answer: %s; its cases will say so", entry->id, what, why);
    silent = nb_realloc(silent, n_silent + 1, sizeof *silent);
    silent[n_silent++] = entry;
    return false;
}

const char *nb_ask_applicable(const struct nb_entry *entry, const struct nb_call *call) {
    static struct question q;
    q = (struct question){.kernel = entry->kernel, .call = call};
    return ask(entry, ask_applicable, &q, "applicable") && q.refused ? q.refusal : NULL;
}

bool nb_ask_row_local(const struct nb_entry *entry, const struct nb_call *call) {
    struct question q = {.kernel = entry->kernel, .call = call};
    return ask(entry, ask_row_local, &q, "row_local") && q.row_local;
}
