#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Kernels of a program in a process of its own are checked, timed and named like a plugin's: right ones, each that misbehaves, and programs that
# do not speak the protocol.
set -eu
program="$BUILD/tests/programs/norms"
cat >"$WORK/config.json" <<'JSON'
{ "blocks": [ { "op": "rmsnorm", "dtype": "f32", "shape": "64x384", "kernel": ["norms:[!h]*", "rmsnorm_twopass"],
                "width": ["256", "native"] } ], "launches": 2, "blocks_per_launch": 4 }
JSON
code=0
"$NORMBENCH" run "$WORK/config.json" --plugin "$program" --case-timeout 60 --no-stress --no-plots --out "$WORK/run" \
    >"$WORK/table" 2>"$WORK/said" || code=$?
[ "$code" = 1 ] || { echo "exit code $code, should be 1"; cat "$WORK/table" "$WORK/said"; exit 1; }
! grep "a kernel was here" "$WORK/table" || { echo "a kernel printed into the table"; exit 1; }
grep -q "a kernel was here" "$WORK/said"
# Of a flood of prints there is the beginning, and the end where it ended badly.
for line in "line 0 of a flood" "has printed more than 4096 bytes; the rest is left out" "bytes that the program printed, the last lines:" "the end of it"; do
    grep -q "$line" "$WORK/said" || { echo "no '$line'"; head -c 3000 "$WORK/said"; exit 1; }
done
! grep -q "line 1000 of a flood" "$WORK/said" || { echo "a flood was passed on: $(wc -c <"$WORK/said") bytes"; exit 1; }
/usr/bin/python3 - "$WORK/run/results.json" <<'PY'
import json, sys
gone = {"abort": "signal 6", "crash": "signal 11", "leave": "exit code 0", "junk": "no message of the protocol", "twice": "answered question",
        "flood": "signal 6", "group": "its process was ended by signal 9"}
expected = {name: ("crashed", why) for name, why in gone.items()}
expected |= {"norm": ("ok", ""), "fork": ("ok", ""), "print": ("ok", ""), "shrink": ("ok", ""),
             "error": ("returned_error", "ValueError: not today, na\\xC3\\xAFve"), "wrong": ("inaccurate", ""), "lazy": ("not_reproducible", "differs in call"),
             "keep": ("not_reproducible", "differs in call"), "between": ("wrote_outside", "behind row 0 of y"), "input": ("changed_input", "")}
records = {r["variant"].split(":")[-1].removesuffix("_f32"): r for r in json.load(open(sys.argv[1]))["records"]}
for name, (status, why) in expected.items():
    r = records[name]
    assert r["status"] == status and why in (r["reason"] or ""), (name, r["status"], r["reason"])
    assert bool(r["timing"]) == (status == "ok"), (name, "a failed kernel has a time, or a right one none")
assert not any(c in (r["reason"] or "") for r in records.values() for c in "\x1b\n"), "a command of a terminal"
right, ours = records["norm"], records["rmsnorm_twopass_v256"]
assert ours["status"] == "ok" and ours["timing"]["evidence"]["floor_ns"] is None
assert right["library"] == "C" and 0 < right["timing"]["evidence"]["floor_ns"] < right["timing"]["time_ns"]["value"]
counted = [c for c in right["counters"] if c["source"] != "software"]
assert counted and all(c["value"] is None and c["reason"] for c in right["counters"]), right["counters"]
PY

sed 's/"norms:\[!h\]\*", "rmsnorm_twopass"/"norms:hang"/' "$WORK/config.json" >"$WORK/hang.json"
"$NORMBENCH" run "$WORK/hang.json" --plugin "$program" --case-timeout 1 --launches 0 --no-stress --format csv --out "$WORK/hang" 2>"$WORK/said" |
    grep -q '^norms:hang_f32/.*,timed_out,' || { echo "hang"; cat "$WORK/said"; exit 1; }

# A kernel that another of its program ends is tried without it before it is blamed.
sed 's/"norms:\[!h\]\*"/"norms:norm", "norms:print", "norms:shrink"/' "$WORK/config.json" >"$WORK/three.json"
NORMS_FAULT=trap "$NORMBENCH" run "$WORK/three.json" --plugin "$program" --launches 0 --no-stress --no-plots --out "$WORK/trap" >"$WORK/table" \
    2>"$WORK/said" || { echo "trap: exit code $?"; cat "$WORK/table" "$WORK/said"; exit 1; }
