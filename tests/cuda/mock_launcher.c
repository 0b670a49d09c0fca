// SPDX-License-Identifier: Apache-2.0
/* Runs launches in emulation, for the driver that is a mock (tests/plugins/mock_cuda.c). */
#include "kernels/cuda/launch.h"
#include "kernels/kernel.h"

NB_EXPORT int mock_launcher_run(const struct nb_launch *launch);
int mock_launcher_run(const struct nb_launch *launch) { return nb_launch(launch); }
