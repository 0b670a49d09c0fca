#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Functions and kernels of other projects, in C and C++, through the gate: the same sources pass untimed by the flags that the guide prints, and what
# changed, is wrong, breaks or is missing is named. Nothing is said of times but their form.
. tests/support/gate.sh
[ "$(uname -m)" = x86_64 ] || { echo "skipped: machine code is compared on x86-64"; exit 77; }
options=(--quiet --case-timeout 600) # only the function that hangs is waited for no longer than a moment
read -ra compile <<<"$(sed -n 's/^ *compile: //p' cmd/guide/gate.md)"
read -ra link <<<"$(sed -n 's/^ *link: //p' cmd/guide/gate.md)"
cxx=g++
only_gxx=$(sed -n 's/^ *g++: *\([^ ]*\) .*/\1/p' cmd/guide/gate.md)
command -v $cxx >/dev/null || { cxx=clang++ only_gxx=-g; }
command -v $cxx >/dev/null || { echo "skipped: no C++ compiler"; exit 77; }

# ---- kernels of several files, wherever and in whatever order they are built ---------------------------------------------
echo '{ "blocks": [ { "op": ["rmsnorm", "layernorm"], "shape": "16x256" } ] }' >"$WORK/config.json"
objects() { # FOLDER COMPILER FLAGS...
    mkdir "$WORK/$1"
    cp tests/foreign/*.?pp "$WORK/$1"
    (cd "$WORK/$1" && "$2" -c -O1 -std=c++17 -Wall -Wextra -Wpedantic -Werror -I"$OLDPWD/kernels" "${compile[@]}" "${@:3}" norm.cpp rms.cpp layer.cpp table.cpp)
}
joined() { # COMPILER FOLDER FILES...: FOLDER.so
    (cd "$WORK/$2" && "$1" "${@:3}" "${link[@]}" -o "../$2.so")
}
for each in g++ ${ALL:+clang++}; do # clang++ too in foreign_function_all.sh
    command -v $each >/dev/null || continue
    objects $each $each
    joined $each $each norm.o rms.o layer.o table.o
    objects $each-moved $each -g
    joined $each $each-moved table.o layer.o rms.o norm.o
    files=(--config "$WORK/config.json" --baseline "$WORK/$each.so")
    gives 0 '2 PASS \(identical code\)' "${files[@]}" --candidate "$WORK/$each-moved.so"
done
(cd "$WORK/$cxx" && $cxx -c -O1 -std=c++17 -I"$OLDPWD/kernels" "${compile[@]}" -DTWICE rms.cpp)
joined $cxx $cxx table.o rms.o layer.o norm.o # no time to say more of it than its instructions
mv "$WORK/$cxx.so" "$WORK/changed.so"
joined $cxx $cxx-moved norm.o rms.o layer.o table.o
gives 4 'PASS \(identical code\) layer_f32' --config "$WORK/config.json" --baseline "$WORK/$cxx-moved.so" --candidate "$WORK/changed.so" --budget 0.001
says 'INCONCLUSIVE rms_f32 .*\+[0-9]'

# ---- functions in C++ ---------------------------------------------------------------------------------------------------------------------------
build() { # SIDE FLAGS...
    "$cxx" -O1 -std=c++17 -Wall -Wextra -Wpedantic -Werror "${compile[@]}" "$only_gxx" "${@:2}" tests/foreign/words.cpp "${link[@]}" -o "$WORK/$cxx-$1.so"
}
build old
both=(--baseline "$WORK/$cxx-old.so" --function text::words::count --function sum)
build throws -DTHROWS -g
gives 1 'WRONG text::words::count.*PASS .identical code. sum' "${both[@]}" --candidate "$WORK/$cxx-throws.so"
gives 1 'WRONG _ZN4text5words5countEPv: crashed: abort' --baseline "$WORK/$cxx-old.so" --candidate "$WORK/$cxx-throws.so" \
    --function _ZN4text5words5countEPv --setup text::words::count_setup --check text::words::is_right

# ---- C, without any flags: what is wrong, and what does not come back ---------------------------------------------------------------------
c() { gcc -O2 -Wall -Wextra -fPIC -shared -DSILENT -include tests/plugins/silent.h "${@:2}" tests/foreign/functions.c -o "$WORK/$1.so"; } # SIDE FLAGS...
c old
c slow -DSLOWER=100
c bad -DBAD -DWRONG 2>/dev/null
back=(--baseline "$WORK/bad.so" --candidate "$WORK/old.so")
wrong=(--baseline "$WORK/old.so" --candidate "$WORK/bad.so")
gives 1 'WRONG parse: its 24 bytes of output differ from the baseline.s 24, first at byte 0' "${wrong[@]}" --function parse
gives 1 'WRONG crashes: crashed: segmentation fault' "${wrong[@]}" --function crashes
gives 1 'WRONG hangs: timed_out: no end within 2 s' "${wrong[@]}" --function hangs --case-timeout 2
gives 1 'WRONG leaves: crashed: ended the process with exit code 0' "${wrong[@]}" --function leaves
gives 1 'WRONG grows: its 8 bytes of output differ' "${wrong[@]}" --function grows
gives 1 'WRONG judged: the check returns 7 after call 1' "${wrong[@]}" --function judged
gives 1 'WRONG remembers: candidate while timed: wrong_when_timed' "${wrong[@]}" --function remembers
gives 1 'WRONG works_once: a call does not write its output anew: byte [0-7] stays as it was spoilt' "${wrong[@]}" --function works_once
gives 1 'WRONG makes_later: no byte of its output can be spoilt between calls, as the baseline.s can' "${wrong[@]}" --function makes_later
gives 5 'NOT COMPARABLE grows: call 2 leaves other bytes of output than the first, from byte 0 on \(the baseline\)' \
    "${back[@]}" --function grows
gives 5 'NOT COMPARABLE crashes: crashed: segmentation fault .*\(the baseline\)' "${back[@]}" --function crashes
gives 5 'NOT COMPARABLE sum: the baseline has no such function' --baseline "$WORK/old.so" --candidate "$WORK/$cxx-old.so" --function sum
gives 5 'NOT COMPARABLE apart: the candidate has apart_setup and the baseline has not' "${wrong[@]}" --function apart
gives 5 'NOT COMPARABLE apart: the baseline has apart_setup' "${back[@]}" --function apart
gives 5 'NOT COMPARABLE apart: the candidate has apart_setup' "${wrong[@]}" --function apart --setup apart_setup
gives 0 '2 PASS \(identical code\)' --baseline "$WORK/old.so" --candidate "$WORK/old.so" --function copy --function list
# What cannot be spoilt is said: notes, which --quiet leaves out.
pair=(--baseline "$WORK/old.so" --candidate "$WORK/slow.so")
notes() { # FUNCTION PATTERN
    "$NORMBENCH" gate --budget 0.001 "${pair[@]}" --function "$1" >"$WORK/out" 2>"$WORK/err" || true
    says "normbench: $1: that each call does its work is not seen: $2"
}
notes makes 'no byte that makes_bytes gives can be spoilt'
notes stays 'no byte that stays_bytes gives can be spoilt'
notes judged 'without judged_bytes there is nothing to spoil'
# The same code is held to its bytes, unless the whole file is the same.
c whole "${compile[@]}" "${link[@]}"
c fewer "${compile[@]}" "${link[@]}" -DFEWER_BYTES=1
gives 1 'WRONG copy: its 15999 bytes of output differ from the baseline.s 16000' --baseline "$WORK/whole.so" --candidate "$WORK/fewer.so" --function copy
gives 0 '1 PASS \(identical code\)' --baseline "$WORK/whole.so" --candidate "$WORK/fewer.so" --function list
played() { printf '%s\n' "candidate:function $1" "function 20000" >"$WORK/played"; export NORMBENCH_PLAYED=$WORK/played; } # NS
played 20000
timed parse "${pair[@]}" --function parse
says PASS.parse
played 30000
gives 3 'REGRESSION.parse:.slower.by.(49.9|50.0)%' "${pair[@]}" --function parse --screen-launches 7 --confirm-launches 12 --blocks 8
unset NORMBENCH_PLAYED

# ---- mistakes of the command line ---------------------------------------------------------------------------------------------------------
gives 2 "no function 'prse' \(--function\); did you mean 'parse'\? It has " "${pair[@]}" --function prse
gives 2 "no function 'not_a_function' \(--function\); it has .* and [0-9]+ more" "${pair[@]}" --function not_a_function
gives 2 "no function 'parse_wrong' \(--check\)" "${pair[@]}" --function parse --check parse_wrong
gives 2 'given twice' "${pair[@]}" --function parse --function parse
gives 2 'no --config, --kernel, --filter or --axis' "${pair[@]}" --function parse --kernel x
gives 2 'go with --function NAME' "${pair[@]}" --setup x
gives 2 'is looked for in --baseline' --self-test --function parse
gives 2 'normbench: error: README.md: cannot be loaded as a shared object: README.md: ' --baseline README.md --candidate "$WORK/old.so" --function parse
gives 2 'README.md is no shared object that can be compared' --baseline README.md --candidate "$WORK/old.so" --function parse

# ---- the self-test counts -------------------------------------------------------------------------------------------------------------------
gives 0 'Nothing changed.*50% slower \(time behind the calls of a sample.*median \+(49|50)' --self-test --baseline "$WORK/old.so" --function empty --trials 1 --powered 1 --effects 50 \
    --screen-launches 7 --confirm-launches 12 --blocks 8
exit "$failed"
