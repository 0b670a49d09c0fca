#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The device functions, where there is a compiler for GPUs: registers, and how memory is accessed, by the table tests/cuda/code.json; one of each
# kind, with CODE=all every one for sm_90 (cuda_build.sh). None keeps anything in local memory or has too many registers, and one that says it is wide moves 16 bytes at a
# time. The fast ones have all loads of a row ahead of the first wait, enough of them on a processor, and few instructions (tests/cuda/trace.py).
. tests/support/cli.sh
nvcc=${CUDA_HOME:+$CUDA_HOME/bin/nvcc}
nvcc=${nvcc:-$(command -v nvcc || echo peers/cuda/bin/nvcc)}
[ -x "$nvcc" ] || { echo "no nvcc: make cuda-compiler gets one"; exit 77; }
# A compiler may come without the tools that read its code.
tools=
for folder in "$(dirname "$nvcc")" "$(dirname "$(command -v nvdisasm || echo ./none)")" peers/cuda/bin; do
    [ -n "$tools" ] || { [ -x "$folder/cuobjdump" ] && [ -x "$folder/nvdisasm" ] && tools=$folder; } # cuobjdump calls nvdisasm
done
[ -n "$tools" ] || { echo "no cuobjdump and nvdisasm beside $nvcc: make cuda-compiler gets them"; exit 77; }
make -s -j2 BUILD="$BUILD" NVCC="$nvcc" CODE="${CODE-}" cuda-code || exit 1
export PATH=$tools:$PATH PYTHONDONTWRITEBYTECODE=1
/usr/bin/python3 tests/cuda/code.py --check tests/cuda/code.json "$nvcc" "$tools" "$BUILD/cuda/code${CODE-}"/*.cubin || bad "tests/cuda/code.py NVCC TOOLS CUBIN.. writes the table anew"
# What a narrow store and a local array look like is known.
/usr/bin/python3 - <<'PY' || bad "does not see what it looks for"
import runpy, sys
sys.path.insert(0, "tests/cuda")
code = runpy.run_path("tests/cuda/code.py")
good = dict(registers=32, stack=0, local=0, wide_loads=4, other_loads=0, wide_stores=2, other_stores=4, generic_stores=0)
def said(name, **changed):
    return len(list(code["complaints"](name, dict(good, **changed))))
assert said("rows_f32_wide_32") == 0
assert said("rows_f32_wide_32", wide_stores=0, other_stores=12) == 1
assert said("rows_f32_wide_32", wide_loads=0, other_loads=16) == 1
assert said("rows_f32_narrow_32", wide_loads=0, other_loads=16, other_stores=16) == 0
assert said("kept_bf16_wide_rms_f32_warp", registers=96, other_stores=0) == 1
assert said("rows_f32_narrow_32", local=2) == said("rows_f32_narrow_32", stack=8) == said("columns_add", generic_stores=1) == 1
# Loads that wait for each other; a branch and a loop that are followed.
from trace import Instruction, Thread, in_flight
def instruction(at, name, *operands, mods=(), sets=7, waits=0, predicate=None):
    return Instruction(at, predicate, name, list(mods), list(operands), 1, sets, waits)
first, second = (instruction(at, "LDG", "R%d" % r, "desc[UR4][R2.64]", mods=["128"], sets=s) for at, r, s in ((0, 4, 0), (16, 8, 1)))
use, end = instruction(32, "FADD", "R0", "R4", "R5", waits=1), instruction(64, "EXIT")
assert in_flight(Thread([first, second, use, end], {0: 32}).run().log) == 32
assert in_flight(Thread([first, use, second, end], {0: 32}).run().log) == 16
loop = [instruction(0, "VIADD", "R0", "R0", "0x1"), instruction(16, "ISETP", "P0", "PT", "R0", "0x5", "PT", mods=["GE", "AND"]),
        instruction(32, "BRA", "0x0", predicate="!P0"), end]
assert len(Thread(loop, {0: 32}).run().log) == 16
PY
exit "$failed"
