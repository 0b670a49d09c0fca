// SPDX-License-Identifier: Apache-2.0
/* Blocks in, tagged records out. */
#include "src/claims/matrix.h"

#include <stdlib.h>
#include <string.h>

#include "src/claims/fields.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/log.h"

int nb_matrix_read_blocks(struct nb_matrix *m, const struct nb_jsonc *file, const cJSON *node, bool quick) {
    return nb_config_read_blocks(file, node, quick ? &m->quick : &m->blocks);
}

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

int nb_matrix_read_from(struct nb_matrix *m, const struct nb_jsonc *file, const cJSON *node) {
    static const struct nb_field fields[] = {{"config", NB_FIELD_TEXT, offsetof(struct from, config), true, NULL},
                                             {"label", NB_FIELD_TEXT, offsetof(struct from, label), true, NULL}};
    struct from from = {0};
    int result = nb_fields_read(file, node, fields, 2, "\"from\"", &from);
    if (result == 0) result = nb_config_read(&m->blocks, from.config);
    if (result == 0) keep_labelled(&m->blocks, from.label);
    if (result == 0 && m->blocks.n_blocks == 0)
        result = nb_error("%s:%d: \"from\": no block of %s has the label '%s'", file->path, nb_jsonc_line(file, node),
                          from.config, from.label);
    free(from.config);
    free(from.label);
    return result;
}

void nb_matrix_isolate_width(struct nb_matrix *m) {
    for (size_t i = 0; i < m->blocks.n_blocks; i++) m->blocks.blocks[i].isolate_width = true;
    for (size_t i = 0; i < m->quick.n_blocks; i++) m->quick.blocks[i].isolate_width = true;
}

void nb_matrix_move(struct nb_matrix *m, bool quick, const char *label, struct nb_config *config) {
    struct nb_config *from = quick && m->quick.n_blocks > 0 ? &m->quick : &m->blocks;
    for (size_t i = 0; i < from->n_blocks; i++) {
        free(from->blocks[i].label);
        from->blocks[i].label = nb_strdup(label);
    }
    if (from->n_blocks > 0) nb_config_append(config, from);
}

void nb_matrix_release(struct nb_matrix *m) {
    nb_config_release(&m->blocks);
    nb_config_release(&m->quick);
}

bool nb_record_has_label(const struct nb_record *r, const char *label) {
    for (int i = 0; i < r->n_labels; i++)
        if (strcmp(r->labels[i], label) == 0) return true;
    return false;
}

static const char *fits(double bytes, const cJSON *meta) {
    static const char *const names[][2] = {{"l1d_bytes", "L1"}, {"l2_bytes", "L2"}, {"l3_bytes", "L3"}};
    const cJSON *cpu = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(meta, "fingerprint"), "cpu");
    for (int i = 0; i < 3; i++)
        if (bytes <= nb_json_get_number(cpu, names[i][0])) return names[i][1];
    return "memory";
}

static void tag_axis(struct nb_finding *f, const struct nb_case *c, const char *axis) {
    struct nb_strbuf text = {0};
    nb_case_axis(c, axis, &text);
    if (text.len > 0) nb_finding_tag(f, axis, text.text);
    nb_strbuf_release(&text);
}

void nb_tag_record(struct nb_finding *f, const struct nb_record *r, const cJSON *meta) {
    struct nb_strbuf kernel = {0};
    nb_kernel_name(&r->c, &kernel);
    nb_finding_tag(f, "kernel", kernel.text);
    nb_finding_tag(f, "op", nb_op_name(r->c.op));
    nb_finding_tag(f, "pass", nb_pass_name(r->c.pass));
    nb_finding_tag(f, "dtype", nb_formats[r->c.dtype].name);
    nb_finding_tag(f, "width", nb_width_name(r->c.width));
    nb_finding_tag(f, "style", nb_style_name(r->c.style));
    nb_finding_tag(f, "stats", nb_stats_name(r->c.stats));
    nb_finding_tag(f, "stats_dtype", nb_stats_dtype_name(r->c.stats_dtype));
    nb_finding_tag(f, "variance", nb_variance_name(r->c.variance));
    for (size_t i = 0; i < nb_n_axes; i++)
        if (nb_axes[i].kind == NB_AXIS_CELL) tag_axis(f, &r->c, nb_axes[i].name);
    nb_finding_tag_number(f, "rows", (double)r->c.shape.rows);
    nb_finding_tag_number(f, "cols", (double)r->c.shape.cols);
    nb_finding_tag(f, "fits", r->c.cache == NB_COLD ? "memory" : fits(r->bytes, meta));
    nb_strbuf_release(&kernel);
}

const char *nb_matrix_why_none(const struct nb_results *results) {
    if (!results) return "no case of it was planned here: no kernel of this build has what its blocks ask for";
    if (nb_json_get_bool(results->meta, "complete"))
        return "none of its cases could be planned here (results.json names what was left out, and why)";
    return "the run ended before its cases were measured; --resume goes on";
}
