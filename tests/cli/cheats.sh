#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Slow, 8 s: many timed samples.
# Kernels that leave work out while they are timed are wrong, in a run and in the gate, and an honest one beside them is not.
set -eu
fail() { echo "$*"; exit 1; }
cheats=$BUILD/tests/plugins/cheats.so
cat >"$WORK/run.json" <<'JSON'
{ "blocks": [ { "op": "rmsnorm", "shape": "16x256", "kernel": ["cheats:*"] } ], "launches": 4, "blocks_per_launch": 10 }
JSON
cat >"$WORK/gate.json" <<'JSON'
{ "blocks": [ { "op": "rmsnorm", "shape": "16x256" } ] }
JSON
export TMPDIR=$WORK
code=0
"$NORMBENCH" run "$WORK/run.json" --plugin "$cheats" --no-plots --no-counters --quiet --out "$WORK/run" >"$WORK/table" || code=$?
[ "$code" = 1 ] || fail "run: exit code $code, should be 1"
# next_call does all the work of a call when the next one comes: in a loop over one buffer nothing is left out.
/usr/bin/python3 - "$WORK/run/results.json" <<'PY' || exit 1
import json, sys
got = {r["key"].split("/")[0].split(":")[1]: r["status"] for r in json.load(open(sys.argv[1]))["records"]}
wrong = [f"{name}: {got.get(name)}" for name in
         ("cheat_unspoilt_f32", "cheat_skips_later_f32", "cheat_by_number_f32", "cheat_by_pointer_f32", "cheat_by_content_f32",
          "cheat_half_f32", "cheat_later_f32") if got.get(name) not in ("wrong_when_timed", "read_outside", "not_reproducible")]
if got.get("honest_f32") != "ok": wrong.append(f"honest: {got.get('honest_f32')}")
print("\n".join(wrong))
sys.exit(1 if wrong else 0)
PY
code=0
"$NORMBENCH" gate --config "$WORK/gate.json" --baseline "$cheats" --candidate "$cheats" --time-identical --quiet --kernel 'cheat_[!n]*' \
    --screen-launches 7 --confirm-launches 12 >"$WORK/out" 2>"$WORK/err" || code=$?
[ "$code" = 1 ] && [ "$(grep -c '^WRONG   *cheat_' "$WORK/out")" = 7 ] || { cat "$WORK/out" "$WORK/err"; fail "gate: exit code $code"; }
code=0
"$NORMBENCH" gate --config "$WORK/gate.json" --baseline "$cheats" --candidate "$cheats" --time-identical --quiet --kernel honest \
    --screen-launches 7 --confirm-launches 12 --budget 20 >"$WORK/out" 2>"$WORK/err" || code=$?
! grep -q WRONG "$WORK/out" || { cat "$WORK/out"; fail "the honest kernel is called wrong"; }
