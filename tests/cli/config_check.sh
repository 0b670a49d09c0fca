#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `run CONFIG --list` says every mistake of a file at once, each with line, key and what would be right.
. tests/support/cli.sh
gives() { ends "$1" "" "$NORMBENCH" run "$2" --list --quiet; } # CODE CONFIG
says() { grep -qF -- "$1" "$WORK/err" || bad "does not say: $1: $(cat "$WORK/err")"; }
cat >"$WORK/a.json" <<'JSON'
{ "blocks": [ { "op": ["rmsnrm", "layernorm"], "dtype": "f23", "shape": "16x64",
                "exclude": [ { "widht": "scalar" }, 3 ] },
              { "opp": "rmsnorm" },
              7,
              { "eps": -1, "label": "a",
                "label": "b" } ],
  "launchs": 9,
  "blocks_per_launch": 0,
  "gate": { "fail_margin": 1000, "instructions": { "a": "2%",
                                                   "b": "x" } } }
JSON
gives 2 "$WORK/a.json"
says "a.json:1: \"op\": 'rmsnrm' is not one of"
says "a.json:1: \"dtype\": 'f23' is not one of"
says 'a.json:2: unknown key "widht"; did you mean "width"?'
says 'a.json:2: "exclude" is a number'
says "a.json:9: \"a\": '2%' is no budget"
says "a.json:10: \"b\": 'x' is no budget"
[ "$(wc -l <"$WORK/err")" = 13 ] || bad "not 13 mistakes: $(cat "$WORK/err")"

# ---- names, which are looked at once the rest is right: each once, also where a block has includes ----------------------------------------------
cat >"$WORK/b.json" <<'JSON'
{ "blocks": [ { "op": "rmsnorm", "shape": "16x64", "kernel": ["rmsnorm_towpass", "layernrm_fast"],
                "data": "nromal", "include": [ { "dtype": "f32" }, { "dtype": "bf16" } ] },
              { "op": "rmsnorm", "shape": "16x64",
                "kernel": "rmsnorm_fst" } ] }
JSON
gives 2 "$WORK/b.json"
says "b.json:1: kernel 'rmsnorm_towpass': no kernel has this name; near it: rmsnorm_twopass"
says "b.json:1: kernel 'layernrm_fast'"
says 'b.json:2: "data": data nromal is not known; did you mean normal?'
says "b.json:4: kernel 'rmsnorm_fst'"
[ "$(wc -l <"$WORK/err")" = 4 ] || bad "not 4 mistakes: $(cat "$WORK/err")"
refuses "rmsnorm_fst" run quick --axis kernel=rmsnorm_fst --list
[ "$(wc -l <"$WORK/err")" = 1 ] || bad "a mistake of an option is said once: $(cat "$WORK/err")"

# Margins of the gate, against each other and against the one that is not said.
for margins in '"fail_margin": 4' '"pass_margin": 0.5' '"fail_margin": 2, "pass_margin": 2'; do
    printf '{ "blocks": [ { "op": "rmsnorm", "shape": "16x64" } ],\n  "gate": { %s } }\n' "$margins" >"$WORK/margins.json"
    gives 2 "$WORK/margins.json"
    says 'margins.json:2: "gate": the margin below which a case passes'
done
printf '{ "blocks": [ { "op": "rmsnorm", "shape": "16x64" } ], "gate": { "fail_margin": 1.2 } }\n' >"$WORK/margins.json"
gives 0 "$WORK/margins.json"
exit "$failed"
