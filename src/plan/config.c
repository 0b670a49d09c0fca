// SPDX-License-Identifier: Apache-2.0
/* Reads a config strictly: what is not understood is an error with its place, since a key that is silently ignored
 * would be a matrix that nobody wanted. Then which file a name means, and what options do to a config. */
#include "src/plan/config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/names.h"

enum { MAX_BLOCKS = 1000, MAX_BUDGETS = 1000 };

/* Reading goes on behind a mistake, so that all of a file are said at once. */

/* ---- the key "gate" ---- */

static int read_budget(const struct nb_jsonc *file, const cJSON *node, struct nb_instruction_budget *budget) {
    char *end;
    budget->filter = nb_strdup(node->string);
    if (!*node->string) return nb_jsonc_error(file, node, "an empty filter; \"*\" takes every case");
    if (cJSON_IsNumber(node)) return nb_jsonc_number(file, node, 1, 1e9, true, &budget->most);
    if (!cJSON_IsString(node))
        return nb_jsonc_wrong_type(file, node, node->string, "a number of instructions, or \"+2%\"");
    budget->relative = true;
    budget->most = strtod(node->valuestring, &end) / 100;
    const bool is_percent = node->valuestring[0] == '+' && end != node->valuestring && strcmp(end, "%") == 0;
    if (is_percent && budget->most >= 0 && budget->most <= 100) return 0;
    return nb_jsonc_error(
        file, node,
        "\"%s\": '%.40s' is no budget; a number of instructions, or \"+2%%\" for 2 %% more than the baseline",
        node->string, node->valuestring);
}

static int read_budgets(const struct nb_jsonc *file, const cJSON *node, void *into) {
    struct nb_gate_settings *out = into;
    if (!cJSON_IsObject(node)) return nb_jsonc_wrong_type(file, node, node->string, "an object of filters and budgets");
    const int n = cJSON_GetArraySize(node);
    if (n == 0 || n > MAX_BUDGETS)
        return nb_jsonc_error(file, node, "\"%s\" has %d entries; it must have 1 to %d", node->string, n, MAX_BUDGETS);
    int result = 0;
    out->budgets = nb_alloc((unsigned)n, sizeof *out->budgets);
    for (const cJSON *child = node->child; child; child = child->next)
        if (read_budget(file, child, &out->budgets[out->n_budgets++]) != 0) result = -1;
    return result;
}

static int read_gate(const struct nb_jsonc *file, const cJSON *node, void *config) {
    static const struct nb_field fields[] = {
        {NB_FIELD(PERCENT, struct nb_gate_settings, fail_margin), .low = 0.1, .high = 100},
        {NB_FIELD(PERCENT, struct nb_gate_settings, pass_margin), .low = 0.1, .high = 100},
        {NB_FIELD(PERCENT, struct nb_gate_settings, level), .low = 0.001, .high = 20},
        {"instructions", NB_FIELD_READ, .read = read_budgets}};
    struct nb_gate_settings *gate = &((struct nb_config *)config)->gate;
    if (nb_fields_read(file, node, fields, sizeof fields / sizeof fields[0], "\"gate\"", gate) != 0) return -1;
    const double fail = gate->fail_margin > 0 ? gate->fail_margin : NB_GATE_FAIL_MARGIN;
    const double pass = gate->pass_margin > 0 ? gate->pass_margin : NB_GATE_PASS_MARGIN;
    if (pass > fail) return 0;
    return nb_jsonc_error(
        file, node,
        "\"gate\": the margin below which a case passes (\"pass_margin\", %g %%) must be larger than the one above "
        "which it fails (\"fail_margin\", %g %%)",
        100 * pass, 100 * fail);
}

void nb_gate_settings_release(struct nb_gate_settings *settings) {
    for (size_t i = 0; i < settings->n_budgets; i++) free(settings->budgets[i].filter);
    free(settings->budgets);
    *settings = (struct nb_gate_settings){0};
}

/* ---- the key "compare" ---- */

