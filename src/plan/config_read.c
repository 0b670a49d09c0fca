// SPDX-License-Identifier: Apache-2.0
/* Reads a config strictly: what is not understood is an error with its place, since a key that is silently ignored
 * would be a matrix that nobody wanted. */
#include "src/plan/config.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/json.h"
#include "src/core/log.h"

enum { MAX_BLOCKS = 1000, MAX_BUDGETS = 1000 };

/* ---- the key "gate" ---- */

static int read_percent(const struct nb_jsonc *file, const cJSON *node, double low, double high, double *share) {
    double percent;
    if (*share > 0) return nb_jsonc_twice(file, node);
    if (nb_jsonc_number(file, node, low, high, false, &percent) != 0) return -1;
    *share = percent / 100;
    return 0;
}

static int read_budget(const struct nb_jsonc *file, const cJSON *node, struct nb_instruction_budget *budget) {
    char *end;
    budget->filter = nb_strdup(node->string);
    if (!*node->string)
        return nb_error("%s:%d: an empty filter; \"*\" takes every case", file->path, nb_jsonc_line(file, node));
    if (cJSON_IsNumber(node)) return nb_jsonc_number(file, node, 1, 1e9, true, &budget->most);
    if (!cJSON_IsString(node))
        return nb_jsonc_wrong_type(file, node, node->string, "a number of instructions, or \"+2%\"");
    budget->relative = true;
    budget->most = strtod(node->valuestring, &end) / 100;
    const bool is_percent = node->valuestring[0] == '+' && end != node->valuestring && strcmp(end, "%") == 0;
    if (is_percent && budget->most >= 0 && budget->most <= 100) return 0;
    return nb_error(
        "%s:%d: \"%s\": '%.40s' is no budget; a number of instructions, or \"+2%%\" for 2 %% more than the baseline",
        file->path, nb_jsonc_line(file, node), node->string, node->valuestring);
}

static int read_budgets(const struct nb_jsonc *file, const cJSON *node, struct nb_gate_settings *out) {
    if (out->budgets) return nb_jsonc_twice(file, node);
    if (!cJSON_IsObject(node)) return nb_jsonc_wrong_type(file, node, node->string, "an object of filters and budgets");
    const int n = cJSON_GetArraySize(node);
    if (n == 0 || n > MAX_BUDGETS)
        return nb_error("%s:%d: \"%s\" has %d entries; it must have 1 to %d", file->path, nb_jsonc_line(file, node),
                        node->string, n, MAX_BUDGETS);
    out->budgets = nb_alloc((unsigned)n, sizeof *out->budgets);
    for (const cJSON *child = node->child; child; child = child->next)
        if (read_budget(file, child, &out->budgets[out->n_budgets++]) != 0) return -1;
    return 0;
}

static int read_gate(const struct nb_jsonc *file, const cJSON *node, struct nb_gate_settings *out) {
    static const char *const keys[] = {"fail_margin", "pass_margin", "level", "instructions"};
    if (!cJSON_IsObject(node)) return nb_jsonc_wrong_type(file, node, node->string, "an object");
    for (const cJSON *child = node->child; child; child = child->next) {
        int result;
        if (strcmp(child->string, keys[0]) == 0)
            result = read_percent(file, child, 0.1, 100, &out->fail_margin);
        else if (strcmp(child->string, keys[1]) == 0)
            result = read_percent(file, child, 0.1, 100, &out->pass_margin);
        else if (strcmp(child->string, keys[2]) == 0)
            result = read_percent(file, child, 0.001, 20, &out->level);
        else if (strcmp(child->string, keys[3]) == 0)
            result = read_budgets(file, child, out);
        else
            result = nb_jsonc_unknown_key(file, child, keys, sizeof keys / sizeof keys[0]);
        if (result != 0) return -1;
    }
    return 0;
}

void nb_gate_settings_release(struct nb_gate_settings *settings) {
    for (size_t i = 0; i < settings->n_budgets; i++) free(settings->budgets[i].filter);
    free(settings->budgets);
    *settings = (struct nb_gate_settings){0};
}

/* ---- the key "compare" ---- */

static void add_glob(struct nb_compare_settings *s, const char *glob) {
    s->ours = nb_realloc(s->ours, s->n_ours + 1, sizeof *s->ours);
    s->ours[s->n_ours++] = nb_strdup(glob);
}

