#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Ctrl-C keeps what is done, and what is gone on with is of the same CPU and tuning (what a killed run leaves: damaged.sh).
set -eu
source tests/support/cli.sh
cat >"$WORK/config.json" <<'JSON'
{ "blocks": [ { "op": ["rmsnorm", "layernorm"], "dtype": "f32", "shape": ["8x64", "8x128"], "kernel": "*_twopass",
                "width": "256" } ], "launches": 5, "blocks_per_launch": 8 }
JSON
run() { "$NORMBENCH" run "$@" --no-plots --no-counters --quiet >"$WORK/table"; }
run "$WORK/config.json" --out "$WORK/run"
# In the midst of a run that cannot end by itself, since a kernel hangs once it is timed.
cp "$BUILD/tests/plugins/hostile.so" "$WORK/late_hang.so"
sed 's/"\*_twopass"/["*_twopass", "late_hang:*"]/; s/"256"/["256", "native"]/' "$WORK/config.json" >"$WORK/hangs.json"
"$NORMBENCH" run "$WORK/hangs.json" --plugin "$WORK/late_hang.so" --case-timeout 600 --no-plots --no-counters --no-stress --quiet \
    --out "$WORK/hung" >/dev/null &
pid=$!
until_lines $pid "$WORK/hung/journal.jsonl" 4
kill -INT $pid
waits 130 "Ctrl-C"
tail -n 1 "$WORK/hung/journal.jsonl" | grep -q '"interrupted":2' || bad "Ctrl-C: $(tail -n 1 "$WORK/hung/journal.jsonl")"
[ -f "$WORK/hung/results.json" ] || bad "Ctrl-C leaves no results"
run --resume "$WORK/hung" --case-timeout 1 || [ $? = 1 ] || bad "resumed behind Ctrl-C: $?"
grep -q '"complete": true' "$WORK/hung/results.json" || bad "resumed behind Ctrl-C: not complete"

# What is known of the CPU may have changed since: a run goes on with the tuning that it began with, and says so where another is asked for.
(
    unset NORMBENCH_TUNING
    export XDG_CACHE_HOME=$WORK/cache
    quick() { "$NORMBENCH" run "$@" --no-plots --quiet >/dev/null; }
    quick --axis kernel=rmsnorm_twopass --axis shape=4x64 --axis dtype=f32 --axis width=scalar --launches 0 --out "$WORK/tuned"
    "$NORMBENCH" tune --launches 1 --quiet >/dev/null || exit 0 # no kernel that can be tuned is built
    sed -i 's/"stream_bytes":[[:space:]]*[0-9]*/"stream_bytes": 4242/' "$XDG_CACHE_HOME"/normbench/tuning-*.json
    quick --resume "$WORK/tuned" || { echo "a file of tuning ends a run that began without"; exit 1; }
    ends 2 "the tuning is another one" quick --resume "$WORK/tuned" --tuning default,stream_bytes=4242
    exit "$failed"
)

# Nothing goes on with what another CPU measured, though its brand be the same, and though what follows from its caches is another tuning.
another_cpu() { # COMMAND JOURNAL MEMBER=VALUE..
    local code=0 kept=$WORK/kept.jsonl
    cp "$2" "$kept"
    pretend "$2" "${@:3}"
    "$NORMBENCH" "$1" --resume "$WORK/$1" --no-plots --quiet >"$WORK/out" 2>"$WORK/err" || code=$?
    [ "$code" = 5 ] && [ ! -s "$WORK/out" ] && [ "$(wc -l <"$WORK/err")" = 1 ] && grep -q "this is another CPU .*${3%=*}" "$WORK/err" ||
        bad "$1, a CPU of other ${3%=*}: exit $code, wanted 5; said: $(cat "$WORK/err")"
    mv "$kept" "$2"
}
"$NORMBENCH" stress --filter zeros --kernel rmsnorm_twopass --width scalar --no-search --no-plots --quiet --out "$WORK/stress" >/dev/null
"$NORMBENCH" claims form-bias --quick --no-plots --quiet --out "$WORK/claims" >/dev/null
another_cpu run "$WORK/run/journal.jsonl" l3_bytes=12345 stream_bytes=12345
for journal in "$WORK"/run/journal.jsonl "$WORK"/stress/journal.jsonl "$WORK"/claims/*/journal.jsonl; do
    command=${journal#"$WORK/"}
    another_cpu "${command%%/*}" "$journal" model_number=9999
done
"$NORMBENCH" run --resume "$WORK/run" --no-plots --quiet >/dev/null || bad "put back, but refused"
exit "$failed"