static int read_confirm(const struct nb_jsonc *file, const cJSON *node, void *settings) {
    static const struct nb_field fields[] = {
        {"launches", NB_FIELD_COUNT, .offset = offsetof(struct nb_compare_settings, confirm_launches), .low = 6,
         .high = 1000},
        {"behind_percent", NB_FIELD_PERCENT, .offset = offsetof(struct nb_compare_settings, behind), .low = 0,
         .high = 100}};
    return nb_fields_read(file, node, fields, 2, "\"confirm\"", settings);
}

static int read_compare(const struct nb_jsonc *file, const cJSON *node, void *config) {
    static const struct nb_field fields[] = {{NB_FIELD(TEXTS, struct nb_compare_settings, ours), .required = true},
                                             {"confirm", NB_FIELD_READ, .read = read_confirm}};
    struct nb_compare_settings *settings = &((struct nb_config *)config)->compare;
    settings->behind = 0.05;
    return nb_fields_read(file, node, fields, 2, "\"compare\"", settings);
}

cJSON *nb_compare_settings_to_json(const struct nb_compare_settings *s) {
    if (s->ours.n == 0) return cJSON_CreateNull();
    cJSON *json = cJSON_CreateObject();
    cJSON_AddItemToObject(json, "ours", cJSON_CreateStringArray((const char *const *)s->ours.items, (int)s->ours.n));
    cJSON_AddNumberToObject(json, "confirm_launches", s->confirm_launches);
    nb_json_number(json, "behind", s->behind);
    return json;
}

void nb_compare_settings_from_json(struct nb_compare_settings *s, const cJSON *json) {
    const double launches = nb_json_get_number(json, "confirm_launches"), behind = nb_json_get_number(json, "behind");
    const cJSON *glob;
    *s = (struct nb_compare_settings){.behind = behind >= 0 && behind <= 1 ? behind : 0.05};
    if (launches >= 0 && launches <= 1000) s->confirm_launches = (int)launches;
    cJSON_ArrayForEach(glob, nb_json_get(json, "ours")) {
        if (cJSON_IsString(glob)) nb_strings_add(&s->ours, glob->valuestring);
    }
}

void nb_compare_settings_release(struct nb_compare_settings *s) {
    nb_strings_release(&s->ours);
    *s = (struct nb_compare_settings){0};
}

/* ---- values of an axis ---- */

/* A scalar as the text that the axis reads. -1: no such scalar. */
static int scalar_text(const struct nb_axis *axis, const cJSON *node, char number[32], const char **text) {
    *text = number;
    if (cJSON_IsString(node)) {
        *text = node->valuestring;
    } else if (cJSON_IsNumber(node) && isfinite(node->valuedouble)) {
        nb_shortest_text(node->valuedouble, number);
        if (fabs(node->valuedouble) < 0x1p64 && floor(node->valuedouble) == node->valuedouble)
            snprintf(number, 32, "%.0f", node->valuedouble);
    } else if (cJSON_IsBool(node) && axis->choices == nb_switch_names) {
        *text = cJSON_IsTrue(node) ? "1" : "0";
    } else {
        return -1;
    }
    return 0;
}

static int read_value(const struct nb_jsonc *file, const struct nb_axis *axis, const cJSON *node,
                      struct nb_values *values) {
    char number[32], reason[256];
    const char *text;
    if (scalar_text(axis, node, number, &text) != 0)
        return nb_jsonc_wrong_type(file, node, axis->name, "a text or a list of texts");
    if (nb_values_add(values, axis, text, reason, sizeof reason) == 0) return 0;
    return nb_jsonc_error(file, node, "\"%s\": '%.100s' %s", axis->name, text, reason);
}

static int read_values(const struct nb_jsonc *file, const struct nb_axis *axis, const cJSON *node,
                       struct nb_values *values) {
    values->line = nb_jsonc_line(file, node);
    if (!cJSON_IsArray(node)) return read_value(file, axis, node, values);
    if (!node->child)
        return nb_error("%s:%d: \"%s\" is an empty list; leave the key out for the default", file->path, values->line,
                        axis->name);
    int result = 0;
    for (const cJSON *item = node->child; item; item = item->next)
        if (read_value(file, axis, item, values) != 0) result = -1;
    return result;
}

