// SPDX-License-Identifier: Apache-2.0
/* What automatic differentiation keeps of a norm for the backward pass, by PyTorch's rules for each operation (derivatives.yaml): a product
 * or quotient keeps both of its factors, a square and a variance their argument, a root its result; sums, means and casts keep nothing;
 * a fused norm keeps its input and its statistics. A tensor that is kept twice counts once, and parameters do not count. A model, not a
 * measurement of a framework. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/claims/property.h"

/* "d=sub(x,m)": what is computed, one tensor a letter; x is the input, w and b are parameters. LayerNorm first, then RMSNorm of the style. */
static const struct implementation {
    const char *norm, *style, *program;
} implementations[] = {
    {"layernorm", "op by op", "m=mean(x) q=var(x) v=add(q,e) s=sqrt(v) d=sub(x,m) n=div(d,s) g=mul(n,w) y=add(g,b)"},
    {"rmsnorm", "op by op", "s=pow(x,2) m=mean(s) v=add(m,e) r=rsqrt(v) n=mul(x,r) y=mul(n,w)"},
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

static bool is(const char *op, const char *const *among) {
    for (int i = 0; among[i]; i++)
        if (strcmp(op, among[i]) == 0) return true;
    return false;
}

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

const struct nb_property nb_property_kept = {
    .name = "kept",
    .summary = "what automatic differentiation keeps of a norm, by implementation",
    .params = {{"dtype", "[\"f32\", \"bf16\"]", "of the activations", false},
               {"rows", "4096", "", true},
               {"cols", "512", "", true},
               {"norms", "0", "of a model, each of one row a token", false},
               {"besides", "0", "numbers that a token keeps elsewhere in it", false},
               {"fixed", "0", "bytes of a step whatever its batch: parameters, gradients, moments", false},
               {"total", "0", "bytes of a step with LayerNorm; 0: no step is asked for", false}},
    .each = {{"dtype", "dtype"}},
    .run = kept_run,
};
