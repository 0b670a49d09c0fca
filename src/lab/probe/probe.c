// SPDX-License-Identifier: Apache-2.0
/* The questions in order, the answers, and the line that sums them up. */
#include "src/lab/probe/probe.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/core/json.h"
#include "src/lab/probe/probe_internal.h"

void nb_probe_init(struct nb_probe *p, const struct nb_case *c, const struct nb_entry *entry) {
    *p = (struct nb_probe){.c = *c,
                           .entry = entry,
                           .format = &nb_formats[c->dtype],
                           .centres = nb_op_centres(c->op),
                           .of_sum = c->op == NB_OP_L2NORM,
                           .has_gamma = c->formula.affine != NB_AFFINE_NONE,
                           .has_beta = c->formula.affine == NB_AFFINE_GAMMA_BETA,
                           .cols = c->shape.cols,
                           .eps_place = -1,
                           .variance = -1,
                           .answers = cJSON_CreateArray()};
}

void nb_probe_say(struct nb_probe *p, const char *question, const char *value, const char *confidence,
                  const char *evidence, ...) {
    char text[600];
    va_list arguments;
    va_start(arguments, evidence);
    vsnprintf(text, sizeof text, evidence, arguments);
    va_end(arguments);
    cJSON *answer = cJSON_CreateObject();
    nb_json_text(answer, "question", question);
    nb_json_text(answer, "value", value);
    nb_json_text(answer, "confidence", value ? confidence : NULL);
    nb_json_text(answer, "evidence", text);
    cJSON_AddItemToArray(p->answers, answer);
}

/* Of an array of answers: null when undetermined or not asked. */
static const char *value_of(const cJSON *answers, const char *question) {
    const cJSON *answer;
    cJSON_ArrayForEach(answer, answers) {
        const char *name = nb_json_get_text(answer, "question");
        if (name && strcmp(name, question) == 0) return nb_json_get_text(answer, "value");
    }
    return NULL;
}

/* ---- One line of what is known, in the words of the field: "f32, 16 lanes, sequential in interleaved lanes, squares: fma, eps inside in
 * f32, mul_recip, cast after weight". */

static const struct {
    const char *question, *before, *behind;
} parts[] = {
    {"accumulator", "", ""},
    {"lanes", "", " lanes"},
    {"order", "", ""},
    {"sum_fma", "squares: ", ""},
    {"variance", "", " variance"},
    {"eps_place", "eps ", ""},
    {"eps_dtype", "in ", ""},
    {"root", "", ""},
    {"cast", "cast ", " weight"},
    {"weight_offset", "weight offset ", ""},
    {"affine_fma", "beta: ", ""},
    {"rounding", "rounding ", ""},
};

/* All that is known on one line. */
static void probe_summary(const struct nb_probe *p, struct nb_strbuf *out) {
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char *value = value_of(p->answers, parts[i].question);
        const bool follows = strcmp(parts[i].question, "eps_dtype") == 0;
        if (!value || strcmp(value, "0") == 0) continue;
        nb_strbuf_addf(out, "%s%s%s%s",
                       !out->len ? ""
                       : follows ? " "
                                 : ", ",
                       parts[i].before, value, strcmp(value, "1") == 0 && i == 1 ? " lane" : parts[i].behind);
    }
    if (!out->len) nb_strbuf_add(out, "nothing could be determined");
}

/* ---- All questions in order, and what becomes of the answers ---- */

const struct nb_probe_question nb_probe_questions[] = {
    {"weight_offset", "is gamma the weight (0), or 1 + gamma (1)?"},
    {"eps_place", "inside the root, outside, a clamp, or nowhere"},
    {"eps_added_to", "the mean or the sum"},
    {"eps_effective", "the eps that the outputs show"},
    {"eps_dtype", "the format that eps is kept in"},
    {"statistics_dtype", "the format of the variance or mean square"},
    {"variance", "LayerNorm: twopass, corrected, welford, onepass or shifted"},
    {"mean_sum", "LayerNorm: how the mean is summed"},
    {"accumulator", "the format of the running sums of squares"},
    {"lanes", "how many running sums there are"},
    {"order", "in which order the row is summed"},
    {"tail", "what becomes of columns behind the last full vector"},
    {"sum_fma", "are squares rounded before they are added?"},
    {"rounding", "of the output: nearest, towards zero"},
    {"root", "div_sqrt, mul_recip, rsqrt_nr, rsqrt_raw, correctly_rounded or quake"},
    {"root_instruction", "the formula, or the instruction of this CPU, whose bits it has"},
    {"cast", "16 bits: is x * rstd rounded before the weight, or after?"},
    {"offset_dtype", "16 bits: the format of 1 + gamma"},
    {"affine_fma", "is gamma's product rounded before beta is added?"},
    {"subnormal_inputs", "kept or flushed to zero"},
    {"subnormal_outputs", "kept or flushed to zero"},
    {"subnormal_squares", "kept or flushed to zero"},
    {"nan", "what one NaN in a row does"},
    {"inf", "what one infinity in a row does"},
    {"repeatable", "does the same call give the same bits?"},
    {"depends_on_threads", "do the bits depend on n_threads?"},
    {"depends_on_position", "do they depend on where a row is?"},
    {"depends_on_neighbours", "do they depend on the other rows?"},
    {"depends_on_batch", "do they depend on how many rows there are?"},
    {"reads_padding", "do they depend on what is behind a row?"},
};
const size_t nb_n_probe_questions = sizeof nb_probe_questions / sizeof nb_probe_questions[0];

const char *nb_probe_refuses(const struct nb_case *c) {
    const bool row_norm = c->op == NB_OP_RMSNORM || c->op == NB_OP_PRMSNORM || c->op == NB_OP_LAYERNORM ||
                          c->op == NB_OP_L2NORM || c->op == NB_OP_ADD_RMSNORM || c->op == NB_OP_ADD_LAYERNORM;
    if (!row_norm)
        return "probe asks norms over rows: rmsnorm, prmsnorm, l2norm, layernorm, add_rmsnorm, add_layernorm";
    return c->pass == NB_FORWARD ? NULL : "probe asks forward kernels";
}

static void (*const subjects[])(struct nb_probe *) = {nb_probe_params, nb_probe_eps,    nb_probe_sums,
                                                      nb_probe_root,   nb_probe_affine, nb_probe_context};

cJSON *nb_probe_kernel(const struct nb_case *c, const struct nb_entry *entry, void (*beat)(void *arg), void *arg) {
    assert(entry && !nb_probe_refuses(c));
    struct nb_strbuf summary = {0};
    cJSON *result = cJSON_CreateObject();
    struct nb_probe p;
    nb_probe_init(&p, c, entry);
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0] && !p.failure; i++) {
        subjects[i](&p);
        if (beat) beat(arg);
    }
    nb_json_text(result, "status", p.failure ? "failed" : "ok");
    nb_json_text(result, "reason", p.failure);
    cJSON_AddItemToObject(result, "answers", p.answers);
    probe_summary(&p, &summary);
    nb_json_text(result, "summary", summary.text);
    nb_json_number(result, "calls", (double)p.calls);
    nb_strbuf_release(&summary);
    return result;
}
