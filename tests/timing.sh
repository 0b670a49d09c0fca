#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What rests on this machine's time, as figures, for `make check-timing`: nothing here fails. All other tests play time (tests/support/played_time.h).
set -u
export NORMBENCH_TUNING=none NO_COLOR=1
normbench=$PWD/$BUILD/normbench plugins=$BUILD/tests/plugins
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say() { printf '  %-72s %s\n' "$1" "$2"; }
of() { sed -n "$1" "$work/out"; }

cat >"$work/run.json" <<'JSON'
{ "blocks": [ { "op": "rmsnorm", "kernel": ["rmsnorm_twopass", "rmsnorm_fast"], "dtype": "f32", "width": "256", "shape": ["1x64", "16x256", "256x2048"] } ],
  "launches": 8, "blocks_per_launch": 60 }
JSON
"$normbench" run "$work/run.json" --no-stress --no-counters --no-plots --quiet --out "$work/run" >/dev/null 2>&1
/usr/bin/python3 - "$work/run/journal.jsonl" <<'PY'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
plan, lengths, shares, contended, overheads = lines[0]["plan"], [], [], 0, []
for launch in (l for l in lines if l["type"] == "launch"):
    sampled = 0
    for arm in launch["cases"]:
        rows = int(arm["key"].split("shape:")[1].split("x")[0])
        calls = arm["per_sample"] / (rows if arm["chunked"] else 1)
        mine = [ns * calls for ns in arm["sample_ns"] if ns]
        lengths += mine
        sampled += sum(mine)
    copies = sum(len([ns for ns in c["sample_ns"] if ns]) for c in launch["copies"])
    n_samples = sum(len([ns for ns in a["sample_ns"] if ns]) for a in launch["cases"])
    sampled *= (n_samples + copies) / n_samples  # those of copies are as long
    shares.append(1 - 1e-9 * sampled / launch["noise"]["wall_s"])
    overheads.append(launch["elapsed_s"] - launch["noise"]["wall_s"])
middle = lambda values: sorted(values)[len(values) // 2]
def say(what, figure): print(f"  {what:72} {figure}")
say("a sample lasts (median; asked for)", f"{1e-3 * middle(lengths):.1f} us; {1e3 * plan['sample_ms']:.0f} us")
say("of a launch's blocks, what is no sample (median; probes, warming, looks)", f"{100 * middle(shares):.0f} %")
say("a launch besides its blocks: process, buffers, choice of samples (median)", f"{1e3 * middle(overheads):.1f} ms")
PY

for seconds in 3 8; do
    start=$(date +%s.%N)
    "$normbench" run quick --budget $seconds --no-plots --quiet --out "$work/budget$seconds" >/dev/null 2>&1
    say "run quick --budget $seconds ends after" "$(echo "$(date +%s.%N) $start" | awk '{ printf "%.1f s", $1 - $2 }')"
done

echo '{ "blocks": [ { "op": "rmsnorm", "shape": "16x256" } ] }' >"$work/gate.json"
gate() { # WHAT BASELINE CANDIDATE KERNEL
    "$normbench" gate --config "$work/gate.json" --baseline "$plugins/$2" --candidate "$plugins/$3" --kernel "$4" --time-identical --quiet >"$work/out" 2>/dev/null
    say "$1" "$(of '/^[A-Z]* *\(gated\|cheat\)/p' | head -n 1 | tr -s ' ')"
}
gate "gate: the same work" gate_old.so gate_old.so gated_steady
gate "gate: twice the work" gate_old.so gate_new.so gated_doubled
gate "gate: half the work" gate_new.so gate_old.so gated_doubled
for cheat in helped helped_by_spinner; do gate "gate: half of the work is another thread's, $cheat" cheats.so cheats.so cheat_$cheat; done
