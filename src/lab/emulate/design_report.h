// SPDX-License-Identifier: Apache-2.0
/* How accurate a design is on given rows: the figures that a kernel's check has, against the exact result. */
#ifndef NB_DESIGN_REPORT_H
#define NB_DESIGN_REPORT_H

#include <cjson/cJSON.h>

#include "src/accuracy/accuracy.h"
#include "src/lab/emulate/design_rows.h"

struct nb_design_report {
    /* Of all elements, those included whose loss is predicted. worst_ratio, n_beyond, loss and n_rows_lost are about the bound,
     * bias_sigma about the bias that is predicted; meaningless where no_bound says why there is none. The witness is the
     * element with the largest error in ulp. */
    struct nb_accuracy accuracy;
    const char *no_bound;
    double nmse;        /* sum of squared errors over sum of squares, of the elements that are numbers in both */
    double rstd_bias_u; /* mean over rows of computed / exact - 1, in u of the store: the gain of RMSNorm */
    double rstd_sd_u;   /* and its standard deviation over rows */
    int64_t chain;
};

/* seed: of stochastic rounding. */
void nb_design_measure(struct nb_design_report *report, const struct nb_design *d, const struct nb_design_rows *rows,
                       uint64_t seed);
cJSON *nb_design_report_to_json(const struct nb_design_report *report, const struct nb_design *d);

#endif
