# SPDX-License-Identifier: Apache-2.0
# What scripts about the gate share. A budget of a millisecond ends before anything is timed.
. tests/support/cli.sh
export TMPDIR=$WORK
options=() # of every gate

# CODE PATTERN ARGUMENTS...: exit code, and what stdout or stderr says
gives() {
    local code=$1 pattern=$2 got=0
    shift 2
    "$NORMBENCH" gate "${options[@]}" "$@" >"$WORK/out" 2>"$WORK/err" || got=$?
    [ "$got" = "$code" ] || bad "$*: exit $got, wanted $code: $(cat "$WORK/out" "$WORK/err")"
    says "$pattern"
}
says() { tr -s ' \n' ' ' <"$WORK/out" | cat - "$WORK/err" | grep -qE -- "$1" || bad "no /$1/ in: $(cat "$WORK/out" "$WORK/err")"; }

# NAMES ARGUMENTS...: a gate that is timed, of a few launches. Its cases are those, its exit code is the worst verdict's, and its files are valid.
timed() {
    local code=0 valid=0
    "$NORMBENCH" gate "${options[@]}" --screen-launches 7 --confirm-launches 12 --blocks 8 --out "$WORK/timed" "${@:2}" >"$WORK/out" 2>"$WORK/err" || code=$?
    /usr/bin/python3 - "$WORK/timed" $code "$1" <<'PY' || bad "exit $code, not as gate.json says: $(cat "$WORK/out" "$WORK/err")"
import json, os, sys
folder, code, names = sys.argv[1], int(sys.argv[2]), sys.argv[3].split()
assert sorted(os.listdir(folder)) == ["gate.bencher.json", "gate.benchmark_action.json", "gate.json", "gate.md", "gate.xml", "samples.jsonl"]
cases = json.load(open(folder + "/gate.json"))["cases"]
codes = {"PASS": 0, "IMPROVED": 0, "SUSPECT": 4, "INCONCLUSIVE": 4, "REGRESSION": 3}
assert [c["variant"] for c in cases] == names, cases
said = {codes[c["verdict"]] for c in cases}
assert code == (3 if 3 in said else max(said)), (code, said)
assert all(c["ratio"]["value"] > 0 and len(c["screen"]) == 7 for c in cases)
assert len(open(folder + "/samples.jsonl").readlines()) >= 7 * len(names)
# The first does twice the work.
counts = {name: build["instructions"] for name, build in cases[0]["builds"].items()}
assert cases[0]["uncounted"] or counts["candidate"] > 1.5 * counts["baseline"], counts
PY
    /usr/bin/python3 tests/check_schema.py reports/schema "$WORK/timed" || valid=$?
    [ "$valid" = 0 ] || [ "$valid" = 77 ] || bad "gate.json: not valid by its schema"
}
