// SPDX-License-Identifier: Apache-2.0
/* Defaults, file, option, in this order. */
#include "src/core/tuning_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/tuning_file.h"

/* Beside the tuning in use (tuning.c) where it came from; like it, the process's own and set once. */
static struct {
    const char *source; /* null: nothing chosen yet */
    char file[512], measured[40];
} chosen;

static void take_file(struct nb_tuning *t) {
    char *path = nb_tuning_path();
    const char *named = getenv("NORMBENCH_TUNING");
    if (path && named && *named && !nb_path_exists(path))
        nb_warn("NORMBENCH_TUNING=%s: no such file; `normbench tune` makes it, and until then the defaults are taken",
                path);
    cJSON *json = path && nb_path_exists(path) ? nb_tuning_file_read(path) : NULL;
    const char *measured = nb_json_get_text(json, "measured");
    if (json && nb_tuning_from_json(t, cJSON_GetObjectItemCaseSensitive(json, "tuning")) == 0) {
        chosen.source = "file";
        snprintf(chosen.file, sizeof chosen.file, "%s", path);
        snprintf(chosen.measured, sizeof chosen.measured, "%s", measured ? measured : "");
    } else if (path && nb_path_exists(path)) {
        nb_warn("the defaults are taken in its place");
    }
    cJSON_Delete(json);
    free(path);
}

static int check_native(const struct nb_tuning *t) {
    const uint32_t missing = t->native & ~nb_cpu_light()->features;
    if (!missing) return 0;
    struct nb_strbuf text = {0};
    const struct nb_tuning wanted = {.native = missing};
    nb_tuning_print_field(&wanted, &nb_tuning_fields[0], &text);
    nb_error("a tuning's native: this CPU has no %s", text.text);
    nb_strbuf_release(&text);
    return -1;
}

int nb_tuning_choose(const char *option) {
    static const char alone[] = "default";
    struct nb_tuning t;
    char reason[200];
    const size_t len = sizeof alone - 1;
    const bool leaves_file = option && strncmp(option, alone, len) == 0 && (option[len] == ',' || !option[len]);
    const char *fields = !option ? NULL : !leaves_file ? option : option[len] ? option + len + 1 : NULL;
    nb_tuning_default(&t);
    memset(&chosen, 0, sizeof chosen);
    chosen.source = "defaults";
    if (!leaves_file) take_file(&t);
    if (check_native(&t) != 0) return -1;
    if (fields && nb_tuning_parse(&t, fields, reason, sizeof reason) != 0)
        return nb_error("--tuning %s: %s", option, reason);
    if (check_native(&t) != 0) return -1;
    if (option) chosen.source = "option";
    nb_tuning_use(&t);
    return 0;
}

void nb_tuning_choose_once(const char *option) {
    if (chosen.source || nb_tuning_choose(option) == 0) return;
    nb_warn("the defaults are taken in its place");
    nb_tuning_choose("default");
}

char *nb_tuning_replay(void) {
    const struct nb_tuning *t = nb_tuning_used();
    struct nb_tuning plain;
    struct nb_strbuf differs = {0};
    nb_tuning_default(&plain);
    if (!t || nb_tuning_equal(t, &plain)) return NULL;
    nb_strbuf_add(&differs, "default,");
    nb_tuning_print(t, &plain, &differs);
    return differs.text;
}

cJSON *nb_tuning_choice_to_json(void) {
    const struct nb_tuning *t = nb_tuning_used();
    if (!t || !chosen.source) return cJSON_CreateNull();
    char *replay = nb_tuning_replay();
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "source", chosen.source);
    nb_json_text(json, "file", chosen.file[0] ? chosen.file : NULL);
    nb_json_text(json, "measured", chosen.measured[0] ? chosen.measured : NULL);
    nb_json_text(json, "replay", replay);
    cJSON_AddItemToObject(json, "fields", nb_tuning_to_json(t));
    free(replay);
    return json;
}
