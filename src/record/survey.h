// SPDX-License-Identifier: Apache-2.0
/* Everything that can be said of this machine before a run, for `normbench info`: one JSON document. */
#ifndef NB_SURVEY_H
#define NB_SURVEY_H

#include <cjson/cJSON.h>

/* The sections of nb_fingerprint(), then
 *   load       nb_load_to_json()
 *   n_allowed  CPUs that this process may use
 *   widths     [{name, runs, reason, n_variants}]: which SIMD widths of the loaded kernels run here
 *   counters   [{name, source, available, reason}]
 *   warnings   [text]: what will make timings here noisy, with what can be done
 *   tools      [{name, path, purpose, install}]: path null where it is missing
 *   folders    {configs, data}: null where there is none
 *   data       [{name, rows, cols}]: data sets of real rows */
cJSON *nb_survey(void);

#endif
