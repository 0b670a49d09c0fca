// SPDX-License-Identifier: Apache-2.0
/* The gate's table and files. */
#include "reports/gate_report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/files.h"
#include "src/json.h"
#include "src/log.h"

bool nb_gate_format_known(const char *format) { return strcmp(format, "table") == 0 || strcmp(format, "json") == 0; }

static void print_case(const struct nb_gate_case *c, FILE *out) {
    const struct nb_gate_judgement *j = &c->judgement;
    fprintf(out, "%-22s %-60.60s", nb_verdict_name(c->verdict), c->key);
    if (c->n_screen > 0)
        fprintf(out, " %+6.2f %% [%+.2f, %+.2f]  control %+.2f  seen from %.1f %%  %.1f s", 100 * (j->ratio.value - 1),
                100 * (j->ratio.low - 1), 100 * (j->ratio.high - 1), 100 * (j->control.value - 1),
                100 * j->smallest_effect, c->seconds);
    fprintf(out, "%s%s\n", c->reason[0] ? "  " : "", c->reason);
}

int nb_gate_print(const struct nb_gate *g, const char *format, FILE *out) {
    if (strcmp(format, "json") == 0) {
        struct nb_strbuf text = {0};
        cJSON *json = nb_gate_to_json(g);
        nb_json_print_pretty(json, 0, &text);
        fprintf(out, "%s\n", text.text);
        nb_strbuf_release(&text);
        cJSON_Delete(json);
        return 0;
    }
    for (size_t i = 0; i < g->n_cases; i++) print_case(&g->cases[i], out);
    return 0;
}

int nb_gate_write(const struct nb_gate *g, const char *dir) {
    struct nb_strbuf text = {0};
    cJSON *json = nb_gate_to_json(g);
    char *path = nb_path_join(dir, "gate.json");
    nb_json_print_pretty(json, 0, &text);
    int result = nb_file_write(path, text.text, text.len);
    free(path);
    nb_strbuf_release(&text);
    cJSON_Delete(json);
    return result;
}

FILE *nb_gate_samples_open(const char *dir) {
    if (nb_dir_make(dir) != 0) return NULL;
    char *path = nb_path_join(dir, "samples.jsonl");
    FILE *out = fopen(path, "we");
    if (!out) nb_error("%s: %s", path, strerror(errno));
    free(path);
    return out;
}

void nb_gate_record_sample(FILE *samples, const struct nb_gate_case *c, enum nb_gate_stage stage, const cJSON *line) {
    struct nb_strbuf text = {0};
    cJSON *sample = cJSON_Duplicate(line, 1);
    nb_json_text(sample, "key", c->key);
    cJSON_AddNumberToObject(sample, "stage", stage);
    nb_json_print(sample, &text);
    fprintf(samples, "%s\n", text.text);
    nb_strbuf_release(&text);
    cJSON_Delete(sample);
}
