// SPDX-License-Identifier: Apache-2.0
/* The fingerprint, section by section. */
#include "src/record/fingerprint.h"

#include <gnu/libc-version.h>
#include <math.h>
#include <papi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/text.h"

#if defined(__x86_64__)
#include <libcpuid/libcpuid.h>
#endif

#include "build_info.h"
#include "src/core/cpu.h"
#include "src/core/registry.h"
#include "src/core/tuning.h"
#include "src/measure/system.h"

/* ---- hashes ---- */

static void print_hash(uint64_t hash, char out[20]) { snprintf(out, 20, "%016llx", (unsigned long long)hash); }

void nb_text_hash(const char *text, char out[20]) { print_hash(nb_hash_text(text), out); }

void nb_file_hash(const char *path, char out[20]) {
    unsigned char chunk[65536];
    uint64_t hash = NB_HASH_EMPTY;
    FILE *f = fopen(path, "rbe");
    out[0] = '\0';
    if (!f) return;
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;) hash = nb_hash(hash, chunk, n);
    if (!ferror(f)) print_hash(hash, out);
    fclose(f);
}

/* ---- sections ---- */

/* Null for what is not said. */
static void add_text(cJSON *object, const char *name, const char *text) {
    nb_json_text(object, name, text && *text ? text : NULL);
}
static void add_number(cJSON *object, const char *name, int64_t value, bool known) {
    nb_json_number(object, name, known ? (double)value : (double)NAN);
}

static void add_build(cJSON *object) {
    add_text(object, "version", NB_VERSION);
    add_text(object, "commit", NB_COMMIT);
    cJSON_AddBoolToObject(object, "dirty", NB_DIRTY);
    add_text(object, "compiler", NB_COMPILER);
    add_text(object, "kernel_flags", NB_KERNEL_FLAGS);
}

static void add_features(cJSON *object, uint32_t features) {
    static const struct {
        uint32_t bit;
        const char *name;
    } names[] = {{NB_CPU_AVX2, "avx2_fma_f16c_bmi"},
                 {NB_CPU_AVX512, "avx512_f_bw_vl_dq"},
                 {NB_CPU_AVX512BF16, "avx512_bf16"},
                 {NB_CPU_AVX512FP16, "avx512_fp16"},
                 {NB_CPU_NEON, "neon"}};
    cJSON *list = cJSON_AddArrayToObject(object, "features");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (features & names[i].bit) cJSON_AddItemToArray(list, cJSON_CreateString(names[i].name));
}

static void add_cpu(cJSON *object, const struct nb_cpu *cpu, const struct nb_system *s) {
    add_text(object, "vendor", cpu->vendor);
    add_text(object, "model", cpu->model);
    add_text(object, "codename", cpu->codename);
    add_number(object, "family", cpu->family, cpu->vendor[0]);
    add_number(object, "model_number", cpu->model_number, cpu->vendor[0]);
    add_number(object, "stepping", cpu->stepping, cpu->vendor[0]);
    add_text(object, "microcode", s->microcode);
    add_features(object, cpu->features);
    add_number(object, "n_online", cpu->n_online, true);
    add_number(object, "l1d_bytes", cpu->l1d_bytes, cpu->l1d_bytes > 0);
    add_number(object, "l2_bytes", cpu->l2_bytes, cpu->l2_bytes > 0);
    add_number(object, "l3_bytes", cpu->l3_bytes, cpu->l3_bytes > 0);
    add_text(object, "siblings", s->siblings);
    add_text(object, "hypervisor", cpu->hypervisor);
    add_text(object, "disagreement", cpu->disagreement);
}

static void add_system(cJSON *object, const struct nb_system *s) {
    add_text(object, "os", s->os);
    add_text(object, "kernel", s->kernel);
    add_text(object, "architecture", s->architecture);
    add_text(object, "governor", s->governor);
    add_text(object, "boost", s->boost);
    add_text(object, "clock_source", s->clock_source);
    add_text(object, "huge_pages", s->huge_pages);
    add_number(object, "aslr", s->aslr, s->aslr >= 0);
    add_number(object, "memory_bytes", s->memory_bytes, s->memory_bytes >= 0);
}

