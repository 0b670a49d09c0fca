#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Kernels that leave work out while they are timed are wrong, in a run, in the gate and when they are tried, and an honest one beside them is not.
. tests/support/cli.sh
cheats=$BUILD/tests/plugins/cheats.so
cat >"$WORK/run.json" <<'JSON'
{ "blocks": [ { "op": "rmsnorm", "shape": "16x256", "kernel": ["cheats:*"] } ], "launches": 2, "blocks_per_launch": 40, "sample_ms": 0.06 }
JSON
echo '{ "blocks": [ { "op": "rmsnorm", "shape": "16x256" } ] }' >"$WORK/gate.json"
export TMPDIR=$WORK
run() { # CODE NAME..: a run of these
    local code=0 wanted=$1
    shift
    "$NORMBENCH" run "$WORK/run.json" --plugin "$cheats" --axis "kernel=$(printf 'cheats:%s,' "$@" | sed 's/,$//')" --no-stress --no-plots --no-counters \
        --quiet --format csv --out "$WORK/$1" >"$WORK/$1.csv" 2>"$WORK/err" || code=$?
    [ $code = "$wanted" ] || bad "$*: exit $code, wanted $wanted: $(cat "$WORK/$1.csv" "$WORK/err")"
}
# Those with a thread have a process each: it writes where another kernel's buffers lie by then.
run 0 honest
run 0 cheat_keeps_a_thread
run 1 cheat_later
# What another thread did is told by CPU times, which are played: half of all work.
printf '%s\n' 'cheats:cheat_helped* 2000 4 others=1' 'candidate:cheat_helped* 2000 4 others=1' >"$WORK/helped"
export NORMBENCH_PLAYED=$WORK/helped
for cheat in cheat_helped cheat_helped_by_spinner; do
    run 1 $cheat
    grep -q 'wrong_when_timed,let another thread do its work' "$WORK/$cheat.csv" || bad "$cheat is not named: $(cat "$WORK/$cheat.csv")"
done
"$NORMBENCH" try "$cheats" --kernel cheat_helped_by_spinner --budget 5 --no-peers --quiet --out "$WORK/try" >"$WORK/out" 2>"$WORK/err"
[ $? = 1 ] && grep -q 'NO: wrong_when_timed' "$WORK/out" || bad "try believes it: $(cat "$WORK/out" "$WORK/err")"
NORMBENCH=$BUILD_DIR/normbench run 1 cheat_clock_runs_late # by how much a real clock differs from the system's
others=(cheat_{changes_once,each_hundredth,unspoilt,skips_later,by_number,by_pointer,by_content,half})
run 1 "${others[@]}"
for cheat in "${others[@]}"; do
    grep -qE "^cheats:${cheat}_.*,(wrong_when_timed|read_outside|not_reproducible|changed_input)," "$WORK/${others[0]}.csv" ||
        bad "$cheat is not found: $(cat "$WORK/${others[0]}.csv")"
done
# next_call does all the work of a call when the next one comes: in a loop over one buffer nothing is left out.
gate() { # CODE N KERNELS..: so many are WRONG
    local code=0 wanted=$1 n=$2
    shift 2
    "$NORMBENCH" gate --config "$WORK/gate.json" --baseline "$cheats" --candidate "$cheats" --time-identical --quiet \
        $(printf -- '--kernel %s ' "$@") --screen-launches 7 --confirm-launches 12 >"$WORK/out" 2>"$WORK/err" || code=$?
    [ "$code" = "$wanted" ] && [ "$(grep -c '^WRONG   *cheat_' "$WORK/out")" = "$n" ] || bad "gate $*: exit code $code: $(cat "$WORK/out" "$WORK/err")"
}
gate 1 11 cheat_changes_once 'cheat_[!ckn]*'
NORMBENCH=$BUILD_DIR/normbench gate 1 1 cheat_clock_runs_late
gate 0 0 honest
exit "$failed"
