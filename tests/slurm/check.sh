#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A job array on a real Slurm with two nodes (make check-slurm): configs/slurm/normbench.sh with a run (shards of stress are tests/cli/shards.sh's); a task is killed and queued
# again, and goes on, on the other node. Merged results are the cases of one run. 77: its packages cannot be had here, the last line says why; a Slurm
# that does not start is a failure. All of it lives in one folder, and is taken down however this ends.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/slurm/slurm.sh
build=$(cd "${BUILD:-build}" && pwd)
export NORMBENCH=$build/normbench NORMBENCH_TUNING=none NO_COLOR=1
work=$(mktemp -d)
chmod 755 "$work" # munge wants every folder above its socket readable
failed=0
bad() {
    echo "FAIL  $*"
    failed=1
}
trap 'slurm_down; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
slurm_up "$build/slurm" "$work/slurm" || exit $?
echo "Slurm $(sinfo --version | cut -d' ' -f2), $(nproc) CPUs"

# Launches enough that a task is met while it measures.
cat >"$work/small.json" <<'JSON'
{ "blocks": [ { "op": ["rmsnorm", "layernorm"], "kernel": "*_twopass", "width": ["scalar", "256"], "dtype": ["f32", "bf16"],
                "shape": ["4x16", "8x32", "3x48", "16x64", "5x80", "7x24"] } ], "launches": 40, "blocks_per_launch": 8 }
JSON

submit() { # ARRAY OUT COMMAND.. : the job's number
    local array=$1 out=$2
    shift 2
    mkdir -p "$out"
    sbatch --parsable --array="$array" --output="$out/task-%a.log" configs/slurm/normbench.sh "$out" "$@"
}
finished() { while [ -n "$(squeue -h -j "$1" 2>/dev/null)" ]; do sleep 1; done; } # JOB

# ---- run: four tasks on both nodes, one killed while it measures; its node is drained, so that the other one goes on with it
node_of() { scontrol show job "$1" 2>/dev/null | sed -n 's/^ *BatchHost=//p'; }
began=$SECONDS
job=$(submit 1-4 "$work/run" run "$work/small.json" --no-counters --no-plots --quiet) || bad "sbatch refuses the array"
count_launches() { grep -c '"type":"launch"' "$work/run/shard-2/journal.jsonl" 2>/dev/null; }
until [ "0$(count_launches)" -ge 3 ] || [ -z "$(squeue -h -j "$job" 2>/dev/null)" ]; do sleep 0.2; done
done_before=$(count_launches)
first_node=$(node_of "${job}_2")
scontrol update NodeName="$first_node" State=DRAIN Reason="tests/slurm/check.sh" || bad "node '$first_node' is not drained"
scontrol requeue "${job}_2" || bad "task 2 is not queued again: $(cat "$work"/run/task-2.log 2>&1)"
finished "$job"
scontrol show job "${job}_2" 2>/dev/null | grep -q "Restarts=1" || bad "task 2 was not started twice"
second_node=$(node_of "${job}_2")
case ${first_node:-},$second_node in n1,n2 | n2,n1) ;; *) bad "task 2 began on '${first_node:-}' and went on on '$second_node'" ;; esac
scontrol update NodeName="${first_node:-n1}" State=RESUME
echo "run: 4 tasks on 2 nodes in $((SECONDS - began)) s, task 2 killed after ${done_before:-0} launches on ${first_node:-no node}, gone on with on $second_node"
"$NORMBENCH" run "$work/small.json" --no-counters --no-plots --quiet --out "$work/one" >"$work/log" 2>&1 || bad "one run: $(tail -n 2 "$work/log")"
"$NORMBENCH" merge "$work"/run/shard-? --out "$work/run/merged" --format csv >"$work/merged.csv" 2>"$work/log" || bad "merge: $(cat "$work/log" "$work"/run/task-*.log)"
/usr/bin/python3 - "$work" "$work/run/shard-2/journal.jsonl" <<'EOF' || bad "merged results are not those of one run"
import collections, json, sys
one, merged = (json.load(open(f"{sys.argv[1]}/{d}/results.json")) for d in ("one", "run/merged"))
assert len(one["records"]) == 48, len(one["records"])
for name in ("key", "group", "status", "bytes", "summation_depth", "accuracy", "axes"):
    a, b = ([r[name] for r in d["records"]] for d in (one, merged))
    assert a == b, (name, a, b)
assert one["plan"] == merged["plan"] and one["skips"] == merged["skips"]
assert merged["complete"] and merged["missing_shards"] == [] and len(merged["merged"]) == 4, merged["merged"]
assert len(merged["machines"]) == 1 and merged["machines"][0]["fingerprint"]["cpu"]["model"], merged["machines"]
assert len(merged["resumed"]) == 1, merged["resumed"]
assert all(r["timing"] for r in merged["records"])
lines = [json.loads(l) for l in open(sys.argv[2])]
made = collections.Counter((l["group"], l["launch"]) for l in lines if l["type"] == "launch")
assert made and set(made.values()) == {1}, "what was measured before the kill was measured again"
EOF

[ "$failed" = 0 ] && echo "ok    a job array gives the cases of one run, on whichever node its tasks run"
exit "$failed"
