#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Claims that PyTorch decides, on a stub in its place: what is asked, once each; figures, pages and schemas; going on asks nothing again; what does
# not fit, is missing or misbehaves is named, and the other claims go on.
. tests/support/cli.sh
export NORMBENCH_PYTHON=$PWD/tests/python/torch_stub.py TORCH_STUB_LOG=$WORK/requests
cat >"$WORK/training.json" <<'JSON'
{ "title": "training", "statement": "Steps.", "scope": "a test", "sources": [{ "cite": "tests/cli" }],
  "experiments": {
    "steps": { "kind": "training", "workload": "tiny-transformer", "measure": "steps", "arms": ["layernorm", "rmsnorm", "none"],
      "compare": { "of": { "norm": "rmsnorm" }, "against": { "norm": "layernorm" } } },
    "memory": { "kind": "training", "workload": "tiny-transformer", "measure": "memory", "arms": ["layernorm nn", "none"], "common": "batch=2",
      "compare": { "of": { "norm": "layernorm" }, "against": { "norm": "none" } } },
    "course": { "kind": "training", "workload": "tiny-transformer", "measure": "course", "steps": 20, "arms": ["none", "layernorm", "rmsnorm"],
      "compare": { "of": { "norm": "rmsnorm" }, "against": { "norm": "layernorm" } } } },
  "readings": [
    { "id": "steps", "text": "a time", "experiment": "steps", "expect": [{ "figure": "cut", "form": "equals", "to": 0.2, "within": 1e-6, "where": { "part": "step", "norm": "rmsnorm" } }] },
    { "id": "memory", "text": "a peak", "experiment": "memory", "expect": [{ "figure": "memory_ratio", "form": "equals", "to": 1.2, "within": 1e-6, "where": { "what": "peak" } }] },
    { "id": "course", "text": "a loss", "experiment": "course", "expect": [{ "figure": "loss_ratio", "form": "equals", "to": 1.01, "within": 1e-6, "where": { "mode": "training" } }] },
    { "id": "layers", "text": "a width", "experiment": "course", "expect": [{ "figure": "std_drift", "form": "equals", "to": 2, "where": { "at": "start", "site": "attention.input" } }] }] }
JSON
claims() { # NAME ARGUMENTS...
    local name=$1
    shift
    "$NORMBENCH" claims "$WORK/training.json" --out "$WORK/$name" --no-plots --format json "$@" >"$WORK/out" 2>"$WORK/err" || bad "$name: exit $?: $(cat "$WORK/err")"
}
reads() { # EXPRESSION in d, the document, and r, its readings
    /usr/bin/python3 -c "
import json
d = json.load(open('$WORK/out'))
r = {x['id']: x for x in d['claims'][0]['readings']}
assert $1, [(i, x['verdict'], x['reason']) for i, x in r.items()]" || bad "$1: not so: $(cat "$WORK/err")"
}

claims trained --launches 6
reads "all(x['verdict'] == 'REPRODUCED' and {f['launches'] for f in x['figures']} == {6} for x in r.values())"
reads "d['training']['torch'] == '2.15.0' and abs(d['training']['steps'][1]['cut']['value'] - 0.2) < 1e-6"
/usr/bin/python3 tests/check_schema.py reports/schema "$WORK/trained" "$WORK/training.json"
code=$?
[ $code = 0 ] || [ $code = 77 ] || bad "the schemas do not hold for training: $code"
grep -q '## Steps, memory and losses' "$WORK/trained/claims.md" && grep -q 'id="training"' "$WORK/trained/claims.html" || bad "the pages have no training"
/usr/bin/python3 - "$TORCH_STUB_LOG" <<'PY' || bad "other requests than were due"
import json, sys
requests = [json.loads(line) for line in open(sys.argv[1])]
by = lambda measure: [r for r in requests if r["measure"] == measure]
assert [len(r["arms"]) for r in by("steps")] == [3] * 6, "a launch has all arms"
assert [len(r["arms"]) for r in by("memory")] == [1] * 12, "the peak is of a process"
assert sum(len(r["arms"]) for r in by("course")) == 18 and len(by("course")) < 18, "arms share a process"
assert {r["round"] for r in by("course")} == set(range(6)) and all(r["device"] == "cpu" and r["threads"] == 1 for r in by("course"))
assert all(r["text"] and r["kernels"] for r in requests) and by("memory")[0]["arms"][0]["batch"] == 2
PY

