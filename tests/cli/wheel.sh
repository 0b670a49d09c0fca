#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Long, 60 s, and PyPI for the tools: make wheel, twine check, the wheel in a fresh virtual environment, used in an empty folder.
. tests/support/cli.sh
pip() { "$WORK/venv/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
KERNEL_LIBRARY=${NORMBENCH_KERNELS:-$BUILD/libnormkernels.so} cmd/packaging/python/wheel.sh >"$WORK/log" 2>&1 || {
    grep -qE 'ConnectionError|Temporary failure|No matching distribution' "$WORK/log" && { echo "skipped: no PyPI"; exit 77; }
    cat "$WORK/log"
    exit 1
}
grep -q 'PASSED' "$WORK/log" || bad "twine: $(cat "$WORK/log")"
wheel=$(echo "$BUILD"/wheel/dist/normbench-*-py3-none-manylinux_*.whl)
[ -e "$wheel" ] || bad "no wheel of the name: $(ls "$BUILD/wheel/dist")"
[ "$(stat -c %s "$wheel")" -lt 20000000 ] || bad "more than 20 MB"
# shellcheck source=/dev/null # a virtual environment of the Python that the tools are in
python3 -m venv "$WORK/venv" && pip install --no-index "$wheel" || bad "is not installed"
mkdir "$WORK/empty"
cd "$WORK/empty" || exit 1
unset NORMBENCH NORMBENCH_KERNELS NORMBENCH_CONFIGS NORMBENCH_DATA NORMBENCH_PEERS NORMBENCH_PYTHON PYTHONPATH
PATH=$WORK/venv/bin:$PATH
normbench list configs >out 2>err || bad "list: $(cat err)"
grep -q quick out || bad "no presets: $(cat out)"
normbench run quick --axis op=rmsnorm --axis dtype=f32 --axis shape=8x64 --axis width=256 --launches 0 --no-plots --out run >out 2>err || bad "run: $(cat err)"
grep -q '^normbench report run' out || bad "says a command that is not this one: $(cat out)"
[ "$(python -m normbench --version)" = "$(normbench --version)" ] || bad "python -m normbench is another"
ldd "$(python -c 'import normbench; print(normbench.program())')" | grep -E 'cpuid|papi|cjson|Zydis|libelf' | grep -v 'normbench.libs' && bad "libraries from outside"
python -m normbench.models --about | grep -q '"missing":".*pip install torch' || bad "the models are not in it, or find a PyTorch"
pip uninstall -y normbench || bad "is not uninstalled"
exit "$failed"
