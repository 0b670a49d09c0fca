#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is installed works on its own: configs, data, kernels and adapters to peers are found, and the example plugin builds against the
# installed header by pkg-config alone.
# Slow, 5 s and the build of all kernels: make install builds what it installs.
set -eu
# An adapter that needs no library of others lies beside those that are built.
mkdir -p "$BUILD/peers"
adapter=$(cd "$BUILD" && pwd)/peers/fakelib.so
trap 'rm -f "$adapter"' EXIT
cp "$BUILD/tests/plugins/fakelib.so" "$adapter"
make --no-print-directory BUILD="$BUILD" PREFIX="$WORK/prefix" install >"$WORK/make.log" 2>&1 || { cat "$WORK/make.log"; exit 1; }
export PKG_CONFIG_PATH=$WORK/prefix/lib/pkgconfig
cp tests/plugins/example.c "$WORK/mine.c"
# shellcheck disable=SC2046 # words on purpose
gcc -O2 -fPIC -shared $(pkg-config --cflags normbench) -o "$WORK/mine.so" "$WORK/mine.c" $(pkg-config --libs normbench) -lm
for built in "$BUILD"/peers/*.so; do
    cmp "$built" "$WORK/prefix/lib/normbench/peers/${built##*/}" || { echo "$built is not installed"; exit 1; }
done
for built in "$BUILD"/libnormkernels*.so; do
    cmp "$built" "$WORK/prefix/lib/${built##*/}" || { echo "$built is not installed"; exit 1; }
done
for file in include/normbench/kernel.h include/normbench/function.h share/man/man1/normbench.1 share/man/man1/normbench-gate.1 \
    share/man/man1/normbench-new-plugin.1 share/bash-completion/completions/normbench share/zsh/site-functions/_normbench \
    share/fish/vendor_completions.d/normbench.fish; do
    [ -s "$WORK/prefix/$file" ] || { echo "$file is not installed"; exit 1; }
done
cd "$WORK"
unset NORMBENCH_KERNELS NORMBENCH_CONFIGS NORMBENCH_DATA NORMBENCH_PEERS
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
cd - >/dev/null
make --no-print-directory BUILD="$BUILD" PREFIX="$WORK/prefix" uninstall >/dev/null
[ ! -e "$WORK/prefix/bin/normbench" ]
[ -z "$(find "$WORK/prefix/share" -type f)" ] || { echo "uninstall leaves $(find "$WORK/prefix/share" -type f)"; exit 1; }
[ ! -e "$WORK/prefix/lib/normbench" ]
