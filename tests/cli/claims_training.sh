#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A claim of a training: a small model, its memory, its steps in turn, its course; going on asks nothing again; what does not fit is named.
# Long, 15 s: 24 trainings.
. tests/support/cli.sh
cat >"$WORK/training.json" <<'JSON'
{ "title": "training", "statement": "Steps.", "scope": "a test", "sources": [{ "cite": "tests/cli" }],
  "experiments": {
    "steps": { "kind": "training", "workload": "tiny-transformer", "measure": "steps", "arms": ["layernorm", "none"], "common": "sequence=8 layers=1",
      "compare": { "of": { "norm": "none" }, "against": { "norm": "layernorm" } } },
    "memory": { "kind": "training", "workload": "tiny-convpool", "measure": "memory", "arms": ["layernorm", "none"], "common": "sequence=8",
      "compare": { "of": { "norm": "layernorm" }, "against": { "norm": "none" } } },
    "course": { "kind": "training", "workload": "tiny-transformer", "measure": "course", "steps": 4, "arms": ["rmsnorm"], "common": "sequence=8 layers=2" } },
  "readings": [
    { "id": "steps", "text": "a time", "experiment": "steps", "expect": [{ "figure": "time_ratio", "form": "between", "least": 1e-3, "most": 1000, "where": { "part": "step" } }] },
    { "id": "memory", "text": "kept activations", "experiment": "memory", "expect": [{ "figure": "memory_ratio", "form": "at_least", "least": 1.01, "where": { "what": "activations" } }] },
    { "id": "course", "text": "bytes are guessed", "experiment": "course", "expect": [{ "figure": "final_loss", "form": "between", "least": 1, "most": 6, "where": { "mode": "training" } }] }] }
JSON
"$NORMBENCH" claims "$WORK/training.json" --train-budget 120 --launches 6 --out "$WORK/trained" --format json >"$WORK/out" 2>"$WORK/err" ||
    bad "training: exit $?: $(cat "$WORK/err")"
/usr/bin/python3 -c "
import json
d = json.load(open('$WORK/out'))
assert d['counts']['REPRODUCED'] == 1, d['claims'][0]['reason']
assert [r['figures'][0]['launches'] for r in d['claims'][0]['readings']] == [6, 6, 6]" || bad "training: not as promised: $(cat "$WORK/err")"
/usr/bin/python3 tests/check_schema.py reports/schema "$WORK/trained" "$WORK/training.json"
code=$?
[ $code = 0 ] || [ $code = 77 ] || bad "the schemas do not hold for training: $code"
grep -q '## Training' "$WORK/trained/claims.md" && grep -q 'id="training"' "$WORK/trained/claims.html" || bad "the pages have no training"
model=$(/usr/bin/python3 -c "import json; print(json.load(open('$WORK/trained/claims.json'))['fingerprint']['cpu']['model'])")
[ -n "$model" ] && sed -n '3{s/\\//g;p}' "$WORK/trained/claims.md" | grep -qF "$model" || bad "claims.md does not say where it was measured: $(head -5 "$WORK/trained/claims.md")"
[ -s "$WORK/trained/claims-plots/loss-tiny-transformer-4.gp" ] || bad "no curve of losses: $(ls "$WORK/trained/claims-plots")"
lines=$(grep -c request "$WORK/trained/training/journal.jsonl")
[ "$lines" = 24 ] || bad "training: $lines jobs where 6 x (1 + 2 + 1) are due"
"$NORMBENCH" claims --resume "$WORK/trained" >"$WORK/out" 2>&1 || bad "--resume of training: $(cat "$WORK/out")"
[ "$(grep -c request "$WORK/trained/training/journal.jsonl")" = "$lines" ] || bad "--resume trained again"
"$NORMBENCH" claims "$WORK/training.json" --train-budget 0.01 --out "$WORK/short" --no-plots >"$WORK/out" 2>"$WORK/err" && grep -q 'train-budget' "$WORK/out" ||
    bad "a budget that is too small: $(cat "$WORK/out" "$WORK/err")"
sed 's/"layernorm", "none"/"layernrom"/' "$WORK/training.json" >"$WORK/bad4.json"
refuses "bad4.json:3: 'layernrom' is not a word for an arm; did you mean 'layernorm'" claims "$WORK/bad4.json"
sed 's/"measure": "course"/"measure": "curse"/' "$WORK/training.json" >"$WORK/bad5.json"
refuses "bad5.json:7: \"measure\" is 'curse'" claims "$WORK/bad5.json"
exit "$failed"
