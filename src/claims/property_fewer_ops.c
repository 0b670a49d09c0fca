// SPDX-License-Identifier: Apache-2.0
/* What two kernels do, counted and not timed: instructions of one call, exactly, by single stepping, the kernel's own alone; sweeps over
 * whole tensors and phases as they declare them; vectors of parameters that the result depends on. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/property.h"
#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/registry.h"
#include "src/measure/fp_state.h"
#include "src/measure/single_step.h"

static const int64_t most_instructions = 200000;

static int64_t count_instructions(const struct nb_norm_prepared *p, char *reason, size_t n) {
    const struct nb_fp_state state = nb_fp_state();
    const int64_t counted = nb_single_step_kernel(p->entry->kernel, &p->call, most_instructions, reason, n);
    nb_fp_state_set(state);
    return counted;
}

struct work_of_call {
    double instructions, sweeps, phases, parameters;
    char reason[300]; /* why there are no instructions */
    const char *style;
};

/* Of gamma and beta those that change the result when they change. */
static int parameters_used(const struct nb_norm_prepared *p) {
    const size_t bytes = (size_t)p->call.rows * (size_t)p->call.cols * sizeof(float);
    float *const vectors[] = {p->buffers.gamma, p->buffers.beta};
    char *before = nb_alloc(bytes, 1);
    int used = 0;
    for (int i = 0; i < 2; i++) {
        nb_norm_call(p);
        memcpy(before, p->buffers.y, bytes);
        for (int64_t j = 0; j < p->n_params; j++) vectors[i][j] += 1;
        nb_norm_call(p);
        used += memcmp(before, p->buffers.y, bytes) != 0;
    }
    free(before);
    return used;
}

/* With the parameters that the op usually has: gamma, and of LayerNorm beta. */
static int count(const char *kernel, int64_t rows, int64_t cols, struct work_of_call *w) {
    double *x = nb_alloc((unsigned long long)(rows * cols + 2 * cols), sizeof *x), *gamma = x + rows * cols;
    for (int64_t i = 0; i < rows * cols + 2 * cols; i++) x[i] = (double)(i % 7) - 2.5;
    const struct nb_norm n = {.kernel = kernel, .eps = 1e-5};
    struct nb_matrix_view v = {.rows = rows, .cols = cols, .x = x, .gamma = gamma};
    const struct nb_entry *entry = nb_registry_widest(kernel, NB_F32);
    if (entry && (entry->kernel->op == NB_OP_LAYERNORM || entry->kernel->op == NB_OP_BATCHNORM)) v.beta = gamma + cols;
    struct nb_norm_prepared p;
    const int result = nb_norm_prepare(&p, &n, &v, w->reason, sizeof w->reason);
    if (result == 0) {
        const int64_t counted = count_instructions(&p, w->reason, sizeof w->reason);
        w->instructions = counted < 0 ? (double)NAN : (double)counted;
        w->sweeps = (double)p.entry->kernel->loads + (double)p.entry->kernel->stores;
        w->phases = nb_kernel_n_phases(p.entry->kernel, &p.call);
        w->parameters = parameters_used(&p);
        w->style = nb_style_names[p.entry->kernel->style];
        nb_norm_prepared_release(&p);
    }
    free(x);
    return result;
}

static void add(const struct nb_property_call *call, const char *name, double of, double against, const char *kernel,
                const struct work_of_call *w) {
    struct nb_finding *f = nb_property_add_or(call, name, "share", 1 - of / against, w->reason);
    char text[120];
    snprintf(text, sizeof text, "%.10g against %.10g", of, against);
    f->evidence = nb_strdup(text);
    nb_finding_tag(f, "kernel", kernel);
    nb_finding_tag(f, "style", w->style);
}

static void fewer_ops_run(const struct nb_property_call *call) {
    const int64_t rows = nb_param_whole(call, "rows"), cols = nb_param_whole(call, "cols");
    for (int i = 0; i < nb_param_count(call, "of"); i++) {
        const char *kernel = nb_param_text_at(call, "of", i), *other = nb_param_text_at(call, "against", i);
        struct work_of_call a = {.style = ""}, b = {.style = ""};
        if (count(kernel, rows, cols, &a) != 0 || count(other, rows, cols, &b) != 0) {
            nb_findings_add_missing(call->out, "instructions_cut", "%s", a.reason[0] ? a.reason : b.reason);
            continue;
        }
        if (!a.reason[0]) snprintf(a.reason, sizeof a.reason, "%s", b.reason);
        add(call, "instructions_cut", a.instructions, b.instructions, kernel, &a);
        add(call, "sweeps_cut", a.sweeps, b.sweeps, kernel, &a);
        add(call, "phases_cut", a.phases, b.phases, kernel, &a);
        add(call, "parameters_cut", a.parameters, b.parameters, kernel, &a);
    }
}

const struct nb_property nb_property_fewer_ops = {
    .name = "fewer_ops",
    .summary = "instructions, sweeps and phases of two kernels",
    .params = {{"of", "[\"rmsnorm_composed\", \"rmsnorm_twopass\"]", "kernels, each with ...", false},
               {"against", "[\"layernorm_composed\", \"layernorm_twopass\"]", "... the one that it is compared with",
                false},
               {"rows", "2", "", true},
               {"cols", "256", "", true}},
    .run = fewer_ops_run,
};
