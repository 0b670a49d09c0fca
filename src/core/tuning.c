// SPDX-License-Identifier: Apache-2.0
/* The table of the fields and their texts; then where the file lies, for which CPU it holds, and what the process uses. */
#include "src/core/tuning.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"

#define FIELD(id) .name = #id, .offset = offsetof(struct nb_tuning, id), .size = sizeof(((struct nb_tuning *)0)->id)
#define BYTES .most = (int64_t)1 << 50, .is_bytes = true

const struct nb_tuning_field nb_tuning_fields[] = {
    {FIELD(native), .help = "instructions beyond the variant's own that may be used", .most = UINT32_MAX},
    {FIELD(l1_bytes), .help = "first data cache of one core", BYTES},
    {FIELD(l2_bytes), .help = "second cache of one core", BYTES},
    {FIELD(stream_bytes), .help = "calls that move more use non-temporal stores; 0: none does", BYTES},
    {FIELD(column_tile), .help = "columns whose sums over rows a backward call keeps at hand, at least; 0: few",
     .most = 1 << 30},
    {FIELD(slab_bytes), .help = "largest NCHW channel that is read again from the second cache", BYTES},
};
const size_t nb_n_tuning_fields = sizeof nb_tuning_fields / sizeof nb_tuning_fields[0];

/* The one native instruction that a kernel may use beyond its variant's own. */
static const char native_name[] = "avx512_bf16";

const struct nb_tuning_field *nb_tuning_field_find(const char *name) {
    for (size_t i = 0; i < nb_n_tuning_fields; i++)
        if (strcmp(nb_tuning_fields[i].name, name) == 0) return &nb_tuning_fields[i];
    return NULL;
}

int64_t nb_tuning_get(const struct nb_tuning *t, const struct nb_tuning_field *field) {
    const char *at = (const char *)t + field->offset;
    uint32_t narrow;
    int64_t wide;
    if (field->size == sizeof narrow) return memcpy(&narrow, at, sizeof narrow), narrow;
    return memcpy(&wide, at, sizeof wide), wide;
}

void nb_tuning_set(struct nb_tuning *t, const struct nb_tuning_field *field, int64_t value) {
    char *at = (char *)t + field->offset;
    const uint32_t narrow = (uint32_t)value;
    assert(value >= 0 && value <= field->most);
    if (field->size == sizeof narrow)
        memcpy(at, &narrow, sizeof narrow);
    else
        memcpy(at, &value, sizeof value);
}

bool nb_tuning_equal(const struct nb_tuning *a, const struct nb_tuning *b) {
    for (size_t i = 0; i < nb_n_tuning_fields; i++)
        if (nb_tuning_get(a, &nb_tuning_fields[i]) != nb_tuning_get(b, &nb_tuning_fields[i])) return false;
    return true;
}

/* ---- text ---- */

static bool is_native(const struct nb_tuning_field *field) { return field == &nb_tuning_fields[0]; }

/* -1: a name that is none. */
static int64_t read_native(const char *text) {
    return strcmp(text, "0") == 0 ? 0 : strcmp(text, native_name) == 0 ? NB_CPU_AVX512BF16 : -1;
}

/* A whole number, of bytes with a unit; -1: it is none. */
static int64_t read_amount(const struct nb_tuning_field *field, const char *text) {
    char *end;
    if (*text < '0' || *text > '9') return -1;
    const long long value = strtoll(text, &end, 10);
    const int shift = !field->is_bytes ? 0 : *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (shift) end++;
    return *end || value > field->most >> shift ? -1 : value << shift;
}

static int refuse(const struct nb_tuning_field *field, const char *text, char *reason, size_t n) {
    const char *wanted = is_native(field)  ? "0 or avx512_bf16"
                         : field->is_bytes ? "a number of bytes, such as 65536, 64K or 2M"
                                           : "a whole number";
    return nb_reason(reason, n, "%s: '%.60s' is not %s", field->name, text, wanted);
}

