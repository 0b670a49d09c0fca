// SPDX-License-Identifier: Apache-2.0
/* The fingerprint, section by section. */
#include "src/record/fingerprint.h"

#include <gnu/libc-version.h>
#include <math.h>
#include <papi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "src/core/tuning.h"
#include "src/device/device.h"
#include "src/measure/core_state.h"
#include "src/measure/counters.h"
#include "src/measure/system.h"
#include "src/plan/inputs.h"

#if defined(__x86_64__)
#include <libcpuid/libcpuid.h>
#endif

#include "build_info.h"

/* ---- hashes ---- */

static void print_hash(uint64_t hash, char out[20]) { snprintf(out, 20, "%016llx", (unsigned long long)hash); }

void nb_text_hash(const char *text, char out[20]) { print_hash(nb_hash_text(text), out); }

void nb_file_hash(const char *path, char out[20]) {
    unsigned char chunk[65536];
    uint64_t hash = NB_HASH_EMPTY;
    FILE *f released_by(nb_file_release) = fopen(path, "rbe");
    out[0] = '\0';
    if (!f) return;
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;) hash = nb_hash(hash, chunk, n);
    if (!ferror(f)) print_hash(hash, out);
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
    char hash[20];
    nb_file_hash("/proc/self/exe", hash);
    add_text(object, "version", NB_VERSION);
    add_text(object, "commit", NB_COMMIT);
    cJSON_AddBoolToObject(object, "dirty", NB_DIRTY);
    add_text(object, "hash", hash);
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
                 {NB_CPU_NEON, "neon"},
                 {NB_CPU_SVE256, "sve_256"}};
    cJSON *list = cJSON_AddArrayToObject(object, "features");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (features & names[i].bit) cJSON_AddItemToArray(list, cJSON_CreateString(names[i].name));
}

/* By which vendors' documents name a CPU. */
static void add_signature(cJSON *object, const struct nb_cpu *cpu) {
    char text[16];
    snprintf(text, sizeof text, "0x%08x", cpu->signature);
    add_text(object, "signature", cpu->signature ? text : "");
}

static void add_cpu(cJSON *object, const struct nb_cpu *cpu, const struct nb_system *s) {
    add_text(object, "vendor", cpu->vendor);
    add_text(object, "model", cpu->model);
    add_text(object, "codename", cpu->codename);
    add_number(object, "family", cpu->family, cpu->family > 0);
    add_number(object, "model_number", cpu->model_number, cpu->family > 0);
    add_number(object, "stepping", cpu->stepping, cpu->family > 0);
    add_signature(object, cpu);
    add_text(object, "microcode", s->microcode);
    add_features(object, cpu->features);
    add_number(object, "n_online", cpu->n_online, true);
    add_number(object, "l1d_bytes", cpu->l1d_bytes, cpu->l1d_bytes > 0);
    add_number(object, "l2_bytes", cpu->l2_bytes, cpu->l2_bytes > 0);
    add_number(object, "l3_bytes", cpu->l3_bytes, cpu->l3_bytes > 0);
    add_text(object, "siblings", s->siblings);
    add_text(object, "hypervisor", cpu->hypervisor);
    add_text(object, "emulator", nb_cpu_emulator());
    add_text(object, "disagreement", cpu->disagreement);
}

const char *const nb_cpu_identity[] = {"vendor",   "model",     "family",   "model_number", "stepping",
                                       "features", "l1d_bytes", "l2_bytes", "l3_bytes",     NULL};

#define S(KIND, field) NB_MEMBER(KIND, struct nb_system, field)
static const struct nb_member system_members[] = {
    S(TEXT, os),           S(TEXT, kernel),     S(TEXT, architecture), S(TEXT, governor),      S(TEXT, boost),
    S(TEXT, clock_source), S(TEXT, huge_pages), S(INDEX, aslr),        S(INDEX, memory_bytes), NB_MEMBERS_END};

