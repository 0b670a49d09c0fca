// SPDX-License-Identifier: Apache-2.0
/* Training experiments: whole steps of a model with different norms. The file names the workload and its parameters. */
#include <stdlib.h>

#include "src/base/log.h"
#include "src/claims/experiment.h"
#include "src/claims/fields.h"
#include "src/plan/config_errors.h"

/* What the file asks for. */
struct training {
    char *workload;
    cJSON *params; /* as the workload understands them */
};

static int keep_params(const struct nb_jsonc *file, const cJSON *node, void *into) {
    struct training *t = into;
    if (!cJSON_IsObject(node)) return nb_config_wrong_type(file, node, "params", "an object");
    t->params = cJSON_Duplicate(node, true);
    return 0;
}

static int skip(const struct nb_jsonc *file, const cJSON *node, void *into) {
    (void)file, (void)node, (void)into;
    return 0;
}

static int read_training(struct nb_experiment *e, const struct nb_jsonc *file, const cJSON *node) {
    static const struct nb_field fields[] = {
        {"kind", NB_FIELD_READ, 0, true, skip},
        {"workload", NB_FIELD_TEXT, offsetof(struct training, workload), true, NULL},
        {"params", NB_FIELD_READ, 0, false, keep_params}};
    e->own = nb_alloc(1, sizeof(struct training));
    return nb_fields_read(file, node, fields, sizeof fields / sizeof fields[0], "a training experiment", e->own);
}

static void release(struct nb_experiment *e) {
    struct training *t = e->own;
    free(t->workload);
    cJSON_Delete(t->params);
    free(t);
}

static const char *refuses(const struct nb_experiment *e) {
    (void)e;
    return "training workloads are not built";
}

const struct nb_experiment_kind nb_experiment_training = {.name = "training",
                                                          .summary = "steps of a model, with one norm or another",
                                                          .read = read_training,
                                                          .release = release,
                                                          .refuses = refuses};
