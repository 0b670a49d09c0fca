#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a person reads fits its screen, in a pipe as on a terminal, with colours and without: 80 columns, and 120. Commands, and words as long as
# a path or a key, stay whole.
. tests/support/cli.sh
export LC_ALL=C # no character of several bytes
plugins=$BUILD/tests/plugins

# fits WIDTH WHAT: the lines of $WORK/text.
fits() {
    local wide
    wide=$(sed 's/\x1b\[[0-9;]*m//g' "$WORK/text" | awk -v width="$1" '
        length($0) <= width || $1 ~ /normbench/ { next }
        { for (i = 1; i <= NF; i++) if (length($i) > width - 24) next; print length($0) ": " $0 }' | head -n 3)
    [ -z "$wide" ] || bad "$2: wider than $1 columns:"$'\n'"$wide"
}

# reads ARGUMENTS: both streams of a command that prints for people, whatever it ends with.
reads() {
    local options
    for options in "80 always" "120 never"; do # colours take no columns
        # shellcheck disable=SC2086 # words on purpose
        set -- ${options} "$@"
        COLUMNS=$1 "$NORMBENCH" "${@:3}" --color "$2" >"$WORK/text" 2>&1
        [ -s "$WORK/text" ] || bad "normbench ${*:3} says nothing"
        fits "$1" "normbench ${*:3}, --color $2"
        set -- "${@:3}"
    done
}

small=(--filter '*64x384*' --axis dtype=f32 --launches 2 --blocks 2 --no-counters --no-plots)
"$NORMBENCH" run quick "${small[@]}" --plugin "$plugins/example.so" --out "$WORK/a" >/dev/null 2>&1 || bad "run: exit $?"
"$NORMBENCH" run quick "${small[@]}" --out "$WORK/b" >/dev/null 2>&1 || bad "run: exit $?"
"$NORMBENCH" stress --kernel rmsnorm_lowp,rmsnorm_fast --width 256 --search 1 --out "$WORK/s" >/dev/null 2>&1
for format in summary table; do reads report "$WORK/a" --no-write --format "$format"; done
reads report "$WORK/s" --no-write
reads compare "$WORK/a" "$WORK/b"
reads compare "$WORK/a" "$WORK/a"
for what in kernels configs axes data shapes peers formats; do reads list "$what"; done
reads info
reads tune --show
reads run quick --list --filter '*64x384*'
reads emulate --list
reads emulate llama/store:f16 truncate layernorm/variance:onepass --rows 4 --n 64
reads emulate rmsnorm llama --quantize all --rows 2 --n 64
reads limits --dtype f16 --eps 1e-6
reads limits --dtype bf16 --design layernorm
reads probe rmsnorm_twopass_scalar_f32
reads replay rmsnorm_fast_scalar_f32/shape:4x64 --launches 1 --blocks 2
reads tolerance --dtype bf16 --n 64 --trials 8 --rows 2
reads claims --list
reads claims --explain speed-paper-range
reads gate --baseline "$plugins/gate_old.so" --candidate "$plugins/gate_new.so" --kernel '*zeros*'
reads gate --calibrate --kernel 'rmsnorm_twopass' --filter '*_scalar_f32*' --axis shape=4x64 --axis dtype=f32 --cases 1 --launches 6 --blocks 8
reads try "$plugins/wrong.so" --budget 1 --out "$WORK/try" # the second time its folder is there
exit "$failed"