static void add_kernels(cJSON *list) {
    const char *file;
    for (size_t i = 0; (file = nb_registry_file(i)) != NULL; i++) {
        char hash[20];
        cJSON *object = nb_json_add_object(list);
        nb_file_hash(file, hash);
        add_text(object, "file", file);
        add_text(object, "hash", hash);
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

/* Of a process that knows kernels for one; else nobody asks a driver. */
static void add_gpu(cJSON *json) {
    bool is_used = false;
    for (size_t i = 0; i < nb_registry_size() && !is_used; i++)
        is_used = nb_registry_at(i)->kernel->backend == NB_BACKEND_CUDA;
    cJSON *gpu = is_used ? cJSON_Parse(nb_device_survey(NB_BACKEND_CUDA)->properties) : NULL;
    cJSON_DeleteItemFromObjectCaseSensitive(gpu, "now");
    if (cJSON_GetArraySize(gpu) > 0)
        cJSON_AddItemToObject(json, "gpu", gpu);
    else
        cJSON_Delete(gpu);
}

cJSON *nb_fingerprint(void) {
    struct nb_system system;
    cJSON *json = cJSON_CreateObject();
    nb_system_read(&system);
    add_build(cJSON_AddObjectToObject(json, "build"));
    add_cpu(cJSON_AddObjectToObject(json, "cpu"), nb_cpu(), &system);
    cJSON_AddItemToObject(json, "system", nb_json_of_members(system_members, &system));
    add_kernels(cJSON_AddArrayToObject(json, "kernels"));
    add_libraries(cJSON_AddObjectToObject(json, "libraries"));
    cJSON_AddItemToObject(json, "tuning", nb_tuning_choice_to_json());
    add_gpu(json);
    return json;
}

/* What changes: load_average [3], memory_available_bytes. */
static cJSON *load_to_json(void) {
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
    char *inner freed = nb_textf("%s%s%s", path, *path ? "." : "", name);
    compare(w, inner, nb_json_get(a, name), nb_json_get(b, name));
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
        if (!nb_json_get(a, child->string)) compare_member(w, path, child->string, a, b);
    }
}

void nb_json_differences(const cJSON *a, const cJSON *b,
                         void (*found)(const char *path, const cJSON *a, const cJSON *b, void *arg), void *arg) {
    compare(&(struct walk){found, arg}, "", a, b);
}

/* ---- everything that can be said of this machine before a run, for `normbench info` ---- */

static void add_widths(cJSON *list) {
    for (uint32_t width = 0; width < NB_N_WIDTHS; width++) {
        size_t n = 0;
        for (size_t i = 0; i < nb_registry_size(); i++) n += nb_registry_at(i)->kernel->width == width;
        if (width == NB_NATIVE && n == 0) continue;
        const char *reason = nb_cpu_refuses(nb_width_features(width), width);
        if (!reason && n == 0) reason = "no kernel of this width is built";
        cJSON *object = nb_json_add_object(list);
        nb_json_text(object, "name", nb_width_names[width]);
        cJSON_AddBoolToObject(object, "runs", !reason);
        nb_json_text(object, "reason", reason);
        nb_json_number(object, "n_variants", (double)n);
    }
}

static void add_counters(cJSON *list) {
    struct nb_counter counters[NB_MAX_COUNTERS];
    size_t n = nb_counters_list(counters, NB_MAX_COUNTERS);
    for (size_t i = 0; i < n; i++) {
        cJSON *object = nb_json_add_object(list);
        nb_json_text(object, "name", counters[i].name);
        nb_json_text(object, "source", counters[i].source);
        cJSON_AddBoolToObject(object, "available", !counters[i].reason[0]);
        nb_json_text(object, "reason", counters[i].reason[0] ? counters[i].reason : NULL);
    }
}

/* ---- warnings ---- */

static void add_warning(cJSON *list, char *text) {
    cJSON_AddItemToArray(list, cJSON_CreateString(text));
    free(text);
}
#define warn(list, ...) add_warning(list, nb_textf(__VA_ARGS__))

static void warn_of_machine(cJSON *list, const struct nb_cpu *cpu) {
    if (nb_cpu_emulator())
        warn(list, "%s emulates the CPU: what is computed is right, times say nothing of any CPU", nb_cpu_emulator());
    if (cpu->hypervisor[0])
        warn(
            list,
            "a %s virtual machine: other tenants share its cores and caches; trust ratios within a run more than times",
            cpu->hypervisor);
}

static void warn_of_settings(cJSON *list, const struct nb_system *s) {
    if (s->governor[0] && strcmp(s->governor, "performance") != 0)
        warn(
            list,
            "the frequency governor is %s: clocks change with load; run `cpupower frequency-set -g performance` as root",
            s->governor);
    if (strcmp(s->boost, "on") == 0) warn(list, "boost clocks are on: they depend on heat and on what other cores do");
    if (strpbrk(s->siblings, ",-")) warn(list, "CPUs %s share a core: work on one slows the other", s->siblings);
    if (s->clock_source[0] && strcmp(s->architecture, "x86_64") == 0 && strcmp(s->clock_source, "tsc") != 0)
        warn(list, "the clock source is %s: slower to read than tsc", s->clock_source);
}

static void warn_of_load(cJSON *list, int allowed) {
    struct nb_load load;
    nb_load_read(&load);
    if (load.average[0] > 0.5) /* NaN compares false */
        warn(list, "the load average is %.1f on %d CPU%s: other programs are running", load.average[0], allowed,
             allowed == 1 ? "" : "s");
}

static void add_warnings(cJSON *list, int allowed) {
    struct nb_system system;
    nb_system_read(&system);
    warn_of_machine(list, nb_cpu());
    warn_of_settings(list, &system);
    warn_of_load(list, allowed);
}

/* ---- what is installed ---- */

char *nb_program_find(const char *name) {
    const char *path = getenv("PATH");
    struct nb_strbuf file = {0};
    while (path && *path) {
        size_t n = strcspn(path, ":");
        nb_strbuf_clear(&file);
        nb_strbuf_addf(&file, "%.*s/%s", (int)n, path, name);
        if (n > 0 && access(file.text, X_OK) == 0) return file.text;
        path += n + (path[n] == ':');
    }
    nb_strbuf_release(&file);
    return NULL;
}

static void add_tools(cJSON *list) {
    static const struct {
        const char *name, *purpose, *install;
    } tools[] = {
        {"gnuplot", "draws the plots of a run (SVG and PNG)", "apt-get install gnuplot-nox"},
        {"gcc", "builds kernels and plugins", "apt-get install gcc"},
    };
    for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++) {
        cJSON *object = nb_json_add_object(list);
        char *path freed = nb_program_find(tools[i].name);
        nb_json_text(object, "name", tools[i].name);
        nb_json_text(object, "path", path);
        nb_json_text(object, "purpose", tools[i].purpose);
        nb_json_text(object, "install", tools[i].install);
    }
}

