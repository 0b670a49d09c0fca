#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# normbench claims --model: a list of operations, a config.json as Hugging Face has it, a plugin's kernel, going on, and what it refuses.
. tests/support/cli.sh

mkdir "$WORK/models"
cat >"$WORK/models/small.json" <<'JSON'
// comments are allowed
{ "title": "a small one", "source": "tests/cli", "work": "training", "tokens": 64, "parameters": 1e6, "tensors": 4,
  "operations": [
    { "op": "product", "shape": "512x64x128", "count": 2, "where": "up" },
    { "op": "product", "shape": "64x16x64", "batch": 4, "hot": true },
    { "op": "norm", "shape": "64x128", "count": 3 },
    { "op": "elementwise", "shape": "64x128", "reads": 2, "writes": 1, "dispatches": 2 },
    { "op": "softmax", "shape": "64x64" }, { "op": "embedding", "shape": "64x128" } ] }
JSON
cat >"$WORK/models/config.json" <<'JSON'
{ "model_type": "qwen3", "hidden_size": 64, "num_hidden_layers": 2, "intermediate_size": 128, "num_attention_heads": 4,
  "num_key_value_heads": 2, "head_dim": 16, "vocab_size": 256, "max_position_embeddings": 64, "hidden_act": "silu", "bos_token_id": null }
JSON
printf '%s\n' 'product 1000 0.05' 'memcpy 100 0.1' 'operation 100' 'layernorm* 2000 1' 'rmsnorm* 1000 1' '* 1500 1' >"$WORK/played"
export NORMBENCH_PLAYED=$WORK/played

"$NORMBENCH" claims --model "$WORK/models/small.json" --out "$WORK/small" >"$WORK/out" 2>"$WORK/err" || bad "small: exit $?: $(cat "$WORK/err")"
head -3 "$WORK/out" | tr -s '\n ' ' ' | grep -qE '^In a training step of small \(64 tokens\) RMSNorm would save [0-9.]+% \[[0-9.]+, [0-9.]+\] fused, [0-9.]+% \[[0-9.]+, [0-9.]+\] unfused' ||
    bad "no answer first: $(cat "$WORK/out")"
COLUMNS=80 "$NORMBENCH" claims --resume "$WORK/small" >"$WORK/again" 2>"$WORK/err" || bad "--resume: exit $?: $(cat "$WORK/err")"
[ "$(awk 'length > 80' "$WORK/again")" = "" ] || bad "wider than 80 columns: $(awk 'length > 80' "$WORK/again")"
[ "$(grep -c '"type":"answer"' "$WORK/small/rates/journal.jsonl")" = 6 ] || bad "--resume timed products again"

cp "$WORK/models/small.json" "$WORK/kept"
sed -i 's/512x64x128/512x64x64/' "$WORK/models/small.json"
"$NORMBENCH" claims --resume "$WORK/small" >"$WORK/again" 2>"$WORK/err" || bad "--resume of another list: exit $?: $(cat "$WORK/err")"
[ "$(grep -c '"type":"answer"' "$WORK/small/rates/journal.jsonl")" = 12 ] || bad "--resume took the times of other products"
cp "$WORK/kept" "$WORK/models/small.json"

"$NORMBENCH" claims --model "$WORK/models" --tokens 32 --plugin "$BUILD_DIR/tests/plugins/example.so" --format json --out "$WORK/config" >"$WORK/json" 2>"$WORK/err" ||
    bad "config.json: exit $?: $(cat "$WORK/err")"
/usr/bin/python3 - "$WORK/json" <<'PY' || bad "config.json: not as promised: $(cat "$WORK/json")"
import json, sys
d = json.load(open(sys.argv[1]))
assert d["model"]["name"] == "models" and d["model"]["work"] == "training" and d["model"]["tokens"] == 32 and d["complete"]
assert [p["style"] for p in d["pairs"]] == ["fused", "composed", "plugin"], d["pairs"]
for p in d["pairs"]:
    assert p["reason"] is None and p["cut"]["high"] <= p["share"]["high"] and p["cut"]["value"] <= p["share"]["value"], p
    assert abs(p["products_s"]["value"] + p["norms_s"]["value"] + p["moved_s"]["value"] - p["step_s"]["value"]) < 1e-9 * p["step_s"]["value"]
    assert {(n["rows"], n["cols"], n["pass"]) for n in p["norms"]} == {(r, c, q) for r, c in ((32, 64), (128, 16), (64, 16)) for q in ("forward", "backward")}
assert d["rates"]["check"]["rows"] is None or d["rates"]["check"]["ratio"]["value"] > 0
PY
/usr/bin/python3 tests/check_schema.py reports/schema "$WORK/small" "$WORK/small/timing" "$WORK/config" "$WORK/models/small.json" \
    $(grep -l '"operations"' configs/models/*.json) >"$WORK/schema" 2>&1 || [ $? = 77 ] || bad "the schemas do not hold: $(cat "$WORK/schema")"

wrong() { # PATTERN SED-EXPRESSION
    sed "$2" "$WORK/models/small.json" >"$WORK/wrong.json"
    refuses "wrong.json$1" claims --model "$WORK/wrong.json"
}
wrong ":6: .*the operation 'nrom' is not known; did you mean 'norm'" 's/"norm"/"nrom"/'
wrong ":6: \"shape\": '64xwide' is not ROWSxCOLUMNS" 's/64x128", "count": 3/64xwide"/'
wrong ":6: \"count\"" 's/"count": 3/"count": 0/'
wrong ":2: unknown key \"toknes\"; did you mean \"tokens\"" 's/"tokens"/"toknes"/'
sed '/"norm"/d' "$WORK/models/small.json" >"$WORK/none.json"
refuses "none of its operations is a norm" claims --model "$WORK/none.json"
sed 's/qwen3/mamba/' "$WORK/models/config.json" >"$WORK/family.json"
refuses "family.json:1: \"model_type\": the family 'mamba' is not known; llama, .* are" claims --model "$WORK/family.json"
refuses "did you mean 'llama-3-8b'" claims --model lama-3-8b
refuses "this list is for 64 tokens" claims --model "$WORK/models/small.json" --tokens 5
refuses "of which model" claims --tokens 5
refuses "leave out names of claims" claims --model llama-3-8b form-keepdim
refuses "holds a model's step already" claims --model "$WORK/models/small.json" --out "$WORK/small"
exit "$failed"
