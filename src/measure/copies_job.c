// SPDX-License-Identifier: Apache-2.0
/* A trial of the copies that a group's cases may be timed beside: for each of the job's cases, one of each pattern of loads and stores, the
 * baseline copies with that pattern. */
#include <math.h>

#include "src/core/cpu.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/measure/worker.h"

enum { TRIAL_BLOCKS = 8, MAX_CANDIDATES = 24 };

/* The copies with this pattern of loads and stores that can run here; single_width: of the case's width. */
static int candidates(const struct nb_case *c, bool single_width, int n_loads, int n_stores,
                      const struct nb_entry *out[MAX_CANDIDATES]) {
    int n = 0;
    for (size_t i = 0; i < nb_registry_size() && n < MAX_CANDIDATES; i++) {
        const struct nb_entry *e = nb_registry_at(i);
        const struct nb_kernel *k = e->kernel;
        if (k->op != NB_OP_COPY || k->backend != c->backend || (e->plugin && k->backend == NB_BACKEND_CPU) ||
            k->dtype != c->dtype || k->pass != c->pass || k->loads != (float)n_loads || k->stores != (float)n_stores ||
            (single_width && k->width != c->width) || nb_cpu_refuses(k->cpu_features, k->width))
            continue;
        out[n++] = e;
    }
    return n;
}

/* What an arm takes beside the first: paired within blocks, so that a neighbour who comes
 * for some of them speaks for none of the candidates. */
static double paired_ns(const struct nb_arm *arm, const struct nb_arm *first) {
    const struct nb_samples own = {.ns = arm->sample_ns, .n = TRIAL_BLOCKS},
                            base = {.ns = first->sample_ns, .n = TRIAL_BLOCKS};
    return nb_samples_median(&base) * exp(nb_paired_ln(&own, &base, NB_PAIRS_ALL));
}

/* Times the candidates interleaved, and says each one's time. */
static int try_copies(struct nb_workplace *w, const struct nb_case *c, int n_loads, int n_stores, cJSON *out) {
    const struct nb_entry *entries[MAX_CANDIDATES];
    struct nb_case cases[MAX_CANDIDATES];
    struct nb_arm arms[MAX_CANDIDATES] = {0};
    struct nb_bench bench released_by(nb_bench_release) = {
        .arms = arms, .n = candidates(c, w->job.single_width, n_loads, n_stores, entries), .blocks = TRIAL_BLOCKS};
    if (bench.n == 0) return 0;
    for (int i = 0; i < bench.n; i++) {
        cases[i] = *c;
        nb_case_set_entry(&cases[i], entries[i]);
        arms[i] = (struct nb_arm){.entry = entries[i], .c = &cases[i]};
    }
    if (nb_bench_init(&bench, w) != 0) return -1;
    bench.options = (struct nb_measure_options){.blocks = TRIAL_BLOCKS,
                                                .sample_s = w->job.sample_s,
                                                .seed = w->job.seed,
                                                .cold = c->cache == NB_COLD,
                                                .device = bench.options.device};
    nb_bench_time(&bench);
    for (int i = 0; i < bench.n; i++) {
        cJSON *copy = nb_json_add_object(out);
        nb_json_text(copy, "variant", entries[i]->id);
        nb_json_number(copy, "ns", paired_ns(&arms[i], &arms[0]));
    }
    return 0;
}

static int copies_job(struct nb_workplace *w) {
    cJSON *line = cJSON_CreateObject();
    nb_json_text(line, "type", "copies");
    cJSON *copies = cJSON_AddArrayToObject(line, "copies");
    for (int i = 0; i < w->job.n_cases; i++) {
        const struct nb_case *c = &w->job.cases[i];
        int n_loads, n_stores;
        nb_op_tensors(c->op, c->pass, &n_loads, &n_stores);
        if (try_copies(w, c, n_loads, n_stores, copies) != 0) nb_warn("no copy for %s", w->job.asked[i].key);
    }
    nb_worker_say(line);
    return 0;
}

const struct nb_job_type nb_copies_job = {.work = copies_job};
