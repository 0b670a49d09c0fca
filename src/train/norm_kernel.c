// SPDX-License-Identifier: Apache-2.0
/* Found by name and style, the widest first. */
#include "src/train/norm_kernel.h"

#include <stdio.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/cpu.h"
#include "src/core/log.h"

static const char *const ops[NB_N_NORM_KINDS] = {[NB_NORM_LAYERNORM] = "layernorm",
                                                 [NB_NORM_RMSNORM] = "rmsnorm",
                                                 [NB_NORM_PRMSNORM] = "prmsnorm",
                                                 [NB_NORM_BATCHNORM] = "batchnorm"};
enum { N_WAYS = 2 };
/* In the order of preference. A style takes no kernel of another style in its place: what it costs is what is asked. */
static const char *const ways[NB_N_STYLES][NB_N_PASSES][N_WAYS] = {
    [NB_FUSED] = {{"fast", "twopass"}, {"backward_fast", "backward_plain"}},
    [NB_COMPOSED] = {{"composed"}, {"backward_composed"}}};

bool nb_norm_is_kernel(enum nb_norm_kind kind) { return ops[kind] != NULL; }

static const struct nb_entry *widest(const char *kernel) {
    const struct nb_entry *best = NULL;
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *e = nb_registry_at(i);
        if (strcmp(e->kernel_id, kernel) != 0 || e->kernel->dtype != NB_F32) continue;
        if (nb_cpu_refuses(e->kernel->cpu_features, e->kernel->width)) continue;
        if (!best || e->kernel->width > best->kernel->width) best = e;
    }
    return best;
}

const struct nb_entry *nb_norm_kernel_find(const struct nb_norm_choice *choice, enum nb_pass pass,
                                           const struct nb_call *call) {
    for (int i = 0; i < N_WAYS; i++) {
        const char *way = ways[choice->style][pass][i];
        char name[64];
        if (!way) break;
        snprintf(name, sizeof name, "%s_%s", ops[choice->kind], way);
        const struct nb_entry *e = widest(name);
        if (e && !nb_kernel_refuses(e->kernel, &call->formula) && !nb_kernel_applicable(e->kernel, call)) return e;
    }
    nb_error("no %s kernel %s_%s for rows of %lld in f32 runs here: `normbench list kernels` shows what there is",
             nb_style_name(choice->style), ops[choice->kind], ways[choice->style][pass][0], (long long)call->cols);
    return NULL;
}
