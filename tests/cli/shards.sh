#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Shards of stress and of claims, merged, come to the grades and verdicts of one run; a shard without cases is merged as any other.
source tests/support/cli.sh
ended() { "$NORMBENCH" "$@" >"$WORK/out" 2>"$WORK/err" || bad "normbench $*: exit $?: $(cat "$WORK/err")"; }

hard=(--no-search --no-plots --quiet --kernel "rmsnorm_twopass,layernorm_twopass" --width scalar --filter zeros)
said=(form-bias form-deberta form-definition form-cast-order --quick --no-plots --quiet)
for i in 1 2; do
    ended stress "${hard[@]}" --shard $i/2 --out "$WORK/stress-$i"
    ended claims "${said[@]}" --shard $i/2 --out "$WORK/claims-$i"
done
ended stress "${hard[@]}" --out "$WORK/stress-one"
ended claims "${said[@]}" --out "$WORK/claims-one"
ended merge "$WORK/stress-2" "$WORK/stress-1" --out "$WORK/stress"
grep -q "^rmsnorm_twopass" "$WORK/out" || bad "merged grades are not printed: $(cat "$WORK/out")"
ended merge "$WORK/claims-2" "$WORK/claims-1" --out "$WORK/claims"
grep -q "^form-bias  *REPRODUCED" "$WORK/out" || bad "merged verdicts are not printed: $(cat "$WORK/out")"
ended report "$WORK/claims" --no-write --format markdown
python3 - "$WORK" <<'EOF' || bad "merged is other than one run"
import json, sys
def read(folder, file): return json.load(open(f"{sys.argv[1]}/{folder}/{file}"))
def grades(d): return sorted((g["kernel"], g["variant"], g["formula"], str(g["declared"]), str(g["all"]), g["n_cases"]) for g in d["grades"])
one, merged, parts = read("stress-one", "stress.json"), read("stress", "stress.json"), [read(f"stress-{i}", "stress.json") for i in (1, 2)]
assert grades(one) and grades(one) == grades(merged)
kernels = [{g["kernel"] + g["formula"].split()[0] for g in p["grades"]} for p in parts]
assert all(kernels) and sorted(g for p in parts for g in grades(p)) == grades(one), "a kernel is graded in two shards"
assert [b["label"] for b in one["bugs"]] == [b["label"] for b in merged["bugs"]]
one, merged, parts = read("claims-one", "claims.json"), read("claims", "claims.json"), [read(f"claims-{i}", "claims.json") for i in (1, 2)]
assert all(p["claims"] for p in parts) and [p["shard"] for p in parts] == [[1, 2], [2, 2]]
assert [(c["id"], c["verdict"]) for c in one["claims"]] == [(c["id"], c["verdict"]) for c in merged["claims"]]
assert one["counts"] == merged["counts"] and merged["complete"] and merged["missing_shards"] == []
assert all(merged["machines"][c["machine"]]["fingerprint"]["cpu"] for c in merged["claims"])
EOF
if /usr/bin/python3 -c 'import jsonschema' 2>/dev/null; then
    /usr/bin/python3 tests/check_schema.py reports/schema "$WORK/claims" "$WORK/claims-1" "$WORK/stress" "$WORK/stress-2" || bad "schemas"
fi
# Verdicts of unlike machines name theirs.
sed -i 's/"l3_bytes": *[0-9]*/"l3_bytes": 1/' "$WORK/claims-2/claims.json"
ended merge "$WORK/claims-1" "$WORK/claims-2" --out "$WORK/unlike"
python3 -c "
import json, sys
d = json.load(open(sys.argv[1]))
assert len(d['machines']) == 2 and {c['machine'] for c in d['claims']} == {0, 1}, d['machines']" "$WORK/unlike/claims.json" || bad "unlike machines are one"
for page in "$WORK/out" "$WORK/unlike/claims.md" "$WORK/unlike/claims.html"; do
    for i in 0 1; do
        grep -qE "^(- |<p class=\"dim\">)?machine $i: [^:]*$" "$page" || bad "$page: no line says what machine $i is"
        grep -q "REPRODUCED (machine $i)" "$page" || bad "$page: no verdict of machine $i"
    done
    grep -q "machine 1: .*unlike machine 0 in cpu.l3_bytes" "$page" || bad "$page: in what are they unlike?"
    ! grep -q '\\x0A' "$page" || bad "$page: an escaped end of a line"
