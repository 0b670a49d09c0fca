#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# normbench claims: lists, explanations, a small run of every kind with its pages and its schema, --strict, --resume, and what it refuses.
. tests/support/cli.sh

"$NORMBENCH" claims --list >"$WORK/list" 2>"$WORK/err" || bad "--list: exit $?: $(cat "$WORK/err")"
for id in speed-paper-range form-keepdim inv-table prec-eps-1e-8 train-parity bn-depth fact-who-uses-it bug-pytorch#41527; do
    grep -q "^$id " "$WORK/list" || bad "--list: no $id"
done
"$NORMBENCH" claims --list 'inv-*' >"$WORK/list" && [ "$(grep -c '^inv-' "$WORK/list")" = "$(($(wc -l <"$WORK/list") - 1))" ] || bad "--list of a glob"
"$NORMBENCH" claims --explain speed-rsqrt >"$WORK/out" || bad "--explain: exit $?"
grep -q "5-10% faster" "$WORK/out" && grep -q "cannot be tested here: a GPU" "$WORK/out" && grep -q "time saved from 5% to 10%" "$WORK/out" ||
    bad "--explain: $(cat "$WORK/out")"

refuses "did you mean 'form-keepdim'" claims form-keepdin
refuses "no such claim" claims --explain nothing-of-that-kind
refuses "one of table, markdown, json" claims --format xml
refuses "needs launches" claims --launches 0
refuses "no run of claims" claims --resume "$WORK/nowhere"
refuses "leave out names" claims form-keepdim --resume "$WORK/nowhere"
refuses "did you mean '--quick'" claims --quik
mkdir "$WORK/empty"
for wrong in '{"schema":"2.0","claims":{}}:"claims"' '{"schema":"2.0","claims":[{"verdict":"x"}]}:"id"' '{"claims":[]}:schema'; do
    echo "${wrong%:*}" >"$WORK/empty/claims.json"
    refuses "${wrong##*:}" report "$WORK/empty"
done
cat >"$WORK/bad.json" <<'JSON'
{ "title": "t", "statement": "s", "scope": "s", "sources": [{ "cite": "c" }],
  "experiments": { "a": { "kind": "property", "property": "divide",
    "params": { "buy": 1 } } } }
JSON
refuses 'bad.json:3: unknown key "buy"; did you mean "by"' claims "$WORK/bad.json"
sed 's/"buy": 1/"by": 1/' "$WORK/bad.json" >"$WORK/bad2.json"
refuses 'needs a reading' claims "$WORK/bad2.json"
sed 's/"property", "property": "divide"/"propperty"/' "$WORK/bad.json" >"$WORK/bad3.json"
refuses "bad3.json:2: \"kind\" must be.*did you mean 'property'" claims "$WORK/bad3.json"

# A claim of each kind, small. The timing claim is one that no machine makes wrong: the same kernel scalar and on the widest vectors.
cat >"$WORK/tiny.json" <<'JSON'
{ "title": "a tiny step", "source": "tests/cli", "work": "training", "tokens": 8, "parameters": 4096, "tensors": 2,
  "operations": [{ "op": "product", "shape": "8x64x64" }, { "op": "norm", "shape": "8x64", "count": 2 }, { "op": "softmax", "shape": "8x64" }] }
