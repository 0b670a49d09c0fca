// SPDX-License-Identifier: Apache-2.0
/* What a calibration found: noise by group, what can be gated, what that takes. */
#ifndef NB_CALIBRATION_REPORT_H
#define NB_CALIBRATION_REPORT_H

#include <stdio.h>

#include "src/gate/calibration.h"

struct nb_calibration_findings { /* one for each group of the run */
    struct nb_gate_design usual; /* the gate's own plan */
    struct nb_gate_power usual_power;
    double smallest_effect;
    char hopeless[200]; /* why it cannot be gated by that plan at the rule's margins; "" */
    struct nb_recommendation wanted;
};

struct nb_calibration_report {
    const struct nb_calibration_run *run;
    const char *config;
    double effect;                            /* that is wanted */
    struct nb_calibration_findings *findings; /* owned */
    int noisiest; /* the group with the largest spread that can be gated: its plan serves all; -1: none */
};

/* Simulates gates of every group. */
void nb_calibration_report_init(struct nb_calibration_report *report, const struct nb_calibration_run *run,
                                const char *config, double effect);
void nb_calibration_report_release(struct nb_calibration_report *report);

/* table or json. -1 after nb_error. */
int nb_calibration_print(const struct nb_calibration_report *report, const char *format, FILE *out);
/* DIR/calibration.json (reports/schema/calibration.schema.json). -1 after nb_error. */
int nb_calibration_write(const struct nb_calibration_report *report, const char *dir);

#endif