done
! grep -q "(machine " "$WORK/claims/claims.html" || bad "one machine is named with each claim"
refuses "is not a shard" merge "$WORK/claims-one" "$WORK/claims-1" --out "$WORK/no"
refuses "these are missing: 2" merge "$WORK/claims-1" --out "$WORK/no"
refuses "claims have table, markdown and json" merge "$WORK/claims-1" "$WORK/claims-2" --format csv --out "$WORK/no"
refuses "holds a run already" merge "$WORK/claims-1" "$WORK/claims-2" --out "$WORK/claims"
# One that was cut off has no verdicts, and shards asked differently, or dealt out by two measures, are none of one plan.
mkdir "$WORK/cut"
cp -r "$WORK/stress-1" "$WORK/stress-2" "$WORK/claims-1" "$WORK/claims-2" "$WORK/cut"
rm "$WORK/cut/stress-1/stress.json" "$WORK/cut/claims-2/claims.json"
refuses "cut/stress-1: .normbench stress. was cut off" merge "$WORK/cut/stress-1" "$WORK/cut/stress-2" --out "$WORK/no"
refuses "cut/claims-2: .normbench claims. was cut off" merge "$WORK/claims-1" "$WORK/cut/claims-2" --out "$WORK/no"
refuses "nowhere holds no run, stress or claims" merge "$WORK/stress-1" "$WORK/nowhere" --out "$WORK/no"
# Whatever was cut off, of two kinds nothing is merged.
one_kind() { # PATTERN DIR DIR
    refuses "$1: merge those of one kind" merge "$2" "$3" --out "$WORK/no"
    ! grep -q "cut off" "$WORK/err" || bad "merge $2 $3: $(cat "$WORK/err")"
}
one_kind "claims-1 holds claims, .*/stress-2 a stress" "$WORK/claims-1" "$WORK/stress-2"
ended claims "${said[@]}" --max-width scalar --shard 2/2 --out "$WORK/narrow-2"
refuses "shards of different plans" merge "$WORK/claims-1" "$WORK/narrow-2" --out "$WORK/no"
python3 - "$WORK" <<'EOF'
import json, sys
one, two = (f"{sys.argv[1]}/claims-{i}/claims.json" for i in (1, 2))
d, other = json.load(open(one)), json.load(open(two))
d["claims"] = other["claims"]
json.dump(d, open(f"{sys.argv[1]}/cut/claims-1/claims.json", "w"))
EOF
refuses "is in two shards" merge "$WORK/cut/claims-1" "$WORK/claims-2" --out "$WORK/no"
refuses "add --no-search" stress --timed --shard 1/2 --list

# One group, two shards.
echo '{ "blocks": [ { "op": "rmsnorm", "kernel": "*_twopass", "width": "scalar", "shape": "4x16" } ], "launches": 1, "blocks_per_launch": 2 }' >"$WORK/tiny.json"
for i in 1 2; do ended run "$WORK/tiny.json" --no-counters --no-plots --quiet --shard $i/2 --out "$WORK/tiny-$i"; done
one_kind "cut/claims-2 holds claims, .*/tiny-1 a run" "$WORK/cut/claims-2" "$WORK/tiny-1"
ended merge "$WORK/tiny-1" "$WORK/tiny-2" --out "$WORK/tiny" --format csv
[ "$(grep -c ^rmsnorm "$WORK/out")" = 1 ] || bad "an empty shard: $(cat "$WORK/out")"

# The summary is of one machine: of two shards timed by unlike ones no time of the second stands beside those of the first.
sed 's/"4x16"/["4x16", "64x4096"]/' "$WORK/tiny.json" >"$WORK/two.json"
for i in 1 2; do ended run "$WORK/two.json" --no-counters --no-plots --quiet --shard $i/2 --out "$WORK/two-$i"; done
ended merge "$WORK/two-1" "$WORK/two-2" --out "$WORK/alike" --format summary
grep -q 4x16 "$WORK/out" && ! grep -q "one of 2" "$WORK/out" || bad "machines that are alike: $(cat "$WORK/out")"
sed -i 's/"l3_bytes": *[0-9]*/"l3_bytes": 1048576/' "$WORK/two-2/results.json"
touch "$WORK/two-2/results.json"
ended merge "$WORK/two-1" "$WORK/two-2" --out "$WORK/apart" --format summary
grep -q "machine 0, one of 2" "$WORK/out" || bad "whose times: $(cat "$WORK/out")"
[ "$(grep -oE '(4x16|64x4096),' "$WORK/out" | sort -u | wc -l)" -le 1 ] || bad "times of two machines in one summary: $(cat "$WORK/out")"
for i in 0 1; do grep -qE "<summary>machine $i  [0-9]+x[0-9]+" "$WORK/apart/index.html" || bad "page: whose are the groups?"; done
exit "$failed"