JSON
sed "s|WORK|$WORK|" >"$WORK/small.json" <<'JSON'
// comments are allowed
{ "title": "a small one", "statement": "Everything at once.", "scope": "a test", "sources": [{ "cite": "tests/cli", "says": "so" }],
  "experiments": {
    "time": { "kind": "timing", "blocks": [{ "kernel": ["rmsnorm_twopass"], "shape": "64x256", "root": ["mul_recip", "div_sqrt"], "width": "256" }],
              "compare": { "of": { "root": "mul_recip" }, "against": { "root": "div_sqrt" } } },
    "right": { "kind": "accuracy", "blocks": [{ "kernel": "rmsnorm_twopass", "shape": "4x64", "width": "scalar" }] },
    "sum": { "kind": "property", "property": "gradient_scale" },
    "step": { "kind": "step", "model": "WORK/tiny.json", "norms": "rmsnorm", "styles": ["composed", "fused"],
              "published": [{ "row": "Table 1, none", "gpu": "v100", "cut": 0.5, "low": 0.4, "high": 0.6 }] },
    "steps": { "kind": "training", "workload": "nothing", "measure": "steps", "arms": ["rmsnorm", "layernorm"] } },
  "readings": [
    { "id": "time", "text": "a time", "experiment": "time", "expect": [{ "figure": "ratio", "form": "between", "least": 0.01, "most": 100 }] },
    { "id": "right", "text": "right", "experiment": "right", "expect": [{ "figure": "failed", "form": "equals", "to": 0 }] },
    { "id": "sum", "text": "wrong on purpose", "experiment": "sum", "alternative": true,
      "expect": [{ "figure": "gradient", "form": "near", "published": 1, "within": 0.1, "where": { "reading": "sum" } }] },
    { "id": "step", "text": "what a norm saves of a step is less than the step", "experiment": "step", "alternative": true,
      "expect": [{ "figure": "cut", "form": "between", "least": -1, "most": 1, "where": { "style": "composed", "part": "step" } }] },
    { "id": "steps", "text": "not here", "experiment": "steps", "alternative": true, "expect": [{ "figure": "x", "form": "equals", "to": 0 }] }],
  "sensitivity": [{ "axis": "reading", "reading": "sum" }] }
JSON
"$NORMBENCH" claims "$WORK/small.json" form-keepdim fact-who-uses-it --quick --launches 6 --out "$WORK/run" --strict >"$WORK/out" 2>"$WORK/err" ||
    bad "run: exit $?: $(cat "$WORK/err")"
# Lines of a claim: the answer in a sentence, then its name and what was seen.
said() { # ID ANSWER
    awk -v lead="    $1: " -v answer="  $2  " '/^  [^ ]/ { last = $0 } index($0, lead) == 1 { right = index(last, answer) == 1 } END { exit !right }' \
        "$WORK/out" || bad "$1 is not $2: $(cat "$WORK/out")"
}
said small yes
said form-keepdim "in part"
said fact-who-uses-it "false in part"
grep -q '1 yes, 1 in part, 1 false in part' "$WORK/out" || bad "no counts: $(cat "$WORK/out")"
for file in claims.json claims.md claims.html timing/results.json accuracy/results.json rates/journal.jsonl; do
    [ -s "$WORK/run/$file" ] || bad "$file was not left"
