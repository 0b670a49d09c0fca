#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A file that ends, crashes, hangs or writes to every descriptor around a correct kernel: no command ends with its exit code, none is
# left hanging, and the gate never passes what it could not measure. What loading it alone says is tests/core/test_registry.c's.
. tests/support/cli.sh
around=$BUILD/tests/plugins/around.so
cat >"$WORK/run.json" <<'JSON'
{ "blocks": [ { "op": "rmsnorm", "dtype": "f32", "shape": "8x64", "kernel": ["*bad_*", "rmsnorm_twopass"],
                "width": ["256", "native"] } ], "launches": 1, "blocks_per_launch": 2 }
JSON
echo '{ "blocks": [ { "op": "rmsnorm", "shape": "16x64" } ] }' >"$WORK/gate.json"
export TMPDIR=$WORK
# FAULT CODE PATTERN COMMAND..: exit code, and what stdout or stderr says
gives() {
    local fault=$1 code=$2 pattern=$3 got=0
    shift 3
    NORMBENCH_TEST_FAULT=$fault "$NORMBENCH" "$@" >"$WORK/out" 2>"$WORK/err" || got=$?
    [ "$got" = "$code" ] && tr -s ' \n' ' ' <"$WORK/out" | cat - "$WORK/err" | grep -qE -- "$pattern" ||
        bad "$fault: $1: exit $got, wanted $code and /$pattern/: $(cat "$WORK/out" "$WORK/err")"
}
gate() { # FAULT CODE PATTERN OPTION..
    gives "$1" "$2" "$3" gate --config "$WORK/gate.json" --baseline "$around" --candidate "$around" --time-identical \
        --screen-launches 7 --confirm-launches 12 --blocks 10 "${@:4}"
}
run() { # FAULT CODE PATTERN OPTION..
    rm -rf "$WORK/results"
    gives "$1" "$2" "$3" run "$WORK/run.json" --plugin "$around" --no-stress --no-plots --no-counters --format table --out "$WORK/results" "${@:4}"
}

# ---- whoever loads the file ------------------------------------------------------------------------------------------------
gives constructor:hang 2 'did not end within 1 s' list kernels --plugin "$around" --load-timeout 1
for what in _exit crash junk hang; do
    gives destructor:$what 0 'bad_around' list kernels --plugin "$around"
    gives applicable:$what 0 'bad_around_f32/' run "$WORK/run.json" --plugin "$around" --list
done

# ---- the gate --------------------------------------------------------------------------------------------------------------
gate constructor:exit:candidate 2 'not a build of kernels that can be compared'
gate table:crash:candidate 2 'not a build of kernels that can be compared'
gate constructor:_exit:worker+candidate 1 'WRONG.*bad_around_f32: crashed'
gate applicable:crash:candidate 1 'WRONG.*bad_around_f32: crashed'
gate constructor:hang:worker+candidate 1 'WRONG.*timed_out' --case-timeout 5

# ---- a run -----------------------------------------------------------------------------------------------------------------
run constructor:_exit:worker 1 'cases: [1-9][0-9]* ok, 1 crashed'
run destructor:_exit 0 'bad_around'
# A worker that was killed is run once more; one that is killed again has killed itself.
run run:kill:worker 1 'killed twice \(signal 9\)'
# Nor does it harm the kernels of another file in the commands that try several.
gives constructor:crash:worker 1 'crashed: signal 11.* certain' probe '*:*' --plugin "$around" --plugin "$BUILD/tests/plugins/example.so"
# What is written to the descriptors of a worker reaches no journal, and nobody is blamed for it.
for where in constructor thread run destructor; do
    run $where:junk:worker 0 'bad_around'
    ! grep -rq forged "$WORK/results" || bad "$where:junk:worker: a forged line was taken"
done
exit "$failed"