# Going on asks nothing again.
cp "$TORCH_STUB_LOG" "$WORK/before"
"$NORMBENCH" claims --resume "$WORK/trained" >"$WORK/out" 2>&1 || bad "--resume of training: $(cat "$WORK/out")"
cmp -s "$TORCH_STUB_LOG" "$WORK/before" || bad "--resume asked again"

# What is left out, missing or too small a time says so, for each reading.
needs() { # PATTERN: each reading says it
    reads "all(x['verdict'] == 'NOT MEASURED' and __import__('re').search(r'''$1''', x['reason']) for x in r.values())"
}
claims quick --quick
needs 'PyTorch, which --quick leaves out .--train-budget SECONDS includes it.: about [0-9]+ min'
claims none --train-budget 0
needs '--train-budget 0 leaves out'
claims short --train-budget 0.01
reads "'PyTorch needs about ' in r['steps']['reason'] and '--train-budget' in r['course']['reason']"
TORCH_STUB=missing claims missing
needs 'PyTorch; python has no PyTorch: pip install torch'
[ "$(grep -c 'pip install torch' "$WORK/err")" = 1 ] || bad "not said once: $(cat "$WORK/err")"
NORMBENCH_PYTHON=$WORK/nowhere claims nowhere
needs 'nowhere cannot be started: No such file'
NORMBENCH_PYTHON=/bin/true claims mute
needs '/bin/true ended without saying whether it has PyTorch'
claims cpu --device cuda
needs 'a GPU: PyTorch 2.15.0 of .* sees none'
TORCH_STUB=cuda claims gpu --device cuda --launches 6
reads "d['training']['device'] == 'NVIDIA H100' and r['steps']['verdict'] == 'REPRODUCED'"
/usr/bin/python3 - "$WORK/gpu/readings.json" configs/models/readings/h100-2026-11-26.json <<'PY' || bad "readings.json: not as the recorded ones"
import json, re, sys
ours, recorded = (json.loads(re.sub(r"(?m)^//.*", "", open(path).read())) for path in sys.argv[1:])
assert set(ours) == set(recorded) and ours["device"] == "cuda" and ours["machine"] == "NVIDIA H100", ours
(line,) = ours["readings"]
assert set(recorded["readings"][0]) - {"pairs"} <= set(line) and abs(line["saves"] - 0.2) < 1e-6 and line["none_ms"] > 0, line
PY
refuses "one of cpu, cuda" claims --device gpu

# What it does costs its own answer: that of the arms of one norm, here, whose requests crash, hang or run out of memory.
for how in crashes exits hangs memory; do
    TORCH_STUB="prints forks $how ON=none" claims "$how" --launches 6
    case $how in
    crashes) said='was ended by signal 11' ;;
    exits) said='ended with exit code 3, after lines that are not of the protocol' ;;
    hangs) said='no end within ' ;;
    memory) said='ran out of memory' ;;
    esac
    reads "r['course']['verdict'] == 'REPRODUCED' and r['memory']['verdict'] == r['steps']['verdict'] == 'NOT MEASURED'"
    reads "__import__('re').search(r'''$said''', r['steps']['reason'])"
    tr -s '\n ' ' ' <"$WORK/err" | grep -q "warning: .*$said" || bad "$how: not said at once: $(cat "$WORK/err")"
done
TORCH_STUB="prints forks lingers" claims lingers --launches 6
reads "all(x['verdict'] == 'REPRODUCED' for x in r.values())"
grep -qlz "^TORCH_STUB_LOG=$WORK/" /proc/[0-9]*/environ 2>/dev/null && bad "the stub's processes are there yet"

sed 's/"none", "layernorm", "rmsnorm"/"layernrom"/' "$WORK/training.json" >"$WORK/bad4.json"
refuses "bad4.json:7: 'layernrom' is not a word for an arm; did you mean 'layernorm'" claims "$WORK/bad4.json"
sed 's/"measure": "course"/"measure": "curse"/' "$WORK/training.json" >"$WORK/bad5.json"
refuses "bad5.json:7: \"measure\" is 'curse'" claims "$WORK/bad5.json"
exit "$failed"