/* ---- blocks ---- */

static int read_block(const struct nb_jsonc *file, const cJSON *node, bool is_partial, struct nb_block *block);

/* The lists of include and exclude: objects, or one object. */
static int read_partials(const struct nb_jsonc *file, const cJSON *node, struct nb_block **blocks, size_t *n) {
    const cJSON *first = cJSON_IsArray(node) ? node->child : node;
    if (!first) return nb_jsonc_error(file, node, "\"%s\" is an empty list", node->string);
    size_t count = cJSON_IsArray(node) ? (size_t)cJSON_GetArraySize(node) : 1;
    if (count > MAX_BLOCKS)
        return nb_jsonc_error(file, node, "\"%s\" has more than %d entries", node->string, MAX_BLOCKS);
    int result = 0;
    *blocks = nb_alloc(count, sizeof **blocks);
    for (const cJSON *item = first; item && *n < count; item = item->next) {
        struct nb_block *block = &(*blocks)[(*n)++];
        if (!cJSON_IsObject(item))
            result = nb_jsonc_wrong_type(file, item, node->string, "a list of objects that name axes");
        else if (!item->child)
            result = nb_jsonc_error(file, item, "\"%s\" has an entry that names no axis", node->string);
        else if (read_block(file, item, true, block) != 0)
            result = -1;
    }
    return result;
}

enum { BLOCK_KEYS = 5 }; /* beside the axes */

static size_t block_keys(bool is_partial, const char *names[NB_MAX_AXES + BLOCK_KEYS]) {
    static const char *const others[BLOCK_KEYS] = {"include", "exclude", "label", "source", "text"};
    size_t n = 0;
    for (; n < nb_n_axes; n++) names[n] = nb_axes[n].name;
    for (size_t i = 0; i < BLOCK_KEYS && !is_partial; i++) names[n++] = others[i];
    return n;
}

/* "label", "source", "text": what a block says of itself. */
static int read_own_text(const struct nb_jsonc *file, const cJSON *node, char **text, size_t most) {
    return *text ? nb_jsonc_twice(file, node) : nb_field_text(file, node, most, text);
}

static int read_block_key(const struct nb_jsonc *file, const cJSON *node, bool is_partial, struct nb_block *block) {
    const char *names[NB_MAX_AXES + BLOCK_KEYS];
    const struct nb_axis *axis = nb_axis_find(node->string);
    if (axis) {
        struct nb_values *values = &block->values[axis - nb_axes];
        return values->n > 0 ? nb_jsonc_twice(file, node) : read_values(file, axis, node, values);
    }
    if (!is_partial && strcmp(node->string, "include") == 0)
        return block->includes ? nb_jsonc_twice(file, node)
                               : read_partials(file, node, &block->includes, &block->n_includes);
    if (!is_partial && strcmp(node->string, "exclude") == 0)
        return block->excludes ? nb_jsonc_twice(file, node)
                               : read_partials(file, node, &block->excludes, &block->n_excludes);
    if (!is_partial && strcmp(node->string, "label") == 0)
        return read_own_text(file, node, &block->label, NB_LABEL_MAX);
    if (!is_partial && strcmp(node->string, "source") == 0) return read_own_text(file, node, &block->source, 1000);
    if (!is_partial && strcmp(node->string, "text") == 0) return read_own_text(file, node, &block->text, 1000);
    size_t n = block_keys(is_partial, names);
    return nb_jsonc_unknown_key(file, node, names, n);
}

static int read_block(const struct nb_jsonc *file, const cJSON *node, bool is_partial, struct nb_block *block) {
    block->path = nb_strdup(file->path);
    block->line = nb_jsonc_line(file, node);
    int result = 0;
    for (const cJSON *child = node->child; child; child = child->next)
        if (read_block_key(file, child, is_partial, block) != 0) result = -1;
    if (result != 0 || block->label || (!block->source && !block->text)) return result;
    return nb_error("%s:%d: \"source\" and \"text\" belong to a \"label\", and this block has none", file->path,
                    block->line);
}

