#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Shards of stress, merged, come to the grades of one run; a shard without cases is merged as any other.
source tests/support/cli.sh
ended() { "$NORMBENCH" "$@" >"$WORK/out" 2>"$WORK/err" || bad "normbench $*: exit $?: $(cat "$WORK/err")"; }

hard=(--no-search --no-plots --quiet --kernel "rmsnorm_twopass,layernorm_twopass" --width scalar --filter zeros)
for i in 1 2; do ended stress "${hard[@]}" --shard $i/2 --out "$WORK/stress-$i"; done
ended stress "${hard[@]}" --out "$WORK/stress-one"
ended merge "$WORK/stress-2" "$WORK/stress-1" --out "$WORK/stress"
grep -q "^rmsnorm_twopass" "$WORK/out" || bad "merged grades are not printed: $(cat "$WORK/out")"
python3 - "$WORK" <<'EOF' || bad "merged is other than one run"
import json, sys
def read(folder, file): return json.load(open(f"{sys.argv[1]}/{folder}/{file}"))
def grades(d): return sorted((g["kernel"], g["variant"], g["formula"], str(g["declared"]), str(g["all"]), g["n_cases"]) for g in d["grades"])
one, merged, parts = read("stress-one", "stress.json"), read("stress", "stress.json"), [read(f"stress-{i}", "stress.json") for i in (1, 2)]
assert grades(one) and grades(one) == grades(merged)
kernels = [{g["kernel"] + g["formula"].split()[0] for g in p["grades"]} for p in parts]
assert all(kernels) and sorted(g for p in parts for g in grades(p)) == grades(one), "a kernel is graded in two shards"
assert [b["label"] for b in one["bugs"]] == [b["label"] for b in merged["bugs"]]
EOF
if /usr/bin/python3 -c 'import jsonschema' 2>/dev/null; then
    /usr/bin/python3 tests/check_schema.py reports/schema "$WORK/stress" "$WORK/stress-2" || bad "schemas"
fi
refuses "is not a shard" merge "$WORK/stress-one" "$WORK/stress-1" --out "$WORK/no"
refuses "these are missing: 2" merge "$WORK/stress-1" --out "$WORK/no"
refuses "already holds a run" merge "$WORK/stress-1" "$WORK/stress-2" --out "$WORK/stress"
# One that was cut off has no grades, and shards asked differently are none of one plan.
mkdir "$WORK/cut"
cp -r "$WORK/stress-1" "$WORK/stress-2" "$WORK/cut"
rm "$WORK/cut/stress-1/stress.json"
refuses "cut/stress-1: .normbench stress. was cut off" merge "$WORK/cut/stress-1" "$WORK/cut/stress-2" --out "$WORK/no"
refuses "nowhere/results.json: No such file" merge "$WORK/stress-1" "$WORK/nowhere" --out "$WORK/no"
ended stress "${hard[@]}" --axis eps=1e-3 --shard 2/2 --out "$WORK/other-2"
refuses "shards of different plans" merge "$WORK/stress-1" "$WORK/other-2" --out "$WORK/no"

# One group, two shards.
echo '{ "blocks": [ { "op": "rmsnorm", "kernel": "*_twopass", "width": "scalar", "shape": "4x16" } ], "launches": 1, "blocks_per_launch": 2 }' >"$WORK/tiny.json"
for i in 1 2; do ended run "$WORK/tiny.json" --no-counters --no-plots --quiet --shard $i/2 --out "$WORK/tiny-$i"; done
refuses "shards of different plans" merge "$WORK/cut/stress-1" "$WORK/tiny-1" --out "$WORK/no"
ended merge "$WORK/tiny-1" "$WORK/tiny-2" --out "$WORK/tiny" --format csv
[ "$(grep -c ^rmsnorm "$WORK/out")" = 1 ] || bad "an empty shard: $(cat "$WORK/out")"

# The summary is of one machine: of two shards timed by unlike ones no time of the second stands beside those of the first.
sed 's/"4x16"/["4x16", "64x4096"]/' "$WORK/tiny.json" >"$WORK/two.json"
for i in 1 2; do ended run "$WORK/two.json" --no-counters --no-plots --quiet --shard $i/2 --out "$WORK/two-$i"; done
ended merge "$WORK/two-1" "$WORK/two-2" --out "$WORK/alike" --format summary
grep -q 4x16 "$WORK/out" && ! grep -q "one of 2" "$WORK/out" || bad "machines that are alike: $(cat "$WORK/out")"
sed -i 's/"l3_bytes": *[0-9]*/"l3_bytes": 1048576/' "$WORK/two-2/results.json"
python3 tests/support/sums.py "$WORK/two-2/results.json"
ended merge "$WORK/two-1" "$WORK/two-2" --out "$WORK/apart" --format summary
grep -q "machine 0, one of 2" "$WORK/out" || bad "whose times: $(cat "$WORK/out")"
[ "$(grep -oE '(4x16|64x4096),' "$WORK/out" | sort -u | wc -l)" -le 1 ] || bad "times of two machines in one summary: $(cat "$WORK/out")"
for i in 0 1; do grep -qE "<summary>machine $i  [0-9]+x[0-9]+" "$WORK/apart/index.html" || bad "page: whose are the groups?"; done
exit "$failed"
