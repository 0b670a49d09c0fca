// SPDX-License-Identifier: Apache-2.0
/* Error against one parameter at a time: offset/spread ratio rho, scale, eps and row length, each beside the laws that predict it.
 * For the inside of a worker. */
#ifndef NB_SWEEPS_H
#define NB_SWEEPS_H

#include <cjson/cJSON.h>

#include "src/lab/stress/trial.h"

/* [{"axis": "rho"|"scale"|"eps"|"n", "held": {"n":.., "rows":.., "scale":.., "rho":.., "eps":..},
 *   "points": [{"at":.., "state": "ok"|"nan".., "max_ulp":.., "scaled_u":.., "bias_u":.., "gain_u":.., "gain_rms_u":.., "noise_u":..,
 *               "bound_u":.., "eps_effect_u":.., "nan":.., "inf":.., "zero":..} ..],
 *   "predicted": [{"name":.., "points": [[x, y] ..]} ..],     (of gain_rms_u over n, else of scaled_u)
 *   "cliffs": [{"name":.., "at":..} ..]} ..]
 * Figures as in struct point of sweeps.c: errors in u rms(y), u = 2^-p of the output; null where unknown; held leaves out what the axis moves. Two sweeps over eps: where eps and the mean square
 * are alike, and where eps is all there is. A kernel that cannot be scanned gives an empty array.
 * options, each optional: {"rows": 8, "cols": 1024, "seed": 1, "n_max": 16384, "axes": ["rho", ..]}. */
cJSON *nb_sweeps(struct nb_trial *t, const cJSON *options);

/* ---- Error over scale and rho, the whole range of the dtype at once, beside the lines where theory says that it changes. For the
 * inside of a worker. */

/* {"n":.., "rows":.., "eps":.., "log2_scale": [..], "log2_rho": [..],
 *  "log10_ulp": [[..] ..],              largest |error| in ulp at rms(y) (2 u rms(y)); [rho][scale]; null where no element is finite
 *  "state": [["ok"|"nan"|"inf"|"zero"|"unstorable"|"undefined"|"failed" ..] ..],
 *  "predicted": [{"name":.., "line": [[log2 scale, log2 rho] ..]} ..]}
 * or {"reason":..} for a kernel that cannot be scanned. An error of 0 counts as 2^-10 ulp.
 * options, each optional: {"map_rows": 2, "cols": 1024, "seed": 1, "scales": 48, "rhos": 32}. */
cJSON *nb_landscape(struct nb_trial *t, const cJSON *options);

#endif
