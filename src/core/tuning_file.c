// SPDX-License-Identifier: Apache-2.0
/* Where the file lies, for which CPU it holds, and what is put in its place where there is none. */
#include "src/core/tuning_file.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/text.h"

enum { FILE_MAX_BYTES = 4 << 20 };

/* ---- defaults ---- */

/* Caches of a machine that does not say: no x86 or ARM server core of the last ten years has less. */
static const int64_t usual_l1 = 32 << 10, usual_l2 = 256 << 10;
/* dgamma and dbeta, f32. */
static const int64_t sums_bytes = 8;

void nb_tuning_default(struct nb_tuning *t) {
    assert(t);
    const struct nb_cpu *cpu = nb_cpu_light();
    *t = (struct nb_tuning){.struct_size = sizeof *t,
                            .native = cpu->features & (NB_CPU_AVX512BF16 | NB_CPU_AVX512FP16),
                            .l1_bytes = cpu->l1d_bytes > 0 ? cpu->l1d_bytes : usual_l1,
                            .l2_bytes = cpu->l2_bytes > 0 ? cpu->l2_bytes : usual_l2};
    /* Inside a cache a streaming store costs up to half of the speed, outside it gains a third at most: only what surely lies
     * outside streams, and where the last cache is not known, nothing. */
    t->stream_bytes = cpu->l3_bytes;
    /* Sums of a quarter of the second cache leave room for the rows that run past them. */
    t->column_tile = (int32_t)(t->l2_bytes / 4 / sums_bytes);
    t->slab_bytes = t->l2_bytes / 2;
}

/* ---- identity ---- */

char *nb_tuning_cpu(void) {
    const struct nb_cpu *cpu = nb_cpu_light();
    struct nb_strbuf kind = {0}, name = {0};
    nb_strbuf_addf(&kind, "%s|%u|%lld|%lld|%lld", cpu->model, cpu->features, (long long)cpu->l1d_bytes,
                   (long long)cpu->l2_bytes, (long long)cpu->l3_bytes);
    for (const char *p = cpu->vendor[0] ? cpu->vendor : "cpu"; *p; p++) {
        const char c = *p;
        const char safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
        nb_strbuf_addn(&name, &safe, 1);
    }
    nb_strbuf_addf(&name, "-%d-%d-%d-%08x", cpu->family, cpu->model_number, cpu->stepping, nb_hash32_text(kind.text));
    nb_strbuf_release(&kind);
    return name.text;
}

/* ---- place ---- */

/* A folder named by the environment counts when it is absolute, as the XDG specification wants it. */
static const char *absolute(const char *name) {
    const char *value = getenv(name);
    return value && value[0] == '/' ? value : NULL;
}

char *nb_tuning_path(void) {
    const char *named = getenv("NORMBENCH_TUNING"), *cache = absolute("XDG_CACHE_HOME"), *home = absolute("HOME");
    struct nb_strbuf path = {0};
    if (named && *named) return strcmp(named, "none") == 0 ? NULL : nb_strdup(named);
    if (!cache && !home) return NULL;
    char *cpu = nb_tuning_cpu();
    nb_strbuf_addf(&path, "%s%s/normbench/tuning-%s.json", cache ? cache : home, cache ? "" : "/.cache", cpu);
    free(cpu);
    return path.text;
}

/* ---- reading and writing ---- */

static int check(const cJSON *json, const char *path) {
    const char *schema = nb_json_get_text(json, "schema");
    const char *identity = nb_json_get_text(cJSON_GetObjectItemCaseSensitive(json, "cpu"), "identity");
    struct nb_tuning tuning;
    if (!schema || atoi(schema) != atoi(NB_TUNING_SCHEMA))
        return nb_error("%s: is no tuning of schema %s; `normbench tune` makes one", path, NB_TUNING_SCHEMA);
    char *here = nb_tuning_cpu();
    const bool same = identity && strcmp(identity, here) == 0;
    if (!same) nb_error("%s: is the tuning of another CPU (%s; this one is %s)", path, identity ? identity : "?", here);
    free(here);
    if (!same) return -1;
    nb_tuning_default(&tuning);
    if (nb_tuning_from_json(&tuning, cJSON_GetObjectItemCaseSensitive(json, "tuning")) == 0) return 0;
    return nb_error("%s: cannot be used; `normbench tune` makes a new one", path);
}

cJSON *nb_tuning_file_read(const char *path) {
    assert(path);
    size_t len;
    char *text = nb_file_read(path, FILE_MAX_BYTES, &len);
    if (!text) return NULL;
    cJSON *json = strlen(text) == len && nb_json_is_utf8(text) ? cJSON_Parse(text) : NULL;
    free(text);
    if (!cJSON_IsObject(json))
        nb_error("%s: is not a JSON object; `normbench tune --reset` takes it away", path);
    else if (check(json, path) == 0)
        return json;
    cJSON_Delete(json);
    return NULL;
}

int nb_tuning_file_write(const char *path, const cJSON *json) {
    assert(path && json);
    char *folder = nb_strdup(path), *slash = strrchr(folder, '/');
    if (slash && slash != folder) *slash = '\0';
    int result = slash && slash != folder ? nb_dir_make(folder) : 0;
    if (result == 0) result = nb_json_write(json, path);
    free(folder);
    return result;
}

/* ---- the choice ---- */

/* Defaults, file, option, in this order. */

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
