#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Peers: what is missing is said with the command that gets it; one that is there runs beside our kernels, checked like them, and its
# records say which library it was. The peer is a test plugin; no library of others is needed.
. tests/support/cli.sh
set -e
fail() { echo "$1"; exit 1; }
export NORMBENCH_PEERS=$WORK/none
"$NORMBENCH" list peers --format csv >"$WORK/list"
for peer in onednn pytorch ggml; do grep -q "^$peer,not built,.*normbench peers $peer" "$WORK/list" || fail "list peers: $peer"; done
refuses "normbench peers onednn" run --peer onednn
refuses "did you mean 'ggml'" run --peer gmgl
refuses "there is no 'gmgl'.*did you mean 'ggml'" peers ggml gmgl
refuses "NAME of a library" peers
XDG_DATA_HOME="$WORK/a b" refuses "cannot work in a folder with ' '" peers ggml
refuses "after the --peer" run --peer-lib /some/library.so

export NORMBENCH_PEERS=$BUILD/tests/plugins
refuses "No such file" run --peer fakelib --peer-lib /no/such/library.so
touch "$WORK/broken.so"
refuses "is no library of ours" run --peer fakelib --peer-lib "$WORK/broken.so"
refuses "one version" run --peer fakelib --peer fakelib --peer-lib "$NORMBENCH"
refuses "is a plugin" run --peer example

# Two builds of a library, known by the file's name or by what the loader calls it: named both, whichever command loads them.
mkdir "$WORK/two"
cp "$BUILD/tests/plugins/fakelib.so" "$WORK/two/"
cp "$BUILD/tests/plugins/fakelib.so" "$WORK/two/fakelib-other.so"
named=$(ldd "$NORMBENCH" | sed -n 's/.*libcjson[^ ]* => \([^ ]*\).*/\1/p')
cp "$named" "$WORK/two/one.so"
cp "$named" "$WORK/two/another.so"
export NORMBENCH_PEERS=$WORK/two
for command in run "list kernels"; do
    # shellcheck disable=SC2086 # two words
    refuses "fakelib and fakelib-other are both fakelib," $command --peer fakelib --peer fakelib-other
    # shellcheck disable=SC2086
    refuses "fakelib and fakelib-other are both libcjson," $command --peer fakelib --peer-lib "$WORK/two/one.so" \
        --peer fakelib-other --peer-lib "$WORK/two/another.so"
done
export NORMBENCH_PEERS=$BUILD/tests/plugins

cat >"$WORK/config.json" <<'JSON'
{ "blocks": [ { "op": "rmsnorm", "dtype": "f32", "shape": "64x384", "kernel": ["rmsnorm", "rmsnorm_twopass"], "width": "256",
                "stride": ["packed", "16"], "threads": [1, 2] } ], "launches": 2, "blocks_per_launch": 4 }
JSON
"$NORMBENCH" run "$WORK/config.json" --peer fakelib --axis backend=cpu,peer:fakelib --no-plots --no-counters --format table --out "$WORK/run" \
    >"$WORK/table"
grep -q "^fakelib: fakelib 1.0; rows among 1: rmsnorm_f32" "$WORK/table" || { cat "$WORK/table"; fail "the table names no library"; }
"$NORMBENCH" report "$WORK/run" --format csv >"$WORK/csv"
grep -q "peer:fakelib" "$WORK/csv" || fail "the column backend names no peer"
grep -q "plugin:" "$WORK/csv" && fail "the column backend calls a peer a plugin"
/usr/bin/python3 - "$WORK/run/results.json" "$(nproc)" <<'PY'
import json, sys
results = json.load(open(sys.argv[1]))
peer = [r for r in results["records"] if r["variant"] == "fakelib:rmsnorm_f32"]
assert [r for r in peer if r["axes"]["threads"] == "1"], "no case of the peer"
for r in peer:
    assert r["axes"]["stride"] == "packed", "a case that applicable() refuses"
    assert r["backend"] == "peer:fakelib", r["backend"]
    if int(r["axes"]["threads"]) > int(sys.argv[2]):
        continue
    assert r["status"] == "ok" and r["timing"], (r["status"], r["reason"])
    assert r["library"] == "fakelib 1.0" and r["implementation"] == "rows among " + r["axes"]["threads"], r
ours = [r for r in results["records"] if r["variant"] != "fakelib:rmsnorm_f32"]
assert ours and not any("library" in r or r["backend"] != "cpu" for r in ours)
assert results["plugins"] == [{"name": "fakelib", "file": "peer:fakelib"}], results["plugins"]
assert any("rows must lie next to each other" in s["reason"] for s in results["skips"])
open(sys.argv[1] + ".replay", "w").write(peer[0]["replay"])
PY

