# SPDX-License-Identifier: Apache-2.0
# Runs side by side: machines first, ratios only where they mean something, exit 5 with --strict, nothing written.
. tests/support/cli.sh
set -e
cat > "$WORK/small.json" <<'JSON'
{ "blocks": [ { "op": ["rmsnorm", "layernorm"], "dtype": "f32", "shape": ["8x64", "16x64"], "width": "scalar", "data": "normal",
                "kernel": "*_twopass" } ], "launches": 6, "blocks_per_launch": 4 }
JSON
"$NORMBENCH" run "$WORK/small.json" --no-plots --no-counters --quiet --out "$WORK/a" > /dev/null
# The runs to compare are this one, with one thing changed at a time: no figure depends on the load.
edit() { # NAME PYTHON
    mkdir -p "$WORK/$1"
    /usr/bin/python3 - "$WORK/a/results.json" "$WORK/$1/results.json" "$2" <<'PY'
import collections, json, sys
d = json.load(open(sys.argv[1]))
for r in d["records"]:
    r["timing"].update(noisy=False, noise=None, suspect=False)
exec(sys.argv[3])
d["counts"] = dict(collections.Counter(r["status"] for r in d["records"]))
json.dump(d, open(sys.argv[2], "w"))
PY
    /usr/bin/python3 tests/support/sums.py "$WORK/$1/results.json"
}
compare() { ends "$1" "" "$NORMBENCH" compare "${@:2}"; } # EXIT ARGUMENTS...
edit base 'pass'
edit same 'pass'
edit cpu 'd["fingerprint"]["cpu"]["model"] = "Another CPU"'
edit plan 'd["plan"]["sample_ms"] *= 2'
edit fewer 'd["records"] = [r for r in d["records"] if "8x64" not in r["key"]]'
edit noisy 'd["records"][1]["timing"].update(noisy=True, noise="a neighbour")'
edit slower '[r["timing"]["vs_copy"].update((k, v / 2) for k, v in r["timing"]["vs_copy"].items() if v) for r in d["records"]]'

find "$WORK/base" "$WORK/same" -type f -exec cksum {} + > "$WORK/before"
compare 0 "$WORK/base" "$WORK/same" --strict
grep -q "The same machine, build and plan" "$WORK/out"
find "$WORK/base" "$WORK/same" -type f -exec cksum {} + | cmp - "$WORK/before" || bad "compare wrote into a run: $(cat "$WORK/out")"
for what in cpu plan fewer noisy; do
    compare 0 "$WORK/base" "$WORK/$what"
    compare 5 "$WORK/base" "$WORK/$what" --strict
done
compare 0 "$WORK/base" "$WORK/cpu"
[ "$(grep -n cpu.model "$WORK/out" | cut -d: -f1 | head -n 1)" -lt "$(grep -n rmsnorm_ "$WORK/out" | cut -d: -f1 | head -n 1)" ] ||
    bad "the machines do not come first: $(cat "$WORK/out")"
compare 0 "$WORK/base" "$WORK/slower" --strict
grep -q "2.000" "$WORK/out"
compare 0 "$WORK/base" "$WORK/slower" --filter 'rmsnorm_*' --format markdown
! grep -q layernorm_twopass_scalar "$WORK/out" || bad "--filter lets others through: $(cat "$WORK/out")"

# Many: the last against the first, and each case through those between.
compare 0 "$WORK/base" "$WORK/noisy" "$WORK/fewer" "$WORK/slower"
grep -q "Every run / the first" "$WORK/out" && tr -s ' ' <"$WORK/out" | grep -qE '_twopass_scalar_f32.* - - 2\.000 ' || bad "the runs between: $(cat "$WORK/out")"
compare 5 "$WORK/base" "$WORK/noisy" "$WORK/slower" --strict
compare 0 "$WORK/base" "$WORK/same" "$WORK/slower" --strict
mkdir "$WORK/json-many"
compare 0 "$WORK/base" "$WORK/noisy" "$WORK/slower" --format json
cp "$WORK/out" "$WORK/json-many/comparison.json"
for what in same cpu plan fewer noisy slower a; do
    mkdir "$WORK/json-$what"
    compare 0 "$WORK/base" "$WORK/$what" --format json
    cp "$WORK/out" "$WORK/json-$what/comparison.json"
done
if /usr/bin/python3 -c 'import jsonschema' 2> /dev/null; then
    /usr/bin/python3 -W ignore tests/check_schema.py reports/schema "$WORK"/json-*
fi

refuses "two folders" compare "$WORK/base"
mkdir "$WORK/changed" && sed 's/"shape": "8x64"/"shape": "8x65"/' "$WORK/base/results.json" >"$WORK/changed/results.json"
refuses 'results.json: .*8x64.* was changed after it was written.*; copy, merge or measure it again' compare "$WORK/base" "$WORK/changed"
refuses "nowhere" compare "$WORK/base" "$WORK/nowhere"
refuses "no case" compare "$WORK/base" "$WORK/same" --filter nothing-like-this
refuses "one of table, markdown, json" compare "$WORK/base" "$WORK/same" --format csv
refuses "did you mean '--strict'" compare "$WORK/base" "$WORK/same" --stritc
exit "$failed"
