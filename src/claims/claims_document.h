// SPDX-License-Identifier: Apache-2.0
/* DIR/claims.json: what was claimed, what was measured, what follows (reports/schema/claims.schema.json). Everything that is shown
 * of a run of claims is made from it. */
#pragma once

#include <cjson/cJSON.h>

#include "src/claims/claims.h"

#define NB_CLAIMS_FILE "claims.json"
#define NB_CLAIMS_SCHEMA "2.0"
#define NB_CLAIMS_TRAINING_FOLDER "training" /* beside those of the plans, and */
#define NB_CLAIMS_RATES_FOLDER "rates"       /* of the operations of steps */

struct nb_claims_about { /* of the run */
    const char *started;
    int argc;
    char **argv;
    bool quick, complete;
    double elapsed_s;
    const char *folders[NB_N_CLAIMS_PLANS];    /* within DIR; null: none */
    const struct nb_claims_measured *measured; /* null: nothing was */
    struct nb_interval eager_us;               /* what an operation costs PyTorch here; NaN or 0: not known, */
    const char *no_eager;                      /* and why */
};
cJSON *nb_claims_document(const struct nb_claim_result *results, size_t n, const struct nb_claims_about *about);
int nb_claims_document_write(const cJSON *document, const char *dir);
/* A folder that holds one, or the file itself, of this schema. Null after nb_error. */
cJSON *nb_claims_document_read(const char *where);

/* configs/claims/tables/NAME.json: figures as a source printed them. Owned by the caller; null after nb_error. */
cJSON *nb_claims_table_read(const char *name);
/* What PyTorch took on some machines, each file of configs/models/readings/ in the order of their names. An array, owned by the caller. */
cJSON *nb_claims_readings(void);
