#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The device functions, where there is a compiler for GPUs: registers, and how memory is accessed, by the table tests/cuda/code.json; one of each
# kind for sm_90, with CODE=all every one and those of other GPUs (cuda_build.sh). None keeps anything in local memory, and one that says it is wide
# moves 16 bytes at a time.
. tests/support/cli.sh
nvcc=${CUDA_HOME:+$CUDA_HOME/bin/nvcc}
nvcc=${nvcc:-$(command -v nvcc || echo peers/cuda/bin/nvcc)}
[ -x "$nvcc" ] || { echo "no nvcc: make cuda-compiler gets one"; exit 77; }
# A compiler may come without the tools that read its code.
tools=
for folder in "$(dirname "$nvcc")" "$(dirname "$(command -v nvdisasm || echo ./none)")" peers/cuda/bin; do
    [ -n "$tools" ] || { [ -x "$folder/cuobjdump" ] && [ -x "$folder/nvdisasm" ] && tools=$folder; }
done
[ -n "$tools" ] || { echo "no cuobjdump and nvdisasm beside $nvcc: make cuda-compiler gets them"; exit 77; }
make -s -j2 BUILD="$BUILD" NVCC="$nvcc" CODE="${CODE-}" cuda-code || exit 1
/usr/bin/python3 tests/cuda/code.py --check tests/cuda/code.json "$nvcc" "$tools" "$BUILD/cuda/code${CODE-}"/*.cubin || bad "tests/cuda/code.py NVCC TOOLS CUBIN.. writes the table anew"
# What a narrow store and a local array look like is known.
/usr/bin/python3 - <<'PY' || bad "does not see what it looks for"
import runpy
code = runpy.run_path("tests/cuda/code.py")
good = dict(registers=32, stack=0, local=0, wide_loads=4, other_loads=0, wide_stores=2, other_stores=4, generic_stores=0)
def said(name, **changed):
    return len(list(code["complaints"](name, dict(good, **changed))))
assert said("rows_f32_wide_32") == 0
assert said("rows_f32_wide_32", wide_stores=0, other_stores=12) == 1
assert said("rows_f32_wide_32", wide_loads=0, other_loads=16) == 1
assert said("rows_f32_narrow_32", wide_loads=0, other_loads=16, other_stores=16) == 0
assert said("rows_f32_narrow_32", local=2) == said("rows_f32_narrow_32", stack=8) == said("columns_add", generic_stores=1) == 1
PY
exit "$failed"
