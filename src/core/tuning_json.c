// SPDX-License-Identifier: Apache-2.0
/* A tuning in files and between processes. */
#include <math.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/tuning.h"

cJSON *nb_tuning_to_json(const struct nb_tuning *t) {
    cJSON *json = cJSON_CreateObject();
    struct nb_strbuf native = {0};
    for (size_t i = 0; i < nb_n_tuning_fields; i++) {
        const struct nb_tuning_field *field = &nb_tuning_fields[i];
        nb_strbuf_clear(&native);
        nb_tuning_print_field(t, field, &native);
        if (i == 0)
            nb_json_text(json, field->name, native.text);
        else
            nb_json_number(json, field->name, (double)nb_tuning_get(t, field));
    }
    nb_strbuf_release(&native);
    return json;
}

static int read_native(struct nb_tuning *t, const char *text) {
    struct nb_strbuf setting = {0};
    char reason[160];
    nb_strbuf_addf(&setting, "native=%s", text);
    const int result = nb_tuning_parse(t, setting.text, reason, sizeof reason);
    nb_strbuf_release(&setting);
    return result == 0 ? 0 : nb_error("a tuning's %s", reason);
}

int nb_tuning_from_json(struct nb_tuning *t, const cJSON *json) {
    if (!cJSON_IsObject(json)) return nb_error("a tuning that is no object");
    for (size_t i = 0; i < nb_n_tuning_fields; i++) {
        const struct nb_tuning_field *field = &nb_tuning_fields[i];
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, field->name);
        if (!item) continue;
        if (i == 0) {
            if (!cJSON_IsString(item)) return nb_error("a tuning's \"%s\" is no text", field->name);
            if (read_native(t, item->valuestring) != 0) return -1;
            continue;
        }
        const double value = cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
        if (!(value >= 0 && value <= (double)field->most && value == floor(value)))
            return nb_error("a tuning's \"%s\" is not what it may be", field->name);
        nb_tuning_set(t, field, (int64_t)value);
    }
    return 0;
}
