// SPDX-License-Identifier: Apache-2.0
/* Which format is which, on stdout and as files. */
#include "reports/gate/gate_report.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reports/gate/gate_parts.h"
#include "reports/text/output.h"
#include "reports/text/screen.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/record/fingerprint.h"

static const struct format {
    const char *name, *file; /* null: no file */
    void (*add)(const struct nb_gate_view *view, struct nb_strbuf *out);
} formats[] = {{"table", NULL, NULL},
               {"json", "gate.json", nb_gate_add_json},
               {"markdown", "gate.md", nb_gate_add_markdown},
               {"junit", "gate.xml", nb_gate_add_junit},
               {"bencher", "gate.bencher.json", nb_gate_add_bencher}};
enum { N_FORMATS = sizeof formats / sizeof formats[0] };

static const struct format *find_format(const char *name) {
    for (size_t i = 0; i < N_FORMATS; i++)
        if (strcmp(formats[i].name, name) == 0) return &formats[i];
    return NULL;
}

bool nb_gate_format_known(const char *format) { return find_format(format) != NULL; }

static void view_init(struct nb_gate_view *view, const struct nb_gate *g) {
    *view = (struct nb_gate_view){.g = g, .fingerprint = nb_fingerprint()};
    nb_gate_summary_init(&view->summary, g);
}

static void view_release(struct nb_gate_view *view) {
    nb_gate_summary_release(&view->summary);
    cJSON_Delete(view->fingerprint);
}

int nb_gate_print(const struct nb_gate *g, const char *format, FILE *out) {
    const struct format *f = find_format(format);
    struct nb_gate_view view;
    struct nb_strbuf text = {0};
    assert(f);
    view_init(&view, g);
    if (f->add)
        f->add(&view, &text);
    else
        nb_gate_add_table(&view, nb_screen_width(out), nb_screen_color(out), &text);
    view_release(&view);
    return nb_output(&text, out);
}

int nb_gate_write(const struct nb_gate *g, const char *dir) {
    struct nb_gate_view view;
    int result = nb_dir_make(dir);
    if (result != 0) return -1;
    view_init(&view, g);
    for (size_t i = 0; i < N_FORMATS && result == 0; i++) {
        struct nb_strbuf text = {0};
        if (!formats[i].file) continue;
        char *path = nb_path_join(dir, formats[i].file);
        formats[i].add(&view, &text);
        result = nb_file_write(path, text.text, text.len);
        nb_strbuf_release(&text);
        free(path);
    }
    view_release(&view);
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
