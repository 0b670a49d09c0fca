// SPDX-License-Identifier: Apache-2.0
/* What a norm does and keeps, counted and not timed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/property.h"
#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/registry.h"
#include "src/measure/counters.h"
#include "src/measure/faults.h"

/* fewer_ops. What two kernels do, counted and not timed: instructions of one call, exactly, by single stepping, the kernel's own alone; sweeps over
 * whole tensors and phases as they declare them; vectors of parameters that the result depends on. */

static const int64_t most_instructions = 200000;

static int64_t count_instructions(const struct nb_trial *t, char *reason, size_t n) {
    const struct nb_fp_state state = nb_fp_state();
    const int64_t counted = nb_single_step_kernel(t->entry->kernel, &t->call, most_instructions, reason, n);
    nb_fp_state_set(state);
    return counted;
}

struct work_of_call {
    double instructions, sweeps, phases, parameters;
    char reason[300]; /* why there are no instructions */
    const char *style;
};

/* Of gamma and beta those that change the result when they change. */
static int parameters_used(struct nb_trial *t) {
    static const enum nb_tensor_id ids[] = {NB_T_GAMMA_F32, NB_T_BETA_F32};
    const void *y = t->buffers.tensors[NB_T_Y].data;
    const size_t bytes = (size_t)(t->in.rows * t->in.cols) * sizeof(float);
    char *before freed = nb_alloc(bytes, 1);
    int used = 0;
    for (int i = 0; i < 2; i++) {
        float *parameter = t->buffers.tensors[ids[i]].data; /* null: the op has none */
        nb_trial_run(t);
        memcpy(before, y, bytes);
        for (int64_t j = 0; parameter && j < t->in.n_params; j++) parameter[j] += 1;
        nb_trial_run(t);
        used += memcmp(before, y, bytes) != 0;
    }
    return used;
}

/* With the parameters that the op usually has: gamma, and of LayerNorm beta. */
static int count(const char *kernel, int64_t rows, int64_t cols, struct work_of_call *w) {
    double *x freed = nb_alloc((unsigned long long)(rows * cols + 2 * cols), sizeof *x), *gamma = x + rows * cols;
    for (int64_t i = 0; i < rows * cols + 2 * cols; i++) x[i] = (double)(i % 7) - 2.5;
    struct nb_norm n = {.kernel = kernel, .eps = 1e-5, .rows = rows, .cols = cols, .x = x, .gamma = gamma};
    const struct nb_entry *entry = nb_registry_widest(kernel, NB_F32);
    if (entry && (entry->kernel->op == NB_OP_LAYERNORM || entry->kernel->op == NB_OP_BATCHNORM)) n.beta = gamma + cols;
    struct nb_trial t released_by(nb_trial_release);
    if (nb_norm_prepare(&t, &n, w->reason, sizeof w->reason) != 0) return -1;
    const int64_t counted = count_instructions(&t, w->reason, sizeof w->reason);
    w->instructions = counted < 0 ? (double)NAN : (double)counted;
    w->sweeps = (double)entry->kernel->loads + (double)entry->kernel->stores;
    w->phases = nb_kernel_n_phases(entry->kernel, &t.call);
    w->parameters = parameters_used(&t);
    w->style = nb_style_names[entry->kernel->style];
    return 0;
}

