// SPDX-License-Identifier: Apache-2.0
/* Pairs of LayerNorm and RMSNorm cases, and the share of time between them. */
#include "reports/figures/cut.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reports/figures/sweep.h"
#include "reports/run/columns.h"
#include "reports/text/format.h"
#include "src/core/log.h"

/* Parameters differ by op: LayerNorm usually has a beta. */
static const char *const own_axes[] = {"affine", "weight_offset", "param_dtype", NULL};

struct side {
    char *terms;  /* what both sides must share */
    char *suffix; /* the kernel's name behind the op's */
    size_t record;
    bool is_layernorm;
};

struct nb_interval nb_cut_of(const struct nb_interval *rms, const struct nb_interval *ln) {
    struct nb_interval cut = {1 - rms->value / ln->value, NAN, NAN};
    if (!nb_interval_known(rms) || !nb_interval_known(ln) || rms->low <= 0 || ln->low <= 0) return cut;
    cut.low = 1 - rms->high / ln->low;
    cut.high = 1 - rms->low / ln->high;
    return cut;
}

/* The reference's ratio to itself is 1, whatever the record says. */
static struct nb_interval ratio_of(const struct nb_record *r) {
    return nb_is_reference(r) ? (struct nb_interval){1, 1, 1} : r->timing.vs_reference;
}

static bool has_ratio(const struct nb_record *r) {
    struct nb_interval ratio = ratio_of(r);
    return nb_record_timed(r) && r->timing.reference && isfinite(ratio.value) && ratio.value > 0;
}

/* The same reference key means the same shape, data, threads and cache state; parts of a split group share it too. */
static void make_terms(const struct nb_record *r, struct nb_strbuf *out) {
    const struct nb_case *c = &r->c;
    nb_strbuf_addf(out, "%d|%u|%u|%u|%u|%u|%s|", r->machine, c->dtype, c->width, c->style, c->stats, c->stats_dtype,
                   c->shape.text);
    nb_strbuf_add(out, r->timing.reference);
    nb_sweep_constants(r, own_axes, out);
}

static char *make_suffix(const struct nb_record *r) {
    struct nb_strbuf kernel = {0};
    nb_kernel_name(&r->c, &kernel);
    const char *op = nb_op_name(r->c.op), *found = strstr(kernel.text, op);
    char *suffix = nb_strdup(found ? found + strlen(op) : kernel.text);
    nb_strbuf_release(&kernel);
    return suffix;
}

static int by_terms(const void *left, const void *right) {
    const struct side *a = left, *b = right;
    int order = strcmp(a->terms, b->terms);
    return order ? order : (a->record > b->record) - (a->record < b->record);
}

static size_t collect(struct side *sides, const struct nb_results *results) {
    size_t n = 0;
    for (size_t i = 0; i < results->n; i++) {
        const struct nb_record *r = &results->records[i];
        struct nb_strbuf terms = {0};
        if ((r->c.op != NB_OP_LAYERNORM && r->c.op != NB_OP_RMSNORM) || !has_ratio(r)) continue;
        make_terms(r, &terms);
        sides[n++] = (struct side){terms.text, make_suffix(r), i, r->c.op == NB_OP_LAYERNORM};
    }
    if (n) qsort(sides, n, sizeof *sides, by_terms);
    return n;
}

/* Among the sides with equal terms: the RMSNorm kernel of the same name, else the first; end: none. */
static size_t partner(const struct side *sides, size_t begin, size_t end, const struct side *layernorm) {
    size_t first = end;
    for (size_t i = begin; i < end; i++) {
        if (sides[i].is_layernorm) continue;
        if (strcmp(sides[i].suffix, layernorm->suffix) == 0) return i;
        if (first == end) first = i;
    }
    return first;
}

static size_t pair_up(const struct side *sides, size_t n, const struct nb_results *results, struct nb_cut *cuts) {
    size_t n_cuts = 0;
    for (size_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && strcmp(sides[end].terms, sides[begin].terms) == 0;) end++;
        for (size_t i = begin; i < end; i++) {
            size_t other = sides[i].is_layernorm ? partner(sides, begin, end, &sides[i]) : end;
            if (other == end) continue;
            struct nb_interval ln = ratio_of(&results->records[sides[i].record]);
            struct nb_interval rms = ratio_of(&results->records[sides[other].record]);
            cuts[n_cuts++] = (struct nb_cut){sides[i].record, sides[other].record, nb_cut_of(&rms, &ln)};
        }
    }
    return n_cuts;
}

static int by_record(const void *left, const void *right) {
    const struct nb_cut *a = left, *b = right;
    return (a->layernorm > b->layernorm) - (a->layernorm < b->layernorm);
}

size_t nb_cuts_find(const struct nb_results *results, struct nb_cut **cuts) {
    struct side *sides = nb_alloc(results->n + 1, sizeof *sides);
    *cuts = nb_alloc(results->n + 1, sizeof **cuts);
    size_t n = collect(sides, results), n_cuts = pair_up(sides, n, results, *cuts);
    if (n_cuts) qsort(*cuts, n_cuts, sizeof **cuts, by_record);
    for (size_t i = 0; i < n; i++) {
        free(sides[i].terms);
        free(sides[i].suffix);
    }
    free(sides);
    return n_cuts;
}