static int read_blocks(const struct nb_jsonc *file, const cJSON *node, void *into) {
    struct nb_config *config = into;
    if (!cJSON_IsArray(node)) return nb_jsonc_wrong_type(file, node, "blocks", "a list of objects");
    size_t n = (size_t)cJSON_GetArraySize(node);
    if (n == 0 || n > MAX_BLOCKS)
        return nb_jsonc_error(file, node, "\"blocks\" has %zu entries; it must have 1 to %d", n, MAX_BLOCKS);
    int result = 0;
    config->blocks = nb_alloc(n, sizeof *config->blocks);
    for (const cJSON *item = node->child; item; item = item->next) {
        struct nb_block *block = &config->blocks[config->n_blocks++];
        if (!cJSON_IsObject(item))
            result = nb_jsonc_wrong_type(file, item, "blocks", "a list of objects");
        else if (read_block(file, item, false, block) != 0)
            result = -1;
    }
    return result;
}

int nb_config_read_blocks(const struct nb_jsonc *file, const cJSON *node, void *into) {
    struct nb_config *config = into;
    config->path = nb_strdup(file->path);
    return read_blocks(file, node, config);
}

/* ---- the rest of the file ---- */

/* 64 bits do not fit a JSON number, so a text is taken too. */
static int read_seed(const struct nb_jsonc *file, const cJSON *node, void *config) {
    uint64_t *seed = &((struct nb_config *)config)->order_seed;
    double number;
    if (!cJSON_IsString(node)) {
        if (nb_jsonc_number(file, node, 0, 0x1p53, true, &number) != 0) return -1;
        *seed = (uint64_t)number;
        return 0;
    }
    char *end;
    errno = 0;
    *seed = strtoull(node->valuestring, &end, 10);
    if (node->valuestring[0] >= '0' && node->valuestring[0] <= '9' && !*end && errno == 0) return 0;
    return nb_jsonc_error(file, node, "\"%s\": '%.40s' is not a whole number from 0 to 2^64 - 1", node->string,
                          node->valuestring);
}

enum { LAUNCHES_MOST = 1000 };

/* A number: as many. Two: the fewest and the most. */
static int read_launches(const struct nb_jsonc *file, const cJSON *node, void *out) {
    struct nb_config *config = out;
    double fewest, most = 0;
    if (!cJSON_IsArray(node)) {
        if (nb_jsonc_number(file, node, 0, LAUNCHES_MOST, true, &fewest) != 0) return -1;
    } else {
        const cJSON *first = cJSON_GetArrayItem(node, 0), *second = cJSON_GetArrayItem(node, 1);
        if (cJSON_GetArraySize(node) != 2 || !cJSON_IsNumber(first) || !cJSON_IsNumber(second) ||
            !(first->valuedouble >= 1) || !(second->valuedouble >= first->valuedouble))
            return nb_jsonc_error(
                file, node, "\"%s\": a number of launches, or the fewest and the most, such as [8, 40]", node->string);
        if (nb_jsonc_number(file, first, 1, LAUNCHES_MOST, true, &fewest) != 0 ||
            nb_jsonc_number(file, second, 1, LAUNCHES_MOST, true, &most) != 0)
            return -1;
    }
    config->launches = (int)fewest;
    config->most_launches = (int)most;
    return 0;
}

