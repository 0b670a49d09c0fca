#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Cases over many runs: in the order of time, as ratios to one reference, with what is left out and why. The runs are one run, changed: no figure depends on
# the load.
set -eu
fail() { echo "$*"; cat "$WORK/out" "$WORK/err" 2>/dev/null; exit 1; }
cat >"$WORK/small.json" <<'JSON'
{ "blocks": [ { "op": ["rmsnorm", "layernorm"], "dtype": "f32", "shape": "8x64", "width": "scalar", "data": "normal",
                "kernel": "*_twopass" } ], "launches": 6, "blocks_per_launch": 4 }
JSON
"$NORMBENCH" run "$WORK/small.json" --no-plots --no-counters --quiet --out "$WORK/a" >/dev/null
edit() { # NAME STARTED PYTHON: rms is the record of the case that is no reference, ratio(X) sets what it took against it
    mkdir -p "$WORK/$1"
    /usr/bin/python3 - "$WORK/a/results.json" "$WORK/$1/results.json" "$2" "$3" <<'PY'
import collections, json, sys
d = json.load(open(sys.argv[1]))
d["started"] = sys.argv[3]
for r in d["records"]:
    r["timing"].update(noisy=False, noise=None, suspect=False)
rms, = [r for r in d["records"] if r["key"] != r["timing"]["reference"]]
def ratio(x):
    rms["timing"]["vs_reference"].update(value=x, low=0.98 * x, high=1.02 * x)
exec(sys.argv[4])
d["counts"] = dict(collections.Counter(r["status"] for r in d["records"]))
json.dump(d, open(sys.argv[2], "w"))
PY
}
edit first 2026-01-01T00:00:00Z 'ratio(0.5)'
edit second 2026-01-02T00:00:00Z 'ratio(0.55); rms["timing"].update(noisy=True, noise="a neighbour")'
edit third 2026-01-03T00:00:00Z 'ratio(0.6)'
edit other 2026-01-04T00:00:00Z 'ratio(0.7); rms["timing"]["reference"] = "something/else"'
edit failed 2026-01-05T00:00:00Z 'ratio(0.9); rms["status"] = "crashed"; rms["timing"] = None'
edit cpu 2026-01-06T00:00:00Z 'ratio(0.8); d["fingerprint"]["cpu"]["model"] = "Another CPU"'
edit merged 2026-01-07T00:00:00Z 'ratio(0.6); d["machines"] = 2 * [{"fingerprint": d["fingerprint"], "differs": []}]'
history() { # CODE ARGUMENTS...
    local wanted=$1 code=0
    shift
    "$NORMBENCH" history "$@" >"$WORK/out" 2>"$WORK/err" || code=$?
    [ $code = "$wanted" ] || fail "history $*: exit $code, wanted $wanted"
}
says() { tr -s ' ' <"$WORK/out" | grep -qE -- "$1" || fail "no /$1/"; }
find "$WORK/first" "$WORK/third" -type f -exec cksum {} + >"$WORK/before"
history 0 "$WORK/third" "$WORK/first" "$WORK/second"
says '^1 2026-01-01T00:00:00Z .*/first$'
says '^3 2026-01-03T00:00:00Z .*/third$'
says '^[a-z]+_twopass_scalar_f32.* 3 1 0\.500 0\.600 0\.500 0\.600 \+20\.0 % \[\+16\.[0-9], \+23\.[0-9]\]'
history 0 "$WORK/first" "$WORK/merged"
says '^2 2026-01-07T00:00:00Z .* several machines .*/merged$'
find "$WORK/first" "$WORK/third" -type f -exec cksum {} + | cmp - "$WORK/before" || fail "history wrote into a run"
history 0 "$WORK/first" "$WORK/third" "$WORK/failed" --format csv
says ',1,2026-01-01T00:00:00Z,.*/first,0\.5,0\.49,0\.51,$'
says ',3,2026-01-05T00:00:00Z,.*/failed,,,,crashed$'
history 0 "$WORK/first" "$WORK/other" --format csv
says ',1,.*/first,,,,another reference case$'
# On another CPU, at an end or in the middle: followed on the last one's.
history 0 "$WORK/first" "$WORK/cpu" --format csv
says ',1,.*/first,,,,another CPU$'
says ',2,.*/cpu,0\.8,'
edit middle 2026-01-02T12:00:00Z 'ratio(0.8); d["fingerprint"]["cpu"]["model"] = "Another CPU"'
history 0 "$WORK/first" "$WORK/middle" "$WORK/third"
says ' 2 0 0\.500 0\.600 0\.500 0\.600 \+20\.0 %'
# One run by two names, or a copy of it, is one run; runs that began in one second stay in the order given; a run must say when it began.
ln -s first "$WORK/name"
cp -r "$WORK/first" "$WORK/copy"
history 0 "$WORK/first" "$WORK/third" "$WORK/name" "$WORK/copy" --format csv
[ "$(wc -l <"$WORK/out")" = 3 ] && grep -q '/name: left out, the same run as .*/first' "$WORK/err" && grep -q '/copy: left out' "$WORK/err" ||
    fail "one run is taken twice"
for i in 1 2 3 4 5; do edit tie$i 2026-01-07T00:00:00Z "ratio(0.$i); d['elapsed_s'] = 1$i"; done
history 0 "$WORK/tie4" "$WORK/tie1" "$WORK/tie5" "$WORK/tie2" "$WORK/tie3" --format csv
[ "$(sed -n 's|.*/tie\(.\),.*|\1|p' "$WORK/out" | tr -d '\n')" = 41523 ] || fail "runs of one second are not in the order given"
edit timeless "" 'ratio(0.5); del d["started"]'
history 0 "$WORK/first" "$WORK/timeless" --format csv
[ "$(wc -l <"$WORK/out")" = 2 ] && grep -q '/timeless: left out, its results do not say when it began' "$WORK/err" || fail "a run without a time"
history 2 "$WORK/timeless"
grep -q 'history: no run is left' "$WORK/err" || fail "nothing says why nothing is shown"
history 0 "$WORK/first" "$WORK/second" "$WORK/third" --out "$WORK/plotted" --format json
/usr/bin/python3 - "$WORK/out" <<'PY' || fail "json"
import json, sys
d = json.load(open(sys.argv[1]))
case, = d["cases"]
assert all(run["cpu"] and run["config"] and run["version"] for run in d["runs"]), d["runs"]
assert len(d["runs"]) == 3 and [p["ratio"]["value"] for p in case["points"]] == [0.5, 0.55, 0.6], d
assert [p["reason"] for p in case["points"]] == [None, "noisy", None] and abs(case["change"]["value"] - 1.2) < 1e-12, d
PY
grep -qE '^3 (20|20\.0+[0-9]|19\.9+[0-9]*) 17\.(6|5999)' <(tr -s '\t ' ' ' <"$WORK/plotted/plots/history.dat") || { cat "$WORK/plotted/plots/history.dat"; fail "the plot's data"; }
! command -v gnuplot >/dev/null || [ -s "$WORK/plotted/plots/history.svg" ] || fail "no picture"
history 2 "$WORK/first" --filter nothing
history 2
history 2 "$WORK/none"