# Counters see the calling thread: where others take part they are null with that reason, and where they do not they are not.
"$NORMBENCH" run "$WORK/config.json" --peer fakelib --axis backend=cpu,peer:fakelib --axis stride=packed --no-plots --launches 1 --blocks 2 --format table --out "$WORK/counted" >"$WORK/table"
/usr/bin/python3 - "$WORK/counted/results.json" "$(nproc)" <<'PY'
import json, sys
seen = set()
for r in json.load(open(sys.argv[1]))["records"]:
    threads, peer = int(r["axes"]["threads"]), r["backend"] == "peer:fakelib"
    if threads > int(sys.argv[2]) or r["op"] == "copy":
        continue
    assert r["counters"], r["key"]
    for c in r["counters"]:
        exact = c["name"] == "instructions_exact"
        shared = threads > 1 and (peer or not exact)  # the exact count of ours is taken of one thread's call
        said = "other thread" in c.get("reason", "")
        assert (c["value"] is None) == ("reason" in c), c
        assert said == shared or (not said and c["value"] is None), (r["key"], c)
        if said or c["value"] is not None:
            seen.add((peer, threads, exact))
assert int(sys.argv[2]) < 2 or {(True, 1, False), (True, 2, False), (False, 1, False), (False, 2, False)} <= seen, seen
PY
"$NORMBENCH" run "$WORK/config.json" --peer fakelib --axis backend=peer:fakelib --axis stride=packed --list 2>/dev/null >"$WORK/cases"
[ "$(grep -vc '^fakelib:' "$WORK/cases")" = 0 ] || fail "backend=peer:fakelib selects more than the peer"
replay=$(cat "$WORK/run/results.json.replay")
eval "\"$NORMBENCH\" ${replay#normbench } --check-only --format json" >"$WORK/record" || fail "$replay"
grep -q '"library": "fakelib 1.0"' "$WORK/record" || fail "the replayed record names no library"
"$NORMBENCH" list kernels --peer fakelib --peer-lib "fakelib=$NORMBENCH" | grep -q "^fakelib:rmsnorm" || fail "list kernels --peer"
"$NORMBENCH" probe fakelib:rmsnorm --peer fakelib >"$WORK/probe" || fail "probe --peer"

# oneDNN is compiled from sources: an address that has something else, or nothing, is left aside; what are no sources is refused, and does not
# keep the other libraries.
if command -v cmake >/dev/null; then
    mkdir -p "$WORK/libraries/ggml"
    cp kernels/peers/wheels/ggml.txt "$WORK/libraries/ggml/complete"
    code=0; ONEDNN_SOURCE=$WORK kernels/peers/get.sh "$WORK/libraries" onednn-omp ggml >"$WORK/log" 2>&1 || code=$?
    [ "$code" = 1 ] || fail "sources that are none: exit code $code"
    grep -q "holds no sources of oneDNN" "$WORK/log" || { cat "$WORK/log"; fail "sources that are none"; }
    grep -q "ggml: is in" "$WORK/log" || { cat "$WORK/log"; fail "a library that cannot be had keeps the others"; }
fi
echo right >"$WORK/right"
echo wrong >"$WORK/wrong"
hash=$(sha256sum "$WORK/right" | cut -d' ' -f1)
python3 kernels/peers/download.py "$WORK/got" "$hash" "file://$WORK/absent" "file://$WORK/wrong" "file://$WORK/right" 2>"$WORK/log"
cmp "$WORK/got" "$WORK/right"
grep -q "wrong: its SHA-256 is not" "$WORK/log" || fail "a file of another content is taken in silence"
rm "$WORK/got"
! python3 kernels/peers/download.py "$WORK/got" "$hash" "file://$WORK/wrong" 2>/dev/null || fail "a wrong file is taken"
[ ! -e "$WORK/got" ]

# A library that is not whole has no adapter, and that is no success.
mkdir -p "$WORK/own/normbench/libraries/ggml"
cp kernels/peers/wheels/ggml.txt "$WORK/own/normbench/libraries/ggml/complete"
code=0
make -s -f kernels/peers/rules.mk BUILD="$WORK/own/normbench" PEERS_DIR="$WORK/own/normbench/libraries" PEERS=ggml peers >"$WORK/log" 2>&1 || code=$?
[ "$code" = 2 ] || fail "an adapter that is not built: exit code $code"
grep -q "has no lib/libggml-cpu.so" "$WORK/log" || { cat "$WORK/log"; fail "nothing says what is missing"; }
exit "$failed"
