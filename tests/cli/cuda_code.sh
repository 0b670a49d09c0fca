#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The device functions, where there is a compiler for GPUs: none of them keeps anything in local memory on sm_90.
# Slow, 60 s: every device function is compiled.
. tests/support/cli.sh
[ -n "${CUDA_HOME-}" ] || command -v nvcc >/dev/null || [ -x peers/cuda/bin/nvcc ] || { echo "no nvcc: make cuda-compiler gets one"; exit 77; }
make -s -j2 BUILD="$BUILD" cuda-code || exit 1
n=$(cat "$BUILD"/cuda/*.ptxas | grep -c 'bytes stack frame')
[ "$n" -gt 50 ] || bad "the assembler speaks of $n functions"
spilled=$(cat "$BUILD"/cuda/*.ptxas | grep -A 1 'Function properties' | paste - - - | grep -v ' 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads')
[ -z "$spilled" ] || bad "in local memory: $spilled"
exit "$failed"
