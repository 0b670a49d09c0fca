#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A run in poor surroundings: few descriptors, no stdout, a full one, a reader that leaves, another folder, ignored hang-ups.
set -e
. tests/support/cli.sh
cat >"$WORK/config.json" <<'JSON'
{ "blocks": [ { "op": "rmsnorm", "dtype": "f32", "kernel": "rmsnorm_twopass", "width": "256",
                "shape": ["1x8", "1x16", "1x24", "1x32", "1x40", "1x48", "1x56", "1x64", "1x72", "1x80", "1x88",
                          "2x8", "2x16", "2x24", "2x32", "2x40", "2x48", "2x56", "2x64", "2x72", "2x80", "2x88",
                          "3x8", "3x16", "3x24", "3x32", "3x40", "3x48", "3x56", "3x64", "3x72", "3x80", "3x88"] } ],
  "launches": 1, "blocks_per_launch": 1 }
JSON
run() { "$NORMBENCH" run "$WORK/config.json" --no-plots --no-counters --quiet "$@"; }
one=(--filter shape:1x8/)
limited() { (ulimit "$1" "$2" && "${@:3}"); }

# With fewer descriptors than groups.
ends 0 "" limited -n 32 run --out "$WORK/few"
ends 2 'ulimit -n 32' limited -n 31 run --out "$WORK/fewer"

# Without a stdout no file takes its place.
run --out "$WORK/closed" "${one[@]}" >&- || bad "closed stdout: exit code $?, should be 0"
! grep -q '^kernel' "$WORK/closed/journal.jsonl" || bad "the table was printed into the journal"

full() { run "$@" >/dev/full; }
ends 2 'No space left' full --out "$WORK/full" "${one[@]}"
[ -f "$WORK/full/results.json" ]

# What a reader does not want to read was measured all the same.
run --out "$WORK/left" "${one[@]}" | true
[ "${PIPESTATUS[0]}" = 0 ] || bad "a reader that leaves"
[ -f "$WORK/left/results.json" ]

# A plugin and an output folder named from elsewhere; a slash at its end.
cp "$BUILD/tests/plugins/example.so" "$WORK/"
(cd "$WORK" && env -u TERM "$NORMBENCH" run config.json --plugin ./example.so --axis backend=plugin:example --axis width=native --axis 'kernel=*' \
    --axis shape=2x8 --no-plots --no-counters --no-stress --quiet --format table --out sub/folder/ >table && grep -q example table)

ends 2 '/proc/nowhere' run --out /proc/nowhere

# nohup: a terminal that goes away does not end the run.
(trap '' HUP; exec "$NORMBENCH" run "$WORK/config.json" "${one[@]}" --no-plots --no-counters --quiet --out "$WORK/hup" >/dev/null) &
pid=$!
until_lines $pid "$WORK/hup/journal.jsonl" 1
kill -HUP $pid || true
waits 0 "SIGHUP under nohup"

# A file that may not grow: the error says so, what was measured is kept, and --resume ends the run.
ends 2 'File too large' limited -f 12 "$NORMBENCH" run "$WORK/config.json" --filter shape:1x --no-plots --no-counters --out "$WORK/small"
grep -q 'run --resume .*small. goes on' "$WORK/err"
ends 0 "" "$NORMBENCH" run --resume "$WORK/small" --quiet --no-plots
# Claims: what the other experiments found is printed before.
tried=('speed-rsqrt' prec-zero-row --quick --launches 2 --train-budget 0 --no-plots --out "$WORK/claims")
ends 2 '/timing/journal.jsonl: File too large' limited -f 16 "$NORMBENCH" claims "${tried[@]}"
grep -q 'prec-zero-row: with eps 0%' "$WORK/out"
grep -q 'claims --resume .*/claims. goes on' "$WORK/err"

ends 2 'ulimit -s 256' limited -s 64 run --out "$WORK/stack" "${one[@]}"
ends 0 "" limited -s 256 run --out "$WORK/stack" "${one[@]}" # as much as that message asks for

ends 2 'ulimit -v 65536' limited -v 65535 run --out "$WORK/memory" "${one[@]}"
# As much as that message asks for, which is too little for these tensors: no kernel's fault, and no success.
ends 0 "" limited -v 65536 run --out "$WORK/memory" "${one[@]}"
ends 2 'none of the 1 cases was measured: .*memory' limited -v 65536 run --axis shape=4096x4096 --out "$WORK/large"

