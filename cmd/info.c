// SPDX-License-Identifier: Apache-2.0
/* normbench info: what this machine is, what runs here, what will disturb timings, and what is missing. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "reports/run/report.h"
#include "reports/text/output.h"
#include "src/core/format.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/measure/core_state.h"
#include "src/record/fingerprint.h"

static const char help[] =
    "usage: normbench info [OPTIONS]\n"
    "\n"
    "Say what this machine is, which kernels may run on it, which counters can count, whether there is a GPU, what will make\n"
    "timings noisy, which tools are missing and the command that gets each, and where configs, kernels and data are taken from.\n"
    "\n"
    "  --format NAME        table (the default) or json\n"
    "  --plugin FILE        add the kernels of a .so, .py or program; repeatable\n" NB_LOAD_TIMEOUT_HELP NB_COMMON_HELP
    "\nExit codes: 0 ok; 2 wrong options, or kernels that cannot be loaded.\n";

/* ---- reading the survey ---- */

static const char *text(const cJSON *object, const char *name) {
    const char *value = nb_json_get_text(object, name);
    return value ? value : "?";
}

/* Names of files and what libraries say of themselves, as a terminal shows them. */
static void escape_texts(cJSON *json) {
    cJSON *item;
    cJSON_ArrayForEach(item, json) {
        struct nb_strbuf safe released_by(nb_strbuf_release) = {0};
        if (cJSON_IsString(item)) nb_escape_terminal(&safe, item->valuestring, true);
        if (safe.text) cJSON_SetValuestring(item, safe.text);
        escape_texts(item);
    }
}

/* "48 KiB", "1.5 GiB", "?" */
struct size {
    char text[24];
};
static struct size size_at(const cJSON *object, const char *name) {
    const double bytes = nb_json_get_number(object, name);
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    struct size size = {"?"};
    if (bytes > 0) nb_format_bytes(&text, bytes);
    if (text.len) snprintf(size.text, sizeof size.text, "%s", text.text);
    return size;
}

static void begin_row(struct nb_strbuf *out, const char *label) { nb_strbuf_addf(out, "  %-18s ", label); }

static void __attribute__((format(printf, 3, 4)))
row(struct nb_strbuf *out, const char *label, const char *format, ...) {
    va_list args;
    begin_row(out, label);
    va_start(args, format);
    nb_strbuf_addv(out, format, args);
    va_end(args);
    nb_strbuf_add(out, "\n");
}

/* ---- sections ---- */

static void print_machine(const cJSON *survey, struct nb_strbuf *out) {
    const cJSON *cpu = nb_json_get(survey, "cpu"), *system = nb_json_get(survey, "system"),
                *load = nb_json_get(survey, "load");
    const char *codename = nb_json_get_text(cpu, "codename"), *hypervisor = nb_json_get_text(cpu, "hypervisor");
    const char *emulator = nb_json_get_text(cpu, "emulator");
    const bool has_cpuid = !isnan(nb_json_get_number(cpu, "family"));
    nb_strbuf_add(out, "Machine\n");
    begin_row(out, "CPU");
    nb_strbuf_add(out, text(cpu, "model"));
    if (has_cpuid)
        nb_strbuf_addf(out, ", family %.0f model %.0f stepping %.0f", nb_json_get_number(cpu, "family"),
                       nb_json_get_number(cpu, "model_number"), nb_json_get_number(cpu, "stepping"));
    if (nb_json_get_text(cpu, "signature")) nb_strbuf_addf(out, " (%s)", text(cpu, "signature"));
    nb_strbuf_add(out, "\n");
    if (codename) row(out, "", "libcpuid takes it for %s", codename);
    if (nb_json_get_text(cpu, "disagreement")) row(out, "", "%s", text(cpu, "disagreement"));
    begin_row(out, "runs on");
    if (emulator) nb_strbuf_addf(out, "%s, an emulator%s", emulator, hypervisor ? ", in a " : "");
    if (hypervisor) nb_strbuf_addf(out, "%s virtual machine", hypervisor);
    if (!emulator && !hypervisor)
        nb_strbuf_add(out, has_cpuid ? "bare metal" : "bare metal, or a virtual machine that does not say so");
    nb_strbuf_add(out, "\n");
    row(out, "CPUs", "%.0f online, %.0f of them for this process", nb_json_get_number(cpu, "n_online"),
        nb_json_get_number(survey, "n_allowed"));
    row(out, "caches", "L1d %s, L2 %s, L3 %s", size_at(cpu, "l1d_bytes").text, size_at(cpu, "l2_bytes").text,
        size_at(cpu, "l3_bytes").text);
    row(out, "memory", "%s, %s available", size_at(system, "memory_bytes").text,
        size_at(load, "memory_available_bytes").text);
    row(out, "system", "%s, %s", text(system, "os"), text(system, "kernel"));
}

