#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Long, 120 s: every kernel for GPUs is compiled by g++ and run thread by thread, and six mistakes are planted (cuda_emulated.sh,
# cuda_driver.sh).
export ALL=1
bash tests/cli/cuda_emulated.sh && bash tests/cli/cuda_driver.sh
