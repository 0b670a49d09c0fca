#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The emulated kernels under AddressSanitizer and UndefinedBehaviorSanitizer, each once: BUILD is a build with them (make check-long).
set -u
cd "$(dirname "$0")/../.." || exit 1
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
# Rows of part of a warp, of a block, too long for registers; wide and not.
cat >"$WORK/c.json" <<'JSON'
{ "launches": 0, "blocks": [
  { "backend": "cuda-emulated", "op": ["rmsnorm", "layernorm", "add_rmsnorm", "prmsnorm"], "pass": ["forward", "backward"], "dtype": ["f32", "bf16"], "shape": "3x7" },
  { "backend": "cuda-emulated", "kernel": "*_row", "pass": ["forward", "backward"], "dtype": "f16", "shape": ["3x320", "1x9000"] },
  { "backend": "cuda-emulated", "op": "batchnorm", "pass": ["forward", "backward"], "dtype": ["f32", "bf16"], "shape": ["nchw:2x3x4x4", "nhwc:3x5x5x7"] } ] }
JSON
export ASAN_OPTIONS=detect_stack_use_after_return=0 # threads have stacks of their own here
NORMBENCH_EMULATED="clusters=0" NORMBENCH_KERNELS=$BUILD/tests/kernels/libnormkernels.so "$BUILD/normbench" run "$WORK/c.json" --case-timeout 300 --no-stress --no-plots --out "$WORK/run" >"$WORK/log" 2>&1
code=$?
grep -E 'ERROR: AddressSanitizer|runtime error' "$WORK/log" && code=1
[ "$code" = 0 ] || tail -n 30 "$WORK/log"
echo "emulated kernels, sanitized: $(grep -om 1 '[0-9]* cases' "$WORK/log"), exit $code"
exit "$code"
