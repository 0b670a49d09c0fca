// SPDX-License-Identifier: Apache-2.0
/* Strict as the rest of a config. */
#include "src/plan/config_compare.h"

#include <stdlib.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"

static void add_glob(struct nb_compare_settings *s, const char *glob) {
    s->ours = nb_realloc(s->ours, s->n_ours + 1, sizeof *s->ours);
    s->ours[s->n_ours++] = nb_strdup(glob);
}

static int read_ours(const struct nb_jsonc *file, const cJSON *node, struct nb_compare_settings *s) {
    const cJSON *first = cJSON_IsArray(node) ? node->child : node;
    if (s->ours) return nb_config_twice(file, node);
    for (const cJSON *item = first; item; item = cJSON_IsArray(node) ? item->next : NULL) {
        if (!cJSON_IsString(item) || !*item->valuestring)
            return nb_config_wrong_type(file, item, node->string, "a glob on kernels or a list of them");
        add_glob(s, item->valuestring);
    }
    return s->ours ? 0 : nb_config_wrong_type(file, node, node->string, "a glob on kernels or a list of them");
}

static int read_confirm(const struct nb_jsonc *file, const cJSON *node, struct nb_compare_settings *s) {
    static const char *const keys[] = {"launches", "behind_percent"};
    double number;
    if (!cJSON_IsObject(node)) return nb_config_wrong_type(file, node, node->string, "an object");
    for (const cJSON *child = node->child; child; child = child->next) {
        if (strcmp(child->string, keys[0]) == 0) {
            if (nb_config_read_number(file, child, 6, 1000, true, &number) != 0) return -1;
            s->confirm_launches = (int)number;
        } else if (strcmp(child->string, keys[1]) == 0) {
            if (nb_config_read_number(file, child, 0, 100, false, &number) != 0) return -1;
            s->behind = number / 100;
        } else {
            return nb_config_unknown_key(file, child, keys, sizeof keys / sizeof keys[0]);
        }
    }
    return 0;
}

int nb_config_read_compare(const struct nb_jsonc *file, const cJSON *node, struct nb_compare_settings *s) {
    static const char *const keys[] = {"ours", "confirm"};
    if (!cJSON_IsObject(node)) return nb_config_wrong_type(file, node, node->string, "an object");
    s->behind = 0.05;
    for (const cJSON *child = node->child; child; child = child->next) {
        int result = -1;
        if (strcmp(child->string, keys[0]) == 0)
            result = read_ours(file, child, s);
        else if (strcmp(child->string, keys[1]) == 0)
            result = read_confirm(file, child, s);
        else
            nb_config_unknown_key(file, child, keys, sizeof keys / sizeof keys[0]);
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
