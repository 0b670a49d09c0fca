// SPDX-License-Identifier: Apache-2.0
/* The truth about our kernels, and the least that probes must find out. */
#include "tests/support/probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case_key.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/kernel_fields.h"
#include "src/core/names.h"
#include "src/core/registry.h"
#include "src/lab/probe/probe.h"
#include "src/lab/probe/probe_state.h"

static uint32_t implemented(uint32_t mask, uint32_t value) {
    if (mask == 0) return 0;
    return mask & 1u << value ? value : (uint32_t)__builtin_ctz(mask);
}

int probe_case(struct nb_case *c, const struct nb_entry *entry, struct nb_formula f) {
    const struct nb_formulas *can = &entry->kernel->formulas;
    struct nb_call call;
    nb_case_init(c);
    snprintf(c->data, sizeof c->data, "normal");
    c->shape = (struct nb_shape){.layout = NB_ROWS, .rows = 1, .cols = NB_PROBE_COLS};
    snprintf(c->shape.text, sizeof c->shape.text, "1x%d", NB_PROBE_COLS);
    c->formula = (struct nb_formula){.struct_size = sizeof f,
                                     .root = implemented(can->roots, f.root),
                                     .eps_place = implemented(can->eps_places, f.eps_place),
                                     .cast = implemented(can->casts, f.cast),
                                     .weight_offset = implemented(can->weight_offsets, f.weight_offset),
                                     .affine = implemented(can->affines, f.affine),
                                     .param = implemented(can->params, f.param),
                                     .round_sum = implemented(can->round_sums, f.round_sum)};
    nb_case_set_entry(c, entry);
    nb_case_call(c, &call);
    if (nb_probe_refuses(c) || nb_case_conflict(c) || nb_kernel_refuses(entry->kernel, &c->formula)) return -1;
    return nb_kernel_applicable(entry->kernel, &call) ? -1 : 0;
}

/* ---- facts ---- */

struct facts {
    const struct nb_case *c;
    const struct nb_kernel *k;
    bool narrow, centres, composed, coarse;
    bool plain; /* the sum of squares is a plain one in f32 */
};

static struct facts facts_of(const struct nb_case *c, const struct nb_kernel *k) {
    struct facts f = {.c = c,
                      .k = k,
                      .narrow = k->dtype != NB_F32,
                      .centres = k->op == NB_OP_LAYERNORM || k->op == NB_OP_ADD_LAYERNORM,
                      .composed = k->style == NB_COMPOSED,
                      .coarse = k->stats_dtype == NB_STATS_X};
    f.plain = k->variance != NB_VAR_SHIFTED && k->variance != NB_VAR_WELFORD && !f.coarse;
    return f;
}

/* Null: no determined answer is right. */
static const char *truth_of_eps(const struct facts *f, const char *question) {
    const bool lowp = strcmp(f->k->name, "rmsnorm_lowp") == 0;
    if (strcmp(question, "eps_place") == 0) return nb_eps_place_names[f->c->formula.eps_place];
    if (strcmp(question, "eps_added_to") == 0) return f->k->op == NB_OP_L2NORM ? "the sum" : "the mean";
    if (strcmp(question, "eps_dtype") == 0) return lowp ? nb_formats[f->k->dtype].name : "f32";
    if (strcmp(question, "statistics_dtype") == 0) return f->coarse ? nb_formats[f->k->dtype].name : "f32 or wider";
    return NULL;
}

static const char *truth_of_sums(const struct facts *f, const char *question) {
    if (strcmp(question, "variance") == 0) return f->centres ? nb_variance_names[f->k->variance] : NULL;
    if (strcmp(question, "accumulator") != 0) return NULL;
    if (!f->coarse) return f->plain ? "f32" : NULL;
    return f->composed ? "f32 or wider" : nb_formats[f->k->dtype].name;
}

static const char *truth_of_affine(const struct facts *f, const char *question) {
    const struct nb_formula *formula = &f->c->formula;
    const bool before = f->narrow && (f->coarse || formula->cast == NB_CAST_BEFORE);
    if (strcmp(question, "weight_offset") == 0)
        return formula->affine == NB_AFFINE_NONE ? NULL : formula->weight_offset ? "1" : "0";
    if (strcmp(question, "cast") == 0) return f->narrow ? (before ? "before" : "after") : NULL;
    if (strcmp(question, "offset_dtype") == 0)
        return !f->narrow || !formula->weight_offset ? NULL : before ? nb_formats[f->k->dtype].name : "f32 or wider";
    if (strcmp(question, "affine_fma") != 0 || formula->affine != NB_AFFINE_GAMMA_BETA) return NULL;
    if (f->narrow && formula->param == NB_PARAM_X) return NULL; /* it makes no difference */
    if (before) return "rounded to x's dtype, then added";
    return f->composed ? "rounded, then added" : "fma";
}

