// SPDX-License-Identifier: Apache-2.0
/* The map of a kernel's error. */
#include "src/lab/stress/landscape.h"

#include <math.h>

#include "src/core/dtype.h"
#include "src/core/json.h"
#include "src/lab/stress/breakdown.h"
#include "src/lab/stress/scan.h"
#include "src/lab/stress/scan_laws.h"

struct axis {
    double ends[2];
    int n;
};

static double at(const struct axis *a, int i) { return a->ends[0] + (a->ends[1] - a->ends[0]) * i / (a->n - 1); }

static int64_t integer_or(const cJSON *options, const char *name, int64_t fallback, int64_t least, int64_t most) {
    const double value = nb_json_get_number(options, name);
    return isfinite(value) ? (int64_t)fmin(fmax(value, (double)least), (double)most) : fallback;
}

static cJSON *axis_to_json(const struct axis *a) {
    cJSON *json = cJSON_CreateArray();
    for (int i = 0; i < a->n; i++) cJSON_AddItemToArray(json, cJSON_CreateNumber(at(a, i)));
    return json;
}

/* In ulp at rms(y), half as many as u rms(y); three decimals, since a map has thousands of them. */
static cJSON *error_to_json(const struct nb_scan_point *p) {
    const double ulp = p->scaled_u / 2;
    return isfinite(ulp) ? cJSON_CreateNumber(round(1000 * log10(fmax(ulp, 0x1p-10))) / 1000) : cJSON_CreateNull();
}

static void measure(struct nb_scan *s, const struct axis *scale, const struct axis *rho, cJSON *json) {
    cJSON *errors = cJSON_AddArrayToObject(json, "log10_ulp"), *states = cJSON_AddArrayToObject(json, "state");
    for (int r = 0; r < rho->n; r++) {
        cJSON *error_row = cJSON_CreateArray(), *state_row = cJSON_CreateArray();
        for (int k = 0; k < scale->n; k++) {
            struct nb_scan_point p;
            nb_scan_measure(s, exp2(at(scale, k)), exp2(at(rho, r)), true, &p);
            cJSON_AddItemToArray(error_row, error_to_json(&p));
            cJSON_AddItemToArray(state_row, cJSON_CreateString(nb_point_state_name(p.state)));
        }
        cJSON_AddItemToArray(errors, error_row);
        cJSON_AddItemToArray(states, state_row);
    }
}

cJSON *nb_landscape(struct nb_trial *t, const cJSON *options) {
    const struct nb_format *f = &nb_formats[t->c.dtype];
    const struct axis scale = {{f->emin - f->precision + 1, f->emax}, (int)integer_or(options, "scales", 48, 2, 200)};
    const struct axis rho = {{-4, f->precision + 2}, (int)integer_or(options, "rhos", 32, 2, 200)};
    struct nb_scan s;
    struct nb_scan_theory theory;
    cJSON *json = cJSON_CreateObject();
    if (nb_scan_init(&s, t, integer_or(options, "map_rows", 2, 1, 64), integer_or(options, "cols", 1024, 1, 1 << 20),
                     (uint64_t)integer_or(options, "seed", 1, 0, INT64_MAX)) != 0) {
        nb_json_text(json, "reason", s.trial.reason);
        nb_scan_release(&s);
        return json;
    }
    nb_json_number(json, "n", (double)s.cols);
    nb_json_number(json, "rows", (double)s.rows);
    nb_json_number(json, "eps", s.trial.c.eps);
    cJSON_AddItemToObject(json, "log2_scale", axis_to_json(&scale));
    cJSON_AddItemToObject(json, "log2_rho", axis_to_json(&rho));
    measure(&s, &scale, &rho, json);
    nb_scan_theory_init(&theory, &s);
    cJSON_AddItemToObject(json, "predicted", nb_breakdown_lines(&theory, scale.ends, rho.ends));
    nb_scan_release(&s);
    return json;
}
