// SPDX-License-Identifier: Apache-2.0
#include "src/core/params.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/text.h"

static const double largest = 3.4e38; /* what f32 can hold, about */

/* How many numbers stand in "NAME(a,b,..)", at most so many; 0: it is no such text. */
static int read_numbers(const char *text, const char *name, double *numbers, int most) {
    const char *p = text + strlen(name);
    char *end;
    int n = 0;
    if (strncmp(text, name, strlen(name)) != 0 || *p != '(') return 0;
    do {
        numbers[n] = strtod(p + 1, &end);
        if (end == p + 1 || !(fabs(numbers[n++]) <= largest)) return 0;
        p = end;
    } while (*p == ',' && n < most);
    return strcmp(p, ")") == 0 ? n : 0;
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
    *params = (struct nb_params){.kind = NB_PARAMS_FIXED};
    if (read_numbers(text, "fixed", params->values, 2) > 0) return 0;
    *params = (struct nb_params){.kind = NB_PARAMS_OF_VALUES};
    params->n = read_numbers(text, "values", params->values, NB_PARAMS_VALUES);
    if (params->n > 0) return 0;
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
        return params->values[0];
    case NB_PARAMS_OF_VALUES:
        return params->values[i % params->n];
    default:
        return drawn;
    }
}

double nb_params_beta(const struct nb_params *params, int64_t i, double z) {
    if (params->kind == NB_PARAMS_FIXED) return params->values[1];
    return params->kind == NB_PARAMS_ZEROS && i % 3 == 1 ? 0 : 0.1 * z;
}
