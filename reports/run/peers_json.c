// SPDX-License-Identifier: Apache-2.0
/* Comparisons, means and overheads as a document, and both files of a run. */
#include <math.h>
#include <stdlib.h>

#include "reports/run/peers_page.h"
#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/record/call_overhead.h"

static void add_case(cJSON *json, const struct nb_peer_comparison *d) {
    const struct nb_case *c = &d->theirs->c;
    nb_json_text(json, "library", d->library);
    nb_json_text(json, "op", nb_op_name(c->op));
    nb_json_text(json, "pass", nb_pass_name(c->pass));
    nb_json_text(json, "layout", nb_layout_name(c->shape.layout));
}

static void add_side(cJSON *json, const char *name, const struct nb_record *r) {
    if (!r) {
        cJSON_AddNullToObject(json, name);
        return;
    }
    cJSON *side = cJSON_AddObjectToObject(json, name);
    nb_json_text(side, "key", r->key);
    nb_json_text(side, "status", nb_status_name(r->status));
    nb_json_number(side, "time_ns", r->has_timing ? r->timing.time_ns.value : (double)NAN);
    nb_json_text(side, "library", r->library);
    nb_json_text(side, "implementation", r->implementation);
    nb_json_number(side, "attained", r->has_timing ? r->timing.attainable.share.value : (double)NAN);
    nb_json_text(side, "bound", r->has_timing && r->timing.attainable.bound[0] ? r->timing.attainable.bound : NULL);
}

static void add_comparison(cJSON *list, const struct nb_peer_comparison *d) {
    cJSON *json = cJSON_CreateObject();
    add_case(json, d);
    nb_json_text(json, "dtype", nb_formats[d->theirs->c.dtype].name);
    nb_json_text(json, "shape", d->theirs->c.shape.text);
    nb_json_text(json, "mode", d->theirs->c.op == NB_OP_BATCHNORM ? nb_mode_names[d->theirs->c.mode] : NULL);
    cJSON_AddNumberToObject(json, "threads", d->theirs->c.threads);
    add_side(json, "ours", d->ours);
    add_side(json, "theirs", d->theirs);
    nb_json_interval(json, "ratio", &d->ratio);
    cJSON_AddNumberToObject(json, "launches", d->n_launches);
    nb_json_interval(json, "confirmed", &d->confirmed);
    cJSON_AddNumberToObject(json, "confirming_launches", d->n_confirmed);
    nb_json_text(json, "verdict", nb_peer_comparison_verdict_name(d->verdict));
    nb_json_text(json, "reason", d->reason);
    cJSON_AddItemToArray(list, json);
}

static void add_mean(cJSON *list, const struct nb_peer_mean *m) {
    cJSON *json = cJSON_CreateObject();
    add_case(json, m->first);
    nb_json_interval(json, "ratio", &m->ratio);
    nb_json_number(json, "median", m->median);
    nb_json_number(json, "least", m->n > 0 ? m->least : (double)NAN);
    nb_json_number(json, "most", m->n > 0 ? m->most : (double)NAN);
    nb_json_number(json, "attained", m->attained);
    cJSON_AddNumberToObject(json, "cells", (double)m->n);
    cJSON *counts = cJSON_AddObjectToObject(json, "verdicts");
    for (int v = 0; v < NB_N_DUEL_VERDICTS; v++)
        cJSON_AddNumberToObject(counts, nb_peer_comparison_verdict_name((enum nb_peer_comparison_verdict)v),
                                (double)m->n_of[v]);
    cJSON_AddItemToArray(list, json);
}

static void add_overheads(cJSON *json, const struct nb_results *results) {
    struct nb_kernel_overhead *found;
    const size_t n = nb_overheads(results->records, results->n, &found);
    cJSON *list = cJSON_AddArrayToObject(json, "call_overheads");
    for (size_t i = 0; i < n; i++) {
        cJSON *one = cJSON_CreateObject();
        nb_json_text(one, "variant", found[i].record->c.variant);
        cJSON_AddNumberToObject(one, "cols", (double)found[i].record->c.shape.cols);
        cJSON_AddNumberToObject(one, "threads", found[i].record->c.threads);
        nb_json_interval(one, "ns", &found[i].overhead.ns);
        nb_json_number(one, "ns_per_byte", found[i].overhead.ns_per_byte);
        nb_json_text(one, "reason", found[i].overhead.reason[0] ? found[i].overhead.reason : NULL);
        cJSON_AddItemToArray(list, one);
    }
    free(found);
}

static void copy(cJSON *json, const struct nb_results *results, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(results->meta, name);
    cJSON_AddItemToObject(json, name, item ? cJSON_Duplicate(item, 1) : cJSON_CreateNull());
}

cJSON *nb_peers_to_json(const struct nb_results *results, const struct nb_peer_comparisons *comparisons) {
    static const char *const copied[] = {"program", "version", "started", "config", "fingerprint"};
    struct nb_peer_mean *means;
    cJSON *json = cJSON_CreateObject();
    nb_json_text(json, "schema", "1.0");
    for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++) copy(json, results, copied[i]);
    cJSON_AddItemToObject(json, "compare", nb_compare_settings_to_json(&comparisons->settings));
    cJSON_AddNumberToObject(json, "n_comparisons", (double)comparisons->n_comparisons);
    cJSON *list = cJSON_AddArrayToObject(json, "comparisons"), *sums = cJSON_AddArrayToObject(json, "means");
    for (size_t i = 0; i < comparisons->n; i++) add_comparison(list, &comparisons->items[i]);
    const size_t n = nb_peer_means(comparisons, &means);
    for (size_t i = 0; i < n; i++) add_mean(sums, &means[i]);
    free(means);
    add_overheads(json, results);
    return json;
}

static int write_text(const char *dir, const char *name, const struct nb_strbuf *text) {
    char *path = nb_path_join(dir, name);
    const int result = nb_file_write(path, text->text, text->len);
    free(path);
    return result;
}

int nb_peers_write(const struct nb_results *results, const char *dir) {
    const struct nb_peers_style markdown = {.markdown = true};
    struct nb_strbuf page = {0}, document = {0};
    struct nb_peer_comparisons comparisons;
    if (nb_peer_comparisons_make(&comparisons, results) != 0) return -1;
    cJSON *json = nb_peers_to_json(results, &comparisons);
    nb_peers_print(results, &comparisons, &markdown, &page);
    nb_json_print_pretty(json, 0, &document);
    nb_strbuf_add(&document, "\n");
    int result = write_text(dir, "peers.md", &page);
    if (result == 0) result = write_text(dir, "peers.json", &document);
    cJSON_Delete(json);
    nb_strbuf_release(&page);
    nb_strbuf_release(&document);
    nb_peer_comparisons_release(&comparisons);
    return result;
}
