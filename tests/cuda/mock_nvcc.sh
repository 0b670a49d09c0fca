#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A compiler for GPUs that writes no code, for a driver that runs none (tests/plugins/mock_cuda.c): NVCC=tests/cuda/mock_nvcc.sh.
while [ "$1" != -o ]; do shift; done
: >"$2"
