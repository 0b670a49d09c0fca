#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A run survives its kernels: each misbehaving one is named with its own status, and the rest is measured.
set -eu
cat >"$WORK/config.json" <<'JSON'
{ "blocks": [ { "op": "rmsnorm", "dtype": "f32", "shape": "64x384", "kernel": ["*bad_*", "rmsnorm_twopass"],
                "width": ["256", "native"] } ], "launches": 2, "blocks_per_launch": 4 }
JSON
plugins=()
names="biased wrong nan write_before write_after write_between read_outside change_input crash hang error depends_on_range
    exit fork close print rounding late_wrong late_write late_change late_crash late_hang scratch scratch_size phases chain
    question blocks longwinded"
for name in $names; do plugins+=(--plugin "$BUILD/tests/plugins/$name.so"); done
code=0
"$NORMBENCH" run "$WORK/config.json" "${plugins[@]}" --case-timeout 5 --no-stress --no-plots --no-counters \
    --out "$WORK/run" >"$WORK/table" || code=$?
[ "$code" != 1 ] || ! grep "a kernel was here" "$WORK/table" || { echo "a kernel printed into the table"; exit 1; }
[ "$code" = 1 ] || { echo "exit code $code, should be 1"; cat "$WORK/table"; exit 1; }

/usr/bin/python3 - "$WORK/run/results.json" <<'PY'
import json, sys
expected = {
    "biased": "biased", "wrong": "inaccurate", "nan": "inaccurate", "write_before": "wrote_outside",
    "write_after": "wrote_outside", "write_between": "wrote_outside", "read_outside": "read_outside",
    "change_input": "changed_input", "crash": "crashed", "hang": "timed_out", "error": "returned_error",
    "depends_on_range": "not_reproducible", "exit": "crashed", "fork": "ok", "close": "timed_out", "print": "ok",
    "rounding": "ok", "late_wrong": "wrong_when_timed", "late_write": "wrote_outside", "late_change": "changed_input",
    "late_crash": "crashed", "late_hang": "timed_out", "scratch": "wrote_outside", "scratch_size": "returned_error",
    "phases": "returned_error", "chain": "returned_error", "question": "crashed", "blocks": "ok",
    "longwinded": "ok",
}
records = json.load(open(sys.argv[1]))["records"]
got = {r["key"].split(":")[0]: r for r in records if ":bad_" in r["key"]}
wrong = [f"{name}: {got[name]['status'] if name in got else 'no record'}, should be {status}"
         for name, status in expected.items() if name not in got or got[name]["status"] != status]
failed = [name for name in expected if expected[name] != "ok"]
wrong += [f"{name}: no reason given" for name in failed if not got.get(name, {}).get("reason")]
wrong += [f"{name}: a failed kernel has a time" for name in failed if got.get(name, {}).get("timing")]
wrong += [f"longwinded: {len(got['longwinded'][text])} bytes of {text}" for text in ("library", "implementation")
          if not 0 < len(got["longwinded"][text]) < 200]
ours = [r for r in records if ":bad_" not in r["key"]]
if not ours or any(r["status"] != "ok" or not r["timing"]["time_ns"] for r in ours):
    wrong.append("the kernel beside them was not measured")
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
PY

# Guard pages catch a stray access that leaves the result right.
"$NORMBENCH" replay "crash:bad_crash_f32/shape:4x8" --plugin "$BUILD/tests/plugins/crash.so" --check-only >"$WORK/record" && exit 1
grep -q '"status": "crashed"' "$WORK/record"

# No text of a plugin, and no name of a file, reaches a terminal, a report or a page as a command of a terminal, nor a cell of a table as a
# formula.
evil="$WORK/$(printf 'a\033[31m\302\2332J')"
mkdir "$evil"
cp "$BUILD/tests/plugins/escapes.so" "$evil/"
sed -e 's/"64x384"/["4x64", "1x64"]/' "$WORK/config.json" >"$evil/config.json"
said() { "$NORMBENCH" "$@" 2>&1 || true; }
{
    said run "$evil/config.json" --plugin "$evil/escapes.so" --no-counters --out "$evil/run"
    said run "$evil/config.json" --plugin "$evil/escapes.so" --list
    said list kernels --plugin "$evil/escapes.so"
    said info --plugin "$evil/escapes.so"
    for format in $("$NORMBENCH" list formats --format csv | sed -n 's/^\([a-z-]*\),.*/\1/p'); do said report "$evil/run" --format "$format"; done
    said run "$evil/config.jso"
    said run "$evil/config.json" --axis "data=$evil/x.npy" --list
    said replay "$evil/run" nothing
    cat "$evil"/run/*.* "$evil"/run/plots/*.[gds]*
} >"$WORK/said"
! LC_ALL=C grep -naP '[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae' "$WORK/said" || { echo "commands of a terminal, above"; exit 1; }
# In CSV a quoted cell may hold line ends.
! grep -v "forged\"," "$WORK/said" | grep "^normbench: error: forged" || { echo "a forged line"; exit 1; }
said report "$evil/run" --format csv >"$WORK/csv"
grep -q 'bad_escapes' "$WORK/csv"
! grep -E '(^|,)"?[=@]' "$WORK/csv" || { echo "a formula in a cell, above"; exit 1; }
grep -q ",\"'=1+1" "$WORK/csv"