static void add_kernels(cJSON *list) {
    const char *file;
    for (size_t i = 0; (file = nb_registry_file(i)) != NULL; i++) {
        char hash[20];
        cJSON *object = cJSON_CreateObject();
        nb_file_hash(file, hash);
        add_text(object, "file", file);
        add_text(object, "hash", hash);
        cJSON_AddItemToArray(list, object);
    }
}

static void add_libraries(cJSON *object) {
    int papi = PAPI_get_opt(PAPI_LIB_VERSION, NULL);
    char version[40];
    add_text(object, "libc", gnu_get_libc_version());
    snprintf(version, sizeof version, "%d.%d.%d", PAPI_VERSION_MAJOR(papi), PAPI_VERSION_MINOR(papi),
             PAPI_VERSION_REVISION(papi));
    add_text(object, "papi", papi > 0 ? version : NULL);
    add_text(object, "cjson", cJSON_Version());
#if defined(__x86_64__)
    add_text(object, "libcpuid", cpuid_lib_version());
#else
    add_text(object, "libcpuid", NULL);
#endif
}

cJSON *nb_fingerprint(void) {
    struct nb_system system;
    cJSON *json = cJSON_CreateObject();
    nb_system_read(&system);
    add_build(cJSON_AddObjectToObject(json, "build"));
    add_cpu(cJSON_AddObjectToObject(json, "cpu"), nb_cpu(), &system);
    add_system(cJSON_AddObjectToObject(json, "system"), &system);
    add_kernels(cJSON_AddArrayToObject(json, "kernels"));
    add_libraries(cJSON_AddObjectToObject(json, "libraries"));
    cJSON_AddItemToObject(json, "tuning", nb_tuning_choice_to_json());
    return json;
}

cJSON *nb_load_to_json(void) {
    struct nb_load load;
    cJSON *json = cJSON_CreateObject(), *averages;
    nb_load_read(&load);
    averages = cJSON_AddArrayToObject(json, "load_average");
    for (int i = 0; i < 3; i++)
        cJSON_AddItemToArray(averages,
                             isnan(load.average[i]) ? cJSON_CreateNull() : cJSON_CreateNumber(load.average[i]));
    add_number(json, "memory_available_bytes", load.memory_available_bytes, load.memory_available_bytes >= 0);
    return json;
}

/* ---- differences ------------------------------------------------------------------------------------------------- */

/* A walk through both values at once. */

struct walk {
    void (*found)(const char *path, const cJSON *a, const cJSON *b, void *arg);
    void *arg;
};

static void compare(const struct walk *w, const char *path, const cJSON *a, const cJSON *b);

static void compare_member(const struct walk *w, const char *path, const char *name, const cJSON *a, const cJSON *b) {
    struct nb_strbuf inner = {0};
    nb_strbuf_addf(&inner, "%s%s%s", path, *path ? "." : "", name);
    compare(w, inner.text, cJSON_GetObjectItemCaseSensitive(a, name), cJSON_GetObjectItemCaseSensitive(b, name));
    nb_strbuf_release(&inner);
}

static void compare(const struct walk *w, const char *path, const cJSON *a, const cJSON *b) {
    const cJSON *child;
    if (cJSON_Compare(a, b, true) || (!a && !b)) return;
    if (!cJSON_IsObject(a) || !cJSON_IsObject(b)) {
        w->found(path, a, b, w->arg);
        return;
    }
    cJSON_ArrayForEach(child, a) compare_member(w, path, child->string, a, b);
    cJSON_ArrayForEach(child, b) {
        if (!cJSON_GetObjectItemCaseSensitive(a, child->string)) compare_member(w, path, child->string, a, b);
    }
}

void nb_json_differences(const cJSON *a, const cJSON *b,
                         void (*found)(const char *path, const cJSON *a, const cJSON *b, void *arg), void *arg) {
    compare(&(struct walk){found, arg}, "", a, b);
}
