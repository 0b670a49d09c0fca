// SPDX-License-Identifier: Apache-2.0
#include "src/core/params.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/text.h"

static const double largest = 3.4e38; /* what f32 can hold, about */

/* "values(g0,g1,..)" */
static bool parse_values(const char *text, struct nb_params *params) {
    const char *p = text + 6;
    char *end;
    if (strncmp(text, "values(", 7) != 0) return false;
    *params = (struct nb_params){.kind = NB_PARAMS_OF_VALUES};
    while ((*p == '(' || *p == ',') && params->n < NB_PARAMS_VALUES) {
        const double value = strtod(p + 1, &end);
        if (end == p + 1 || !(fabs(value) <= largest)) return false;
        params->values[params->n++] = value;
        p = end;
    }
    return strcmp(p, ")") == 0;
}

/* "fixed(g)", "fixed(g,b)" */
static bool parse_fixed(const char *text, struct nb_params *params) {
    char *end;
    if (strncmp(text, "fixed(", 6) != 0) return false;
    *params = (struct nb_params){.kind = NB_PARAMS_FIXED};
    params->gamma = strtod(text + 6, &end);
    if (end == text + 6) return false;
    if (*end == ',') {
        const char *second = end + 1;
        params->beta = strtod(second, &end);
        if (end == second) return false;
    }
    return strcmp(end, ")") == 0 && fabs(params->gamma) <= largest && fabs(params->beta) <= largest;
}

int nb_params_parse(const char *text, struct nb_params *params, char *reason, size_t n) {
    static const struct {
        const char *name;
        enum nb_params_kind kind;
    } kinds[] = {{"", NB_PARAMS_OF_DRAWS},
                 {NB_PARAMS_DRAWN, NB_PARAMS_OF_DRAWS},
                 {"negative", NB_PARAMS_NEGATIVE},
                 {"zeros", NB_PARAMS_ZEROS},
                 {"tiny", NB_PARAMS_TINY}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(text, kinds[i].name) != 0) continue;
        *params = (struct nb_params){.kind = kinds[i].kind};
        return 0;
    }
    if (parse_fixed(text, params) || parse_values(text, params)) return 0;
    return nb_reason(
        reason, n,
        "is not one of drawn, negative, zeros, tiny, fixed(GAMMA), fixed(GAMMA,BETA), values(GAMMA,GAMMA,..)");
}

double nb_params_gamma(const struct nb_params *params, int64_t i, double z) {
    const double drawn = 1 + 0.3 * z;
    switch (params->kind) {
    case NB_PARAMS_NEGATIVE:
        return -fabs(drawn);
    case NB_PARAMS_ZEROS:
        return i % 3 == 1 ? 0 : drawn;
    case NB_PARAMS_TINY:
        return 0x1p-8 * z;
    case NB_PARAMS_FIXED:
        return params->gamma;
    case NB_PARAMS_OF_VALUES:
        return params->values[i % params->n];
    default:
        return drawn;
    }
}

double nb_params_beta(const struct nb_params *params, int64_t i, double z) {
    if (params->kind == NB_PARAMS_FIXED) return params->beta;
    return params->kind == NB_PARAMS_ZEROS && i % 3 == 1 ? 0 : 0.1 * z;
}
