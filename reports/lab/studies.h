// SPDX-License-Identifier: Apache-2.0
/* The studies of stress.json that are drawn: of each kernel and dtype the first, by op. Texts that a file leaves out are "". */
#ifndef NB_STUDIES_H
#define NB_STUDIES_H

#include <cjson/cJSON.h>
#include <stddef.h>

#include "kernels/kernel.h"

struct nb_study_line {
    const cJSON *json;   /* borrowed */
    char *op, *kernel;   /* owned; op "" when unknown */
    const char *variant; /* borrowed */
    int dtype;           /* enum nb_dtype */
};

struct nb_studies {
    struct nb_study_line *list; /* as in the file */
    size_t n;
    size_t n_repeated; /* left out: another width or formula of a kernel that is there already */
};
void nb_studies_init(struct nb_studies *studies, const cJSON *stress);
void nb_studies_release(struct nb_studies *studies);

/* The sweep over an axis (the which-th of that axis); null. */
const cJSON *nb_study_sweep(const struct nb_study_line *study, const char *axis, int which);
/* Dtypes that any of the chosen studies has, in order, as panels: panel_of[dtype] or -1. Returns how many. op, kernel: null: any. */
size_t nb_studies_panels(const struct nb_studies *studies, const char *op, const char *kernel,
                         int panel_of[NB_N_DTYPES]);

#endif
