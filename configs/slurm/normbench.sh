#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A Slurm job array over one matrix: each task measures a shard of it, by whole groups, of about equal time.
#
#   sbatch --array=1-16 configs/slurm/normbench.sh OUT run full
#   normbench merge OUT/shard-* --out OUT/merged
#
# OUT is a folder that all nodes see; behind it stands a command of normbench that has --shard (run, stress), with its options but for
# --shard, --out and --resume. $NORMBENCH is the program (default: build/normbench of the folder that sbatch is called in, else normbench on PATH).
# A task that was killed, or whose node was lost, goes on from its journal when it is queued again: --requeue has Slurm do so, and a task whose
# time limit is near (two minutes: give it well more) ends itself and queues itself again. To repeat some tasks alone: SHARDS=16 sbatch --array=3,7 ..
#
# Timings want a machine of their own: --exclusive. Unlike machines are fine, and merged results say which measured what: ratios are within
# a group, and so within a machine. --constraint asks for machines of one kind.
#SBATCH --job-name=normbench
#SBATCH --exclusive
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:USR1@120
set -u
fail() {
    echo "normbench.sh: error: $*" >&2
    exit 2
}
[ $# -ge 2 ] || fail "usage: sbatch --array=1-N normbench.sh OUT run|stress [OPTIONS]"
task=${SLURM_ARRAY_TASK_ID:-}
[ -n "$task" ] || fail "is for a job array: sbatch --array=1-N"
[ -n "${SHARDS:-}" ] || [ "$SLURM_ARRAY_TASK_MIN" = 1 ] || fail "an array that does not begin with 1 needs SHARDS=N, of how many parts"
shards=${SHARDS:-$SLURM_ARRAY_TASK_MAX}
[ "$task" -ge 1 ] && [ "$task" -le "$shards" ] || fail "task $task is none of 1 to $shards"
program=${NORMBENCH:-${SLURM_SUBMIT_DIR:-.}/build/normbench}
[ -x "$program" ] || program=normbench
command -v "$program" >/dev/null || fail "no normbench here: set NORMBENCH to the program"
all=$1
out=$all/shard-$task
shift

# The program in the background, since the shell takes signals only between commands.
ended=
run() {
    "$program" "$@" &
    local child=$!
    trap 'ended=limit; kill -TERM $child' USR1
    trap 'ended=killed; kill -TERM $child' TERM
    while :; do
        wait $child
        code=$?
        kill -0 $child 2>/dev/null || break
    done
}

# A journal that was cut off before its first line says nothing yet.
began() { grep -qs '^{"type":"run".*}$' "$out"/journal.jsonl "$out"/*/journal.jsonl; }
lines() { cat "$out"/journal.jsonl "$out"/*/journal.jsonl 2>/dev/null | wc -l; }
begin() {
    printf '%s\n' "$command" >"$all/command-$task"
    run "$@" --shard "$task/$shards" --out "$out"
}
mkdir -p "$all"
command="$* --shard $task/$shards"
before=$(lines)
# In the task's log alone: results, which may be published, name no host.
node=${SLURMD_NODENAME:-$(hostname)}
echo "normbench.sh: shard $task/$shards on $node" >&2
if began; then
    [ ! -e "$all/command-$task" ] || [ "$(cat "$all/command-$task")" = "$command" ] ||
        fail "$out is of another command: $(cat "$all/command-$task"); take another OUT"
    run "$1" --resume "$out"
    # 5: this node has another CPU, and its measurements cannot be gone on with: they are put aside.
    if [ "$code" = 5 ]; then
        aside=1
        while [ -e "$all/other-cpu/shard-$task-$aside" ]; do aside=$((aside + 1)); done
        mkdir -p "$all/other-cpu"
        mv "$out" "$all/other-cpu/shard-$task-$aside"
        echo "normbench.sh: shard $task begins anew on $node; what another CPU measured of it is in $all/other-cpu/shard-$task-$aside" >&2
        before=0
        begin "$@"
    fi
else
    rm -rf "$out"
    begin "$@"
fi
if [ "$ended" = limit ]; then
    [ "$(lines)" -gt "$before" ] || fail "shard $task: nothing is done within the time limit; it must be well above two minutes"
    echo "normbench.sh: shard $task: the time limit is near; queued again" >&2
    scontrol requeue "${SLURM_JOB_ID:?}"
fi
# 77: nothing of the shard can run on this machine, which its records say.
[ "$code" = 77 ] && code=0
exit "$code"
