// SPDX-License-Identifier: Apache-2.0
/* The kinds, which of them an entry of a claim is, and blocks of the matrix. */
#include "src/claims/experiment.h"

#include <stdlib.h>
#include <string.h>

#include "src/core/axes.h"
#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/log.h"
#include "src/core/names.h"

const char *const nb_claims_plan_names[NB_N_CLAIMS_PLANS] = {"timing", "accuracy", "eager"};

static const struct nb_experiment_kind *const kinds[] = {&nb_experiment_timing, &nb_experiment_accuracy,
                                                         &nb_experiment_property, &nb_experiment_step,
                                                         &nb_experiment_training};
enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

static const struct nb_experiment_kind *kind_of(const struct nb_jsonc *file, const cJSON *node) {
    const cJSON *item = nb_json_get(node, "kind");
    const char *names[N_KINDS], *text = cJSON_GetStringValue(item);
    for (size_t i = 0; i < N_KINDS; i++) {
        names[i] = kinds[i]->name;
        if (text && strcmp(text, names[i]) == 0) return kinds[i];
    }
    nb_jsonc_error(file, item ? item : node, "\"kind\" must be one of timing, accuracy, property, step, training%s",
                   nb_did_you_mean(text ? text : "", names, N_KINDS).text);
    return NULL;
}

int nb_experiment_read(struct nb_experiment *e, const char *claim, const struct nb_jsonc *file, const cJSON *node) {
    struct nb_strbuf label = {0};
    *e = (struct nb_experiment){.name = nb_strdup(node->string)};
    nb_strbuf_addf(&label, "%s/%s", claim, node->string);
    e->label = label.text;
    if (label.len > NB_LABEL_MAX)
        return nb_jsonc_error(file, node, "\"%s\": claim and experiment together have more than %d characters",
                              node->string, NB_LABEL_MAX);
    if (!cJSON_IsObject(node)) return nb_jsonc_wrong_type(file, node, node->string, "an object with a \"kind\"");
    e->kind = kind_of(file, node);
    return e->kind ? e->kind->read(e, file, node) : -1;
}

void nb_experiment_release(struct nb_experiment *e) {
    if (e->kind && e->own) e->kind->release(e);
    nb_free_all(e->own, e->name, e->label);
    *e = (struct nb_experiment){0};
}

/* ---- blocks in, tagged records out ---- */

static void keep_labelled(struct nb_config *config, const char *label) {
    size_t n = 0;
    for (size_t i = 0; i < config->n_blocks; i++) {
        const char *own = config->blocks[i].label;
        if (own && strcmp(own, label) == 0)
            config->blocks[n++] = config->blocks[i];
        else
            nb_block_release(&config->blocks[i]);
    }
    config->n_blocks = n;
}

struct from {
    char *config, *label;
};

int nb_blocks_read_from(const struct nb_jsonc *file, const cJSON *node, void *blocks) {
    struct nb_blocks *m = blocks;
    static const struct nb_field fields[] = {{NB_FIELD(TEXT, struct from, config), .required = true},
                                             {NB_FIELD(TEXT, struct from, label), .required = true}};
    struct from from = {0};
    int result = nb_fields_read(file, node, fields, 2, "\"from\"", &from);
    if (result == 0) result = nb_config_read(&m->blocks, from.config);
    if (result == 0) keep_labelled(&m->blocks, from.label);
    if (result == 0 && m->blocks.n_blocks == 0)
        result = nb_jsonc_error(file, node, "\"from\": no block of %s has the label '%s'", from.config, from.label);
    free(from.config);
    free(from.label);
    return result;
}

void nb_blocks_isolate_width(struct nb_blocks *m) {
    for (size_t i = 0; i < m->blocks.n_blocks; i++) m->blocks.blocks[i].isolate_width = true;
    for (size_t i = 0; i < m->quick.n_blocks; i++) m->quick.blocks[i].isolate_width = true;
}

void nb_blocks_move(struct nb_blocks *m, bool quick, const char *label, struct nb_config *config) {
    struct nb_config *from = quick && m->quick.n_blocks > 0 ? &m->quick : &m->blocks;
    for (size_t i = 0; i < from->n_blocks; i++) {
        free(from->blocks[i].label);
        from->blocks[i].label = nb_strdup(label);
    }
    if (from->n_blocks > 0) nb_config_append(config, from);
}

void nb_blocks_release(struct nb_blocks *m) {
    nb_config_release(&m->blocks);
    nb_config_release(&m->quick);
}

static const char *fits(double bytes, const cJSON *meta) {
    static const char *const names[][2] = {{"l1d_bytes", "L1"}, {"l2_bytes", "L2"}, {"l3_bytes", "L3"}};
    const cJSON *cpu = nb_json_get(nb_json_get(meta, "fingerprint"), "cpu");
    for (int i = 0; i < 3; i++)
        if (bytes <= nb_json_get_number(cpu, names[i][0])) return names[i][1];
    return "memory";
}

static void tag_axis(struct nb_finding *f, const struct nb_case *c, const char *axis) {
    char *text freed = nb_case_axis_text(c, axis);
    if (*text) nb_finding_tag(f, axis, text);
}

void nb_tag_record(struct nb_finding *f, const struct nb_record *r, const cJSON *meta) {
    char *kernel freed = nb_kernel_text(&r->c);
    nb_finding_tag(f, "kernel", kernel);
    nb_finding_tag(f, "op", nb_op_names[r->c.op]);
    nb_finding_tag(f, "pass", nb_pass_names[r->c.pass]);
    nb_finding_tag(f, "dtype", nb_formats[r->c.dtype].name);
    nb_finding_tag(f, "width", nb_width_names[r->c.width]);
    nb_finding_tag(f, "style", nb_style_names[r->c.style]);
    nb_finding_tag(f, "stats", nb_stats_names[r->c.stats]);
    nb_finding_tag(f, "stats_dtype", nb_stats_dtype_names[r->c.stats_dtype]);
    nb_finding_tag(f, "variance", nb_variance_names[r->c.variance]);
    for (size_t i = 0; i < nb_n_axes; i++)
        if (nb_axes[i].kind == NB_AXIS_CELL) tag_axis(f, &r->c, nb_axes[i].name);
    nb_finding_tag_number(f, "rows", (double)r->c.shape.rows);
    nb_finding_tag_number(f, "cols", (double)r->c.shape.cols);
    nb_finding_tag(f, "fits", r->c.cache == NB_COLD ? "memory" : fits(r->bytes, meta));
}

const char *nb_blocks_why_none(const struct nb_results *results) {
    if (!results) return "no kernel of this build fits its blocks";
    if (nb_json_get_bool(results->meta, "complete"))
        return "none of its cases could be planned here (results.json names what was left out, and why)";
    return "the run ended before its cases were measured; --resume continues";
}
