// SPDX-License-Identifier: Apache-2.0
/* The survey, section by section. */
#include "src/record/survey.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/core/case.h"
#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "src/measure/counters.h"
#include "src/measure/system.h"
#include "src/plan/inputs.h"
#include "src/plan/npy.h"
#include "src/record/fingerprint.h"

static int n_allowed(void) {
    int cpus[4096];
    return nb_cpu_allowed(cpus, 4096);
}

static void add_widths(cJSON *list) {
    for (uint32_t width = 0; width < NB_N_WIDTHS; width++) {
        size_t n = 0;
        for (size_t i = 0; i < nb_registry_size(); i++) n += nb_registry_at(i)->kernel->width == width;
        if (width == NB_NATIVE && n == 0) continue;
        const char *reason = nb_cpu_refuses(nb_width_features(width), width);
        if (!reason && n == 0) reason = "no kernel of this width is built";
        cJSON *object = cJSON_CreateObject();
        nb_json_text(object, "name", nb_width_names[width]);
        cJSON_AddBoolToObject(object, "runs", !reason);
        nb_json_text(object, "reason", reason);
        nb_json_number(object, "n_variants", (double)n);
        cJSON_AddItemToArray(list, object);
    }
}

static void add_counters(cJSON *list) {
    struct nb_counter_info counters[NB_MAX_COUNTERS];
    size_t n = nb_counters_list(counters, NB_MAX_COUNTERS);
    for (size_t i = 0; i < n; i++) {
        cJSON *object = cJSON_CreateObject();
        nb_json_text(object, "name", counters[i].name);
        nb_json_text(object, "source", counters[i].source);
        cJSON_AddBoolToObject(object, "available", counters[i].available);
        nb_json_text(object, "reason", counters[i].available ? NULL : counters[i].reason);
        cJSON_AddItemToArray(list, object);
    }
}

/* ---- warnings ---- */

static void warn(cJSON *list, struct nb_strbuf *text) {
    cJSON_AddItemToArray(list, cJSON_CreateString(text->text));
    nb_strbuf_clear(text);
}

static void warn_of_machine(cJSON *list, const struct nb_cpu *cpu, struct nb_strbuf *text) {
    if (cpu->hypervisor[0]) {
        nb_strbuf_addf(text,
                       "a %s virtual machine: its neighbours take time and cache at will; trust ratios within a "
                       "run more than times",
                       cpu->hypervisor);
        warn(list, text);
    }
}

static void warn_of_settings(cJSON *list, const struct nb_system *s, struct nb_strbuf *text) {
    if (s->governor[0] && strcmp(s->governor, "performance") != 0) {
        nb_strbuf_addf(text,
                       "the frequency governor is %s: clocks change with load; `cpupower frequency-set -g "
                       "performance` as root holds them up",
                       s->governor);
        warn(list, text);
    }
    if (strcmp(s->boost, "on") == 0) {
        nb_strbuf_add(text, "boost clocks are on: they depend on heat and on what other cores do");
        warn(list, text);
    }
    if (strpbrk(s->siblings, ",-")) {
        nb_strbuf_addf(text, "CPUs %s share a core: work on one slows the other", s->siblings);
        warn(list, text);
    }
    if (s->clock_source[0] && strcmp(s->architecture, "x86_64") == 0 && strcmp(s->clock_source, "tsc") != 0) {
        nb_strbuf_addf(text, "the clock source is %s: slower to read than tsc", s->clock_source);
        warn(list, text);
    }
}

static void warn_of_load(cJSON *list, int allowed, struct nb_strbuf *text) {
    struct nb_load load;
    nb_load_read(&load);
    if (load.average[0] > 0.5) { /* NaN compares false */
        nb_strbuf_addf(text, "the load average is %.1f on %d CPU%s: other programs are running", load.average[0],
                       allowed, allowed == 1 ? "" : "s");
        warn(list, text);
    }
}

static void add_warnings(cJSON *list, int allowed) {
    struct nb_system system;
    struct nb_strbuf text = {0};
    nb_system_read(&system);
    warn_of_machine(list, nb_cpu(), &text);
    warn_of_settings(list, &system, &text);
    warn_of_load(list, allowed, &text);
    nb_strbuf_release(&text);
}

/* ---- what is installed ---- */

/* The program's path by PATH; owned, or null. */
static char *find_program(const char *name) {
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
        cJSON *object = cJSON_CreateObject();
        char *path = find_program(tools[i].name);
        nb_json_text(object, "name", tools[i].name);
        nb_json_text(object, "path", path);
        nb_json_text(object, "purpose", tools[i].purpose);
        nb_json_text(object, "install", tools[i].install);
        cJSON_AddItemToArray(list, object);
        free(path);
    }
}

static void add_folders(cJSON *object) {
    char *configs = nb_share_dir("NORMBENCH_CONFIGS", "configs"), *data = nb_data_dir();
    nb_json_text(object, "configs", configs);
    nb_json_text(object, "data", data);
    free(configs);
    free(data);
}

static void add_data(cJSON *list) {
    char *dir = nb_data_dir();
    struct nb_strings names = nb_inputs_list();
    for (size_t i = 0; i < names.n; i++) {
        struct nb_strbuf path = {0};
        struct nb_array x;
        char reason[1024];
        nb_strbuf_addf(&path, "%s/%s_x.npy", dir, names.items[i]);
        bool readable = nb_array_read(&x, path.text, 0, 1, reason, sizeof reason) == 0;
        cJSON *object = cJSON_CreateObject();
        nb_json_text(object, "name", names.items[i]);
        nb_json_number(object, "rows", readable ? (double)x.rows : (double)NAN);
        nb_json_number(object, "cols", readable ? (double)x.cols : (double)NAN);
        cJSON_AddItemToArray(list, object);
        nb_strbuf_release(&path);
    }
    nb_strings_release(&names);
    free(dir);
}

cJSON *nb_survey(void) {
    cJSON *json = nb_fingerprint();
    int allowed = n_allowed();
    cJSON_AddItemToObject(json, "load", nb_load_to_json());
    nb_json_number(json, "n_allowed", allowed);
    add_widths(cJSON_AddArrayToObject(json, "widths"));
    add_counters(cJSON_AddArrayToObject(json, "counters"));
    add_warnings(cJSON_AddArrayToObject(json, "warnings"), allowed);
    add_tools(cJSON_AddArrayToObject(json, "tools"));
    add_folders(cJSON_AddObjectToObject(json, "folders"));
    add_data(cJSON_AddArrayToObject(json, "data"));
    return json;
}
