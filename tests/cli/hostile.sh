#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A file that ends, crashes, hangs or writes to every descriptor around a correct kernel: no command ends with its exit code, none is
# left hanging, and the gate never passes what it could not measure.
# Slow, 15 s: some sixty commands.
set -u
failed=0
around=$BUILD/tests/plugins/around.so
cat >"$WORK/run.json" <<'JSON'
{ "blocks": [ { "op": "rmsnorm", "dtype": "f32", "shape": "8x256", "kernel": ["*bad_*", "rmsnorm_twopass"],
                "width": ["256", "native"] } ], "launches": 2, "blocks_per_launch": 4 }
JSON
cat >"$WORK/gate.json" <<'JSON'
{ "blocks": [ { "op": "rmsnorm", "shape": "16x256" } ] }
JSON
export TMPDIR=$WORK
# FAULT CODE PATTERN COMMAND..: exit code, and what stdout or stderr says
gives() {
    local fault=$1 code=$2 pattern=$3 got=0
    shift 3
    NORMBENCH_TEST_FAULT=$fault timeout 60 "$NORMBENCH" "$@" >"$WORK/out" 2>"$WORK/err" || got=$?
    if [ "$got" != "$code" ] || ! tr -s ' \n' ' ' <"$WORK/out" | cat - "$WORK/err" | grep -qE -- "$pattern"; then
        echo "$fault: $1: exit $got, wanted $code and /$pattern/"
        cat "$WORK/out" "$WORK/err"
        failed=1
    fi
}
gate() { # FAULT CODE PATTERN
    gives "$@" gate --config "$WORK/gate.json" --baseline "$around" --candidate "$around" --time-identical --case-timeout 2 \
        --screen-launches 7 --confirm-launches 12 --blocks 10
}
run() { # FAULT CODE PATTERN
    rm -rf "$WORK/results"
    gives "$@" run "$WORK/run.json" --plugin "$around" --case-timeout 2 --no-plots --no-counters --format table --out "$WORK/results"
}

# ---- whoever loads the file ------------------------------------------------------------------------------------------------
for where in constructor table; do
    for what in exit _exit child; do gives $where:$what 2 'ended the process with exit code 0' list kernels --plugin "$around"; done
    gives $where:crash 2 'signal 11' list kernels --plugin "$around"
    gives $where:junk 2 'descriptor that is not its own' list kernels --plugin "$around"
done
gives constructor:hang 2 'did not end within 10 s' list kernels --plugin "$around"
for what in exit _exit crash junk hang; do
    gives destructor:$what 0 'bad_around' list kernels --plugin "$around"
    gives applicable:$what 0 'bad_around_f32/' run "$WORK/run.json" --plugin "$around" --list
done

# ---- the gate --------------------------------------------------------------------------------------------------------------
for where in constructor table; do
    for what in exit _exit crash; do
        gate $where:$what:candidate 2 'not a build of kernels that can be compared'
        gate $where:$what:worker+candidate 1 'WRONG.*bad_around_f32: crashed'
    done
done
gate constructor:hang:worker+candidate 1 'WRONG.*timed_out'
for what in exit crash hang; do gate applicable:$what:candidate 1 'WRONG.*bad_around_f32: (crashed|timed_out)'; done

# ---- a run -----------------------------------------------------------------------------------------------------------------
run constructor:_exit 2 'cannot be loaded: its code ended the process with exit code 0'
run constructor:_exit:worker 1 'cases: [1-9][0-9]* ok, 1 crashed'
run table:crash:worker 1 'cases: [1-9][0-9]* ok, 1 crashed'
# Nor does it harm the kernels of another file in the commands that try several.
gives constructor:crash:worker 1 'cases: [1-9][0-9]* ok(, [0-9]+ out_of_range)?, [0-9]+ crashed' stress "$WORK/run.json" --plugin "$around" \
    --plugin "$BUILD/tests/plugins/example.so" --no-search --no-plots --out "$WORK/several"
gives constructor:crash:worker 1 'crashed: signal 11.* certain' probe '*:*' --plugin "$around" --plugin "$BUILD/tests/plugins/example.so"
run applicable:crash 1 'crashed'
run destructor:_exit 0 'bad_around'
# A worker that was killed is run once more; one that is killed again has killed itself.
run run:kill:worker 1 'killed twice \(signal 9\)'
# What is written to the descriptors of a worker reaches no journal, and nobody is blamed for it.
for where in constructor table thread applicable run destructor; do
    run $where:junk:worker 0 'bad_around'
    if grep -rq forged "$WORK/results"; then
        echo "$where:junk:worker: a forged line was taken"
        failed=1
    fi
done
NORMBENCH_TEST_FAULT=run:junk:worker "$NORMBENCH" stress "$WORK/run.json" --plugin "$around" --no-search --no-plots \
    --out "$WORK/stress" >"$WORK/out" 2>"$WORK/err" || { echo "stress with junk: exit $?"; cat "$WORK/err"; failed=1; }
exit $failed
