// SPDX-License-Identifier: Apache-2.0
/* Strict as the rest of a config. */
#include "src/plan/config_gate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"

enum { MAX_BUDGETS = 1000 };

static int read_percent(const struct nb_jsonc *file, const cJSON *node, double low, double high, double *share) {
    double percent;
    if (*share > 0) return nb_config_twice(file, node);
    if (nb_config_read_number(file, node, low, high, false, &percent) != 0) return -1;
    *share = percent / 100;
    return 0;
}

static int read_budget(const struct nb_jsonc *file, const cJSON *node, struct nb_instruction_budget *budget) {
    char *end;
    budget->filter = nb_strdup(node->string);
    if (!*node->string)
        return nb_error("%s:%d: an empty filter; \"*\" takes every case", file->path, nb_jsonc_line(file, node));
    if (cJSON_IsNumber(node)) return nb_config_read_number(file, node, 1, 1e9, true, &budget->most);
    if (!cJSON_IsString(node))
        return nb_config_wrong_type(file, node, node->string, "a number of instructions, or \"+2%\"");
    budget->relative = true;
    budget->most = strtod(node->valuestring, &end) / 100;
    const bool is_percent = node->valuestring[0] == '+' && end != node->valuestring && strcmp(end, "%") == 0;
    if (is_percent && budget->most >= 0 && budget->most <= 100) return 0;
    return nb_error(
        "%s:%d: \"%s\": '%.40s' is no budget; a number of instructions, or \"+2%%\" for 2 %% more than the baseline",
        file->path, nb_jsonc_line(file, node), node->string, node->valuestring);
}

static int read_budgets(const struct nb_jsonc *file, const cJSON *node, struct nb_gate_settings *out) {
    if (out->budgets) return nb_config_twice(file, node);
    if (!cJSON_IsObject(node))
        return nb_config_wrong_type(file, node, node->string, "an object of filters and budgets");
    const int n = cJSON_GetArraySize(node);
    if (n == 0 || n > MAX_BUDGETS)
        return nb_error("%s:%d: \"%s\" has %d entries; it must have 1 to %d", file->path, nb_jsonc_line(file, node),
                        node->string, n, MAX_BUDGETS);
    out->budgets = nb_alloc((unsigned)n, sizeof *out->budgets);
    for (const cJSON *child = node->child; child; child = child->next)
        if (read_budget(file, child, &out->budgets[out->n_budgets++]) != 0) return -1;
    return 0;
}

int nb_config_read_gate(const struct nb_jsonc *file, const cJSON *node, struct nb_gate_settings *out) {
    static const char *const keys[] = {"fail_margin", "pass_margin", "level", "instructions"};
    if (!cJSON_IsObject(node)) return nb_config_wrong_type(file, node, node->string, "an object");
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
            result = nb_config_unknown_key(file, child, keys, sizeof keys / sizeof keys[0]);
        if (result != 0) return -1;
    }
    return 0;
}

void nb_gate_settings_release(struct nb_gate_settings *settings) {
    for (size_t i = 0; i < settings->n_budgets; i++) free(settings->budgets[i].filter);
    free(settings->budgets);
    *settings = (struct nb_gate_settings){0};
}
