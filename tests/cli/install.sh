#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is installed works on its own: configs, data, kernels and adapters to peers are found, the example plugin builds against the
# installed header by pkg-config alone, an adapter builds from the installed sources. What is installed is uninstalled.
set -eu
fail() { echo "$*"; exit 1; }
# An adapter that needs no library of others lies beside those that are built.
mkdir -p "$BUILD/peers"
adapter=$(cd "$BUILD" && pwd)/peers/fakelib.so
trap 'rm -f "$adapter"' EXIT
cp "$BUILD/tests/plugins/fakelib.so" "$adapter"
install() { # of what is built, with these variables
    make --no-print-directory BUILD="$BUILD" KERNEL_LIBRARY="$kernels" "$@" >"$WORK/make.log" 2>&1 || { cat "$WORK/make.log"; exit 1; }
}
kernels=${NORMBENCH_KERNELS:-$BUILD/libnormkernels.so}
files() { (cd "$1" && find . -type f | sort); }
install PREFIX="$WORK/prefix" install-built
export PKG_CONFIG_PATH=$WORK/prefix/share/pkgconfig
cp tests/plugins/example.c "$WORK/mine.c"
# shellcheck disable=SC2046 # words on purpose
gcc -O2 -fPIC -shared $(pkg-config --cflags normbench) -o "$WORK/mine.so" "$WORK/mine.c" $(pkg-config --libs normbench) -lm
for built in "$BUILD"/peers/*.so; do
    cmp "$built" "$WORK/prefix/lib/normbench/peers/${built##*/}" || fail "$built is not installed"
done
for built in "$kernels" "$BUILD"/libnormkernels_cuda*.so; do
    [ ! -e "$built" ] || cmp "$built" "$WORK/prefix/lib/normbench/${built##*/}" || fail "$built is not installed"
done
for file in include/normbench/kernel.h include/normbench/function.h share/man/man1/normbench.1 share/man/man1/normbench-gate.1 \
    share/man/man1/normbench-new-plugin.1 share/bash-completion/completions/normbench share/normbench/python/normbench/models/worker.py; do
    [ -s "$WORK/prefix/$file" ] || fail "$file is not installed"
done

# ---- a package's root: the same files, that know the place where they will be ----------------------------------------------------------
install PREFIX=/opt/n DESTDIR="$WORK/root" install-built
diff <(files "$WORK/prefix") <(files "$WORK/root/opt/n") || fail "DESTDIR changes what is installed"
grep -qx 'prefix=/opt/n' "$WORK/root/opt/n/share/pkgconfig/normbench.pc" || fail "normbench.pc knows another prefix"
grep -rlF "$WORK" "$WORK/root/opt/n/share" && fail "DESTDIR is in files"

# ---- used from another folder, by its path ------------------------------------------------------------------------------------------------
tree=$PWD
cd "$WORK"
unset NORMBENCH_KERNELS NORMBENCH_CONFIGS NORMBENCH_DATA NORMBENCH_PEERS
export XDG_DATA_HOME=$WORK/data
prefix/bin/normbench list kernels --plugin ./mine.so | grep -q '^mine:'
prefix/bin/normbench list configs | grep -q quick
prefix/bin/normbench claims --list | grep -q speed-paper-range
prefix/bin/normbench list data | grep -q minilm_layer0_out
prefix/bin/normbench list kernels --peer fakelib | grep -q '^fakelib:rmsnorm'
cp prefix/lib/normbench/peers/fakelib.so prefix/lib/normbench/peers/ggml.so
prefix/bin/normbench list peers --format csv | grep -q '^ggml,built,found,fakelib 1.0'
prefix/bin/normbench run quick --axis op=rmsnorm --axis dtype=f32 --axis width=256,native --plugin ./mine.so --filter minilm_layer0_out \
    --filter 'mine:*' --launches 1 --blocks 2 --no-counters --no-plots --format json >results.json
/usr/bin/python3 - <<'PY'
import json
records = json.load(open("results.json"))["records"]
mine = [r for r in records if r["key"].startswith("mine:")]
assert mine and all(r["status"] == "ok" for r in mine), mine
PY

# The user's own adapter, of a source that needs no library, which is said to be there, so that nothing is downloaded.
rm prefix/lib/normbench/peers/ggml.so
if python3 -m pip --version >/dev/null 2>&1; then
    mkdir -p data/normbench/libraries/ggml/lib
    touch data/normbench/libraries/ggml/lib/libggml-cpu.so
    cp prefix/share/normbench/kernels/peers/wheels/ggml.txt data/normbench/libraries/ggml/complete
    cat >prefix/share/normbench/kernels/peers/ggml.c <<'C'
#include "kernels/peers/adapter.h"
int peer_use(const char *library, char *reason, size_t n) { return (void)library, (void)reason, (void)n, -1; }
const char *peer_version(void) { return "none"; }
int peer_open(int n_threads) { return n_threads; }
void peer_close(void) {}
const char *peer_applicable(const struct nb_kernel *k, const struct nb_call *call) { return (void)k, (void)call, "none"; }
int peer_run(const struct nb_kernel *k, const struct nb_call *call) { return (void)k, (void)call, -1; }
const char *peer_implementation(const struct nb_kernel *k, const struct nb_call *call) { return (void)k, (void)call, "none"; }
void peer_describe(struct nb_kernel *k) { (void)k; }
C
    prefix/bin/normbench peers ggml >out 2>log || fail "normbench peers: $(cat log)"
    [ ! -s out ] || fail "normbench peers prints what is no data: $(cat out)"
    prefix/bin/normbench list peers --format csv | grep -q '^ggml,built,missing' || fail "the user's own adapter is not found"
fi

cd "$tree"
make --no-print-directory BUILD="$BUILD" PREFIX="$WORK/prefix" uninstall >/dev/null
[ -z "$(files "$WORK/prefix")" ] || fail "uninstall leaves $(files "$WORK/prefix")"
[ ! -e "$WORK/prefix/lib/normbench" ] || fail "uninstall leaves folders"

# ---- a packager's flags, and those of the environment, reach no kernel: they are part of what is measured --------------------------
commands() { make -n V=1 BUILD="$WORK/flags" "$@" "$WORK/flags/kernels/rmsnorm_twopass_scalar_f32.o" "$WORK/flags/libnormkernels.so" "$WORK/flags/cmd/main.o"; }
hard="-O1 -fstack-protector-strong -D_FORTIFY_SOURCE=2"
commands VARIANTS=rmsnorm_twopass_scalar_f32 >"$WORK/plain"
CFLAGS=$hard CPPFLAGS=-DX LDFLAGS=-Wl,-z,now commands VARIANTS=rmsnorm_twopass_scalar_f32 PROGRAM_CFLAGS="$hard" PROGRAM_LDFLAGS=-Wl,-z,now >"$WORK/hardened"
grep -q -- '-c -o .*/rmsnorm_twopass_scalar_f32.o' "$WORK/plain" || fail "no command of a kernel"
grep -q -- 'FORTIFY_SOURCE=2.* -c -o .*/cmd/main.o' "$WORK/hardened" || fail "the program is built without a packager's flags"
diff <(grep kernels "$WORK/plain" | grep -v cmd/) <(grep kernels "$WORK/hardened" | grep -v cmd/) || fail "a packager's flags reach kernels"
