# SPDX-License-Identifier: Apache-2.0
# Shards merged give the cases of one run, in its order; what does not belong together is refused with exit 2.
# Slow, 19 s: a whole run, then each of its shards.
set -eu
cat > "$WORK/small.json" <<'JSON'
{ "blocks": [ { "op": ["rmsnorm", "layernorm"], "dtype": ["f32", "bf16"], "shape": ["4x16", "8x32", "3x48"],
                "width": "scalar", "data": "normal" } ], "launches": 2, "blocks_per_launch": 2 }
JSON
# What is left beside the results is of no use here; instructions are counted one by one, and the shards' counts are enough.
run() { "$NORMBENCH" run "$WORK/small.json" --no-plots --quiet "$@" > /dev/null; }
run --no-counters --out "$WORK/whole"
for i in 1 2 3; do run --shard $i/3 --out "$WORK/shard$i"; done

"$NORMBENCH" merge "$WORK/shard2" "$WORK/shard3" "$WORK/shard1" --out "$WORK/merged" --format csv > "$WORK/merged.csv"
/usr/bin/python3 - "$WORK" <<'PY'
import json, sys
whole, merged = (json.load(open(f"{sys.argv[1]}/{d}/results.json")) for d in ("whole", "merged"))
for name in ("key", "group", "status", "bytes", "chain", "axes"):
    a, b = ([r[name] for r in d["records"]] for d in (whole, merged))
    assert a == b, (name, a, b)
assert len(whole["records"]) >= 6
assert [r["accuracy"] for r in whole["records"]] == [r["accuracy"] for r in merged["records"]]
assert whole["skips"] == merged["skips"] and whole["plan"] == merged["plan"], (whole["plan"], merged["plan"])
assert merged["complete"] and merged["missing_shards"] == [] and len(merged["merged"]) == 3
PY
if /usr/bin/python3 -c 'import jsonschema' 2> /dev/null; then
    /usr/bin/python3 tests/check_schema.py reports/schema "$WORK/merged" "$WORK"/shard?
fi

refused() {
    local said=$1 code=0
    shift
    "$NORMBENCH" merge "$@" --out "$WORK/refused" > /dev/null 2> "$WORK/errors" || code=$?
    [ $code = 2 ] && grep -q "$said" "$WORK/errors" && [ ! -e "$WORK/refused/results.json" ] && return
    echo "merge $*: exit $code, wanted 2 and '$said'; it said:"
    cat "$WORK/errors"
    exit 1
}
refused "missing: 2" "$WORK/shard1" "$WORK/shard3"
refused "both shard 1/3" "$WORK/shard1" "$WORK/shard2" "$WORK/shard3" "$WORK/shard1"
refused "is not a shard" "$WORK/whole"
refused "no folder"
refused "nowhere" "$WORK/nowhere"
run --no-counters --axis eps=1e-3 --shard 2/3 --out "$WORK/other"
refused "different plans" "$WORK/shard1" "$WORK/other" "$WORK/shard3"

code=0
"$NORMBENCH" merge "$WORK"/shard? --out "$WORK/merged" 2> "$WORK/errors" || code=$?
[ $code = 2 ] && grep -q "holds a run already" "$WORK/errors"
"$NORMBENCH" merge "$WORK/shard1" "$WORK/shard3" --partial --out "$WORK/partial" --quiet > /dev/null
grep -q '"missing_shards": \[2\]' "$WORK/partial/results.json"