static void print_core(const cJSON *survey, struct nb_strbuf *out) {
    const cJSON *core = nb_json_get(survey, "core");
    const double now = nb_json_get_number(core, "probe_cycles"), floor = nb_json_get_number(core, "floor_cycles");
    const double beside = nb_json_get_number(core, "beside_sibling_cycles");
    begin_row(out, "core probe");
    nb_strbuf_addf(out, "%.0f cycles on CPU %.0f", now, nb_json_get_number(core, "cpu"));
    if (isnan(floor))
        nb_strbuf_add(out, "; uncontended: not known yet\n");
    else
        nb_strbuf_addf(out, ", %.0f uncontended: %s\n", floor, nb_is_contended(now, floor) ? "shared" : "not shared");
    if (isnan(beside))
        row(out, "", "no sibling is shown: what a neighbour does is not known");
    else
        row(out, "", "%.2f times as long beside a neighbour on CPU %.0f", beside / now,
            nb_json_get_number(core, "sibling"));
}

static void print_build(const cJSON *survey, struct nb_strbuf *out) {
    const cJSON *build = nb_json_get(survey, "build"), *libraries = nb_json_get(survey, "libraries");
    nb_strbuf_add(out, "\nBuild\n");
    row(out, "normbench", "%s, commit %s%s", text(build, "version"), text(build, "commit"),
        nb_json_get_bool(build, "dirty") ? " with changes" : "");
    row(out, "compiler", "%s", text(build, "compiler"));
    begin_row(out, "libraries");
    nb_strbuf_addf(out, "libc %s, PAPI %s, cJSON %s", text(libraries, "libc"), text(libraries, "papi"),
                   text(libraries, "cjson"));
    if (nb_json_get_text(libraries, "libcpuid")) nb_strbuf_addf(out, ", libcpuid %s", text(libraries, "libcpuid"));
    nb_strbuf_add(out, "\n");
}

static void print_widths(const cJSON *survey, struct nb_strbuf *out) {
    const cJSON *width;
    nb_strbuf_add(out, "\nSIMD widths of the kernels\n");
    cJSON_ArrayForEach(width, nb_json_get(survey, "widths")) {
        const char *reason = nb_json_get_text(width, "reason");
        if (reason)
            row(out, text(width, "name"), "skipped: %s", reason);
        else
            row(out, text(width, "name"), "runs: %.0f variants of kernels", nb_json_get_number(width, "n_variants"));
    }
}

static bool are_alike(const cJSON *a, const cJSON *b) {
    return nb_json_same_text(a, b, "source") && nb_json_same_text(a, b, "reason");
}

/* Counters that share their source and reason stand in one line. */
static void print_counter_group(const cJSON *first, struct nb_strbuf *out) {
    const char *reason = nb_json_get_text(first, "reason");
    begin_row(out, reason ? "missing" : text(first, "source"));
    for (const cJSON *c = first; c; c = c->next)
        if (are_alike(c, first)) nb_strbuf_addf(out, "%s%s", c == first ? "" : ", ", text(c, "name"));
    nb_strbuf_add(out, "\n");
    if (reason) row(out, "", "%s", reason);
}

static void print_counters(const cJSON *survey, struct nb_strbuf *out) {
    const cJSON *counters = nb_json_get(survey, "counters"), *counter;
    nb_strbuf_add(out, "\nCounters, by where they come from\n");
    cJSON_ArrayForEach(counter, counters) {
        const cJSON *first = counters->child;
        while (!are_alike(first, counter)) first = first->next;
        if (first == counter) print_counter_group(counter, out);
    }
}

static void print_device(const cJSON *device, struct nb_strbuf *out) {
    const cJSON *now = nb_json_get(device, "now"), *reason;
    row(out, "device", "%s, compute capability %s, %.0f multiprocessors, %s, L2 %s", text(device, "name"),
        text(device, "compute_capability"), nb_json_get_number(device, "multiprocessors"),
        size_at(device, "memory_bytes").text, size_at(device, "l2_bytes").text);
    row(out, "driver", "%s, CUDA %s", text(device, "driver"), text(device, "cuda"));
    begin_row(out, "now");
    nb_strbuf_addf(out, "%.0f of %.0f MHz, memory %.0f MHz, power limit %.0f W", nb_json_get_number(now, "sm_mhz"),
                   nb_json_get_number(device, "sm_mhz_most"), nb_json_get_number(now, "memory_mhz"),
                   nb_json_get_number(device, "power_limit_w"));
    if (nb_json_get_text(now, "reason")) nb_strbuf_addf(out, ", not all known: %s", nb_json_get_text(now, "reason"));
    cJSON_ArrayForEach(reason, nb_json_get(now, "throttled"))
        nb_strbuf_addf(out, ", throttled: %s", reason->valuestring);
    nb_strbuf_add(out, "\n");
}

