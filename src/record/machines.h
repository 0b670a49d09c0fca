// SPDX-License-Identifier: Apache-2.0
/* Which machine a shard comes from: fingerprints that differ in anything are different machines. */
#ifndef NB_MACHINES_H
#define NB_MACHINES_H

#include <cjson/cJSON.h>

/* The index in machines ([{"fingerprint", "differs"}]) of this fingerprint, which is added when none is equal. "differs" names
 * every path whose value is not that of the first machine: "cpu.model: \"A\", first machine \"B\"". */
int nb_machine_index(cJSON *machines, const cJSON *fingerprint);

#endif