static int read_top(const struct nb_jsonc *file, struct nb_config *config) {
    static const struct nb_field fields[] = {
        {NB_FIELD(TEXT, struct nb_config, description)},
        {"blocks", NB_FIELD_READ, .read = read_blocks},
        {"launches", NB_FIELD_READ, .read = read_launches},
        {NB_FIELD(NUMBER, struct nb_config, aim_percent), .low = 0.1, .high = 100},
        {NB_FIELD(NUMBER, struct nb_config, budget_s), .low = 1, .high = 1e7},
        {NB_FIELD(COUNT, struct nb_config, blocks_per_launch), .low = 1, .high = 10000},
        {NB_FIELD(NUMBER, struct nb_config, sample_ms), .low = 0.01, .high = 1000},
        {NB_FIELD(TEXT, struct nb_config, reference)},
        {"order_seed", NB_FIELD_READ, .read = read_seed},
        {"gate", NB_FIELD_READ, .read = read_gate},
        {"compare", NB_FIELD_READ, .read = read_compare},
    };
    if (!cJSON_IsObject(file->root))
        return nb_jsonc_error(file, file->root, "a config is an object with the key \"blocks\"");
    if (nb_fields_read(file, file->root, fields, sizeof fields / sizeof fields[0], "a config", config) != 0) return -1;
    if (!config->blocks) return nb_error("%s: has no \"blocks\", the list of what to run", file->path);
    return 0;
}

static int read_opened(struct nb_config *config, const struct nb_jsonc *file) {
    config->path = nb_strdup(file->path);
    config->name = nb_base_name(file->path, ".json");
    /* Eight are one more than the fewest that have an interval where launches are added as needed. */
    config->launches = 8;
    config->most_launches = 100;
    config->aim_percent = 0.5;
    config->blocks_per_launch = 20;
    config->sample_ms = 0.06;
    config->order_seed = 1;
    if (read_top(file, config) == 0) return 0;
    nb_config_release(config);
    return -1;
}

static int read_file(struct nb_config *config, const char *path) {
    struct nb_jsonc file released_by(nb_jsonc_release) = {0};
    return nb_jsonc_read(&file, path) == 0 ? read_opened(config, &file) : -1;
}

int nb_config_parse(struct nb_config *config, const char *path, const char *text, size_t len) {
    struct nb_jsonc file released_by(nb_jsonc_release) = {0};
    *config = (struct nb_config){0};
    return nb_jsonc_parse(&file, path, text, len) == 0 ? read_opened(config, &file) : -1;
}

/* ---- which file ---- */

void nb_config_list(struct nb_strings *names) {
    char *dir freed = nb_share_dir("NORMBENCH_CONFIGS", "configs");
    const struct nb_strings all = nb_dir_list(dir, ".json");
    *names = (struct nb_strings){.items = all.items};
    for (size_t i = 0; i < all.n; i++) {
        if (strcmp(all.items[i], "shapes") == 0) /* names shapes and is no config */
            free(all.items[i]);
        else
            names->items[names->n++] = all.items[i];
    }
}

static int unknown_config(const char *name) {
    struct nb_strings names released_by(nb_strings_release);
    nb_config_list(&names);
    if (names.n == 0)
        nb_error("config '%s': there is no folder with configs; NORMBENCH_CONFIGS says where it is", name);
    else
        nb_error("config '%s': no such preset%s (`normbench list configs` shows them; a file is named with a slash or "
                 ".json)",
                 name, nb_did_you_mean(name, (const char *const *)names.items, names.n).text);
    return -1;
}

int nb_config_read(struct nb_config *config, const char *name) {
    *config = (struct nb_config){0};
    if (strchr(name, '/') || nb_text_ends(name, ".json")) return read_file(config, name);
    char *file freed = nb_textf("%s.json", name);
    const bool may_be = *name && *name != '.' && strcmp(name, "shapes") != 0; /* shapes.json names shapes */
    char *path freed = may_be ? nb_jsonc_find(file) : NULL;
    return path ? read_file(config, path) : unknown_config(name);
}

/* ---- --axis ---- */

