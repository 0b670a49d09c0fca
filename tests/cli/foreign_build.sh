#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Another project's build, by the flags that the guide prints: what did not change passes untimed wherever and in whatever order it was built,
# and what changed is timed. With each C++ compiler that is here.
set -eu
[ "$(uname -m)" = x86_64 ] || { echo "skipped: machine code is compared on x86-64"; exit 77; }
fail() { echo "$*"; cat "$WORK/out" "$WORK/err"; exit 1; }
guide=cmd/guide/gate.md
read -ra compile <<<"$(sed -n 's/^ *compile: //p' $guide)"
read -ra link <<<"$(sed -n 's/^ *link: //p' $guide)"
export TMPDIR=$WORK
echo '{ "blocks": [ { "op": ["rmsnorm", "layernorm"], "shape": "16x256" } ] }' >"$WORK/config.json"
# COMPILER SIDE SOURCES... [-- FLAGS...]
build() {
    local cxx=$1 side=$2 sources=()
    shift 2
    while [ $# -gt 0 ] && [ "$1" != -- ]; do sources+=("$1.cpp"); shift; done
    [ $# = 0 ] || shift
    mkdir -p "$WORK/$cxx-$side"
    cp tests/foreign/*.?pp "$WORK/$cxx-$side"
    (cd "$WORK/$cxx-$side" && "$cxx" -O2 -std=c++17 -Wall -Wextra -Wpedantic -Werror -I"$OLDPWD/kernels" "${compile[@]}" "$@" \
        "${sources[@]}" "${link[@]}" -o ../"$cxx-$side.so")
}
tried=0
for cxx in g++ clang++; do
    command -v $cxx >/dev/null || continue
    tried=$((tried + 1))
    build $cxx baseline norm rms layer table
    build $cxx moved table layer rms norm -- -g
    gate=("$NORMBENCH" gate --config "$WORK/config.json" --baseline "$WORK/$cxx-baseline.so" --quiet)
    "${gate[@]}" --candidate "$WORK/$cxx-moved.so" >"$WORK/out" 2>"$WORK/err" || fail "$cxx: the same sources do not pass"
    grep -q '2 PASS (identical code)' "$WORK/out" || fail "$cxx: the same sources were timed"
    [ $tried = 1 ] || continue
    build $cxx changed table rms layer norm -- -DTWICE # no time to say more of it than its instructions
    code=0
    "${gate[@]}" --candidate "$WORK/$cxx-changed.so" --budget 0.001 >"$WORK/out" 2>"$WORK/err" || code=$?
    grep -q 'PASS (identical code)  *layer_f32' "$WORK/out" && grep -qE '^INCONCLUSIVE  *rms_f32 .*\+[0-9]' "$WORK/out" && [ $code = 4 ] ||
        fail "$cxx: exit code $code; layer_f32 did not change and rms_f32 does its work twice"
done
[ $tried -gt 0 ] || { echo "skipped: no C++ compiler"; exit 77; }
