#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Wrong input: exit code 2, one clear error on stderr that names the place and the mend, nothing on stdout.
. tests/support/cli.sh
config() { printf '%s\n' "$1" >"$WORK/c.json"; }

refuses "did you mean 'run'" rnu
refuses "needs a value" run --axis
refuses "'quick'" run quik
refuses "No such file" run ./missing.json
refuses "scalar, 128" run --max-width 123
refuses "1 <= I <= N" run --shard 3/2
refuses "number" run --budget soon
refuses "no case is left" run --filter nothing-matches-this
refuses "eps" run --axis epz=1e-5
refuses "bf16" run --axis dtype=bf17
config '{ "blocks": [ { "op": "rmsnorm",
  "shpae": "64x384" } ] }'
refuses "c.json:2.*shpae.*shape" run "$WORK/c.json" # the other mistakes of a config are config_check.sh's
config '{ "blocks": [ { "op": "rmsnorm", "shape": "4000000000x4000000000" } ] }'
refuses "c.json:1" run "$WORK/c.json"
refuses "no kernel" replay nothing_v256_f32/shape:4x4
refuses "KEY" replay
refuses "run\b|journal|results" report "$WORK"
refuses "shared object|cannot|ELF|invalid" run --plugin "$WORK/c.json"
refuses "No such file|cannot" run --plugin /nonexistent.so
refuses "may be one of --list, --load-timeout, --launches" run --l
refuses "empty" run --filter ""
refuses "--out: an empty text" run --out ""
for args in report replay compare "run --list" probe claims; do
    # shellcheck disable=SC2086 # words on purpose
    refuses "an argument is empty" $args ""
done
refuses "kernel 'py:py': no kernel has this name; --plugin FILE" run --axis kernel=py:py
refuses "kernel 'rmsnorm_twopas': no kernel has this name; near it: rmsnorm_twopass," run --axis kernel=rmsnorm_twopass,rmsnorm_twopas
refuses "near it: rmsnorm_twopass_v256_f32" replay rmsnorm_twopas_v256_f32/shape:4x4
refuses "%2F" replay rmsnorm_twopass_v256_f32/data:./x.npy

# What was selected, but cannot run on this machine, is no mistake of the user's.
for args in "run --list --axis threads=1024" "run --axis threads=1024" "replay rmsnorm_twopass_scalar_f32/threads:1024 --check-only"; do
    # shellcheck disable=SC2086 # words on purpose
    ends 77 "threads 1024" "$NORMBENCH" $args
    [ ! -s "$WORK/out" ] || bad "normbench $args: prints $(cat "$WORK/out")"
done
refuses "usage"

# Each command's summary and help begin with the same verb, as a command; so do its options that do something.
for command in $("$NORMBENCH" --help | sed -n 's/^  \([a-z-]\{1,\}\) .*/\1/p'); do
    summary=$("$NORMBENCH" --help | sed -n "s/^  $command  *\([a-z]*\).*/\1/p")
    "$NORMBENCH" "$command" --help >"$WORK/out"
    sentence=$(sed '1,/^$/d' "$WORK/out" | head -n 1)
    case ${sentence%% *} in *s | "") sentence=none ;; esac
    [ "${sentence%% *}" = "${summary^}" ] || { echo "$command --help begins with '${sentence%% *}', its summary with '$summary'"; failed=1; }
    grep -E '^  --[^ ]+( [A-Z][^ ]*)? +(add|hide|end|write|print|make|leave|drop|skip|keep|replace|do|give|store|delete)(e?s) ' "$WORK/out" && failed=1
done

# Each command is in one group of the help, and no help is wider than the terminal, nor a list that is not told to be.
[ "$("$NORMBENCH" --help | grep -c '^  [a-z]')" = "$(ls cmd/*.c | grep -vc main.c)" ] || { echo "--help does not name every command once"; failed=1; }
for command in $("$NORMBENCH" --help | sed -n 's/^  \([a-z-]\{1,\}\) .*/\1/p'); do
    for width in 80 50; do
        widest=$(COLUMNS=$width "$NORMBENCH" "$command" --help | wc -L)
        [ "$widest" -le $width ] || { echo "$command --help: $widest columns of $width"; failed=1; }
    done
done
for what in kernels configs axes data shapes peers formats; do
    [ "$(env -u COLUMNS "$NORMBENCH" list $what 2>/dev/null | wc -L)" -le 80 ] || { echo "list $what is wider than 80 columns"; failed=1; }
done
[ "$("$NORMBENCH" list axes --wide | wc -L)" -gt 100 ] || { echo "list --wide leaves out"; failed=1; }
for help in --help "run --help" "stress --help" "list --help" "info --help" "report --help" "replay --help" "merge --help" "help run"; do
    # shellcheck disable=SC2086 # words on purpose
    "$NORMBENCH" $help >"$WORK/out" 2>"$WORK/err" && [ -s "$WORK/out" ] && [ ! -s "$WORK/err" ] || { echo "$help fails"; failed=1; }
done
"$NORMBENCH" --version | grep -qx "normbench $(cat VERSION)" || failed=1
exit "$failed"
