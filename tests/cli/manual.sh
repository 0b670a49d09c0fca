#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Manual pages and completions: every command has them, with every option that its table has and its help describes, and their readers take them.
set -eu
fail() { echo "$*"; exit 1; }
commands=$("$NORMBENCH" --help | sed -n 's/^  \([a-z-]\{1,\}\) .*/\1/p')
[ "$(wc -w <<<"$commands")" -gt 15 ] || fail "commands: $commands"
"$NORMBENCH" help --completions bash >"$WORK/bash"
. tests/support/cli.sh
refuses "bash is the shell" help --completions ksh
refuses "bash is the shell" help --completions
refuses "no command 'gat'; did you mean 'gate'" help --man gat
refuses "one argument too many" help --man gate run
[ "$("$NORMBENCH" -V)" = "$("$NORMBENCH" --version)" ] || fail "-V is not --version"

# ---- options: of the table (what is completed), of the help, of the page ----------------------------------------------------------------
. "$WORK/bash"
complete_words() { # WORDS...: what the function of bash gives for the last
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _normbench
    echo "${COMPREPLY[@]}"
}
"$NORMBENCH" help --man >"$WORK/normbench.1"
for command in $commands; do
    "$NORMBENCH" help --man "$command" >"$WORK/normbench-$command.1"
    sed 's/\\-/-/g' "$WORK/normbench.1" | grep -q "normbench-$command (1)" || fail "normbench(1) does not name $command"
    complete_words normbench "$command" -- | tr ' ' '\n' | sort -u >"$WORK/completed"
    COLUMNS=80 "$NORMBENCH" "$command" --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p' | sort -u >"$WORK/helped"
    COLUMNS=80 "$NORMBENCH" "$command" --help >"$WORK/help"
    sed -e '1,/^.nf/d' -e '/^.fi/,$d' -e 's/^\\&//' -e 's/\\-/-/g' -e 's/\\e/\\/g' "$WORK/normbench-$command.1" >"$WORK/paged"
    diff "$WORK/completed" "$WORK/helped" >"$WORK/differ" || fail "$command: options that are completed (<) and described (>): $(cat "$WORK/differ")"
    diff "$WORK/help" "$WORK/paged" >"$WORK/differ" || fail "$command: lines of --help (<) and of the page (>): $(cat "$WORK/differ")"
done

# ---- their readers ----------------------------------------------------------------------------------------------------------------------------
for page in "$WORK"/normbench*.1; do
    if command -v man >/dev/null; then
        LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$page" >"$WORK/shown" 2>"$WORK/warned" || fail "man cannot show $page"
        [ ! -s "$WORK/warned" ] || fail "man warns of $page: $(cat "$WORK/warned")"
        grep -q 'NAME' "$WORK/shown" && grep -qE 'EXIT STATUS|Exit codes' "$WORK/shown" || fail "$page has no name or no exit codes"
    fi
    ! command -v mandoc >/dev/null || mandoc -T lint -W error "$page" || fail "mandoc refuses $page"
done
is() { [ "$1" = "$2" ] || fail "completed '$1', wanted '$2'"; }
is "$(complete_words normbench ga)" gate
is "$(complete_words normbench gate --self)" --self-test
is "$(complete_words normbench gate --inconclusive '')" "neutral pass fail"
is "$(complete_words normbench run --color a)" "auto always"
is "$(complete_words normbench help --completions '')" bash
is "$(complete_words normbench help --man ga)" gate
is "$(complete_words normbench list sh)" shapes
is "$(complete_words normbench gate --format j)" "json junit"
is "$(complete_words normbench nonsense --x)" ""
bash -n "$WORK/bash"
exit "$failed"