static const char *truth_of_behaviour(const struct facts *f, const char *question) {
    if (strcmp(question, "rounding") == 0) return "nearest";
    if (strcmp(question, "nan") == 0) return "the whole row is NaN";
    if (strcmp(question, "inf") == 0)
        return f->centres || f->c->formula.root == NB_ROOT_RSQRT_NR ? "the whole row is NaN"
                                                                    : "the others are 0, itself NaN";
    if (strncmp(question, "subnormal_", 10) == 0) return "kept";
    return NULL;
}

static const char *truth_of_root(const struct facts *f, const char *question) {
    static const char *const roots[] = {[NB_ROOT_DIV_SQRT] = "div_sqrt",
                                        [NB_ROOT_MUL_RECIP] = "mul_recip",
                                        [NB_ROOT_RSQRT_NR] = "rsqrt_nr",
                                        [NB_ROOT_RSQRT_RAW] = "rsqrt_raw"};
    const uint32_t root = f->c->formula.root;
    const bool wide = f->k->width == NB_512 || f->k->width == NB_256X;
    if (strcmp(question, "root") == 0) return roots[root];
    if (strcmp(question, "root_instruction") != 0) return NULL;
    if (root == NB_ROOT_DIV_SQRT) return "div_sqrt (x / sqrtf(v))";
    if (root == NB_ROOT_MUL_RECIP) return "recip_sqrt (1 / sqrtf(x))";
    if (root == NB_ROOT_RSQRT_RAW) return wide ? "rsqrt14 (vrsqrt14ps)" : "rsqrtps (rsqrtps)";
    return wide ? "rsqrt14_newton (vrsqrt14ps, r + r/2 (1 - x r r) by FMA)"
                : "rsqrtps_newton (rsqrtps, r + r/2 (1 - x r r) by FMA)";
}

static bool is_right(const struct facts *f, const char *question, const char *value) {
    if (strcmp(question, "eps_effective") == 0) return fabs(atof(value) / f->c->eps - 1) < 0.02;
    if (strcmp(question, "accumulator") == 0 && strcmp(value, "f32 or wider") == 0 && !f->coarse) return true;
    if (strcmp(question, "statistics_dtype") == 0 && strncmp(value, "finer than ", 11) == 0) return !f->coarse;
    const char *truth = truth_of_eps(f, question);
    if (!truth) truth = truth_of_sums(f, question);
    if (!truth) truth = truth_of_affine(f, question);
    if (!truth) truth = truth_of_root(f, question);
    if (!truth) truth = truth_of_behaviour(f, question);
    return truth && strcmp(truth, value) == 0;
}

/* What is answered of every kernel. */
static bool must_be_known(const struct facts *f, const char *question) {
    static const char *const always[] = {"eps_place", "nan", "inf", "subnormal_inputs"};
    const bool weighted = f->c->formula.affine != NB_AFFINE_NONE;
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
        if (strcmp(always[i], question) == 0) return true;
    if (strcmp(question, "weight_offset") == 0) return weighted;
    return strcmp(question, "cast") == 0 && weighted && f->narrow;
}

int probe_complaints(const struct nb_case *c, const struct nb_kernel *kernel, const cJSON *result,
                     struct nb_strbuf *out) {
    const struct facts f = facts_of(c, kernel);
    const cJSON *answer;
    int n = 0;
    cJSON_ArrayForEach(answer, cJSON_GetObjectItemCaseSensitive(result, "answers")) {
        const char *question = nb_json_get_text(answer, "question"), *value = nb_json_get_text(answer, "value");
        const bool missing = !value && must_be_known(&f, question);
        if (!missing && (!value || is_right(&f, question, value))) continue;
        nb_strbuf_addf(out, "%s root %s eps %s cast %u affine %u offset %u param %u: %s %s (%s)\n", c->variant,
                       nb_root_names[c->formula.root], nb_eps_place_names[c->formula.eps_place], c->formula.cast,
                       c->formula.affine, c->formula.weight_offset, c->formula.param, question,
                       value ? value : "is not known", nb_json_get_text(answer, "evidence"));
        n++;
    }
    return n;
}
