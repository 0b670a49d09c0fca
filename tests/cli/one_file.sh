#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A kernel, a command, a kind of job, a renderer, a figure family, a property experiment, a claim and a preset are one new file each: in a copy
# of the tree one of each is added, nothing else is edited, and all of them work.
set -u
tree=$WORK/tree
fails() { echo "$*"; exit 1; }

# ---- a copy that knows what is built: the objects with their times ------------------------------------------------------------
mkdir -p "$tree/build"
cp -a Makefile VERSION cmd configs kernels reports src "$tree/"
mkdir "$tree/tests" && cp -a tests/data tests/plugins tests/identity "$tree/tests/"
for part in cmd src reports gen flags pch; do [ ! -e "$BUILD/$part" ] || cp -a "$BUILD/$part" "$tree/build/"; done
unset NORMBENCH_KERNELS NORMBENCH_CONFIGS NORMBENCH_DATA

# ---- one of each ------------------------------------------------------------------------------------------------------------------
sed 's/rmsnorm_serial/rmsnorm_added/g' kernels/rows/rmsnorm_serial.c >"$tree/kernels/rows/rmsnorm_added.c"
cat >"$tree/cmd/added.c" <<'C'
#include <stdio.h>

#include "cmd/command.h"
#include "src/core/json.h"
#include "src/measure/process.h"

static void take(cJSON *line, void *into) {
    *(double *)into = nb_json_get_number(line, "sum");
    cJSON_Delete(line);
}

static int added_main(int argc, char **argv) {
    const struct nb_job job = {.kind = "added", .launch = -1, .digests_at = -1};
    struct nb_outcome outcome;
    double sum = 0;
    nb_process_run(NULL, &job, -1, 20, take, &sum, &outcome);
    printf("%s has %d words, a worker says %g\n", argv[0], argc, sum);
    return NB_EXIT_OK;
}

extern const struct nb_command nb_command_added;
const struct nb_command nb_command_added = {"added", "counts its words", "usage: normbench added\n", added_main};
C
cat >"$tree/src/lab/probe/added_job.c" <<'C'
#include "src/measure/worker.h"

static int added_job(struct nb_workplace *w) {
    cJSON *line = cJSON_CreateObject();
    (void)w;
    cJSON_AddStringToObject(line, "type", "answer");
    cJSON_AddNumberToObject(line, "sum", 42);
    nb_worker_say(line);
    return 0;
}

const struct nb_job_type nb_added_job = {.work = added_job, .own_inputs = true, .no_cases = true};
C
cat >"$tree/reports/run/render_added.c" <<'C'
#include "reports/run/report.h"

static int added_render(const struct nb_results *results, FILE *out) {
    return fprintf(out, "%zu records\n", results->n) < 0 ? -1 : 0;
}

const struct nb_renderer nb_renderer_added[] = {{"added", "counts the records", added_render}, {0}};
C
cat >"$tree/reports/figures/plot_added.c" <<'C'
#include "reports/figures/plot.h"

void nb_plot_added(const struct nb_results *results, struct nb_figures *figures) {
    nb_figures_note(figures, "added: %zu records are no figure", results->n);
}
C
cat >"$tree/src/claims/property_added.c" <<'C'
#include "src/claims/property.h"

static void added_run(const struct nb_property_call *call) {
    nb_property_add(call, "found", "", nb_param_number(call, "value"));
}

const struct nb_property nb_property_added[] = {{.name = "added",
                                                .summary = "finds its parameter",
                                                .params = {{"value", "42", "what is found", false}},
                                                .run = added_run},
                                               {.name = NULL}};
C
cat >"$tree/configs/claims/added.json" <<'JSON'
{
  "title": "the added experiment finds 42",
  "statement": "It finds 42.",
  "scope": "any machine",
  "sources": [{ "cite": "this test" }],
  "experiments": { "found": { "kind": "property", "property": "added" } },
  "readings": [{ "id": "found", "text": "it finds 42", "experiment": "found",
      "expect": [{ "figure": "found", "form": "equals", "to": 42 }] }]
}
JSON
printf '{ "description": "one kernel", "launches": 0, "blocks": [ { "kernel": "rmsnorm_added", "width": "scalar", "shape": "4x64" } ] }\n' \
    >"$tree/configs/added.json"

# ---- all of them work ----------------------------------------------------------------------------------------------------------------
cd "$tree" || exit 1
make --no-print-directory BUILD=build VARIANTS=rmsnorm_added_scalar_f32 all >"$WORK/make.log" 2>&1 || { tail -n 20 "$WORK/make.log"; exit 1; }
normbench=build/normbench
$normbench list kernels | grep -q '^rmsnorm_added ' || fails "the kernel is not listed"
[ "$($normbench added more)" = "added has 2 words, a worker says 42" ] || { $normbench added more; fails "the command or its job does not run"; }
$normbench list configs | grep -q '^added .*one kernel' || fails "the preset is not listed"
$normbench run added --out "$WORK/run" --format added >"$WORK/out" 2>"$WORK/err" || { cat "$WORK/err"; fails "the preset does not run"; }
grep -qx '1 records' "$WORK/out" || { cat "$WORK/out"; fails "the renderer does not render"; }
grep -q 'added: 1 records are no figure' "$WORK/run/plots/README.md" || fails "the figure family is not asked"
$normbench claims --explain properties | grep -q '^added: finds its parameter' || fails "the property is not explained"
$normbench claims --list | grep -q '^added .*the added experiment finds 42' || fails "the claim is not listed"
$normbench claims added --out "$WORK/claims" >"$WORK/out" 2>"$WORK/err" || { cat "$WORK/err"; fails "the claim does not run"; }
grep -q '^  yes  ' "$WORK/out" || { cat "$WORK/out"; fails "the claim has no verdict"; }
