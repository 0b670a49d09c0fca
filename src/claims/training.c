// SPDX-License-Identifier: Apache-2.0
/* Arms with their tags. */
#include "src/claims/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/log.h"
#include "src/train/options.h"

static void tag_arm(struct nb_finding *f, const struct nb_train_options *o, const char *workload) {
    nb_finding_tag(f, "workload", workload);
    nb_finding_tag(f, "norm", nb_norm_kind_name(o->norm.kind));
    if (nb_arm_has_kernel(o)) nb_finding_tag(f, "style", nb_style_names[o->norm.style]);
    if (o->norm.kind != NB_NORM_NONE) {
        nb_finding_tag(f, "affine", o->norm.affine == NB_NORM_FROZEN ? "frozen" : "learned");
        nb_finding_tag(f, "place", nb_norm_place_name(o->place));
    }
    if (o->norm.kind == NB_NORM_BATCHNORM)
        nb_finding_tag(f, "statistics", o->norm.by_position ? "position" : "feature");
    nb_finding_tag(f, "padding", nb_padding_name(o->padding));
    nb_finding_tag(f, "residual", o->residual ? "yes" : "no");
    nb_finding_tag(f, "mask", o->causal ? "causal" : "bidirectional");
    nb_finding_tag(f, "dtype", nb_dtype_names[o->dtype]);
    nb_finding_tag_number(f, "layers", o->layers);
    nb_finding_tag_number(f, "hidden", o->hidden);
    if (o->n_threads > 0) nb_finding_tag_number(f, "threads", o->n_threads);
    nb_finding_tag_number(f, "tokens", (double)o->batch * o->sequence);
}

static const char *add_arm(struct nb_training *t, size_t i, char *reason, size_t n) {
    struct nb_train_options o;
    struct nb_strbuf text = {0};
    nb_arm_default(&o);
    const char *wrong = nb_arm_parse_common(&o, t->common, reason, n);
    if (!wrong) wrong = nb_arm_parse(&o, t->words.items[i], reason, n);
    if (wrong) return wrong;
    nb_arm_print(&o, &text);
    t->arms[i] = text.text;
    for (size_t j = 0; j < i; j++)
        if (strcmp(t->arms[j], text.text) == 0) {
            snprintf(reason, n, "arms '%s' and '%s' are one", t->words.items[j], t->words.items[i]);
            return reason;
        }
    if (t->workload && (wrong = t->workload->family->complete(t->workload->own, &o))) {
        snprintf(reason, n, "arm '%s': %s", t->words.items[i], wrong);
        return reason;
    }
    tag_arm(nb_findings_add_exact(&t->tags, "arm", "", 0), &o, t->workload_name);
    return NULL;
}

static bool find_measure(struct nb_training *t) {
    for (int m = 0; nb_train_measure_names[m]; m++)
        if (strcmp(nb_train_measure_names[m], t->measure_name) == 0) {
            t->measure = (enum nb_train_measure)m;
            return true;
        }
    return false;
}

const char *nb_training_complete(struct nb_training *t, char *reason, size_t n) {
    t->workload = nb_workload_find(t->workload_name);
    t->arms = nb_alloc(t->words.n + 1, sizeof *t->arms);
    if (!find_measure(t)) {
        snprintf(reason, n, "\"measure\" is '%s', and not steps, memory or course", t->measure_name);
        return reason;
    }
    if (t->measure != NB_TRAIN_COURSE && t->seeds > 0) return "\"seeds\" are of a \"course\"";
    if (t->measure != NB_TRAIN_COURSE) t->steps = 0;
    for (size_t i = 0; i < t->words.n; i++)
        if (add_arm(t, i, reason, n)) return reason;
    return t->words.n > 0 ? NULL : "\"arms\" is empty";
}

void nb_training_release(struct nb_training *t) {
    for (size_t i = 0; t->arms && i < t->words.n; i++) free(t->arms[i]);
    for (size_t i = 0; i < t->n_pairs; i++) {
        nb_selector_release(&t->pairs[i].of);
        nb_selector_release(&t->pairs[i].against);
    }
    free(t->arms);
    free(t->pairs);
    free(t->workload_name);
    free(t->measure_name);
    free(t->common);
    nb_strings_release(&t->words);
    nb_findings_release(&t->tags);
    *t = (struct nb_training){0};
}