grep -q "norms:print_f32: its program did not answer after other kernels" "$WORK/said" || { cat "$WORK/said"; exit 1; }

# That other called it for another worker, which had the program before.
cat >"$WORK/two.json" <<'JSON'
{ "blocks": [ { "kernel": "norms:norm", "shape": "64x384" }, { "kernel": "norms:print", "shape": "8x64" } ] }
JSON
cpu=$(taskset -cp $$ | sed 's/.*[ ,-]//')
NORMS_FAULT=trap taskset -c "$cpu" "$NORMBENCH" run "$WORK/two.json" --plugin "$program" --launches 0 --no-stress --no-plots --out "$WORK/two" \
    >"$WORK/table" 2>"$WORK/said" || { echo "trap, two workers: exit code $?"; cat "$WORK/table" "$WORK/said"; exit 1; }
grep -q "norms:print_f32: its program did not answer after other kernels" "$WORK/said" || { cat "$WORK/said"; exit 1; }

# The time that a program takes to start is not its kernel's: a limit that passes for real.
NORMS_FAULT=slow_start "$BUILD_DIR/normbench" run "$WORK/three.json" --plugin "$program" --case-timeout 5 --launches 0 --no-stress --no-plots \
    --out "$WORK/slow" >"$WORK/table" 2>"$WORK/said" || { echo "slow_start: exit code $?"; cat "$WORK/table" "$WORK/said"; exit 1; }

# Whatever takes a plugin takes a program (try: programs_try.sh).
said() { "$NORMBENCH" "$@" 2>&1 || echo "exit code $?"; }
said list kernels --plugin "$program" | grep -q '^norms:norm '
said info --plugin "$program" | grep -q norms
said probe norms:norm --plugin "$program" >"$WORK/probed"
grep -q "norms:norm_f32" "$WORK/probed" || { cat "$WORK/probed"; exit 1; }
said replay "norms:wrong_f32/shape:4x8" --plugin "$program" --check-only | grep -q "WRONG (inaccurate)"
said gate --baseline "$program" --candidate "$program" | grep -q "compares two builds as shared objects"
said run "$WORK/config.json" --plugin "$program" --axis threads=2 --list | grep -q "does not use several threads"

# What does not speak the protocol (answers that do not fit are tests/programs/test_kernel_program.c's).
refused() {
    NORMS_FAULT=$1 "$NORMBENCH" list kernels --plugin "$program" >/dev/null 2>"$WORK/refused" && code=0 || code=$?
    grep -q "$2" "$WORK/refused" || { echo "$1: should say '$2'"; cat "$WORK/refused"; exit 1; }
}
refused no_hello "ended with exit code 0 before it said which kernels it has"
refused version "norms: its program speaks version 9 of the protocol, and this normbench version 1: use a normbench that speaks its own$"
refused old_version "norms: its program speaks version 0 of the protocol, and this normbench version 1: update it to that one (cmd/guide/protocol.md)$"
refused many "its table says 4000000000 kernels"
refused name "a name that is too long or not padded"
refused op "op is 77"
refused dtype "a dtype that this program does not know"
refused same "norm_f32 twice"
NORMS_FAULT=time said replay "norms:norm_f32/shape:4x8" --plugin "$program" --check-only --format json | grep -q "took longer than its whole answer"
NORMS_FAULT=number said replay "norms:norm_f32/shape:4x8" --plugin "$program" --check-only --format json | grep -q "another number of calls"
NORMS_FAULT=refuse said replay "norms:norm_f32/shape:4x8" --plugin "$program" --check-only | grep -q "returned 5"
printf '#!/bin/sh\necho hello\n' >"$WORK/script"
chmod +x "$WORK/script"
said list kernels --plugin "$WORK/script" | grep -q "script: its program ended with exit code 0 before"
printf '#!/no/such/interpreter\n' >"$WORK/nothing"
chmod +x "$WORK/nothing"
said list kernels --plugin "$WORK/nothing" | grep -q "cannot be started"

# Nothing is left behind.
while pgrep -f "^$(realpath "$program")" >"$WORK/left"; do sleep 0.1; done