static int unknown_field(const char *name, char *reason, size_t n) {
    const char *names[16];
    assert(nb_n_tuning_fields <= 16);
    for (size_t i = 0; i < nb_n_tuning_fields; i++) names[i] = nb_tuning_fields[i].name;
    return nb_reason(reason, n, "'%.39s' is not a field of the tuning%s", name,
                     nb_did_you_mean(name, names, nb_n_tuning_fields).text);
}

/* One FIELD=VALUE. */
static int parse_one(struct nb_tuning *t, const char *text, char *reason, size_t n) {
    const size_t name_len = strcspn(text, "=");
    char *name freed = nb_textf("%.*s", (int)name_len, text);
    const struct nb_tuning_field *field = nb_tuning_field_find(name);
    if (!field) return unknown_field(name, reason, n);
    const char *value_text = text + name_len + (text[name_len] == '=');
    const int64_t value = is_native(field) ? read_native(value_text) : read_amount(field, value_text);
    if (value < 0 || value > field->most) return refuse(field, value_text, reason, n);
    nb_tuning_set(t, field, value);
    return 0;
}

int nb_tuning_parse(struct nb_tuning *t, const char *text, char *reason, size_t n) {
    struct nb_tuning changed = *t;
    struct nb_strings fields released_by(nb_strings_release) = {0};
    int result = 0;
    nb_strings_split(&fields, text, ',');
    for (size_t i = 0; i < fields.n && result == 0; i++) result = parse_one(&changed, fields.items[i], reason, n);
    if (result == 0) *t = changed;
    return result;
}

static const char *native_text(uint32_t mask) { return mask & NB_CPU_AVX512BF16 ? native_name : "0"; }

void nb_tuning_print(const struct nb_tuning *t, const struct nb_tuning *base, struct nb_strbuf *out) {
    const char *between = "";
    nb_strbuf_add(out, "");
    for (size_t i = 0; i < nb_n_tuning_fields; i++) {
        const struct nb_tuning_field *field = &nb_tuning_fields[i];
        const int64_t value = nb_tuning_get(t, field);
        if (base && value == nb_tuning_get(base, field)) continue;
        nb_strbuf_addf(out, "%s%s=", between, field->name);
        if (is_native(field))
            nb_strbuf_add(out, native_text(t->native));
        else
            nb_strbuf_addf(out, "%lld", (long long)value);
        between = ",";
    }
}

void nb_tuning_print_field(const struct nb_tuning *t, const struct nb_tuning_field *field, struct nb_strbuf *out) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int64_t value = nb_tuning_get(t, field);
    int unit = 0;
    if (is_native(field)) {
        nb_strbuf_add(out, native_text(t->native));
        return;
    }
    for (; field->is_bytes && value > 0 && value % 1024 == 0 && unit < 4; unit++) value /= 1024;
    nb_strbuf_addf(out, "%lld%s%s", (long long)value, field->is_bytes && value ? " " : "",
                   field->is_bytes && value ? units[unit] : "");
}

/* ---- the process's own ---- */

/* Calls of all kernels point to it: on a page that nobody else writes to, so that no kernel changes what another is told. */
static struct {
    struct nb_tuning *tuning; /* null: none */
    size_t page;
} used;

