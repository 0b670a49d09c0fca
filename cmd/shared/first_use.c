// SPDX-License-Identifier: Apache-2.0
/* The defaults of a tuning follow from the sizes of the caches, and a last cache that is shared with neighbours is worth less than its
 * size. So the first command on a CPU that times calls beyond the second cache measures what its size alone does not say, and keeps it. */
#include <string.h>
#include <unistd.h>

#include "cmd/shared/run_plan.h"
#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/tuning.h"
#include "src/measure/system.h"
#include "src/tune/tune_run.h"

/* Does the plan time calls for which it can matter? */
static bool wants_it(const struct nb_plan *plan) {
    const int64_t smallest = nb_tune_first_size(nb_cpu_light());
    for (size_t i = 0; plan->launches > 0 && i < plan->n_cases; i++)
        if (plan->cases[i].backend == NB_BACKEND_CPU && nb_case_is_timed(&plan->cases[i]) &&
            nb_case_bytes(&plan->cases[i]) >= (double)smallest)
            return true;
    return false;
}

/* Does a file or an option say already? */
static bool is_said(void) {
    cJSON *choice released_by(nb_json_release) = nb_tuning_choice_to_json();
    const char *source = nb_json_get_text(choice, "source");
    return !source || strcmp(source, "defaults") != 0;
}

/* What other work takes of the caches now is no property of the CPU: a later command tries again. */
static bool is_busy(void) {
    struct nb_load load;
    nb_load_read(&load);
    const long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
    if (!(load.average[0] > (double)n_cpus)) return false;
    nb_note(
        "first use on this CPU: the machine is busy (load %.1f on %ld CPUs), so the defaults of the tuning hold; a later command, or `normbench tune`, measures",
        load.average[0], n_cpus);
    return true;
}

static void keep(const cJSON *json, const char *path) {
    const cJSON *topic;
    struct nb_strbuf settings released_by(nb_strbuf_release) = {0};
    cJSON_ArrayForEach(topic, nb_json_get(json, "topics")) {
        const char *setting = nb_json_get_text(topic, "setting");
        if (setting) nb_strbuf_addf(&settings, "%s%s", settings.len ? "," : "", setting);
    }
    if (nb_tuning_file_write(path, json) == 0) {
        nb_note(
            "first use on this CPU: what suits it was measured in %.1f s, %s; kept in %s, `normbench tune` measures more",
            nb_json_get_number(json, "elapsed_s"), settings.len ? settings.text : "the defaults stay", path);
        nb_tuning_choose(NULL);
    }
}

int nb_first_use(const struct nb_plan *plan, const char *max_width) {
    const struct nb_tune_options options = {
        .first_use = true, .launches = NB_TUNE_LAUNCHES, .blocks = 20, .sample_ms = 0.06};
    char *path freed = nb_tuning_path();
    cJSON *json released_by(nb_json_release) = NULL;
    size_t n_measured = 0;
    int ended = 0;
    if (path && !max_width && !nb_path_exists(path) && !is_said() && wants_it(plan) && !is_busy())
        ended = nb_tune_run(&options, &json, &n_measured);
    if (ended == 0 && n_measured > 0) keep(json, path);
    return ended > 0 ? ended : 0;
}
