# SPDX-License-Identifier: Apache-2.0
# A real run, one with a skipped and a failing case among it, and what is left of a killed one are valid by the schemas.
set -eu
validate() { /usr/bin/python3 tests/check_schema.py reports/schema "$@"; }
validate || { [ $? = 77 ] && echo "no python3-jsonschema" && exit 77; exit 1; }

cat > "$WORK/small.json" <<'JSON'
{ "blocks": [ { "op": "rmsnorm", "dtype": "f32", "shape": "8x64", "width": ["scalar", "512"], "kernel": ["*_twopass", "*_composed"] },
              { "op": "layernorm", "dtype": "bf16", "shape": "2x3x[4x5]", "width": "scalar", "kernel": "*_twopass" },
              { "op": "rmsnorm", "dtype": "f16", "shape": "8x64", "data": "massive", "eps": "1e-8", "width": "scalar" } ],
  "launches": 6, "blocks_per_launch": 2 }
JSON
"$NORMBENCH" run "$WORK/small.json" --out "$WORK/run" --quiet > "$WORK/table"
validate "$WORK/run"

# The report makes the same results.json from the journal alone.
mkdir "$WORK/again"
cp "$WORK/run/journal.jsonl" "$WORK/again/"
"$NORMBENCH" report "$WORK/again" --no-write --format json | cmp - "$WORK/run/results.json"
"$NORMBENCH" report "$WORK/run" --no-write --format json | cmp - "$WORK/run/results.json"

# A journal torn anywhere is still a run: the whole lines are valid, and so is the report.
size=$(stat -c %s "$WORK/run/journal.jsonl")
first=$(head -n 1 "$WORK/run/journal.jsonl" | wc -c)
for cut in $((first + 10)) $((size / 2)) $((size - 3)); do
    rm -rf "$WORK/torn"
    mkdir "$WORK/torn"
    head -c "$cut" "$WORK/run/journal.jsonl" > "$WORK/torn/journal.jsonl"
    "$NORMBENCH" report "$WORK/torn" --no-write --format json > "$WORK/results.json"
    mv "$WORK/results.json" "$WORK/torn/"
    validate "$WORK/torn"
    same=$(/usr/bin/python3 - "$WORK" <<'PY'
import json, sys
keys = [[r["key"] for r in json.load(open(f"{sys.argv[1]}/{d}/results.json"))["records"]] for d in ("run", "torn")]
print(keys[0] == keys[1])
PY
)
    [ "$same" = True ] || { echo "cut at $cut: other keys than the whole run"; exit 1; }
done
