#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Whatever line of a journal is lost, and whoever is killed, --resume comes to the cases and statuses of a run that nothing happened to; and
# it goes on with nothing but the run that began.
. tests/support/cli.sh
cp "$BUILD/tests/plugins/late_crash.so" "$BUILD/tests/plugins/wrong.so" "$WORK"
cat >"$WORK/config.json" <<'JSON'
{ "blocks": [ { "op": ["rmsnorm", "layernorm"], "dtype": "f32", "shape": ["8x64", "8x128"],
                "kernel": ["*_twopass", "late_crash:*", "wrong:*"], "width": ["256", "native"] },
              { "op": "rmsnorm", "dtype": "f16", "shape": "8x64", "data": "massive", "eps": "1e-8", "kernel": "*_twopass", "width": "scalar" } ],
  "launches": 4, "blocks_per_launch": 4 }
JSON
plugins=(--plugin "$WORK/late_crash.so" --plugin "$WORK/wrong.so")
begin() { # DIR [exec]: in place of the shell that calls it
    ${2-} "$NORMBENCH" run "$WORK/config.json" "${plugins[@]}" --no-plots --quiet --format json --out "$1" >"$1.out" 2>"$1.err"
}
resume() { # DIR OPTION..
    local dir=$1
    shift
    "$NORMBENCH" run --resume "$dir" --no-plots --quiet --format json "$@" >"$dir.out" 2>"$dir.err"
}
# Keys, statuses and numbers of launches; what a crash says of its place may differ.
cases() {
    /usr/bin/python3 - "$1/results.json" <<'PY'
import json, sys
results = json.load(open(sys.argv[1]))
for r in results["records"]:
    print(r["key"], r["status"], r["timing"] and r["timing"]["evidence"]["n_launches"], len(r["counters"]) > 0)
print("complete", results["complete"])
PY
}
same() { # DIR WHAT
    cases "$1" >"$WORK/got"
    diff "$WORK/whole" "$WORK/got" >"$WORK/diff" || bad "$2: other cases than of the whole run: $(cat "$WORK/diff" "$1.err")"
}

begin "$WORK/run"
[ $? = 1 ] || bad "the run: $(cat "$WORK/run.err")"
cases "$WORK/run" >"$WORK/whole"
grep -q 'late_crash.*crashed' "$WORK/whole" && grep -q 'wrong.*inaccurate' "$WORK/whole" && grep -q ' ok 4 True' "$WORK/whole" &&
    grep -q 'complete True' "$WORK/whole" || bad "the whole run: $(cat "$WORK/whole")"

# ---- the report makes the same results from the journal alone, and all of it, of a torn one too, is valid by the schemas ---------
report() { "$NORMBENCH" report "$1" --no-write --format json; }
valid() { /usr/bin/python3 tests/check_schema.py reports/schema "$1" >"$WORK/said" 2>&1 || [ $? = 77 ] || bad "$1: $(cat "$WORK/said")"; }
valid "$WORK/run"
mkdir "$WORK/again"
cp "$WORK/run/journal.jsonl" "$WORK/again/"
report "$WORK/again" | cmp - "$WORK/run/results.json" || bad "the journal alone gives other results"

# ---- one line of each kind is damaged ----------------------------------------------------------------------------------------
# The line of that kind that is NTH from the end (0: the last) is flipped, torn in two, or loses its newline.
damage() { # JOURNAL KIND NTH HOW
    /usr/bin/python3 - "$@" <<'PY'
import sys
path, kind, nth, how = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
lines = open(path, "rb").read().split(b"\n")[:-1]
at = [i for i, line in enumerate(lines) if line.startswith(b'{"type":"' + kind.encode() + b'"')][-1 - nth]
line = bytearray(lines[at])
middle = len(line) // 2
line[middle] ^= {"flip": 1, "tear": line[middle] ^ 10, "join": 0}[how]
end = b"" if how == "join" else b"\n"
open(path, "wb").write(b"".join(l + b"\n" for l in lines[:at]) + bytes(line) + end + b"".join(l + b"\n" for l in lines[at + 1:]))
print(at + 1)
PY
}
n=0
for case in "run 1 flip" "run 0 tear" "check 2 join" "launch 5 tear" "launch 3 flip" "failure 0 flip" "counters 0 flip" "end 0 flip"; do
    dir=$WORK/damaged$((n++))
    cp -r "$WORK/run" "$dir"
    rm "$dir/results.json"
    # shellcheck disable=SC2086
    line=$(damage "$dir/journal.jsonl" $case)
    resume "$dir"
    [ $? = 1 ] || bad "$case: resumed with $?: $(cat "$dir.err")"
    grep -q "damaged and left out: line $line" "$dir.err" || bad "$case: line $line is not named: $(cat "$dir.err")"
    same "$dir" "$case"
done

# ---- a worker is killed; the program is killed, which leaves whole lines and a torn one -------------------------------------------
for n in 3 6; do
    begin "$WORK/killed$n" exec &
    pid=$!
    until_lines $pid "$WORK/killed$n/journal.jsonl" $n
    pkill -KILL -P $pid
    wait $pid
    same "$WORK/killed$n" "a worker that is killed behind line $n"
done
for percent in 30 60 90; do
    dir=$WORK/cut$percent
    mkdir "$dir"
    head -c $(($(stat -c %s "$WORK/run/journal.jsonl") * percent / 100)) "$WORK/run/journal.jsonl" >"$dir/journal.jsonl"
    report "$dir" >"$WORK/torn.json" && mv "$WORK/torn.json" "$dir/results.json"
    valid "$dir"
    rm "$dir/results.json"
    resume "$dir"
    same "$dir" "killed at $percent % of the journal"
done

# ---- nothing but the run that began --------------------------------------------------------------------------------------------
dir=$WORK/run
not() { refuses "$1" run --resume "$dir" --no-plots --quiet; }
cp "$WORK/wrong.so" "$WORK/kept.so"
printf 'x' >>"$WORK/wrong.so"
not "a file of kernels is another build.*wrong.so.*put that one back"
cp "$WORK/kept.so" "$WORK/wrong.so"
sed -i.kept 's/"launches": 4/"launches": 5/' "$WORK/config.json"
not 'its config plans something else.*launches: 4, now 5.*put the config back'
sed 's/, "8x128"//' "$WORK/config.json.kept" >"$WORK/config.json"
not 'its config plans something else.*8x128.*now not there'
mv "$WORK/config.json.kept" "$WORK/config.json"
cp "$NORMBENCH" "$WORK/normbench"
printf 'x' >>"$WORK/normbench"
NORMBENCH=$WORK/normbench NORMBENCH_KERNELS=${NORMBENCH_KERNELS:-$(dirname "$NORMBENCH")/libnormkernels.so} \
    not 'normbench is another build.*hash.*go on with the one that it began with'
refuses '`normbench run` began it' stress --resume "$dir"
refuses 'leave out names' run --resume "$dir" --axis eps=1e-3
resume "$dir" || [ $? = 1 ] || bad "put back, but refused: $(cat "$dir.err")"
exit "$failed"