static int read_ours(const struct nb_jsonc *file, const cJSON *node, struct nb_compare_settings *s) {
    const cJSON *first = cJSON_IsArray(node) ? node->child : node;
    if (s->ours) return nb_jsonc_twice(file, node);
    for (const cJSON *item = first; item; item = cJSON_IsArray(node) ? item->next : NULL) {
        if (!cJSON_IsString(item) || !*item->valuestring)
            return nb_jsonc_wrong_type(file, item, node->string, "a glob on kernels or a list of them");
        add_glob(s, item->valuestring);
    }
    return s->ours ? 0 : nb_jsonc_wrong_type(file, node, node->string, "a glob on kernels or a list of them");
}

static int read_confirm(const struct nb_jsonc *file, const cJSON *node, struct nb_compare_settings *s) {
    static const char *const keys[] = {"launches", "behind_percent"};
    double number;
    if (!cJSON_IsObject(node)) return nb_jsonc_wrong_type(file, node, node->string, "an object");
    for (const cJSON *child = node->child; child; child = child->next) {
        if (strcmp(child->string, keys[0]) == 0) {
            if (nb_jsonc_number(file, child, 6, 1000, true, &number) != 0) return -1;
            s->confirm_launches = (int)number;
        } else if (strcmp(child->string, keys[1]) == 0) {
            if (nb_jsonc_number(file, child, 0, 100, false, &number) != 0) return -1;
            s->behind = number / 100;
        } else {
            return nb_jsonc_unknown_key(file, child, keys, sizeof keys / sizeof keys[0]);
        }
    }
    return 0;
}

static int read_compare(const struct nb_jsonc *file, const cJSON *node, struct nb_compare_settings *s) {
    static const char *const keys[] = {"ours", "confirm"};
    if (!cJSON_IsObject(node)) return nb_jsonc_wrong_type(file, node, node->string, "an object");
    s->behind = 0.05;
    for (const cJSON *child = node->child; child; child = child->next) {
        int result = -1;
        if (strcmp(child->string, keys[0]) == 0)
            result = read_ours(file, child, s);
        else if (strcmp(child->string, keys[1]) == 0)
            result = read_confirm(file, child, s);
        else
            nb_jsonc_unknown_key(file, child, keys, sizeof keys / sizeof keys[0]);
        if (result != 0) return -1;
    }
    if (s->ours) return 0;
    return nb_error("%s:%d: \"%s\" has no \"ours\", the globs of the kernels that others are compared with", file->path,
                    nb_jsonc_line(file, node), node->string);
}

cJSON *nb_compare_settings_to_json(const struct nb_compare_settings *s) {
    if (!s->ours) return cJSON_CreateNull();
    cJSON *json = cJSON_CreateObject();
    cJSON_AddItemToObject(json, "ours", cJSON_CreateStringArray((const char *const *)s->ours, (int)s->n_ours));
    cJSON_AddNumberToObject(json, "confirm_launches", s->confirm_launches);
    nb_json_number(json, "behind", s->behind);
    return json;
}

void nb_compare_settings_from_json(struct nb_compare_settings *s, const cJSON *json) {
    const double launches = nb_json_get_number(json, "confirm_launches"), behind = nb_json_get_number(json, "behind");
    const cJSON *glob;
    *s = (struct nb_compare_settings){.behind = behind >= 0 && behind <= 1 ? behind : 0.05};
    if (launches >= 0 && launches <= 1000) s->confirm_launches = (int)launches;
    cJSON_ArrayForEach(glob, cJSON_GetObjectItemCaseSensitive(json, "ours")) {
        if (cJSON_IsString(glob)) add_glob(s, glob->valuestring);
    }
}

void nb_compare_settings_copy(struct nb_compare_settings *to, const struct nb_compare_settings *from) {
    *to = (struct nb_compare_settings){.confirm_launches = from->confirm_launches, .behind = from->behind};
    for (size_t i = 0; i < from->n_ours; i++) add_glob(to, from->ours[i]);
}

void nb_compare_settings_release(struct nb_compare_settings *s) {
    for (size_t i = 0; i < s->n_ours; i++) free(s->ours[i]);
    free(s->ours);
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
        if (fabs(node->valuedouble) < 1e15 && floor(node->valuedouble) == node->valuedouble)
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
    return nb_error("%s:%d: \"%s\": '%.100s' %s", file->path, nb_jsonc_line(file, node), axis->name, text, reason);
}

static int read_values(const struct nb_jsonc *file, const struct nb_axis *axis, const cJSON *node,
                       struct nb_values *values) {
    values->line = nb_jsonc_line(file, node);
    if (!cJSON_IsArray(node)) return read_value(file, axis, node, values);
    if (!node->child)
        return nb_error("%s:%d: \"%s\" is an empty list; leave the key out for the default", file->path, values->line,
                        axis->name);
    for (const cJSON *item = node->child; item; item = item->next)
        if (read_value(file, axis, item, values) != 0) return -1;
    return 0;
}

