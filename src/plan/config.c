// SPDX-License-Identifier: Apache-2.0
/* Which config is meant, what --axis does to it, and its release. config_read.c reads the file. */
#include "src/plan/config.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"

/* ---- which file ---- */

static bool ends_with(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

void nb_config_list(struct nb_strings *names) {
    char *dir = nb_share_dir("NORMBENCH_CONFIGS", "configs");
    const struct nb_strings all = nb_dir_list(dir, ".json");
    *names = (struct nb_strings){.items = all.items};
    for (size_t i = 0; i < all.n; i++) {
        if (strcmp(all.items[i], "shapes") == 0) /* names shapes and is no config */
            free(all.items[i]);
        else
            names->items[names->n++] = all.items[i];
    }
    free(dir);
}

static int unknown_config(const char *name) {
    struct nb_strings names;
    nb_config_list(&names);
    if (names.n == 0)
        nb_error("config '%s': there is no folder with configs; NORMBENCH_CONFIGS says where it is", name);
    else
        nb_error("config '%s': no such preset%s (`normbench list configs` shows them; a file is named with a slash or "
                 ".json)",
                 name, nb_did_you_mean(name, (const char *const *)names.items, names.n).text);
    nb_strings_release(&names);
    return -1;
}

int nb_config_read(struct nb_config *config, const char *name) {
    assert(config && name);
    *config = (struct nb_config){0};
    if (strchr(name, '/') || ends_with(name, ".json")) return nb_config_read_file(config, name);
    struct nb_strbuf file = {0};
    nb_strbuf_addf(&file, "%s.json", name);
    const bool may_be = *name && *name != '.' && strcmp(name, "shapes") != 0; /* shapes.json names shapes */
    char *path = may_be ? nb_jsonc_find(file.text) : NULL;
    int result = path ? nb_config_read_file(config, path) : unknown_config(name);
    nb_strbuf_release(&file);
    free(path);
    return result;
}

/* ---- --axis ---- */

static const struct nb_axis *option_axis(const char *name, size_t len, const char *assignment) {
    const char *names[NB_MAX_AXES];
    char *copy = nb_strdup(name);
    copy[len] = '\0';
    const struct nb_axis *axis = nb_axis_find(copy);
    if (!axis) {
        for (size_t i = 0; i < nb_n_axes; i++) names[i] = nb_axes[i].name;
        nb_error("--axis %s: unknown axis '%s'%s", assignment, copy, nb_did_you_mean(copy, names, nb_n_axes).text);
    }
    free(copy);
    return axis;
}

/* The length of the value at the start of a list: up to a comma outside brackets. */
static size_t value_length(const char *list) {
    int depth = 0;
    size_t n = 0;
    for (; list[n] && (list[n] != ',' || depth > 0); n++) {
        const bool opens = list[n] == '[' || list[n] == '(', closes = list[n] == ']' || list[n] == ')';
        depth += opens - (closes && depth > 0);
    }
    return n;
}

static int read_option_values(struct nb_values *values, const struct nb_axis *axis, const char *list,
                              const char *assignment) {
    char reason[256];
    for (const char *p = list;; p++) {
        size_t n = value_length(p);
        struct nb_strbuf value = {0};
        nb_strbuf_addn(&value, p, n);
        int result = n == 0 ? nb_error("--axis %s: %s has an empty value", assignment, axis->name)
                            : nb_values_add(values, axis, value.text, reason, sizeof reason);
        if (result != 0 && n > 0) nb_error("--axis %s: %s: '%s' %s", assignment, axis->name, value.text, reason);
        nb_strbuf_release(&value);
        if (result != 0) return -1;
        p += n;
        if (!*p) return 0;
    }
}

int nb_config_axis(struct nb_config *config, const char *assignment) {
    assert(config && assignment);
    const char *equals = strchr(assignment, '=');
    if (!equals) return nb_error("--axis %s: is not of the form NAME=VALUE,VALUE...", assignment);
    const struct nb_axis *axis = option_axis(assignment, (size_t)(equals - assignment), assignment);
    if (!axis) return -1;
    struct nb_values values = {0};
    int result = read_option_values(&values, axis, equals + 1, assignment);
    const size_t a = (size_t)(axis - nb_axes);
    for (size_t i = 0; result == 0 && i < config->n_blocks; i++) {
        struct nb_block *block = &config->blocks[i];
        nb_values_copy(&block->values[a], &values);
        for (size_t j = 0; j < block->n_includes; j++)
            if (block->includes[j].values[a].n > 0) nb_values_copy(&block->includes[j].values[a], &values);
    }
    nb_values_release(&values);
    return result;
}

/* ---- release ---- */

void nb_block_release(struct nb_block *block) {
    for (size_t i = 0; i < NB_MAX_AXES; i++) nb_values_release(&block->values[i]);
    for (size_t i = 0; i < block->n_includes; i++) nb_block_release(&block->includes[i]);
    for (size_t i = 0; i < block->n_excludes; i++) nb_block_release(&block->excludes[i]);
    free(block->includes);
    free(block->excludes);
    free(block->path);
    free(block->label);
    free(block->source);
    free(block->text);
}

void nb_config_release(struct nb_config *config) {
    for (size_t i = 0; i < config->n_blocks; i++) nb_block_release(&config->blocks[i]);
    free(config->blocks);
    free(config->name);
    free(config->path);
    free(config->description);
    free(config->reference);
    nb_gate_settings_release(&config->gate);
    nb_compare_settings_release(&config->compare);
    *config = (struct nb_config){0};
}

/* ---- narrowing and joining ---- */

/* Two configs taken as one, and a config narrowed to some of its own values. */

void nb_config_append(struct nb_config *config, struct nb_config *more) {
    assert(config && more);
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
    assert(config && axis && list);
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
