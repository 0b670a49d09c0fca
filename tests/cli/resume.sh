#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a killed run leaves, whole lines and a torn one, is gone on with and gives the same cases; Ctrl-C keeps what is done.
set -eu
source tests/support/cli.sh
cat >"$WORK/config.json" <<'JSON'
{ "blocks": [ { "op": ["rmsnorm", "layernorm"], "dtype": "f32", "shape": ["8x64", "8x128"], "kernel": "*_twopass",
                "width": "256" } ], "launches": 5, "blocks_per_launch": 8 }
JSON
run() { "$NORMBENCH" run "$@" --no-plots --no-counters --quiet >"$WORK/table"; }
run "$WORK/config.json" --out "$WORK/run"
# A torn last line, as a cut in the middle of a write leaves it.
journal=$WORK/run/journal.jsonl
{ head -n 10 "$journal" && printf '{"type":"launch","group":0,"laun'; } >"$WORK/cut"
mv "$WORK/cut" "$journal"
rm "$WORK/run/results.json"
run --resume "$WORK/run"
/usr/bin/python3 - "$WORK/run" <<'PY'
import collections, json, sys
lines = [json.loads(l) for l in open(sys.argv[1] + "/journal.jsonl")]
launches = collections.Counter((l["group"], l["launch"]) for l in lines if l["type"] == "launch")
assert len(launches) == 2 * 5 and set(launches.values()) == {1}, launches
records = json.load(open(sys.argv[1] + "/results.json"))["records"]
assert len(records) == 4 and all(r["status"] == "ok" and r["timing"]["evidence"]["n_launches"] == 5 for r in records), records
PY

# Options that would change the plan are refused, and nothing is lost; so is a folder that holds a run.
refuses . run --resume "$WORK/run" --axis eps=1e-3
refuses resume run "$WORK/config.json" --out "$WORK/run"

# In the midst of a run that cannot end by itself, since a kernel hangs once it is timed.
cp "$BUILD/tests/plugins/hostile.so" "$WORK/late_hang.so"
sed 's/"\*_twopass"/["*_twopass", "late_hang:*"]/; s/"256"/["256", "native"]/' "$WORK/config.json" >"$WORK/hangs.json"
"$NORMBENCH" run "$WORK/hangs.json" --plugin "$WORK/late_hang.so" --case-timeout 600 --no-plots --no-counters --no-stress --quiet \
    --out "$WORK/hung" >/dev/null &
pid=$!
until_lines $pid "$WORK/hung/journal.jsonl" 4
kill -INT $pid
code=0
wait $pid || code=$?
[ "$code" = 130 ] || bad "Ctrl-C ended with $code"
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
    code=0; quick --resume "$WORK/tuned" --tuning default,stream_bytes=4242 2>"$WORK/err" || code=$?
    [ "$code" = 2 ] && grep -q "the tuning is another one" "$WORK/err" || { echo "another tuning is taken: $code"; cat "$WORK/err"; exit 1; }
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
