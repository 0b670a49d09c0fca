#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# $PROGRAM, or the program and the copies of memory that the gate times beside kernels, built from this repository.
set -euo pipefail
program=$PROGRAM
if [ -z "$program" ]; then
    root=$(cd "$GITHUB_ACTION_PATH/../../.." && pwd)
    make -C "$root" deps
    make -C "$root" -j"$(nproc)" build/normbench build/libnormkernels.so WIDTHS=scalar DTYPES=f32 'KERNELS=copy%'
    program=$root/build/normbench
fi
"$program" --version
echo "program=$program" >>"$GITHUB_OUTPUT"
