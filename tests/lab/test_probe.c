// SPDX-License-Identifier: Apache-2.0
/* Probes are never wrong about our own kernels, whose insides are known, and find out enough of them; about black boxes made for the
 * purpose they say what each was made to do. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case_key.h"
#include "src/core/cpu.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/names.h"
#include "src/core/registry.h"
#include "src/lab/probe/probe.h"
#include "tests/support/cases.h"
#include "tests/support/files.h"

/* ---- what our kernels do inside, from their sources (kernels/rows/row.h, reduce.h, composed_norm.h ...) ---- */

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

/* Appends a line for every answer that is wrong, and for every one that should be known and is not. */
static void add_complaints(const struct nb_case *c, const struct nb_kernel *kernel, const cJSON *result,
                           struct nb_strbuf *out) {
    const struct facts f = facts_of(c, kernel);
    const cJSON *answer;
    cJSON_ArrayForEach(answer, cJSON_GetObjectItemCaseSensitive(result, "answers")) {
        const char *question = nb_json_get_text(answer, "question"), *value = nb_json_get_text(answer, "value");
        const bool missing = !value && must_be_known(&f, question);
        if (!missing && (!value || is_right(&f, question, value))) continue;
        nb_strbuf_addf(out, "%s root %s eps %s cast %u affine %u offset %u param %u: %s %s (%s)\n", c->variant,
                       nb_root_names[c->formula.root], nb_eps_place_names[c->formula.eps_place], c->formula.cast,
                       c->formula.affine, c->formula.weight_offset, c->formula.param, question,
                       value ? value : "is not known", nb_json_get_text(answer, "evidence"));
    }
}

/* ---- our own kernels ---- */

struct kernel_name {
    char text[NB_VARIANT_MAX];
};

/* Null: undetermined or not asked. */
static const char *value_of_answer(const cJSON *result, const char *question) {
    const cJSON *answer;
    cJSON_ArrayForEach(answer, cJSON_GetObjectItemCaseSensitive(result, "answers")) {
        const char *name = nb_json_get_text(answer, "question");
        if (name && strcmp(name, question) == 0) return nb_json_get_text(answer, "value");
    }
    return NULL;
}

/* A kernel meets one of them. */
static const struct nb_formula formulas[] = {
    {.root = NB_ROOT_MUL_RECIP, .affine = NB_AFFINE_GAMMA_BETA},
    {.root = NB_ROOT_DIV_SQRT, .eps_place = NB_EPS_OUTSIDE, .cast = NB_CAST_BEFORE, .affine = NB_AFFINE_GAMMA},
    {.root = NB_ROOT_RSQRT_NR, .weight_offset = 1, .affine = NB_AFFINE_GAMMA, .param = NB_PARAM_X, .round_sum = 1},
    {.root = NB_ROOT_DIV_SQRT, .affine = NB_AFFINE_NONE, .round_sum = 1},
    {.root = NB_ROOT_RSQRT_RAW, .cast = NB_CAST_BEFORE, .weight_offset = 1, .affine = NB_AFFINE_GAMMA_BETA},
    {.root = NB_ROOT_MUL_RECIP, .eps_place = NB_EPS_CLAMP, .affine = NB_AFFINE_GAMMA_BETA, .param = NB_PARAM_X},
    {.root = NB_ROOT_MUL_RECIP, .cast = NB_CAST_BEFORE, .weight_offset = 1, .affine = NB_AFFINE_GAMMA},
};
enum { N_FORMULAS = sizeof formulas / sizeof formulas[0] };

static int ask(const struct nb_entry *entry, struct nb_formula formula, struct nb_strbuf *complaints) {
    struct nb_case c;
    if (probe_case(&c, entry, formula) != 0) return 0;
    cJSON *result = kept_json(nb_probe_kernel(&c, entry, NULL, NULL));
    cr_expect_str_eq(nb_json_get_text(result, "status"), "ok", "%s: %s", entry->id, nb_json_get_text(result, "reason"));
    cr_expect(strlen(nb_json_get_text(result, "summary")) > 10, "%s: no summary", entry->id);
    add_complaints(&c, entry->kernel, result, complaints);
    return 1;
}

/* The widest variant that runs here, of this kernel and dtype; or the first, which is the narrowest. */
static const struct nb_entry *one_of(const char *kernel, uint32_t dtype, bool widest) {
    const struct nb_entry *found = NULL;
    for (size_t i = 0; i < nb_registry_size() && (widest || !found); i++) {
        const struct nb_entry *entry = nb_registry_at(i);
        if (strcmp(entry->kernel_id, kernel) != 0 || entry->kernel->dtype != dtype) continue;
        if (!nb_cpu_refuses(entry->kernel->cpu_features, entry->kernel->width)) found = entry;
    }
    return found;
}