static void print_gpu(const cJSON *survey, struct nb_strbuf *out) {
    const cJSON *gpu = nb_json_get(survey, "gpu");
    const char *refusal = nb_json_get_text(gpu, "refusal");
    const char *kernels = nb_json_get_text(gpu, "kernels"), *emulation = nb_json_get_text(gpu, "emulation");
    nb_strbuf_add(out, "\nGPU\n");
    if (refusal)
        row(out, "device", "%s", refusal);
    else
        print_device(nb_json_get(gpu, "device"), out);
    row(out, "kernels", "%s", kernels ? kernels : "not built; `make cuda` builds them");
    row(out, "emulation", "%s", emulation ? emulation : "not built; `make cuda-emulated` builds it, without a GPU");
    row(out, "our kernels", "%s", text(gpu, "results"));
}

static void print_warnings(const cJSON *survey, struct nb_strbuf *out) {
    const cJSON *warning, *warnings = nb_json_get(survey, "warnings");
    nb_strbuf_add(out, "\nWhat will disturb timings\n");
    if (cJSON_GetArraySize(warnings) == 0) nb_strbuf_add(out, "  nothing known\n");
    cJSON_ArrayForEach(warning, warnings) nb_strbuf_addf(out, "  - %s\n", warning->valuestring);
}

static void print_tools(const cJSON *survey, struct nb_strbuf *out) {
    const cJSON *tool;
    nb_strbuf_add(out, "\nTools\n");
    cJSON_ArrayForEach(tool, nb_json_get(survey, "tools")) {
        const char *path = nb_json_get_text(tool, "path");
        if (path)
            row(out, text(tool, "name"), "%s", path);
        else
            row(out, text(tool, "name"), "missing: it %s; get it with `%s`", text(tool, "purpose"),
                text(tool, "install"));
    }
}

static void print_places(const cJSON *survey, struct nb_strbuf *out) {
    const cJSON *folders = nb_json_get(survey, "folders"), *item;
    nb_strbuf_add(out, "\nPlaces\n");
    cJSON_ArrayForEach(item, nb_json_get(survey, "kernels")) {
        row(out, "kernels", "%s (hash %s)", text(item, "file"), text(item, "hash"));
    }
    row(out, "configs", "%s",
        nb_json_get_text(folders, "configs") ? text(folders, "configs") : "no folder; NORMBENCH_CONFIGS names one");
    row(out, "data", "%s",
        nb_json_get_text(folders, "data") ? text(folders, "data") : "no folder; NORMBENCH_DATA names one");
}

static void print_table(const cJSON *survey, struct nb_strbuf *out) {
    print_machine(survey, out);
    print_core(survey, out);
    print_warnings(survey, out);
    print_build(survey, out);
    print_widths(survey, out);
    nb_strbuf_add(out, "\n");
    nb_tune_print(nb_json_get(survey, "tuning"), out);
    print_counters(survey, out);
    print_gpu(survey, out);
    print_tools(survey, out);
    print_places(survey, out);
}

/* ---- command ---- */

static int info_main(int argc, char **argv) {
    const char *format = "table";
    struct nb_strings plugins released_by(nb_strings_release) = {0};
    const struct nb_option options[] = {{"format", .text = &format, .among = nb_table_json},
                                        {"plugin", .texts = &plugins},
                                        NB_LOAD_TIMEOUT_OPTION,
                                        {.name = NULL}};
    int exit_code;
    if (!nb_read_options(help, options, 0, argc, argv, &exit_code)) return exit_code;
    if (nb_load_kernels(&plugins, NULL) != 0) return NB_EXIT_USAGE;
    cJSON *survey released_by(nb_json_release) = nb_survey();
    if (strcmp(format, "json") == 0) {
        nb_output_document(survey, stdout);
    } else {
        struct nb_strbuf text = {0};
        escape_texts(survey);
        print_table(survey, &text);
        nb_output_folded(&text, stdout);
    }
    nb_registry_release();
    return NB_EXIT_OK;
}

const struct nb_command nb_command_info = {"info", "say what this machine is, what runs here, what is missing", help,
                                           info_main};