static void add_folders(cJSON *object) {
    char *configs freed = nb_share_dir("NORMBENCH_CONFIGS", "configs"), *data freed = nb_data_dir();
    nb_json_text(object, "configs", configs);
    nb_json_text(object, "data", data);
}

static cJSON *gpu_to_json(void) {
    const struct nb_device_survey *s = nb_device_survey(NB_BACKEND_CUDA);
    cJSON *json = cJSON_CreateObject(), *device = cJSON_Parse(s->properties);
    char *kernels freed = nb_backend_library(NB_BACKEND_CUDA),
                  *emulated freed = nb_backend_library(NB_BACKEND_CUDA_EMULATED);
    nb_json_text(json, "refusal", s->refusal[0] ? s->refusal : NULL);
    if (s->refusal[0] || !device) {
        cJSON_Delete(device);
        device = cJSON_CreateNull();
    }
    cJSON_AddItemToObject(json, "device", device);
    nb_json_text(json, "kernels", kernels);
    nb_json_text(json, "emulation", emulated);
    nb_json_text(json, "results", NB_CUDA_HAS_RUN);
    return json;
}

static cJSON *core_to_json(void) {
    struct nb_neighbour n;
    cJSON *json = cJSON_CreateObject();
    nb_neighbour_measure(&n);
    cJSON_AddNumberToObject(json, "cpu", n.cpu);
    nb_json_number(json, "probe_cycles", round(n.now));
    nb_json_number(json, "floor_cycles", n.floor);
    nb_json_number(json, "sibling", n.sibling >= 0 ? n.sibling : (double)NAN);
    nb_json_number(json, "beside_sibling_cycles", round(n.beside));
    return json;
}

cJSON *nb_survey(void) {
    cJSON *json = nb_fingerprint();
    int cpus[4096], allowed = nb_cpu_allowed(cpus, 4096);
    cJSON_AddItemToObject(json, "load", load_to_json());
    cJSON_AddItemToObject(json, "core", core_to_json());
    nb_json_number(json, "n_allowed", allowed);
    add_widths(cJSON_AddArrayToObject(json, "widths"));
    add_counters(cJSON_AddArrayToObject(json, "counters"));
    add_warnings(cJSON_AddArrayToObject(json, "warnings"), allowed);
    cJSON_DeleteItemFromObjectCaseSensitive(json, "gpu"); /* of the fingerprint: the survey's says more */
    cJSON_AddItemToObject(json, "gpu", gpu_to_json());
    add_tools(cJSON_AddArrayToObject(json, "tools"));
    add_folders(cJSON_AddObjectToObject(json, "folders"));
    return json;
}