# Ended by a signal: the exit code and the last words say so, and what is known is printed. The first use of a CPU has begun when
# a worker has.
ended() { # WHAT FILE LINES COMMAND...: behind so many lines, or (no FILE) behind the first worker
    local what=$1 file=$2 lines=$3
    shift 3
    "$NORMBENCH" "$@" >"$WORK/out" 2>"$WORK/err" &
    pid=$!
    [ -z "$file" ] || until_lines $pid "$file" "$lines"
    until [ -n "$file" ] || pgrep -P $pid -f __worker >/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
    kill -TERM $pid
    waits 143 "$what"
    grep -q 'ended by signal 15; the same command starts anew' "$WORK/err" || bad "$what: $(cat "$WORK/err")"
}
(
    unset NORMBENCH_TUNING
    export XDG_CACHE_HOME=$WORK/cache
    ended "the first use of a CPU" "" 0 run "$WORK/config.json" --axis shape=2048x2048 --out "$WORK/first"
    [ ! -e "$WORK/first" ] && [ ! -e "$WORK/cache/normbench/"tuning* ] || bad "the first use of a CPU leaves something"
    exit "$failed"
)
# Of claims that experiments in the guard decide, what is known is printed.
"$NORMBENCH" claims 'inv-*' 'form-*' 'bn-*' --quick --no-plots --out "$WORK/properties" >"$WORK/out" 2>"$WORK/err" &
pid=$!
until pgrep -P $pid >/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
kill -TERM $pid || true
waits 143 "claims, in an experiment"
grep -q 'ended by signal 15' "$WORK/err" && grep -q 'The run was cut short' "$WORK/out"
ended "try" "$WORK/tried/journal.jsonl" 5 try "$BUILD/tests/plugins/example.so" --no-peers --budget 10000 --out "$WORK/tried"
grep -q 'right? *so far: .*not all were tried' "$WORK/out"
gate() { # SIGNAL CODE: to a gate of a thousand launches, once the first is recorded
    export TMPDIR=$WORK/tmpdir
    "$NORMBENCH" gate --baseline "$BUILD/tests/plugins/gate_old.so" --candidate "$BUILD/tests/plugins/gate_new.so" --kernel gated_steady \
        --time-identical --screen-launches 1000 --out "$WORK/gate" >"$WORK/out" 2>"$WORK/err" &
    pid=$!
    until_lines $pid "$WORK/gate/samples.jsonl" 1
    kill -"$1" $pid
    waits "$2" "a gate and signal $1"
}
mkdir "$WORK/tmpdir"
gate KILL 137
[ -n "$(ls "$WORK/tmpdir")" ] # which the next one sweeps
[ -z "$(tail -c 1 "$WORK/gate/samples.jsonl")" ] # a whole line
rm "$WORK/gate/samples.jsonl"
gate TERM 143
[ -z "$(ls "$WORK/tmpdir")" ]
for file in gate.json gate.md gate.xml; do grep -q 'signal 15 ended the gate' "$WORK/gate/$file"; done

# Killed before its first line, a run leaves an empty journal, which does not keep the next one out; a line does.
mkdir "$WORK/killed" && : >"$WORK/killed/journal.jsonl"
ends 2 'is empty: the run ended before it began' "$NORMBENCH" report "$WORK/killed"
run --out "$WORK/killed" "${one[@]}" >/dev/null
rm "$WORK/killed/results.json"
ends 2 'already holds a run; use another --out' run --out "$WORK/killed"

# Copies of builds in a folder that programs cannot be run from, where this user may mount one.
cat >"$WORK/noexec.sh" <<'SH'
mount -t tmpfs -o noexec none "$1" 2>/dev/null || exit 77
TMPDIR=$1 exec "$NORMBENCH" gate --baseline "$2" --candidate "$2"
SH
mkdir "$WORK/tmp"
code=0; unshare -rm bash "$WORK/noexec.sh" "$WORK/tmp" "$NORMBENCH_KERNELS" 2>"$WORK/err" || code=$?
[ "$code" != 2 ] || grep -q 'noexec: move it, or set TMPDIR' "$WORK/err"

# No /proc, no /dev, where this user may cover them: one sentence.
for place in /proc /dev; do
    code=0; unshare -rm bash -c 'mount -t tmpfs none "$0" 2>/dev/null || exit 77; exec "$NORMBENCH" run "$1"' $place "$WORK/config.json" 2>"$WORK/err" || code=$?
    [ $code = 77 ] || grep -q '^unshare' "$WORK/err" || grep -qE "^normbench: error: $place/.*(is needed|must be mounted)" "$WORK/err"
done

# Two at once get a folder each.
(
    cd "$WORK"
    for _ in 1 2 3; do run "${one[@]}" >/dev/null & done
    for job in $(jobs -p); do wait "$job"; done
)
[ "$(find "$WORK"/results/*/results.json | wc -l)" = 3 ] || bad "three runs at once into default folders"

# Nobody writes into this pipe.
mkfifo "$WORK/pipe.json"
mkdir "$WORK/pipes" && mkfifo "$WORK/pipes/journal.jsonl"
for args in "run $WORK/pipe.json" "report $WORK/pipes" "run --resume $WORK/pipes"; do
    # shellcheck disable=SC2086 # words on purpose
    ends 2 'is a pipe or a device' "$NORMBENCH" $args
done

# The library of the kernels is cut short by a build while a run has it mapped: one sentence, not a signal, and what was measured is kept.
cp "${NORMBENCH_KERNELS:-$BUILD/libnormkernels.so}" "$WORK/kernels.so"
NORMBENCH_KERNELS=$WORK/kernels.so run "${one[@]}" --launches 1000 --out "$WORK/cut" >/dev/null 2>"$WORK/err" &
pid=$!
until_lines $pid "$WORK/cut/journal.jsonl" 3
: >"$WORK/kernels.so"
waits 2 "a library that is cut short"
grep -q 'was cut short' "$WORK/err"
exit "$failed"
