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
    const char *name;     /* null ends a list */
    const char *fallback; /* as JSON: "1e-5", "[1, 2]", "\"rmsnorm_twopass\"" */
    const char *help;
    bool count; /* a whole number from 1 to NB_PROPERTY_MOST, so that no claim can take all memory */
};
#define NB_PROPERTY_MOST 4096

struct nb_property_call {
    const struct nb_property *property;
    const cJSON *params; /* of the claim, checked; fallbacks are in */
    struct nb_findings *out;
};

struct nb_property {
    const char *name, *summary;
    struct nb_property_param params[8]; /* seven at most */
    /* Parameters whose lists are gone through: the experiment is run for each combination of their values, the last one's changing
     * fastest, and its findings are tagged with these values, in the order of params; tag null: they are not. */
    struct nb_property_each {
        const char *param, *tag;
    } each[4]; /* three at most */
    void (*run)(const struct nb_property_call *call);
};

/* Of all files, null-terminated, by name. */
extern const struct nb_property *const nb_properties[];
const struct nb_property *nb_property_find(const char *name);

/* An owned object: the params given, and the fallbacks of those that are not. -1 after nb_error. */
int nb_property_params(const struct nb_property *p, const struct nb_jsonc *file, const cJSON *given, cJSON **out);
/* All runs of an experiment with such params. */
void nb_property_run(const struct nb_property *p, const cJSON *params, struct nb_findings *out);

/* Parameters of a run; they exist, since they are checked when the claim is read. A list of one is the same as a single value. */
double nb_param_number(const struct nb_property_call *call, const char *name);
int64_t nb_param_whole(const struct nb_property_call *call, const char *name);
const char *nb_param_text(const struct nb_property_call *call, const char *name); /* "" where it is no text */
int nb_param_count(const struct nb_property_call *call, const char *name);
double nb_param_number_at(const struct nb_property_call *call, const char *name, int i); /* NaN where it is no number */
const char *nb_param_text_at(const struct nb_property_call *call, const char *name, int i);

/* Adds an exact finding with the tags of the run; further ones can be added to it. */
struct nb_finding *nb_property_add(const struct nb_property_call *call, const char *name, const char *unit,
                                   double value);
/* The same, but where the value is NaN, a finding without a value, with the reason. */
struct nb_finding *nb_property_add_or(const struct nb_property_call *call, const char *name, const char *unit,
                                      double value, const char *reason);

#endif
