// SPDX-License-Identifier: Apache-2.0
/* Where a kernel of the declared formula breaks down, in closed form: what a map is drawn to confirm. */
#ifndef NB_BREAKDOWN_H
#define NB_BREAKDOWN_H

#include <cjson/cJSON.h>

#include "src/lab/stress/scan_laws.h"

/* Lines of breakdown over (log2 scale, log2 rho), each where it lies inside the given ranges:
 * [{"name":"x^2 overflows", "line":[[log2 scale, log2 rho] ..]} ..] */
cJSON *nb_breakdown_lines(const struct nb_scan_theory *t, const double log2_scale[2], const double log2_rho[2]);
/* The same lines where they cross a given rho: [{"name":.., "at": scale} ..]. */
cJSON *nb_breakdown_scales(const struct nb_scan_theory *t, double rho);
/* Values of eps at which its stored form changes its nature: [{"name":.., "at": eps} ..]. */
cJSON *nb_breakdown_eps(const struct nb_scan_theory *t);

#endif
