// SPDX-License-Identifier: Apache-2.0
/* The cases of the comparisons that look behind, as a plan of their own. */
#include "cmd/run_confirm.h"

#include <stdlib.h>

#include "src/core/files.h"
#include "src/core/log.h"
#include "src/peers/peer_comparison.h"

/* Both sides of each comparison that looks behind. */
static void suspects(const struct nb_peer_comparisons *comparisons, struct nb_texts *keys) {
    for (size_t i = 0; i < comparisons->n; i++) {
        const struct nb_peer_comparison *d = &comparisons->items[i];
        if (d->verdict != NB_PEER_COMPARISON_LOOKS_BEHIND && d->n_confirmed == 0) continue;
        nb_texts_add(keys, d->ours->key);
        nb_texts_add(keys, d->theirs->key);
    }
}

static int run_again(const struct nb_measuring *first, struct nb_config *config, const struct nb_texts *keys,
                     int launches, const char *dir) {
    const struct nb_plan_options options = {.filters = (const char *const *)keys->items, .n_filters = keys->n};
    struct nb_plan plan = {0};
    struct nb_measuring again = *first;
    char *folder = nb_path_join(dir, NB_CONFIRM_FOLDER), *journal = nb_path_join(folder, NB_JOURNAL_FILE);
    bool began;
    config->launches = launches;
    config->order_seed++; /* other orders and offsets than those that looked behind */
    int result = nb_plan_make(&plan, config, &options);
    if (result == 0 && plan.n_cases > 0) {
        again.plan = &plan;
        again.out = folder;
        again.resume = nb_path_exists(journal) ? folder : NULL;
        again.no_counters = true;
        again.confirms = false;
        nb_note("%zu cases look behind: measured again", plan.n_cases);
        result = nb_measuring_run(&again, folder, &began);
        if (!began) result = -1;
    }
    nb_plan_release(&plan);
    free(folder);
    free(journal);
    return result;
}

int nb_confirm(const struct nb_measuring *first, struct nb_config *config, const char *dir) {
    const int launches = config->compare.confirm_launches;
    struct nb_results results = {0};
    struct nb_peer_comparisons comparisons = {0};
    struct nb_texts keys = {0};
    if (!config->compare.ours || launches == 0) return 0;
    int result = nb_results_fold(&results, dir);
    if (result == 0) result = nb_peer_comparisons_make(&comparisons, &results);
    if (result == 0) {
        suspects(&comparisons, &keys);
        if (keys.n > 0) result = run_again(first, config, &keys, launches, dir);
        nb_peer_comparisons_release(&comparisons);
    }
    nb_texts_release(&keys);
    nb_results_release(&results);
    return result;
}