static void add(const struct nb_property_call *call, const char *name, double of, double against, const char *kernel,
                const struct work_of_call *w) {
    struct nb_finding *f = nb_property_add_or(call, name, "share", 1 - of / against, w->reason);
    f->evidence = nb_textf("%.10g against %.10g", of, against);
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

/* kept. What automatic differentiation keeps of a norm for the backward pass, by PyTorch's rules for each operation (derivatives.yaml): a product
 * or quotient keeps both of its factors, a square and a variance their argument, a root its result; sums, means and casts keep nothing;
 * a fused norm keeps its input and its statistics. A tensor that is kept twice counts once, and parameters do not count. A model, not a
 * measurement of a framework. */

/* "d=sub(x,m)": what is computed, one tensor a letter; x is the input, w and b are parameters. LayerNorm first, then RMSNorm of the style. */
static const struct implementation {
    const char *norm, *style, *program;
} implementations[] = {
    {"layernorm", "unfused", "m=mean(x) q=var(x) v=add(q,e) s=sqrt(v) d=sub(x,m) n=div(d,s) g=mul(n,w) y=add(g,b)"},
    {"rmsnorm", "unfused", "s=pow(x,2) m=mean(s) v=add(m,e) r=rsqrt(v) n=mul(x,r) y=mul(n,w)"},
    {"layernorm", "fused", "y=layernorm(x,w)"},
    {"rmsnorm", "fused", "y=rmsnorm(x,w)"},
    /* Llama's and MiniMind's class: f32 inside, rounded before the weight; beside it PyTorch's LayerNorm. */
    {"layernorm", "casting class", "y=layernorm(x,w)"},
    {"rmsnorm", "casting class",
     "f=float(x,x) s=pow(f,2) m=mean(s) v=add(m,e) r=rsqrt(v) n=mul(f,r) h=cast(n,x) y=mul(h,w)"},
};
enum { N_IMPLEMENTATIONS = sizeof implementations / sizeof implementations[0] };

struct tensor {
    double bytes; /* 0: a parameter or a constant */
    bool row;     /* a number for each row */
    bool kept;
};

static bool is(const char *op, const char *const *among) { return nb_name_find(among, op) >= 0; }

/* Statistics of fused norms, which have no letter of their own. */
static double statistics(const char *op, double rows) {
    return strcmp(op, "layernorm") == 0 ? 8 * rows : strcmp(op, "rmsnorm") == 0 ? 4 * rows : 0;
}

static struct tensor result_of(const char *op, const struct tensor *a, double rows, double cols, double x_bytes) {
    static const char *const to_row[] = {"mean", "var", NULL};
    struct tensor out = {.bytes = a->bytes, .row = a->row || is(op, to_row)};
    if (out.row) out.bytes = 4 * rows;
    if (strcmp(op, "float") == 0) out.bytes = 4 * rows * cols;
    if (strcmp(op, "cast") == 0) out.bytes = x_bytes * rows * cols;
    return out;
}

static double kept_by(const char *program, double rows, double cols, double x_bytes) {
    static const char *const both[] = {"mul", "div", NULL},
                             *const first[] = {"pow", "var", "layernorm", "rmsnorm", NULL},
                             *const result[] = {"sqrt", "rsqrt", NULL};
    struct tensor tensors[128] = {['x'] = {.bytes = x_bytes * rows * cols}};
    char to, op[16], a, b;
    int read;
    double sum = 0;
    for (const char *p = program; sscanf(p, " %c=%15[a-z](%c%n", &to, op, &a, &read) == 3; p = strchr(p, ')') + 1) {
        b = p[read] == ',' ? p[read + 1] : a;
        tensors[(int)to] = result_of(op, &tensors[(int)a], rows, cols, x_bytes);
        tensors[(int)a].kept |= is(op, both) || is(op, first);
        tensors[(int)b].kept |= is(op, both);
        tensors[(int)to].kept |= is(op, result);
        sum += statistics(op, rows);
    }
    for (int i = 0; i < 128; i++) sum += tensors[i].kept ? tensors[i].bytes : 0;
    return sum;
}

/* What a step of a model saves that takes "total" bytes with LayerNorm: "fixed" of them whatever its batch, the rest so many tokens as fit
 * in, each of which keeps "besides" numbers elsewhere and a row of each of the norms. */
static double step_cut(const struct nb_property_call *call, double bytes, const double kept[2]) {
    const double norms = nb_param_number(call, "norms"), rows = nb_param_number(call, "rows");
    const double total = nb_param_number(call, "total"), tokens = total - nb_param_number(call, "fixed");
    const double token = nb_param_number(call, "besides") * bytes + norms * kept[0] / rows;
    return token > 0 ? norms * (kept[0] - kept[1]) / rows / token * (tokens / total) : (double)NAN;
}

static void kept_run(const struct nb_property_call *call) {
    const double rows = nb_param_number(call, "rows"), cols = nb_param_number(call, "cols");
    const double bytes = strcmp(nb_param_text(call, "dtype"), "f32") == 0 ? 4 : 2;
    double pair[2] = {0}; /* of LayerNorm, and of the RMSNorm behind it */
    for (int i = 0; i < N_IMPLEMENTATIONS; i++) {
        const struct implementation *it = &implementations[i];
        const double kept = kept_by(it->program, rows, cols, bytes);
        struct nb_finding *f = nb_property_add(call, "kept_bytes_per_element", "", kept / (rows * cols));
        nb_finding_tag(f, "norm", it->norm);
        nb_finding_tag(f, "style", it->style);
        pair[i % 2] = kept;
        if (i % 2 == 0) continue;
        nb_finding_tag(nb_property_add(call, "kept_cut", "share", 1 - kept / pair[0]), "style", it->style);
        if (nb_param_number(call, "total") > 0)
            nb_finding_tag(nb_property_add_or(call, "memory_cut", "share", step_cut(call, bytes, pair),
                                              "a token of the model keeps nothing"),
                           "style", it->style);
    }
}

const struct nb_property nb_property_work[] = {
    {"fewer_ops",
     "instructions, sweeps and phases of two kernels",
     fewer_ops_run,
     {{"of", "[\"rmsnorm_composed\", \"rmsnorm_twopass\"]", "kernels, each with ...", false, NULL},
      {"against", "[\"layernorm_composed\", \"layernorm_twopass\"]", "... the one that it is compared with", false,
       NULL},
      {"rows", "2", "", true, NULL},
      {"cols", "256", "", true, NULL}}},
    {"kept",
     "what automatic differentiation keeps of a norm, by implementation",
     kept_run,
     {{"dtype", "[\"f32\", \"bf16\"]", "of the activations", false, "dtype"},
      {"rows", "4096", "", true, NULL},
      {"cols", "512", "", true, NULL},
      {"norms", "0", "of a model, each of one row a token", false, NULL},
      {"besides", "0", "numbers that a token keeps elsewhere in it", false, NULL},
      {"fixed", "0", "bytes of a step whatever its batch: parameters, gradients, moments", false, NULL},
      {"total", "0", "bytes of a step with LayerNorm; 0: no step is asked for", false, NULL}}},
    {.name = NULL}};
