#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The program and its kernels for aarch64, built by a cross compiler and emulated (qemu-user): unit tests, then kernels in other processes,
# `info`, `stress` and `probe` in short. PACKAGES: Debian's, of arm64; BUILD, TESTS as in the Makefile. Exit 77 with the reason in the last
# line where something cannot be had.
set -uo pipefail
build=${BUILD:-build-arm}
root=$build/root
for tool in aarch64-linux-gnu-gcc qemu-aarch64-static dpkg pkg-config; do
    command -v "$tool" >/dev/null || { echo "skipped: $tool is missing; apt-get install gcc-aarch64-linux-gnu qemu-user-static"; exit 77; }
done
# shellcheck disable=SC2086 # one word a package
tests/arm/root.sh "$root" ${PACKAGES:?} || exit
root=$(cd "$root" && pwd)
export PKG_CONFIG_LIBDIR=$root/usr/lib/aarch64-linux-gnu/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
export QEMU_LD_PREFIX=$root QEMU_CPU=max,sve256=on
cross() {
    make ARCH=aarch64 BUILD="$build" CC="${CCACHE:-} aarch64-linux-gnu-gcc --sysroot=$root" "$@"
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
step() { printf '\n== %s (%d s)\n' "$*" "$SECONDS"; }
step "build"
cross check-unit-build || exit 1

export NORMBENCH_KERNELS=$build/tests/kernels/libnormkernels.so
# OpenBLAS finds no CPU that it knows: the emulated one has the name of none.
unit_tests() {
    NORMBENCH_TEST_LAYOUT=$build/tests/kernels/layout_2.so NORMBENCH_DATA=tests/data NORMBENCH_CONFIGS=configs \
        NORMBENCH_TEST_PLUGINS=$build/tests/plugins OPENBLAS_CORETYPE=ARMV8 \
        tests/unit.sh qemu-aarch64-static "$build/tests/normbench-tests" --timeout 1800 "-j$(nproc)" ${1:+--filter "$1"} |
        tee -a "$work/counts"
}
step "unit tests"
unit_tests "${TESTS:-}" || failed=1
[ -z "${TESTS:-}" ] || exit "$failed"

# Most CPUs of ARM have NEON and no SVE of 256 bits: what asks for vectors has those of 128.
step "on a CPU without SVE"
QEMU_CPU=neoverse-n1 unit_tests '@(plan|claims_widths|digests|config|summary)/*' || failed=1
QEMU_CPU=neoverse-n1 qemu-aarch64-static "$build/normbench" run quick --list >"$work/cases" || failed=1
[ "$(grep -c '_v128_' "$work/cases")" -ge 100 ] || { echo "quick has $(wc -l <"$work/cases") cases there"; failed=1; }

step "kernels of programs and of Python"
# Programs of this architecture by the emulator, the machine's own interpreter as it is.
mkdir -p "$build/emulated"
for program in normbench normbench-played; do
    printf '#!/bin/sh\nexec qemu-aarch64-static "%s/%s" "$@"\n' "$(realpath "$build")" $program >"$build/emulated/$program"
    chmod +x "$build/emulated/$program"
done
ln -sfn ../tests "$build/emulated/tests"
BUILD=$build/emulated NORMBENCH_KERNELS=$(realpath "$NORMBENCH_KERNELS") tests/cli/run.sh programs python | tee -a "$work/counts" || failed=1

normbench=(qemu-aarch64-static "$build/normbench")
step "info"
"${normbench[@]}" info >"$work/info" || failed=1
sed -n 1,16p "$work/info"
grep -Eq 'nan|libcpuid|bare metal$' "$work/info" && { echo "info says what it cannot know"; failed=1; }
step "stress"
# A budget of seconds is one of minutes here: the plan's estimate of time is that of a CPU of its own.
"${normbench[@]}" stress --kernel 'rmsnorm_twopass,layernorm_fast' --dtype bf16 --width 128,256 --no-search --budget 2 --no-plots \
    --out "$work/stress" >"$work/grades" || failed=1
tail -n 30 "$work/grades"
step "probe"
"${normbench[@]}" probe 'rmsnorm_twopass_v*_f32' >"$work/probe" || failed=1
cat "$work/probe"
for width in 128 256; do # a width that the CPU has not is left out, which is no failure
    grep -q "^rmsnorm_twopass_v${width}_f32, called" "$work/probe" || { echo "nothing of width $width ran"; failed=1; }
done
step "done"
grep -E '^(unit tests|cli): |^\[SKIP\]' "$work/counts"
exit "$failed"
