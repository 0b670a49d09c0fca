// SPDX-License-Identifier: Apache-2.0
/* Rows of one element: y = weight x / sqrt(x^2 + eps), a function of one number, so that a kernel's or a design's every rounding
 * from end to end is seen. The exact value: x^2 of 11 bits or fewer is exact in double; the sum, the root and the division leave a
 * relative 2^-51. A LayerNorm's row of one element is 0. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/lab/exhaustive/exhaust.h"
#include "src/lab/exhaustive/exhaust_judge.h"
#include "src/lab/exhaustive/exhaust_rows.h"

enum { N_CODES = 1 << 16 };

struct answer1 {
    struct nb_judged judged;
    uint64_t hash; /* of all outputs */
};
struct task {
    const struct nb_exhaust_options *o;
    const struct nb_row_source *sources;
    int n_sources;
    struct answer1 *answers; /* by source and eps */
};

static double exact_of(const struct nb_row_source *s, double x, double eps) {
    if (nb_op_centres(s->op)) return eps > 0 ? 0 : NAN;
    return s->weight * x / sqrt(x * x + eps);
}

static struct nb_twofold exact_twofold(const struct nb_row_source *s, double x, double eps) {
    const struct nb_twofold root = nb_twofold_sqrt(nb_two_sum(x * x, eps));
    return nb_twofold_div(nb_twofold_of(s->weight * x), root);
}

static void check_chunk(int64_t chunk, void *arg) {
    const struct task *t = arg;
    const struct nb_row_source *s = &t->sources[chunk / t->o->n_eps];
    const double eps = t->o->eps[chunk % t->o->n_eps];
    const struct nb_judge judge = nb_judge_of(t->o->dtype);
    const int64_t n = (N_CODES + t->o->stride - 1) / t->o->stride;
    struct answer1 answer = {0};
    struct nb_row_buffers b;
    nb_row_buffers_init(&b, n, 1);
    for (int64_t i = 0; i < n; i++) b.x[i] = (uint16_t)(i * t->o->stride);
    nb_row_source_run(s, &b, t->o->dtype, n, eps);
    for (int64_t i = 0; i < n; i++) {
        const double x = nb_get(b.x, i, t->o->dtype);
        if (!isfinite(x)) continue;
        const double got = nb_get(b.y, i, t->o->dtype);
        if (nb_judge_add(&judge, &answer.judged, b.x[i], exact_of(s, x, eps), got))
            nb_judge_resolve(&judge, &answer.judged, exact_twofold(s, x, eps), got);
    }
    answer.hash = nb_hash(NB_HASH_EMPTY, b.y, (size_t)n * sizeof *b.y);
    nb_row_buffers_release(&b);
    t->answers[chunk] = answer;
}

/* Variants of a kernel follow one another; those whose outputs are the same bit for bit share a row. */
static bool is_same(const struct task *t, int a, int b) {
    if (!t->sources[a].entry || !t->sources[b].entry || strcmp(t->sources[a].text, t->sources[b].text) != 0)
        return false;
    for (int e = 0; e < t->o->n_eps; e++)
        if (t->answers[a * t->o->n_eps + e].hash != t->answers[b * t->o->n_eps + e].hash) return false;
    return true;
}

static void tell(const struct task *t, int s, const char *widths, cJSON *rows) {
    for (int e = 0; e < t->o->n_eps; e++) {
        const struct nb_judged *judged = &t->answers[s * t->o->n_eps + e].judged;
        char text[32];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddItemToArray(rows, row);
        nb_json_text(row, "source", t->sources[s].entry ? "kernel" : "design");
        nb_json_text(row, "formula", t->sources[s].text);
        nb_shortest_text(t->o->eps[e], text);
        nb_json_text(row, "eps", text);
        nb_judged_tell(judged, row);
        snprintf(text, sizeof text, "0x%04x", (unsigned)judged->witness);
        nb_json_text(row, "witness", judged->max_ulp > 0 ? text : NULL);
        nb_json_text(row, "widths", *widths ? widths : NULL);
    }
}

/* Sources whose chunks are all done. */
static void tell_all(const struct task *t, int n_done, cJSON *rows) {
    bool *told = nb_alloc((unsigned)t->n_sources, sizeof *told);
    for (int s = 0; s < n_done; s++) {
        struct nb_strbuf widths = {0};
        if (told[s]) continue;
        nb_strbuf_add(&widths, "");
        for (int k = s; k < n_done; k++) {
            if (k != s && !is_same(t, s, k)) continue;
            told[k] = true;
            if (t->sources[k].entry)
                nb_strbuf_addf(&widths, "%s%s", widths.len ? " " : "",
                               nb_width_name(t->sources[k].entry->kernel->width));
        }
        tell(t, s, widths.text, rows);
        nb_strbuf_release(&widths);
    }
    free(told);
}

int nb_exhaust_row1(const struct nb_exhaust_options *o, cJSON *answer) {
    struct nb_row_source *sources = NULL;
    struct task t = {.o = o};
    int64_t done = 0;
    int result = nb_row_sources(o, &sources, &t.n_sources);
    if (result == 0) {
        const int64_t n = (int64_t)t.n_sources * o->n_eps;
        t.sources = sources;
        t.answers = nb_alloc((uint64_t)n, sizeof *t.answers);
        const struct nb_sweep sweep = {"rows of one element", n, check_chunk, &t};
        nb_exhaust_announce("rows of one element", (double)n * N_CODES / (double)o->stride,
                            nb_sweep_estimate(&sweep, o->threads), o);
        cJSON *rows = nb_exhaust_answer(answer, "row1", o);
        nb_json_text(answer, "dtype", nb_dtype_names[o->dtype]);
        result = nb_sweep_run(&sweep, o->threads, &done);
        tell_all(&t, (int)(done / o->n_eps), rows);
    }
    free(t.answers);
    free(sources);
    return result;
}
