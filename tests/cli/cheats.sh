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
# One a process: a thread that works later writes where another kernel's buffers lie by then.
for honest in honest cheat_keeps_a_thread; do
    code=0
    "$NORMBENCH" run "$WORK/run.json" --plugin "$cheats" --axis "kernel=cheats:$honest" --no-plots --no-counters --quiet \
        --out "$WORK/$honest" >"$WORK/table" || code=$?
    [ "$code" = 0 ] || { cat "$WORK/table"; fail "run: exit code $code of an honest kernel, $honest"; }
done
for cheat in clock_runs_late changes_once unspoilt skips_later by_number by_pointer by_content half later helped; do
    code=0
    "$NORMBENCH" run "$WORK/run.json" --plugin "$cheats" --axis "kernel=cheats:cheat_$cheat" --no-plots --no-counters --quiet \
        --format table --out "$WORK/$cheat" >"$WORK/table" || code=$?
    [ "$code" = 1 ] && grep -qE 'wrong_when_timed|read_outside|not_reproducible|changed_input' "$WORK/table" || { cat "$WORK/table"; fail "$cheat: $code"; }
done
grep -q 'had another thread work for it' "$WORK/helped/results.json" || { cat "$WORK/helped/results.json"; fail "helped: another reason"; }
# In launches of two blocks, too.
code=0
sed 's/"blocks_per_launch": 10/"blocks_per_launch": 2/' "$WORK/run.json" >"$WORK/two.json"
"$NORMBENCH" run "$WORK/two.json" --plugin "$cheats" --axis kernel=cheats:cheat_helped --no-plots --no-counters --quiet \
    --out "$WORK/two_blocks" >"$WORK/table" || code=$?
[ "$code" = 1 ] && grep -q 'had another thread work for it' "$WORK/two_blocks/results.json" || { cat "$WORK/table"; fail "helped, two blocks: $code"; }
# next_call does all the work of a call when the next one comes: in a loop over one buffer nothing is left out.
code=0
"$NORMBENCH" gate --config "$WORK/gate.json" --baseline "$cheats" --candidate "$cheats" --time-identical --quiet --kernel 'cheat_[!kn]*' \
    --screen-launches 7 --confirm-launches 12 >"$WORK/out" 2>"$WORK/err" || code=$?
[ "$code" = 1 ] && [ "$(grep -c '^WRONG   *cheat_' "$WORK/out")" = 10 ] || { cat "$WORK/out" "$WORK/err"; fail "gate: exit code $code"; }
code=0
"$NORMBENCH" gate --config "$WORK/gate.json" --baseline "$cheats" --candidate "$cheats" --time-identical --quiet --kernel honest \
    --screen-launches 7 --confirm-launches 12 --budget 20 >"$WORK/out" 2>"$WORK/err" || code=$?
! grep -q WRONG "$WORK/out" || { cat "$WORK/out"; fail "the honest kernel is called wrong"; }