/* ---- blocks ---- */

static int read_block(const struct nb_jsonc *file, const cJSON *node, bool is_partial, struct nb_block *block);

/* The lists of include and exclude: objects, or one object. */
static int read_partials(const struct nb_jsonc *file, const cJSON *node, struct nb_block **blocks, size_t *n) {
    const cJSON *first = cJSON_IsArray(node) ? node->child : node;
    if (!first) return nb_error("%s:%d: \"%s\" is an empty list", file->path, nb_jsonc_line(file, node), node->string);
    size_t count = cJSON_IsArray(node) ? (size_t)cJSON_GetArraySize(node) : 1;
    if (count > MAX_BLOCKS)
        return nb_error("%s:%d: \"%s\" has more than %d entries", file->path, nb_jsonc_line(file, node), node->string,
                        MAX_BLOCKS);
    *blocks = nb_alloc(count, sizeof **blocks);
    for (const cJSON *item = first; item && *n < count; item = item->next) {
        struct nb_block *block = &(*blocks)[(*n)++];
        if (!cJSON_IsObject(item))
            return nb_jsonc_wrong_type(file, item, node->string, "a list of objects that name axes");
        if (!item->child)
            return nb_error("%s:%d: \"%s\" has an entry that names no axis", file->path, nb_jsonc_line(file, item),
                            node->string);
        if (read_block(file, item, true, block) != 0) return -1;
    }
    return 0;
}

enum { BLOCK_KEYS = 5 }; /* beside the axes */

static size_t block_keys(bool is_partial, const char *names[NB_MAX_AXES + BLOCK_KEYS]) {
    static const char *const others[BLOCK_KEYS] = {"include", "exclude", "label", "source", "text"};
    size_t n = 0;
    for (; n < nb_n_axes; n++) names[n] = nb_axes[n].name;
    for (size_t i = 0; i < BLOCK_KEYS && !is_partial; i++) names[n++] = others[i];
    return n;
}

static int read_text(const struct nb_jsonc *file, const cJSON *node, char **text);