done
! command -v gnuplot >/dev/null || ! grep -q 'not drawn' "$WORK/run/timing/index.html" || bad "the run behind has no pictures"
grep -q 'id="evidence"' "$WORK/run/claims.html" && grep -q '## Evidence' "$WORK/run/claims.md" || bad "the pages have no evidence"
/usr/bin/python3 tests/check_schema.py reports/schema "$WORK/run" "$WORK/run/timing" "$WORK/run/accuracy" "$WORK/small.json" configs/claims/*.json
code=$?
[ $code = 0 ] || [ $code = 77 ] || bad "the schemas do not hold: $code"
/usr/bin/python3 - "$WORK/run" <<'PY' || bad "claims.json: not as promised"
import json, sys
d = json.load(open(sys.argv[1] + "/claims.json"))
small = {c["id"]: c for c in d["claims"]}["small"]
r = {x["id"]: x for x in small["readings"]}
assert d["complete"] and d["counts"]["PARTLY"] == 1 and d["folders"]["timing"] == "timing" and d["folders"]["accuracy"] == "accuracy"
assert r["sum"]["verdict"] == "NOT REPRODUCED" and abs(r["sum"]["figures"][0]["value"] - 2000) < 1e-3
assert r["steps"]["verdict"] == "NOT MEASURED" and "does not have" in r["steps"]["reason"]
if not d["steps"]["rates"]["reason"]:
    assert r["step"]["verdict"] == "REPRODUCED", r["step"]
    composed, fused = d["steps"]["models"]
    assert composed["model"] == "tiny" and [p["part"] for p in fused["parts"]] == ["forward", "backward", "passes", "step"]
    for p in composed["parts"]:
        assert 0 < p["norm_share"]["value"] < 1 and abs(p["cut"]["value"] / p["norm_share"]["value"] - p["norm_cut"]["value"]) < 1e-9, p
    assert composed["dispatch"][0]["row"] == "Table 1, none" and fused["dispatch"] == []
assert {"cuda", "cpu"} <= {x["device"] for x in d["recorded"]}
t = r["time"]["figures"][0]
assert t["low"] <= t["value"] <= t["high"] and t["launches"] == 6 and "against" in t["evidence"]
assert {s["value"] for s in small["sensitivity"]} == {"one term", "sum"}
PY
refuses "holds claims already" claims form-keepdim --out "$WORK/run"

# Going on with a run that is whole measures nothing again and comes to the same verdicts.
cp "$WORK/run/timing/journal.jsonl" "$WORK/journal"
tuning() { /usr/bin/python3 -c "import json; print(json.load(open('$WORK/run/claims.json'))['fingerprint']['tuning'])"; }
chosen=$(tuning)
"$NORMBENCH" claims --resume "$WORK/run" --format json >"$WORK/json" 2>"$WORK/err" || bad "--resume: exit $?: $(cat "$WORK/err")"
[ "$(grep -c '"type":"launch"' "$WORK/run/timing/journal.jsonl")" = "$(grep -c '"type":"launch"' "$WORK/journal")" ] || bad "--resume measured again"
[ "$(tuning)" = "$chosen" ] || bad "--resume: another origin of the tuning: $(tuning), was $chosen"
/usr/bin/python3 -c "
import json
d = json.load(open('$WORK/json'))
assert d['counts']['REPRODUCED'] == 1 and d['counts']['PARTLY'] == 1, d['counts']" || bad "--resume: other verdicts"

refuses "holds claims, which have table, markdown and json" report "$WORK/run" --format csv
"$NORMBENCH" report "$WORK/run" --no-write --format json | cmp -s - "$WORK/json" || bad "report prints other verdicts"
cp "$WORK/run/claims.md" "$WORK/before.md"
"$NORMBENCH" report "$WORK/run" >"$WORK/out" 2>&1 && cmp -s "$WORK/run/claims.md" "$WORK/before.md" || bad "report makes other pages"
said form-keepdim "in part"

# Exit codes: a claim that is not reproduced is 1 with --strict alone.
for strict in "" --strict; do
    # shellcheck disable=SC2086 # a word or none
    "$NORMBENCH" claims prec-bf16-cast --out "$WORK/no$strict" $strict --no-plots >"$WORK/out" 2>&1
    [ $? = $((${#strict} > 0)) ] || bad "NOT REPRODUCED, '$strict': $(cat "$WORK/out")"
    said prec-bf16-cast no
done

# A plugin is told which public bugs it has: its kernels alone are tried.
"$NORMBENCH" claims 'bug-pytorch#133085' --plugin "$BUILD/tests/plugins/example.so" --out "$WORK/bugs" --format markdown >"$WORK/out" 2>"$WORK/err" ||
    bad "bugs of a plugin: exit $?: $(cat "$WORK/err")"
grep -q '1 public bug input: [01] break a kernel' "$WORK/out" || bad "bugs are not counted apart: $(cat "$WORK/out")"
grep -q 'bug-pytorch#133085' "$WORK/out" || bad "bugs of a plugin: $(cat "$WORK/out")"
[ ! -e "$WORK/bugs/accuracy/results.json" ] || ! grep -q '"key": "rmsnorm_' "$WORK/bugs/accuracy/results.json" || bad "other kernels than the plugin's were tried"
exit "$failed"
