// SPDX-License-Identifier: Apache-2.0
/* Error over scale and rho, the whole range of the dtype at once, beside the lines where theory says that it changes. For the
 * inside of a worker. */
#ifndef NB_LANDSCAPE_H
#define NB_LANDSCAPE_H

#include <cjson/cJSON.h>

#include "src/lab/stress/trial.h"

/* {"n":.., "rows":.., "eps":.., "log2_scale": [..], "log2_rho": [..],
 *  "log10_ulp": [[..] ..],              largest |error| in ulp at rms(y) (2 u rms(y)); [rho][scale]; null where no element is finite
 *  "state": [["ok"|"nan"|"inf"|"zero"|"unstorable"|"undefined"|"failed" ..] ..],
 *  "predicted": [{"name":.., "line": [[log2 scale, log2 rho] ..]} ..]}
 * or {"reason":..} for a kernel that cannot be scanned. An error of 0 counts as 2^-10 ulp.
 * options, each optional: {"map_rows": 2, "cols": 1024, "seed": 1, "scales": 48, "rhos": 32}. */
cJSON *nb_landscape(struct nb_trial *t, const cJSON *options);

#endif