static const struct nb_axis *option_axis(const char *name, size_t len, const char *assignment) {
    const char *names[NB_MAX_AXES];
    char *copy freed = nb_strdup(name);
    copy[len] = '\0';
    const struct nb_axis *axis = nb_axis_find(copy);
    if (!axis) {
        for (size_t i = 0; i < nb_n_axes; i++) names[i] = nb_axes[i].name;
        nb_error("--axis %s: unknown axis '%s'%s", assignment, copy, nb_did_you_mean(copy, names, nb_n_axes).text);
    }
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
        char *value freed = nb_textf("%.*s", (int)n, p);
        if (n == 0) return nb_error("--axis %s: %s has an empty value", assignment, axis->name);
        if (nb_values_add(values, axis, value, reason, sizeof reason) != 0)
            return nb_error("--axis %s: %s: '%s' %s", assignment, axis->name, value, reason);
        p += n;
        if (!*p) return 0;
    }
}

static void copy_values(struct nb_values *to, const struct nb_values *from) {
    nb_values_release(to);
    *to = (struct nb_values){.texts = nb_alloc(from->n, sizeof *to->texts), .n = from->n, .line = from->line};
    for (size_t i = 0; i < from->n; i++) to->texts[i] = nb_strdup(from->texts[i]);
}

int nb_config_axis(struct nb_config *config, const char *assignment) {
    const char *equals = strchr(assignment, '=');
    if (!equals) return nb_error("--axis %s: is not of the form NAME=VALUE,VALUE...", assignment);
    const struct nb_axis *axis = option_axis(assignment, (size_t)(equals - assignment), assignment);
    if (!axis) return -1;
    struct nb_values values released_by(nb_values_release) = {0};
    int result = read_option_values(&values, axis, equals + 1, assignment);
    const size_t a = (size_t)(axis - nb_axes);
    for (size_t i = 0; result == 0 && i < config->n_blocks; i++) {
        struct nb_block *block = &config->blocks[i];
        copy_values(&block->values[a], &values);
        for (size_t j = 0; j < block->n_includes; j++)
            if (block->includes[j].values[a].n > 0) copy_values(&block->includes[j].values[a], &values);
    }
    return result;
}

/* ---- release ---- */

void nb_block_release(struct nb_block *block) {
    for (size_t i = 0; i < NB_MAX_AXES; i++) nb_values_release(&block->values[i]);
    for (size_t i = 0; i < block->n_includes; i++) nb_block_release(&block->includes[i]);
    for (size_t i = 0; i < block->n_excludes; i++) nb_block_release(&block->excludes[i]);
    nb_free_all(block->includes, block->excludes, block->path, block->label, block->source, block->text);
}

void nb_config_release(struct nb_config *config) {
    for (size_t i = 0; i < config->n_blocks; i++) nb_block_release(&config->blocks[i]);
    nb_free_all(config->blocks, config->name, config->path, config->description, config->reference);
    nb_gate_settings_release(&config->gate);
    nb_compare_settings_release(&config->compare);
    *config = (struct nb_config){0};
}

/* ---- two configs taken as one, and a config narrowed to some of its own values ---- */

void nb_config_append(struct nb_config *config, struct nb_config *more) {
    char *path = nb_textf("%s+%s", config->path, more->path);
    config->blocks = nb_realloc(config->blocks, config->n_blocks + more->n_blocks, sizeof *config->blocks);
    memcpy(config->blocks + config->n_blocks, more->blocks, more->n_blocks * sizeof *more->blocks);
    config->n_blocks += more->n_blocks;
    free(config->path);
    config->path = path;
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
        copy_values(values, wanted);
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
    struct nb_strings words released_by(nb_strings_release) = {0};
    char reason[256];
    int result = 0;
    nb_strings_split(&words, list, ',');
    for (size_t i = 0; i < words.n && result == 0; i++)
        if (*words.items[i] && nb_values_add(values, axis, words.items[i], reason, sizeof reason) != 0)
            result = nb_error("--%s %s: '%s' %s", axis->name, list, words.items[i], reason);
    if (result == 0 && values->n == 0) result = nb_error("--%s: the list is empty", axis->name);
    return result;
}

int nb_config_narrow(struct nb_config *config, const char *axis, const char *list) {
    const struct nb_axis *found = nb_axis_find(axis);
    struct nb_values wanted released_by(nb_values_release) = {0};
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
    return result;
}
