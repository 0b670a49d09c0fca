// SPDX-License-Identifier: Apache-2.0
/* Trials of kernels named by key. */
#pragma once

#include "src/lab/stress/trial.h"

/* key: "rmsnorm_serial_scalar_f32/shape:1x4096/eps:1e-6"; the rest has its defaults. plugin: a name in tests/plugins, or null. The
 * test fails where that is no kernel; false: it cannot run on this machine (the test is over). */
bool start_trial(struct nb_trial *t, const char *key, const char *plugin);
/* The kernel, after our own and the plugin are loaded. The test fails where there is none. */
const struct nb_entry *entry_of(const char *plugin, const char *variant);
