// SPDX-License-Identifier: Apache-2.0
/* Who a study is about. The grades say it of every variant; a study without a grade is known by its name. */
#include "reports/lab/studies.h"

#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/core/log.h"

static const char *text_of(const cJSON *object, const char *name) {
    const char *text = nb_json_get_text(object, name);
    return text ? text : "";
}

static const cJSON *grade_of(const cJSON *stress, const char *variant) {
    const cJSON *line;
    cJSON_ArrayForEach(line, cJSON_GetObjectItemCaseSensitive(stress, "grades")) {
        if (strcmp(text_of(line, "variant"), variant) == 0) return line;
    }
    return NULL;
}

static const char *op_by_name(const char *variant) {
    const char *colon = strchr(variant, ':'), *name = colon ? colon + 1 : variant;
    for (uint32_t op = 0; op < NB_OP_COPY; op++) {
        const size_t len = strlen(nb_op_name(op));
        if (strncmp(name, nb_op_name(op), len) == 0 && (name[len] == '_' || name[len] == '\0')) return nb_op_name(op);
    }
    return "";
}

/* The name before the width and the dtype. */
static char *kernel_by_name(const char *variant) {
    static const char *const endings[] = {"_f32",  "_f16",  "_bf16",  "_scalar", "_v128",
                                          "_v256", "_v512", "_v256x", "_native", NULL};
    char *name = nb_strdup(variant);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; endings[i]; i++) {
            const size_t len = strlen(name), end = strlen(endings[i]);
            if (len > end && strcmp(name + len - end, endings[i]) == 0) name[len - end] = '\0';
        }
    return name;
}

static bool is_repeated(const struct nb_studies *studies, const char *kernel, int dtype) {
    for (size_t i = 0; i < studies->n; i++)
        if (studies->list[i].dtype == dtype && strcmp(studies->list[i].kernel, kernel) == 0) return true;
    return false;
}

void nb_studies_init(struct nb_studies *studies, const cJSON *stress) {
    const cJSON *json;
    *studies = (struct nb_studies){0};
    cJSON_ArrayForEach(json, cJSON_GetObjectItemCaseSensitive(stress, "studies")) {
        const char *variant = text_of(json, "variant");
        const int dtype = nb_dtype_parse(text_of(json, "dtype"));
        const cJSON *grade = grade_of(stress, variant);
        const char *op = text_of(grade, "op"), *kernel = text_of(grade, "kernel");
        if (dtype < 0) continue;
        char *name = *kernel ? nb_strdup(kernel) : kernel_by_name(variant);
        if (is_repeated(studies, name, dtype)) {
            studies->n_repeated++;
            free(name);
            continue;
        }
        studies->list = nb_realloc(studies->list, studies->n + 1, sizeof *studies->list);
        studies->list[studies->n++] =
            (struct nb_study_line){json, nb_strdup(*op ? op : op_by_name(variant)), name, variant, dtype};
    }
}

void nb_studies_release(struct nb_studies *studies) {
    for (size_t i = 0; i < studies->n; i++) {
        free(studies->list[i].op);
        free(studies->list[i].kernel);
    }
    free(studies->list);
    *studies = (struct nb_studies){0};
}

const cJSON *nb_study_sweep(const struct nb_study_line *study, const char *axis, int which) {
    const cJSON *sweep;
    cJSON_ArrayForEach(sweep, cJSON_GetObjectItemCaseSensitive(study->json, "sweeps")) {
        if (strcmp(text_of(sweep, "axis"), axis) == 0 && which-- == 0) return sweep;
    }
    return NULL;
}

size_t nb_studies_panels(const struct nb_studies *studies, const char *op, const char *kernel,
                         int panel_of[NB_N_DTYPES]) {
    size_t n = 0;
    for (int dtype = 0; dtype < NB_N_DTYPES; dtype++) {
        bool there = false;
        for (size_t i = 0; i < studies->n; i++) {
            const struct nb_study_line *s = &studies->list[i];
            there |=
                s->dtype == dtype && (!op || strcmp(s->op, op) == 0) && (!kernel || strcmp(s->kernel, kernel) == 0);
        }
        panel_of[dtype] = there ? (int)n++ : -1;
    }
    return n;
}
