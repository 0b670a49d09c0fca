#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# configs/slurm/normbench.sh without a Slurm: what it starts in which task, with a program and a scontrol that only write down their command lines;
# the program itself where it says on which CPU it is. make check-slurm has a real Slurm.
source tests/support/cli.sh
mkdir "$WORK/bin"
cat >"$WORK/bin/normbench" <<'EOF'
#!/bin/bash
echo "normbench $*" >>"$WORK/said"
while [ $# -gt 0 ]; do [ "$1" = --out ] && mkdir -p "$2" && echo '{"type":"run","sum":"0"}' >"$2/journal.jsonl"; shift; done
ends() {
    echo ended >>"$WORK/said"
    [ -e "$WORK/gains" ] && echo '{"type":"launch"}' >>"$WORK/out/shard-1/journal.jsonl"
    exit 143
}
[ -e "$WORK/sleeps" ] && trap ends TERM && touch "$WORK/asleep" && for _ in $(seq 600); do sleep 0.1; done
exit "$(cat "$WORK/code" 2>/dev/null || echo 0)"
EOF
printf '#!/bin/bash\necho "scontrol $*" >>"$WORK/said"\n' >"$WORK/bin/scontrol"
chmod +x "$WORK"/bin/*
real=$NORMBENCH
export NORMBENCH=$WORK/bin/normbench PATH=$WORK/bin:$PATH
unset SHARDS SLURM_ARRAY_TASK_ID SLURM_ARRAY_TASK_MIN SLURM_ARRAY_TASK_MAX SLURM_JOB_ID

# task I MIN MAX ARGUMENTS..: the script's exit code
task() {
    : >"$WORK/said"
    SLURM_JOB_ID=7 SLURM_ARRAY_TASK_ID=$1 SLURM_ARRAY_TASK_MIN=$2 SLURM_ARRAY_TASK_MAX=$3 bash configs/slurm/normbench.sh "${@:4}" 2>"$WORK/err"
}
said() { [ "$(cat "$WORK/said")" = "$1" ] || bad "said $(cat "$WORK/said"), wanted $1; $(cat "$WORK/err")"; }
refused() { [ "$1" = 2 ] && [ ! -s "$WORK/said" ] && grep -q "$2" "$WORK/err" || bad "exit $1, wanted 2 and '$2': $(cat "$WORK/err")"; }

bash configs/slurm/normbench.sh "$WORK/out" run 2>"$WORK/err"
refused $? "is for a job array"
task 1 1 4
refused $? "usage"
task 3 2 4 "$WORK/out" run
refused $? "SHARDS=N"
SHARDS=2 task 3 3 3 "$WORK/out" run
refused $? "none of 1 to 2"

task 2 1 4 "$WORK/out" run full --axis eps=1e-5 || bad "first start: $?"
said "normbench run full --axis eps=1e-5 --shard 2/4 --out $WORK/out/shard-2"
task 2 1 4 "$WORK/out" run full --axis eps=1e-5 || bad "second start: $?"
said "normbench run --resume $WORK/out/shard-2"
SHARDS=16 task 3 3 7 "$WORK/out" stress || bad "some tasks of 16: $?"
said "normbench stress --shard 3/16 --out $WORK/out/shard-3"
# A journal without a whole first line holds nothing.
mkdir -p "$WORK/out/shard-4"
echo '{"type":"run","sum' >"$WORK/out/shard-4/journal.jsonl"
task 4 1 4 "$WORK/out" stress
said "normbench stress --shard 4/4 --out $WORK/out/shard-4"
# A folder that holds another command is not gone on with.
task 2 1 4 "$WORK/out" run quick
refused $? "take another OUT"

# On a node with another CPU, though its brand be the same, the shard begins anew, and what was measured of it is kept.
echo '{ "blocks": [ { "op": "rmsnorm", "kernel": "*_twopass", "width": "scalar", "shape": "4x16" } ], "launches": 1, "blocks_per_launch": 2 }' >"$WORK/tiny.json"
tiny() { SLURMD_NODENAME=n1 NORMBENCH=$real task 1 1 1 "$WORK/nodes" run "$WORK/tiny.json" --no-counters --no-plots --quiet >"$WORK/table"; }
holds() { [ -s "$WORK/nodes/$1/journal.jsonl" ] && [ "$(grep -c "$2" "$WORK/nodes/$1/journal.jsonl")" = "$3" ] || bad "$1: not $3 lines of $2: $(cat "$WORK/err")"; }
tiny || bad "the first node: $? $(cat "$WORK/err")"
tiny || bad "a node of the same kind: $? $(cat "$WORK/err")"
grep -qx "normbench.sh: shard 1/1 on n1" "$WORK/err" || bad "which node is not said: $(cat "$WORK/err")"
holds shard-1 '"type":"resume"' 1
[ ! -e "$WORK/nodes/other-cpu" ] || bad "a node of the same kind is another CPU"
n=0
for other in model_number=9999 "l3_bytes=12345 stream_bytes=12345"; do
    # shellcheck disable=SC2086
    pretend "$WORK/nodes/shard-1/journal.jsonl" $other
    tiny || bad "another CPU ($other): $? $(cat "$WORK/err")"
    holds "other-cpu/shard-1-$((++n))" "\"${other%%=*}\":${other##*=}[,}]" 2
    holds shard-1 '"type":"resume"' 0
    holds shard-1 '"type":"end"' 1
done

for pair in 1:1 77:0 2:2; do
    echo "${pair%:*}" >"$WORK/code"
    task 1 1 4 "$WORK/out" run
    [ $? = "${pair#*:}" ] || bad "the program's ${pair%:*} is not ${pair#*:}"
done
rm "$WORK/code"

# Near its time limit (USR1) a task ends itself and is queued again, unless nothing was done in the time; one that Slurm ends (TERM) only ends.
touch "$WORK/sleeps" "$WORK/gains"
for signal in USR1 TERM idle; do
    ended=143
    [ $signal = idle ] && rm "$WORK/gains" && signal=USR1 ended=2
    rm -f "$WORK/asleep"
    : >"$WORK/said"
    SLURM_JOB_ID=7 SLURM_ARRAY_TASK_ID=1 SLURM_ARRAY_TASK_MIN=1 SLURM_ARRAY_TASK_MAX=4 bash configs/slurm/normbench.sh "$WORK/out" run 2>"$WORK/err" &
    until [ -e "$WORK/asleep" ]; do sleep 0.1; done
    kill -s $signal $!
    wait $!
    [ $? = $ended ] || bad "$signal: the exit code should be $ended"
    [ $signal = USR1 ] && [ $ended = 143 ] && queued=$'\nscontrol requeue 7' || queued=
    said "normbench run --resume $WORK/out/shard-1
ended$queued"
done
exit "$failed"
