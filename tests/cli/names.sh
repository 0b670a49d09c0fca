#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A kernel has two names, its own and its variant's, each with its plugin or without: all of them are taken wherever a kernel is named, and
# where one is wrong the nearest are given.
. tests/support/cli.sh
cp "$BUILD/tests/plugins/example.so" "$WORK/mine.so"
mine=(--plugin "$WORK/mine.so")
cd "$WORK" || exit 1
# PATTERN ARGUMENTS...: exit 0, and stdout or stderr says so
says() {
    local pattern=$1 code=0
    shift
    "$NORMBENCH" "$@" >out 2>err || code=$?
    [ $code = 0 ] && cat out err | grep -qE -- "$pattern" || bad "normbench $*: exit $code, wanted 0 and /$pattern/: $(cat out err)"
}

few=(--axis shape=4x64 --axis data=normal)
for name in mine:example example_f32 '*_f32'; do
    says '^mine:example_f32/shape:4x64/' run "${mine[@]}" --list --axis "kernel=$name" "${few[@]}"
    says '^mine:example_f32/' stress "${mine[@]}" --list --kernel "$name" "${few[@]}"
    echo "{ \"launches\": 0, \"blocks\": [ { \"kernel\": \"$name\", \"shape\": \"4x64\" } ] }" >c.json
    says '^mine:example_f32/shape:4x64/' run "${mine[@]}" ./c.json --list --filter mine:
done
# Shapes of the user's beside a preset: the plugin has a case there, of rows that are not the preset's real ones.
says '^mine:example_f32/shape:64x4096/' run quick "${mine[@]}" --list --axis op=rmsnorm --axis shape=64x4096
for name in mine:example_f32 example; do
    says '^mine:example_f32: ' probe "$name" "${mine[@]}"
    says '^mine:example_f32, at most' tolerance "${mine[@]}" --kernel "$name" --n 64 --rows 4 --trials 4
    says '"key":.*mine:example_f32' replay "$name/shape:4x64/root:mul_recip" "${mine[@]}" --check-only --format json
    says '^example_f32/' gate --config ./c.json --baseline mine.so --candidate mine.so --kernel "$name" --list
    echo "{ \"blocks\": [ { \"kernel\": \"$name\", \"shape\": \"4x64\" } ] }" >g.json
    says '^example_f32/' gate --config ./g.json --baseline mine.so --candidate mine.so --list
done
# Variants of ours are taken on the axis too; a kernel with several is not one.
says '^rmsnorm_twopass_scalar_f32/' run --list --axis kernel=rmsnorm_twopass_scalar_f32 "${few[@]}"
refuses "'rmsnorm_twopass': name one of its .* variants: .*rmsnorm_twopass_scalar_f32" tolerance --kernel rmsnorm_twopass

# Tables and records call it by the name that selects it.
says '^ *mine:example +native ' run ./c.json "${mine[@]}" --axis kernel=mine:example --no-stress --no-plots --format table --out run
/usr/bin/python3 -c '
import json
r = [r for r in json.load(open("run/results.json"))["records"] if r["variant"] == "mine:example_f32"]
assert r and all(x["kernel"] == "mine:example" for x in r), r' || bad "results.json does not say the kernel"
says '^ *mine:example +native ' report run --format table

# A claim selects cases by its name too.
cat >claim.json <<'JSON'
{ "title": "t", "statement": "It is right.", "scope": "any", "sources": [{ "cite": "this test" }],
  "experiments": { "e": { "kind": "accuracy", "blocks": [{ "kernel": ["mine:example", "rmsnorm_twopass_scalar_f32"], "shape": "4x64" }] } },
  "readings": [{ "id": "r", "text": "within 100 ulp", "experiment": "e",
      "expect": [{ "figure": "max_ulp", "form": "at_most", "most": 100, "where": { "kernel": "mine:example" } }] }] }
JSON
says '^  yes  ' claims ./claim.json "${mine[@]}" --out claims --no-plots

for args in "run --axis kernel=mine:exampel" "stress --kernel mine:exampel" "probe mine:exampel" "tolerance --kernel mine:exampel" \
    "replay mine:exampel/shape:4x4"; do
    # shellcheck disable=SC2086 # words on purpose
    refuses "near it: mine:example" $args "${mine[@]}"
done
refuses "near it: candidate:example" gate --config ./c.json --baseline mine.so --candidate mine.so --kernel candidate:exampel
refuses "'mine:exampel': no kernel has this name; near it: candidate:example" gate --config ./c.json --baseline mine.so --candidate mine.so --kernel mine:exampel
exit "$failed"
