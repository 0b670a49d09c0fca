// SPDX-License-Identifier: Apache-2.0
/* Small experiments with a known answer, named and with parameters, so that claims can share them: one question each. The file
 * src/claims/property_NAME.c defines `const struct nb_property nb_property_NAME`; the Makefile finds it, and nothing else is edited:
 * the struct holds its line of documentation and its parameters with their defaults (`normbench claims --explain properties`).
 * Where a kernel of the registry computes what the question is about, it is called (norm_call.h); what none computes (WeightNorm, min-max,
 * statistics of n - 1, gradient descent) is written out in the experiment. */
#ifndef NB_PROPERTY_H
#define NB_PROPERTY_H

#include <stdbool.h>
#include <stdint.h>

#include "src/claims/finding.h"

struct nb_property_param {
    const char *name;
    const char *fallback; /* as JSON: "1e-5", "[1, 2]", "\"rmsnorm_twopass\"" */
    const char *help;
    bool count; /* a whole number from 1 to NB_PROPERTY_MOST, so that no claim can take all memory */
};
#define NB_PROPERTY_MOST 4096

struct nb_property_call {
    const cJSON *params; /* of the claim, checked; fallbacks are in */
    bool quick;
};

struct nb_property {
    const char *name, *summary;
    const struct nb_property_param *params;
    size_t n_params;
    void (*run)(const struct nb_property_call *call, struct nb_findings *out);
};

/* Of all files, null-terminated, by name. */
extern const struct nb_property *const nb_properties[];
const struct nb_property *nb_property_find(const char *name);

/* Parameters; they exist, since they are checked when the claim is read. A list of one is the same as a single value. */
double nb_param_number(const struct nb_property_call *call, const char *name);
const char *nb_param_text(const struct nb_property_call *call, const char *name); /* "" where it is no text */
int nb_param_count(const struct nb_property_call *call, const char *name);
double nb_param_number_at(const struct nb_property_call *call, const char *name, int i); /* NaN where it is no number */
const char *nb_param_text_at(const struct nb_property_call *call, const char *name, int i);
/* An owned object: the params given, and the fallbacks of those that are not. -1 after nb_error. */
int nb_property_params(const struct nb_property *p, const struct nb_jsonc *file, const cJSON *given, cJSON **out);

#endif