/* "label", "source", "text": what a block says of itself. */
static int read_own_text(const struct nb_jsonc *file, const cJSON *node, char **text, size_t most) {
    if (*text) return nb_jsonc_twice(file, node);
    if (read_text(file, node, text) != 0) return -1;
    for (const char *p = *text; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            return nb_error("%s:%d: \"%s\" has a control character in it", file->path, nb_jsonc_line(file, node),
                            node->string);
    if (strlen(*text) <= most) return 0;
    return nb_error("%s:%d: \"%s\" is longer than %zu characters", file->path, nb_jsonc_line(file, node), node->string,
                    most);
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
    for (const cJSON *child = node->child; child; child = child->next)
        if (read_block_key(file, child, is_partial, block) != 0) return -1;
    if (block->label || (!block->source && !block->text)) return 0;
    return nb_error("%s:%d: \"source\" and \"text\" belong to a \"label\", and this block has none", file->path,
                    block->line);
}

static int read_blocks(const struct nb_jsonc *file, const cJSON *node, struct nb_config *config) {
    if (!cJSON_IsArray(node)) return nb_jsonc_wrong_type(file, node, "blocks", "a list of objects");
    size_t n = (size_t)cJSON_GetArraySize(node);
    if (n == 0 || n > MAX_BLOCKS)
        return nb_error("%s:%d: \"blocks\" has %zu entries; it must have 1 to %d", file->path,
                        nb_jsonc_line(file, node), n, MAX_BLOCKS);
    config->blocks = nb_alloc(n, sizeof *config->blocks);
    for (const cJSON *item = node->child; item; item = item->next) {
        struct nb_block *block = &config->blocks[config->n_blocks++];
        if (!cJSON_IsObject(item)) return nb_jsonc_wrong_type(file, item, "blocks", "a list of objects");
        if (read_block(file, item, false, block) != 0) return -1;
    }
    return 0;
}

int nb_config_read_blocks(const struct nb_jsonc *file, const cJSON *node, struct nb_config *config) {
    assert(file && node && config);
    config->path = nb_strdup(file->path);
    return read_blocks(file, node, config);
}

/* ---- the rest of the file ---- */

static int read_text(const struct nb_jsonc *file, const cJSON *node, char **text) {
    if (!cJSON_IsString(node) || !*node->valuestring)
        return nb_jsonc_wrong_type(file, node, node->string, "a text that is not empty");
    *text = nb_strdup(node->valuestring);
    return 0;
}

static int read_count(const struct nb_jsonc *file, const cJSON *node, int low, int high, int *value) {
    double number;
    if (nb_jsonc_number(file, node, low, high, true, &number) != 0) return -1;
    *value = (int)number;
    return 0;
}

/* 64 bits do not fit a JSON number, so a text is taken too. */
static int read_seed(const struct nb_jsonc *file, const cJSON *node, uint64_t *seed) {
    double number;
    if (!cJSON_IsString(node)) {
        if (nb_jsonc_number(file, node, 0, 9007199254740992.0, true, &number) != 0) return -1;
        *seed = (uint64_t)number;
        return 0;
    }
    char *end;
    errno = 0;
    *seed = strtoull(node->valuestring, &end, 10);
    if (node->valuestring[0] >= '0' && node->valuestring[0] <= '9' && !*end && errno == 0) return 0;
    return nb_error("%s:%d: \"%s\": '%.40s' is not a whole number from 0 to 2^64 - 1", file->path,
                    nb_jsonc_line(file, node), node->string, node->valuestring);
}

enum top_key {
    DESCRIPTION,
    BLOCKS,
    LAUNCHES,
    BLOCKS_PER_LAUNCH,
    SAMPLE_MS,
    REFERENCE,
    ORDER_SEED,
    GATE,
    COMPARE,
    N_TOP_KEYS
};
static const char *const top_keys[N_TOP_KEYS] = {"description",       "blocks",    "launches",
                                                 "blocks_per_launch", "sample_ms", "reference",
                                                 "order_seed",        "gate",      "compare"};

static int read_top_key(const struct nb_jsonc *file, const cJSON *node, enum top_key key, struct nb_config *config) {
    switch (key) {
    case DESCRIPTION:
        return read_text(file, node, &config->description);
    case BLOCKS:
        return read_blocks(file, node, config);
    case LAUNCHES:
        return read_count(file, node, 0, 1000, &config->launches);
    case BLOCKS_PER_LAUNCH:
        return read_count(file, node, 1, 10000, &config->blocks_per_launch);
    case SAMPLE_MS:
        return nb_jsonc_number(file, node, 0.01, 1000, false, &config->sample_ms);
    case REFERENCE:
        return read_text(file, node, &config->reference);
    case ORDER_SEED:
        return read_seed(file, node, &config->order_seed);
    case GATE:
        return read_gate(file, node, &config->gate);
    case COMPARE:
        return read_compare(file, node, &config->compare);
    default:
        return nb_jsonc_unknown_key(file, node, top_keys, N_TOP_KEYS);
    }
}

static int read_top(const struct nb_jsonc *file, struct nb_config *config) {
    unsigned seen = 0;
    if (!cJSON_IsObject(file->root))
        return nb_error("%s:%d: a config is an object with the key \"blocks\"", file->path,
                        nb_jsonc_line(file, file->root));
    for (const cJSON *node = file->root->child; node; node = node->next) {
        int key = 0;
        while (key < N_TOP_KEYS && strcmp(top_keys[key], node->string) != 0) key++;
        if (key < N_TOP_KEYS && (seen >> key & 1)) return nb_jsonc_twice(file, node);
        seen |= 1u << key;
        if (read_top_key(file, node, (enum top_key)key, config) != 0) return -1;
    }
    if (!config->blocks) return nb_error("%s: has no \"blocks\", the list of what to run", file->path);
    return 0;
}

/* "dir/quick.json" -> "quick". */
static char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    char *name = nb_strdup(slash ? slash + 1 : path);
    size_t n = strlen(name);
    if (n > 5 && strcmp(name + n - 5, ".json") == 0) name[n - 5] = '\0';
    return name;
}

static int read_opened(struct nb_config *config, const struct nb_jsonc *file) {
    config->path = nb_strdup(file->path);
    config->name = base_name(file->path);
    /* Ten launches narrow an interval by a third against the six that are the fewest for one. */
    config->launches = 10;
    config->blocks_per_launch = 20;
    config->sample_ms = 0.3;
    config->order_seed = 1;
    if (read_top(file, config) == 0) return 0;
    nb_config_release(config);
    return -1;
}

int nb_config_read_file(struct nb_config *config, const char *path) {
    assert(config && path);
    struct nb_jsonc file;
    if (nb_jsonc_read(&file, path) != 0) return -1;
    int result = read_opened(config, &file);
    nb_jsonc_release(&file);
    return result;
}

int nb_config_parse(struct nb_config *config, const char *path, const char *text, size_t len) {
    assert(config && path && text);
    struct nb_jsonc file;
    *config = (struct nb_config){0};
    if (nb_jsonc_parse(&file, path, text, len) != 0) return -1;
    int result = read_opened(config, &file);
    nb_jsonc_release(&file);
    return result;
}