ParameterizedTestParameters(probe, is_never_wrong_about_our_kernels) {
    static size_t n;
    static struct kernel_name *names;
    if (nb_registry_load_builtin() != 0) return cr_make_param_array(struct kernel_name, NULL, 0);
    names = cr_malloc(nb_registry_size() * sizeof *names); /* memory of Criterion's own */
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *entry = nb_registry_at(i);
        struct nb_case c;
        nb_case_init(&c);
        nb_case_set_entry(&c, entry);
        if (nb_probe_refuses(&c) || (n > 0 && strcmp(names[n - 1].text, entry->kernel_id) == 0)) continue;
        snprintf(names[n++].text, sizeof names[0].text, "%s", entry->kernel_id);
    }
    nb_registry_release();
    return cr_make_param_array(struct kernel_name, names, n);
}
ParameterizedTest(struct kernel_name *name, probe, is_never_wrong_about_our_kernels) {
    struct nb_strbuf complaints = {0};
    int n_asked = 0;
    size_t turn = 0;
    for (const char *p = name->text; *p; p++) turn += (size_t)*p; /* another start for each kernel */
    cr_assert_eq(nb_registry_load_builtin(), 0);
    static const uint32_t dtypes[] = {NB_F32, NB_F16, NB_F32, NB_BF16};
    for (size_t d = 0; d < 4 && n_asked == 0; d++) { /* of the first dtype that it has, from another one for each */
        const struct nb_entry *entry = one_of(name->text, dtypes[(turn + d) % 4], turn / 2 % 2);
        if (entry) n_asked = ask(entry, formulas[turn % N_FORMULAS], &complaints);
    }
    cr_expect(n_asked > 0, "%s was not asked", name->text);
    cr_expect(!complaints.len, "%s", complaints.text);
    nb_strbuf_release(&complaints);
}

/* ---- black boxes ---- */

/* value null: it must be undetermined. */
struct expected {
    const char *kernel, *question, *value;
};
static const struct expected expected[] = {
    {"clamp_inside", "accumulator", NULL},
    {"eps_on_sum", "accumulator", "f32"},
    {"layernorm_welford", "accumulator", NULL},
    {"f64", "accumulator", "f64 or compensated"},
    {"f64", "eps_dtype", NULL},
    {"f64", "root", "correctly_rounded"},
    {"clamp_inside", "eps_place", "clamp inside: 1/sqrt(max(v, eps))"},
    {"clamp_inside", "nan", "hidden from the others"},
    {"eps_on_sum", "eps_place", "inside"},
    {"eps_on_sum", "eps_added_to", "the sum"},
    {"no_eps", "eps_place", "nowhere: it has no effect"},
    {"quake", "root", "quake"},
    {"quake", "root_instruction", "quake2 (the same, 2 steps)"},
    {"random_last_bit", "root", NULL},
    {"random_last_bit", "rounding", NULL},
    {"hides_nan", "nan", "the others are 0"},
    {"truncate", "rounding", "towards zero"},
    {"layernorm_f64", "variance", NULL},
    {"layernorm_f64", "accumulator", NULL},
    {"layernorm_welford", "variance", "welford"},
#if defined(__x86_64__) || defined(__aarch64__)
    {"flush", "subnormal_inputs", "flushed"},
    {"flush", "subnormal_outputs", "flushed"},
    {"flush", "subnormal_squares", "flushed"},
#endif
};
enum { N_EXPECTED = sizeof expected / sizeof expected[0] };

static void compare_box(const struct nb_entry *entry) {
    struct nb_case c;
    int n = 0;
    cr_assert_eq(probe_case(&c, entry, (struct nb_formula){.root = NB_ROOT_MUL_RECIP}), 0, "%s", entry->id);
    cJSON *result = kept_json(nb_probe_kernel(&c, entry, NULL, NULL));
    for (int i = 0; i < N_EXPECTED; i++) {
        const struct expected *e = &expected[i];
        if (strcmp(e->kernel, entry->kernel->name) != 0) continue;
        const char *value = value_of_answer(result, e->question);
        const bool right = e->value ? value && strcmp(value, e->value) == 0 : !value;
        cr_expect(right, "%s: %s is %s, should be %s", e->kernel, e->question, value ? value : "undetermined",
                  e->value ? e->value : "undetermined");
        n++;
    }
#if defined(__x86_64__) || defined(__aarch64__)
    cr_expect(n > 0, "nothing is expected of %s", entry->id);
#endif
}

Test(probe, tells_what_black_boxes_do) {
    cr_assert_eq(nb_registry_load_builtin(), 0);
    cr_assert_eq(nb_registry_load(plugin_path("boxes")), 0);
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *entry = nb_registry_at(i);
        if (entry->plugin) compare_box(entry);
    }
}

Test(probe, says_why_a_kernel_that_returns_an_error_was_not_asked) {
    struct nb_case c;
    cr_assert_eq(nb_registry_load(plugin_path("error")), 0);
    const struct nb_entry *entry = nb_registry_at(nb_registry_size() - 1);
    cr_assert_eq(probe_case(&c, entry, (struct nb_formula){.root = NB_ROOT_MUL_RECIP}), 0);
    cJSON *result = kept_json(nb_probe_kernel(&c, entry, NULL, NULL));
    cr_expect_str_eq(nb_json_get_text(result, "status"), "failed");
    cr_expect_str_eq(nb_json_get_text(result, "reason"), "run() returned 7");
}

Test(probe, refuses_what_is_no_row_norm_or_goes_backward) {
    struct nb_case c;
    nb_case_init(&c);
    c.op = NB_OP_BATCHNORM;
    cr_expect_not_null(nb_probe_refuses(&c));
    c.op = NB_OP_DYT;
    cr_expect_not_null(nb_probe_refuses(&c));
    c.op = NB_OP_RMSNORM;
    cr_expect_null(nb_probe_refuses(&c));
    c.pass = NB_BACKWARD;
    cr_expect_not_null(nb_probe_refuses(&c));
}