void nb_tuning_use(const struct nb_tuning *t) {
    if (!used.tuning) {
        used.page = (size_t)sysconf(_SC_PAGESIZE);
        void *p = mmap(NULL, used.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        used.tuning = p != MAP_FAILED ? p : nb_alloc(1, used.page);
    }
    mprotect(used.tuning, used.page, PROT_READ | PROT_WRITE);
    *used.tuning = *t;
    used.tuning->struct_size = sizeof *used.tuning;
    mprotect(used.tuning, used.page, PROT_READ);
}

const struct nb_tuning *nb_tuning_used(void) { return used.tuning; }

bool nb_tuning_holds(const void *address) {
    return used.tuning && (uintptr_t)address - (uintptr_t)used.tuning < used.page;
}

/* ---- as JSON, in files and between processes ---- */

cJSON *nb_tuning_to_json(const struct nb_tuning *t) {
    cJSON *json = cJSON_CreateObject();
    for (size_t i = 0; i < nb_n_tuning_fields; i++) {
        const struct nb_tuning_field *field = &nb_tuning_fields[i];
        if (is_native(field))
            nb_json_text(json, field->name, native_text(t->native));
        else
            nb_json_number(json, field->name, (double)nb_tuning_get(t, field));
    }
    return json;
}

int nb_tuning_from_json(struct nb_tuning *t, const cJSON *json) {
    char reason[200];
    if (!cJSON_IsObject(json)) return nb_error("a tuning that is no object");
    for (size_t i = 0; i < nb_n_tuning_fields; i++) {
        const cJSON *item = nb_json_get(json, nb_tuning_fields[i].name);
        if (item && cJSON_IsString(item) != is_native(&nb_tuning_fields[i]))
            return nb_error("a tuning's \"%s\" is %s text", nb_tuning_fields[i].name, i ? "a" : "no");
        char *value freed = nb_json_shown(item), *text freed = nb_textf("%s=%s", nb_tuning_fields[i].name, value);
        if (item && parse_one(t, text, reason, sizeof reason) != 0) return nb_error("a tuning's %s", reason);
    }
    return 0;
}

enum { FILE_MAX_BYTES = 4 << 20 };

/* ---- defaults ---- */

/* Caches of a machine that does not say: no x86 or ARM server core of the last ten years has less. */
static const int64_t usual_l1 = 32 << 10, usual_l2 = 256 << 10;
/* dgamma and dbeta, f32. */
static const int64_t sums_bytes = 8;

void nb_tuning_default(struct nb_tuning *t) {
    const struct nb_cpu *cpu = nb_cpu_light();
    *t = (struct nb_tuning){.struct_size = sizeof *t,
                            .native = cpu->features & NB_CPU_AVX512BF16,
                            .l1_bytes = cpu->l1d_bytes > 0 ? cpu->l1d_bytes : usual_l1,
                            .l2_bytes = cpu->l2_bytes > 0 ? cpu->l2_bytes : usual_l2};
    /* Inside a cache a streaming store costs up to half of the speed, outside it gains a third at most: only what surely lies
     * outside streams, and where the last cache is not known, nothing. */
    t->stream_bytes = cpu->l3_bytes < NB_MOST_STREAM_BYTES ? cpu->l3_bytes : NB_MOST_STREAM_BYTES;
    /* Sums of a quarter of the second cache leave room for the rows that run past them. */
    t->column_tile = (int32_t)(t->l2_bytes / 4 / sums_bytes);
    t->slab_bytes = t->l2_bytes / 2;
}

/* ---- identity ---- */

char *nb_tuning_cpu(void) {
    const struct nb_cpu *cpu = nb_cpu_light();
    struct nb_strbuf name = {0};
    char *kind freed = nb_textf("%s|%u|%lld|%lld|%lld", cpu->model, cpu->features, (long long)cpu->l1d_bytes,
                                (long long)cpu->l2_bytes, (long long)cpu->l3_bytes);
    for (const char *p = cpu->vendor[0] ? cpu->vendor : "cpu"; *p; p++) {
        const char c = *p;
        const char safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ? c : '_';
        nb_strbuf_addn(&name, &safe, 1);
    }
    nb_strbuf_addf(&name, "-%d-%d-%d-%08x", cpu->family, cpu->model_number, cpu->stepping, nb_hash32_text(kind));
    return name.text;
}

/* ---- place ---- */

char *nb_tuning_path(void) {
    const char *named = getenv("NORMBENCH_TUNING");
    if (named && *named) return strcmp(named, "none") == 0 ? NULL : nb_strdup(named);
    char *folder freed = nb_user_dir("XDG_CACHE_HOME", ".cache"), *cpu freed = nb_tuning_cpu();
    return folder ? nb_textf("%s/tuning-%s.json", folder, cpu) : NULL;
}

/* ---- reading and writing ---- */

static int check(const cJSON *json, const char *path) {
    const char *identity = nb_json_get_text(nb_json_get(json, "cpu"), "identity");
    struct nb_tuning tuning;
    if (nb_json_check_schema(json, path, NB_TUNING_SCHEMA) != 0) return -1;
    char *here freed = nb_tuning_cpu();
    if (!identity || strcmp(identity, here) != 0)
        return nb_error("%s: is the tuning of another CPU (%s; this one is %s)", path, identity ? identity : "?", here);
    nb_tuning_default(&tuning);
    if (nb_tuning_from_json(&tuning, nb_json_get(json, "tuning")) == 0) return 0;
    return nb_error("%s: cannot be used; `normbench tune` makes a new one", path);
}

cJSON *nb_tuning_file_read(const char *path) {
    size_t len;
    char *text freed = nb_file_read(path, FILE_MAX_BYTES, &len);
    if (!text) return NULL;
    cJSON *json = strlen(text) == len && nb_json_is_utf8(text) ? cJSON_Parse(text) : NULL;
    if (!cJSON_IsObject(json))
        nb_error("%s: is not a JSON object; `normbench tune --reset` deletes it", path);
    else if (check(json, path) == 0)
        return json;
    cJSON_Delete(json);
    return NULL;
}

int nb_tuning_file_write(const char *path, const cJSON *json) {
    char *folder freed = nb_strdup(path), *slash = strrchr(folder, '/');
    if (slash && slash != folder) *slash = '\0';
    int result = slash && slash != folder ? nb_dir_make(folder) : 0;
    if (result == 0) result = nb_json_write(json, path);
    return result;
}

/* ---- the choice: defaults, file, option, in this order ---- */

/* Beside the tuning in use where it came from; like it, the process's own and set once. */
static struct {
    const char *source; /* null: nothing chosen yet */
    char file[512], measured[40];
} chosen;

static void take_file(struct nb_tuning *t) {
    char *path freed = nb_tuning_path();
    const char *named = getenv("NORMBENCH_TUNING");
    if (path && named && *named && !nb_path_exists(path))
        nb_warn(
            "NORMBENCH_TUNING=%s: no such file; `normbench tune` or the first run that needs it makes it, and until then the defaults apply",
            path);
    cJSON *json released_by(nb_json_release) = path && nb_path_exists(path) ? nb_tuning_file_read(path) : NULL;
    const char *measured = nb_json_get_text(json, "measured");
    if (json && nb_tuning_from_json(t, nb_json_get(json, "tuning")) == 0) {
        chosen.source = "file";
        snprintf(chosen.file, sizeof chosen.file, "%s", path);
        snprintf(chosen.measured, sizeof chosen.measured, "%s", measured ? measured : "");
    } else if (path && nb_path_exists(path)) {
        nb_warn("the defaults are used instead%s", named && *named ? "; NORMBENCH_TUNING=none: no file is read" : "");
    }
}

static int check_native(const struct nb_tuning *t) {
    const uint32_t missing = t->native & ~nb_cpu_light()->features;
    return missing ? nb_error("a tuning's native: this CPU has no %s", native_text(missing)) : 0;
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
    nb_warn("the defaults are used instead");
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

void nb_tuning_choose_again(const cJSON *choice) {
    static const char *const sources[] = {"defaults", "file", "option"};
    const char *replay = nb_json_get_text(choice, "replay");
    if (chosen.source) return;
    nb_tuning_choose_once(replay ? replay : "default");
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++)
        if (nb_json_is(choice, "source", sources[i])) chosen.source = sources[i];
    nb_json_copy_text(chosen.file, sizeof chosen.file, choice, "file");
    nb_json_copy_text(chosen.measured, sizeof chosen.measured, choice, "measured");
}

cJSON *nb_tuning_choice_to_json(void) {
    const struct nb_tuning *t = nb_tuning_used();
    if (!t || !chosen.source) return cJSON_CreateNull();
    char *replay freed = nb_tuning_replay();
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "source", chosen.source);
    nb_json_text(json, "file", chosen.file[0] ? chosen.file : NULL);
    nb_json_text(json, "measured", chosen.measured[0] ? chosen.measured : NULL);
    nb_json_text(json, "replay", replay);
    cJSON_AddItemToObject(json, "fields", nb_tuning_to_json(t));
    return json;
}
