// SPDX-License-Identifier: Apache-2.0
#include "src/core/names.h"
#include "src/core/log.h"

#include <string.h>

#include "src/core/text.h"

const char *const nb_op_names[] = {"rmsnorm", "prmsnorm",    "layernorm",     "batchnorm", "l2norm",
                                   "dyt",     "add_rmsnorm", "add_layernorm", "copy",      NULL};
const char *const nb_pass_names[] = {"forward", "backward", NULL};
const char *const nb_dtype_names[] = {"f32", "f16", "bf16", NULL};
const char *const nb_backend_names[] = {"cpu", "cuda", "cuda-emulated", NULL};
const char *const nb_width_names[] = {"scalar", "128", "256", "256x", "512", "native", NULL};
const char *const nb_style_names[] = {"fused", "composed", NULL};
const char *const nb_stats_names[] = {"register", "keepdim", "expanded", NULL};
const char *const nb_stats_dtype_names[] = {"f32", "x", NULL};
const char *const nb_variance_names[] = {"none", "twopass", "corrected", "welford", "onepass", "shifted", NULL};
const char *const nb_root_names[] = {"div_sqrt", "mul_recip", "rsqrt_nr", "rsqrt_raw", NULL};
const char *const nb_eps_place_names[] = {"inside", "outside", "clamp", NULL};
const char *const nb_cast_names[] = {"after", "before", NULL};
const char *const nb_affine_names[] = {"none", "gamma", "gamma_beta", NULL};
const char *const nb_param_names[] = {"f32", "x", NULL};
const char *const nb_mode_names[] = {"training", "inference", NULL};
const char *const nb_layout_names[] = {"rows", "nchw", "nhwc", NULL};
const char *const nb_cache_names[] = {"hot", "cold", NULL};
const char *const nb_switch_names[] = {"0", "1", NULL};

/* An alias means its name in every list that has the name. */
static const struct {
    const char *alias, *name;
} aliases[] = {
    {"rms", "rmsnorm"},
    {"rms_norm", "rmsnorm"},
    {"prms", "prmsnorm"},
    {"ln", "layernorm"},
    {"bn", "batchnorm"},
    {"layer_norm", "layernorm"},
    {"batch_norm", "batchnorm"},
    {"l2", "l2norm"},
    {"fwd", "forward"},
    {"bwd", "backward"},
    {"fp32", "f32"},
    {"float32", "f32"},
    {"float", "f32"},
    {"single", "f32"},
    {"fp16", "f16"},
    {"float16", "f16"},
    {"half", "f16"},
    {"bfloat16", "bf16"},
    {"v128", "128"},
    {"v256", "256"},
    {"v256x", "256x"},
    {"v512", "512"},
    {"train", "training"},
    {"eval", "inference"},
    {"eager", "composed"},
    {"false", "0"},
    {"true", "1"},
};

size_t nb_names_count(const char *const *names) {
    size_t n = 0;
    while (names[n]) n++;
    return n;
}

static int index_of(const char *const *names, const char *text) {
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], text) == 0) return i;
    return -1;
}

int nb_name_find(const char *const *names, const char *text) {
    int found = index_of(names, text);
    for (size_t i = 0; found < 0 && i < sizeof aliases / sizeof aliases[0]; i++)
        if (strcmp(aliases[i].alias, text) == 0) found = index_of(names, aliases[i].name);
    return found;
}

int nb_name_refuse(const char *const *names, char *reason, size_t n) {
    struct nb_strbuf out released_by(nb_strbuf_release) = {0};
    nb_strbuf_add(&out, "is not one of");
    for (size_t i = 0; names[i]; i++) nb_strbuf_addf(&out, "%s %s", i ? "," : "", names[i]);
    return nb_reason(reason, n, "%s", out.text);
}
