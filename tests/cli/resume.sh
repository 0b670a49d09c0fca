#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# SIGKILL loses at most the launch under way; --resume finishes the rest and gives the same cases; Ctrl-C keeps what is done.
set -eu
source tests/support/cli.sh
cat >"$WORK/config.json" <<'JSON'
{ "blocks": [ { "op": ["rmsnorm", "layernorm"], "dtype": "f32", "shape": ["8x64", "8x128", "8x256"], "kernel": "*_twopass",
                "width": "256" } ], "launches": 12, "blocks_per_launch": 40 }
JSON
lines() { wc -l <"$WORK/run/journal.jsonl"; }
start() {
    "$NORMBENCH" run "$WORK/config.json" --no-plots --quiet --out "$WORK/run" >/dev/null &
    pid=$!
    for _ in $(seq 400); do
        [ -f "$WORK/run/journal.jsonl" ] && [ "$(lines)" -ge "$1" ] && return
        sleep 0.02
    done
    echo "the run does not come forward"
    exit 1
}

start 10
kill -KILL "$pid"
wait "$pid" || true
before=$(lines)
# A torn last line, as a cut in the middle of a write leaves it.
printf '{"type":"launch","group":0,"laun' >>"$WORK/run/journal.jsonl"
"$NORMBENCH" run --resume "$WORK/run" --no-plots --quiet >"$WORK/table"
[ "$(lines)" -gt "$before" ]
/usr/bin/python3 - "$WORK/run" <<'PY'
import collections, json, sys
lines = [json.loads(l) for l in open(sys.argv[1] + "/journal.jsonl")]
launches = collections.Counter((l["group"], l["launch"]) for l in lines if l["type"] == "launch")
assert len(launches) == 3 * 12 and set(launches.values()) == {1}, launches
records = json.load(open(sys.argv[1] + "/results.json"))["records"]
assert len(records) == 6 and all(r["status"] == "ok" and r["timing"]["evidence"]["n_launches"] == 12 for r in records), records
PY

# Options that would change the plan are refused, and nothing is lost.
code=0
"$NORMBENCH" run --resume "$WORK/run" --axis eps=1e-3 2>"$WORK/err" || code=$?
[ "$code" = 2 ]
# So is a folder that holds a run.
code=0
"$NORMBENCH" run "$WORK/config.json" --out "$WORK/run" 2>"$WORK/err" || code=$?
[ "$code" = 2 ] && grep -q resume "$WORK/err"

rm -r "$WORK/run"
start 8
kill -INT "$pid"
code=0
wait "$pid" || code=$?
[ "$code" = 130 ] || { echo "Ctrl-C ended with $code"; exit 1; }
tail -n 1 "$WORK/run/journal.jsonl" | grep -q '"interrupted":2'
[ -f "$WORK/run/results.json" ]
"$NORMBENCH" run --resume "$WORK/run" --no-plots --quiet >/dev/null

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
small=(--filter zeros --kernel rmsnorm_twopass --width scalar --no-search)
"$NORMBENCH" stress "${small[@]}" --no-plots --quiet --out "$WORK/stress" >/dev/null
"$NORMBENCH" claims form-bias form-keepdim --quick --no-plots --quiet --out "$WORK/claims" >/dev/null
for journal in "$WORK"/run/journal.jsonl "$WORK"/stress/journal.jsonl "$WORK"/claims/*/journal.jsonl; do
    command=${journal#"$WORK/"}
    another_cpu "${command%%/*}" "$journal" model_number=9999
    another_cpu "${command%%/*}" "$journal" l3_bytes=12345 stream_bytes=12345
done
"$NORMBENCH" run --resume "$WORK/run" --no-plots --quiet >/dev/null || bad "put back, but refused"
exit "$failed"
