// SPDX-License-Identifier: Apache-2.0
/* normbench tune: what is best for the kernels on this CPU, measured once and kept. */
#include <stdio.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "cmd/shared/run_plan.h"
#include "reports/run/report.h"
#include "reports/text/output.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/tuning.h"
#include "src/measure/core_state.h"
#include "src/tune/tune_run.h"

static const char help[] =
    "usage: normbench tune [OPTIONS]\n\n"
    "Measure for some seconds what suits this CPU best where kernels have a choice, and keep it in a file that every\n"
    "later command reads. Each setting is timed as an arm of its own: one kernel, one shape, calls that differ in\n"
    "nothing else, interleaved, in at least six processes. A field keeps its default unless another\n"
    "value is faster by more than the noise. Without a file the defaults hold, which follow from the sizes of the caches; the\n"
    "first command that times calls of megabytes measures stream_bytes and column_tile and makes the file, if the machine is\n"
    "not busy.\n\n"
    "  --show               print what is kept for this CPU, and what was measured for it; measure nothing\n"
    "  --reset              delete the file, and what the probe of the core is known to take\n"
    "  --out FILE           write there, and not where later commands look; - is stdout\n"
    "  --launches N         processes for each trial (default 6, the fewest that give an interval)\n"
    "  --max-width WIDTH    hide wider kernels\n"
    "  --format NAME        table (the default) or json\n" NB_COMMON_HELP "\n"
    "The file is $NORMBENCH_TUNING, else $XDG_CACHE_HOME/normbench/tuning-CPU.json, else ~/.cache/normbench/...;\n"
    "NORMBENCH_TUNING=none: no file is read or written. --tuning of other commands sets fields by hand:\n\n"
    "  native               avx512_bf16 or 0: instructions beyond the variant's own; the fast kernels, forward and\n"
    "                       backward, round to bf16 with them at 512 bits\n"
    "  l1_bytes, l2_bytes   data caches of one core\n"
    "  stream_bytes         calls with more bytes of tensors use non-temporal stores; 0: none does\n"
    "  column_tile          columns whose sums over rows a backward call keeps at hand, at least; 0: few\n"
    "  slab_bytes           what a channel (NCHW) may take to be read again from the second cache\n\n"
    "Only native may change a bit of a result.\n"
    "Exit codes: 0 done, 2 usage, or nothing could be measured, 128+n ended by signal n (nothing is kept).\n";

struct tune_options {
    bool show, reset;
    const char *out, *max_width, *format;
    int launches;
};

static bool parse(struct tune_options *o, int argc, char **argv, int *exit_code) {
    const struct nb_option options[] = {{"show", .flag = &o->show},
                                        {"reset", .flag = &o->reset},
                                        {"out", .text = &o->out},
                                        {"launches", .count = &o->launches, .least = 1, .most = 100},
                                        {"max-width", .text = &o->max_width},
                                        {"format", .text = &o->format, .among = nb_table_json},
                                        {.name = NULL}};
    if (!nb_read_options(help, options, 0, argc, argv, exit_code)) return false;
    const bool several = o->show + o->reset + (o->out != NULL) > 1;
    if (several) nb_error("tune: --show and --reset stand alone");
    return !several;
}

static void print(const struct tune_options *o, const cJSON *json) {
    struct nb_strbuf text = {0};
    if (strcmp(o->format, "json") == 0) {
        nb_output_document(json, stdout);
    } else {
        nb_tune_print(json, &text);
        nb_output_folded(&text, stdout);
    }
}

/* Without a file what is used in its place. */
static int show(const struct tune_options *o, const char *path) {
    cJSON *json released_by(nb_json_release) = NULL;
    if (path && nb_path_exists(path)) {
        json = nb_tuning_file_read(path);
        if (!json) return NB_EXIT_USAGE;
        nb_note("from %s", path);
    } else {
        nb_note("%s: the defaults hold%s", path ? path : "no file is read", path ? ", there is no such file" : "");
        nb_tuning_choose("default");
        json = nb_tuning_choice_to_json();
    }
    print(o, json);
    return NB_EXIT_OK;
}

static int reset(const char *path) {
    nb_floors_forget();
    if (!path || !nb_path_exists(path)) {
        nb_note("there is no tuning to delete");
        return NB_EXIT_OK;
    }
    if (remove(path) != 0) return nb_error("%s: cannot be deleted", path), NB_EXIT_USAGE;
    nb_note("%s is gone; the defaults hold", path);
    return NB_EXIT_OK;
}

static int keep(const struct tune_options *o, const cJSON *json, const char *path) {
    const char *to = o->out ? o->out : path;
    if (o->out && strcmp(o->out, "-") == 0) return 0;
    if (!to) {
        nb_note("kept nowhere: the environment names no place for it");
        return 0;
    }
    if (nb_tuning_file_write(to, json) != 0) return -1;
    nb_note("kept in %s", to);
    return 0;
}

/* Before seconds are spent on what cannot be kept. */
static int check_place(const struct tune_options *o, const char *path) {
    const char *to = o->out ? o->out : path;
    if (!to || strcmp(to, "-") == 0 || nb_file_check_place(to) == 0) return 0;
    if (!o->out) nb_note("NORMBENCH_TUNING=none: no file is read or written");
    return -1;
}

static int measure(const struct tune_options *o, const char *path) {
    const struct nb_tune_options options = {.launches = o->launches, .blocks = 20, .sample_ms = 0.06};
    cJSON *json released_by(nb_json_release) = NULL;
    size_t n_measured;
    nb_tuning_choose("default");
    if (nb_load_kernels(NULL, o->max_width) != 0) return NB_EXIT_USAGE;
    const int ended = nb_tune_run(&options, &json, &n_measured);
    if (ended < 0) return NB_EXIT_USAGE;
    if (ended == 0 || n_measured > 0) print(o, json);
    if (ended > 0) return nb_ended_by(ended, "tune", NULL);
    if (n_measured > 0) return keep(o, json, path) == 0 ? NB_EXIT_OK : NB_EXIT_USAGE;
    nb_error("no kernel that can be tuned is built, or none ran; the defaults hold, and nothing is kept");
    return NB_EXIT_USAGE;
}

static int tune_main(int argc, char **argv) {
    struct tune_options o = {.launches = NB_TUNE_LAUNCHES, .format = "table"};
    int exit_code;
    char *path freed = NULL;
    if (!parse(&o, argc, argv, &exit_code)) return exit_code;
    path = nb_tuning_path();
    if (o.show)
        exit_code = show(&o, path);
    else if (check_place(&o, path) != 0)
        exit_code = NB_EXIT_USAGE;
    else
        exit_code = o.reset ? reset(path) : measure(&o, path);
    nb_registry_release();
    return exit_code;
}

const struct nb_command nb_command_tune = {"tune", "measure once what suits this CPU, and keep it", help, tune_main};
