// SPDX-License-Identifier: Apache-2.0
/* Two configs taken as one, and a config narrowed to some of its own values. */
#include <stdlib.h>
#include <string.h>

#include "src/core/log.h"
#include "src/plan/config.h"

void nb_config_append(struct nb_config *config, struct nb_config *more) {
    struct nb_strbuf path = {0};
    nb_strbuf_addf(&path, "%s+%s", config->path, more->path);
    config->blocks = nb_realloc(config->blocks, config->n_blocks + more->n_blocks, sizeof *config->blocks);
    memcpy(config->blocks + config->n_blocks, more->blocks, more->n_blocks * sizeof *more->blocks);
    config->n_blocks += more->n_blocks;
    free(config->path);
    config->path = path.text;
    free(more->blocks);
    more->blocks = NULL;
    more->n_blocks = 0;
    nb_config_release(more);
}

static bool has(const struct nb_values *values, const char *text) {
    for (size_t i = 0; i < values->n; i++)
        if (strcmp(values->texts[i], text) == 0 || strcmp(values->texts[i], "all") == 0) return true;
    return false;
}

/* Returns whether anything is left. */
static bool narrow(struct nb_values *values, const struct nb_axis *axis, const struct nb_values *wanted) {
    size_t n = 0;
    if (values->n == 0 && axis->fallback) return has(wanted, axis->fallback);
    if (values->n == 0 || has(values, "all")) {
        nb_values_copy(values, wanted);
        return true;
    }
    for (size_t i = 0; i < values->n; i++) {
        if (has(wanted, values->texts[i]))
            values->texts[n++] = values->texts[i];
        else
            free(values->texts[i]);
    }
    values->n = n;
    return n > 0;
}

/* Includes go with their block: what an include does not name it has from there. */
static bool narrow_block(struct nb_block *block, size_t a, const struct nb_values *wanted) {
    size_t n = 0;
    if (!narrow(&block->values[a], &nb_axes[a], wanted)) return false;
    for (size_t i = 0; i < block->n_includes; i++) {
        struct nb_block *include = &block->includes[i];
        if (include->values[a].n == 0 || narrow(&include->values[a], &nb_axes[a], wanted))
            block->includes[n++] = *include;
        else
            nb_block_release(include);
    }
    block->n_includes = n;
    return true;
}

static int read_list(struct nb_values *values, const struct nb_axis *axis, const char *list) {
    char reason[256], *copy = nb_strdup(list), *rest = NULL;
    int result = 0;
    for (char *word = strtok_r(copy, ",", &rest); word && result == 0; word = strtok_r(NULL, ",", &rest))
        if (nb_values_add(values, axis, word, reason, sizeof reason) != 0)
            result = nb_error("--%s %s: '%s' %s", axis->name, list, word, reason);
    if (result == 0 && values->n == 0) result = nb_error("--%s: the list is empty", axis->name);
    free(copy);
    return result;
}

int nb_config_narrow(struct nb_config *config, const char *axis, const char *list) {
    const struct nb_axis *found = nb_axis_find(axis);
    struct nb_values wanted = {0};
    size_t n = 0;
    int result = read_list(&wanted, found, list);
    for (size_t i = 0; result == 0 && i < config->n_blocks; i++) {
        if (narrow_block(&config->blocks[i], (size_t)(found - nb_axes), &wanted))
            config->blocks[n++] = config->blocks[i];
        else
            nb_block_release(&config->blocks[i]);
    }
    if (result == 0) config->n_blocks = n;
    if (result == 0 && n == 0) result = nb_error("--%s %s: no block of %s has it", axis, list, config->path);
    nb_values_release(&wanted);
    return result;
}
