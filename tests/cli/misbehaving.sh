#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A run survives its kernels: each that misbehaves (the table of tests/plugins/hostile.c) is named with the status that it has there, though all
# share the processes of one run, and honest ones between them are ok.
. tests/support/cli.sh
export TMPDIR=$WORK
plugins=$BUILD/tests/plugins
cat >"$WORK/config.json" <<'JSON'
{ "blocks": [ { "op": "rmsnorm", "dtype": "f32", "shape": "32x256", "affine": "gamma", "kernel": ["*bad_*", "rmsnorm_twopass"],
                "width": ["256", "native"] } ], "launches": 2, "blocks_per_launch": 4 }
JSON
expected() { # STATUS..: the names of the table that have it
    sed -n '/^#define ONCE/,/clang-format on/p' tests/plugins/hostile.c | grep -oE 'X\([a-z_]+, [a-z_]+, [a-z_]+' | tr -d ',' |
        sed -E 's/X\((.*) (.*) (.*)/\1 \2\nlate_\1 \3/' | grep -vE ' (none|status)$' | grep -E " ($1)\$"
}
# What hangs is waited for, and what may (a spoilt heap); nothing else is in a run with so short a limit, which a busy machine might not keep.
hangs=$(expected 'timed_out|any|fault' | cut -d' ' -f1)
others=$(expected '.*' | grep -vE ' (timed_out|any|fault)$' | cut -d' ' -f1)
run() { # OUT LIMIT NAME..
    local out=$WORK/$1 limit=$2 name given=()
    shift 2
    mkdir "$out.plugins"
    for name in "$@"; do cp "$plugins/hostile.so" "$out.plugins/$name.so" && given+=(--plugin "$out.plugins/$name.so"); done
    "$NORMBENCH" run "$WORK/config.json" "${given[@]}" --case-timeout "$limit" --no-plots --no-counters --no-stress --quiet --out "$out" \
        >"$out.table" 2>"$out.err"
    [ $? = 1 ] || bad "$out: should end with 1: $(cat "$out.table" "$out.err")"
}
# shellcheck disable=SC2086 # words on purpose
NORMBENCH=$BUILD_DIR/normbench run hung 1 $hangs # for real: what spoils the heap may hang, and cannot say so
# So short that what comes late comes while samples are chosen: what a kernel then leaves behind harms no call of its own that is looked at.
export NORMBENCH_PLAYED=$WORK/short
echo "bad_* 1000" >"$NORMBENCH_PLAYED"
# shellcheck disable=SC2086
run run 60 honest_a $others honest_m honest_z # in the order of their names
! grep "a kernel was here" "$WORK/run.table" || bad "a kernel printed into the table"
expected '.*' >"$WORK/expected"
/usr/bin/python3 - "$WORK" <<'PY' >"$WORK/wrong" 2>&1
import json, sys
expected = dict(line.split() for line in open(sys.argv[1] + "/expected"))
assert len(expected) > 80, "the table has shrunk"
run, hung = (json.load(open(f"{sys.argv[1]}/{d}/results.json"))["records"] for d in ("run", "hung"))
got = {r["key"].split(":")[0]: r for r in run + hung if ":bad_" in r["key"]}
says = {"change_tuning": "wrote to call->tuning", "catch_faults": "replaced the handler of signal 11", "borrow_x": "wrote to x", "wear_out": "in call ",
        "no_units": "n_units()", "empty_range": "range()", "no_range": "range()"}
for name, status in (expected | dict.fromkeys(("honest_a", "honest_m", "honest_z"), "ok")).items():
    r = got.get(name) or {"status": "no record", "reason": None}
    if r["status"] != status and not (status == "any" or status == "fault" and r["status"] not in ("ok", "no record")):
        print(f"{name}: {r['status']} ({r['reason']}), should be {status}")
    if (r["status"] == "ok") != bool(r["timing"]): print(f"{name}: a failed kernel has a time, or a right one none")
    if r["status"] != "ok" and says.get(name.removeprefix("late_"), "") not in (r["reason"] or ""): print(f"{name}: the reason is {r['reason']}")
for text in "library", "implementation":
    if not 0 < len(got["longwinded"][text]) < 200: print(f"longwinded: {len(got['longwinded'][text])} bytes of {text}")
honest = [got[f"honest_{place}"] for place in "amz"]
if any(r["accuracy"] != honest[0]["accuracy"] or r["timing"]["evidence"]["n_launches"] != 2 for r in honest): print("honest ones differ")
ours = [r for r in run if ":bad_" not in r["key"]]
if not ours or any(r["status"] != "ok" or not r["timing"]["time_ns"] for r in ours): print("the kernel beside them was not measured")
PY
[ ! -s "$WORK/wrong" ] || bad "$(cat "$WORK/wrong")"

"$NORMBENCH" replay "crash:bad_crash_f32/shape:4x8" --plugin "$plugins/crash.so" --check-only >"$WORK/record" && bad "replay: a crash ends with 0"
grep -q 'FAILED (crashed)' "$WORK/record" || bad "replay: $(cat "$WORK/record")"

# ---- no text of a plugin, and no name of a file, reaches a terminal, a report or a page as a command of a terminal, nor a cell as a formula ----
evil="$WORK/$(printf 'a\033[31m\302\2332J')"
mkdir "$evil"
cp "$plugins/hostile.so" "$evil/escapes.so"
sed -e 's/"32x256"/["4x64", "1x64"]/' "$WORK/config.json" >"$evil/config.json"
said() { "$NORMBENCH" "$@" 2>&1 || true; }
{
    said run "$evil/config.json" --plugin "$evil/escapes.so" --no-counters --no-stress --out "$evil/run"
    said run "$evil/config.json" --plugin "$evil/escapes.so" --list
    said list kernels --plugin "$evil/escapes.so"
    said info --plugin "$evil/escapes.so"
    for format in $("$NORMBENCH" list formats --format csv | sed -n 's/^\([a-z-]*\),.*/\1/p'); do said report "$evil/run" --format "$format"; done
    said run "$evil/config.jso"
    said run "$evil/config.json" --axis "data=$evil/x.npy" --list
    said replay "$evil/run" nothing
    cat "$evil"/run/*.* "$evil"/run/plots/*.[gds]*
} >"$WORK/said"
! LC_ALL=C grep -naP '[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae' "$WORK/said" || bad "commands of a terminal, above"
# In CSV a quoted cell may hold line ends.
! grep -v "forged\"," "$WORK/said" | grep "^normbench: error: forged" || bad "a forged line"
said report "$evil/run" --format csv >"$WORK/csv"
grep -q 'bad_escapes' "$WORK/csv" || bad "no case in CSV"
! grep -E '(^|,)"?[=@]' "$WORK/csv" || bad "a formula in a cell, above"
grep -q ",\"'=1+1" "$WORK/csv" || bad "no cell that would be a formula"

# ---- no plugin at all ----
refuses 'does not export normbench_kernels' try "$plugins/no_export.so"
refuses 'does not serve kernel ABI' try "$plugins/bad_abi.so"
exit "$failed"
