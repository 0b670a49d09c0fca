#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The guide as it is installed: each link leads to a file (and to a heading of it), each option that it names is in the help of its command, and what a reader
# would type works, in a folder of the reader's own. Time is played, so that no verdict of a timed kernel is asked for. Left out, but for their options, is what
# needs a network, a GPU, PyTorch, another machine or minutes.
# Long, 50 s: some forty commands, each of which starts workers of its own.
. tests/support/cli.sh
. tests/support/python.sh
has numpy || { echo "needs NumPy"; exit 77; }
make --no-print-directory BUILD="$BUILD" KERNEL_LIBRARY="${NORMBENCH_KERNELS:-$BUILD/libnormkernels.so}" PREFIX="$WORK/prefix" install-built >"$WORK/make.log" 2>&1 ||
    { cat "$WORK/make.log"; exit 1; }
cp "$NORMBENCH" "$WORK/prefix/bin/normbench"
docs=$WORK/prefix/share/doc/normbench foreign=$PWD/tests/foreign
for page in "$docs"/README.md "$docs"/guide/*.md "$WORK"/prefix/share/normbench/configs{,/claims}/README.md; do
    while read -r link; do
        case $link in *:*) continue ;; esac
        target=${page%/*}/${link%%#*} name=${page#"$WORK"/}
        [ "${link%%#*}" ] || target=$page
        [ -e "$target" ] || { bad "$name: nothing is installed at $link"; continue; }
        case $link in *.md\#* | \#*)
            sed -n 's/^##* //p' "$target" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9\n_-' | grep -qx -- "${link#*#}" || bad "$name: no heading for $link"
            ;;
        esac
    done < <(grep -o '](\([^) ]*\))' "$page" | sed 's/^](//; s/)$//')
done

# ---- options, of commands in blocks and in sentences ------------------------------------------------------------------------------------
unset NORMBENCH_KERNELS NORMBENCH_CONFIGS NORMBENCH_DATA NORMBENCH_PEERS
export PATH=$WORK/prefix/bin:$PATH XDG_CACHE_HOME=$WORK/cache XDG_DATA_HOME=$WORK/data
# shellcheck disable=SC2016 # the backquote is Markdown's
commands=$(cat "$docs"/README.md "$docs"/guide/*.md | sed 's/ #.*//' | grep -oE '(^    |`)normbench [a-z][^`|]*' | sed 's/^ *`\?normbench //; s/ | .*//' | sort -u)
[ "$(wc -l <<<"$commands")" -gt 50 ] || bad "these commands alone were found: $commands"
mkdir "$WORK/help"
while read -r command words; do
    [ -e "$WORK/help/$command" ] || normbench "$command" --help >"$WORK/help/$command" || bad "the guide has a command $command"
    while read -r option; do
        grep -qE -- "$option( |,|$|\))" "$WORK/help/$command" || bad "the guide says $command $option, its help does not"
    done < <(grep -oE -- '--[a-z][a-z-]*' <<<"$words")
done <<<"$commands"

# ---- what can be typed --------------------------------------------------------------------------------------------------------------------
examples() { sed -n '/^    \(normbench\|cc\) /{ s/^    //; p }' "$1" | sed 's/ *# .*//'; }
elsewhere() { # COMMAND
    case $1 in
    *cuda* | "normbench merge "* | *" run peers" | "normbench peers "*) ;;            # a GPU, other machines' parts, others' libraries
    "normbench claims" | "normbench claims --train"* | *" --quick" | *qwen3-8b*) ;;   # minutes, a model's config.json
    "normbench tune"* | *--self-test* | *--calibrate* | *"'bug-*'") ;; # minutes
    *"claims --model llama"*) ;;                                                      # as with mine.json
    *) return 1 ;;
    esac
}
# As it is typed, but with less to do.
shortened() { # COMMAND
    case $1 in
    *" run "*--budget*) echo "${1/--budget [0-9]*/--budget 2}" ;;
    *" run "*--list) echo "$1" ;;
    *" run "*shape=*) echo "$1 --launches 2 --blocks 2 --no-stress" ;;
    *" run "*) echo "$1 --launches 2 --blocks 2 --filter shape:64x384" ;;
    *" stress --kernel "*) echo "${1/--search [0-9]*/--no-search} --filter shape:4x64" ;;
    *" stress "*) echo "${1/--search [0-9]*/--no-search}" ;;
    *" tolerance "*) echo "$1 --trials 4" ;;
    *" claims --model "*) echo "$1 --launches 2" ;;
    *) echo "$1" ;;
    esac
}
prepare() { # what the pages take to be there
    normbench new-plugin mine --quiet && normbench new-plugin mine_py --quiet --lang python && cc -O2 -shared -fPIC mine.c -o mine.so -lm
    read -ra compile <<<"$(sed -n 's/^ *compile: //p' "$docs/guide/gate.md")"
    read -ra link <<<"$(sed -n 's/^ *link: //p' "$docs/guide/gate.md")"
    gxx=$(sed -n 's/^ *g++: *\([^ ]*\) .*/\1/p' "$docs/guide/gate.md")
    gcc -O2 "${compile[@]}" -c "$foreign/functions.c" mine.c && g++ -O2 "${compile[@]}" "$gxx" -c "$foreign/words.cpp" &&
        g++ "${link[@]}" functions.o words.o mine.o -o old.so -lm && cp old.so new.so && cp mine.so theirs.so
    { echo '{ "title": "my model",'; sed -n '/"title": "my model"/,/] }$/{ /"title"/s/.*"my model",//; p }' "$docs/guide/claims.md"; } >mine.json
}
seen=
for page in gate README kernels measuring precision claims; do
    file=$docs/guide/$page.md
    [ -e "$file" ] || file=$docs/$page.md
    mkdir "$WORK/$page" && cd "$WORK/$page" || exit 1
    case $page in README | kernels) ;; *) prepare >"$WORK/log" 2>&1 || bad "$page: its files: $(cat "$WORK/log")" ;; esac
    while IFS= read -r line; do
        elsewhere "$line" && continue
        [[ $seen == *"|$line|"* ]] && continue
        seen+="|$line|" start=$SECONDS code=0
        bash -c "$(shortened "$line")" </dev/null >"$WORK/out" 2>"$WORK/err" || code=$?
        # Of our kernels some are made as others are made wrong.
        [[ $code = 0 || "$code $line" = "1 normbench stress --kernel "* ]] || bad "$page: $line: exit $code: $(tail -n 3 "$WORK/err")"
        [ -s "$WORK/out" ] || case $line in cc*) ;; *) bad "$page: $line: prints nothing" ;; esac
        echo "$((SECONDS - start)) s: $page: $line"
    done < <(examples "$file")
done

# ---- the test of a kernel in Python, as kernels.md has it -----------------------------------------------------------------------------------
cd "$WORK/kernels" || exit 1
set_path=$(sed -n 's/^    \(export PYTHONPATH=.*\)/\1/p' "$docs/guide/kernels.md")
eval "$set_path"
{ sed -n '/^    import normbench$/,/^    def test_result/{ /test_result/!s/^    //p }' "$docs/guide/kernels.md" | sed -n '/^from mine/,$p'; echo 'test_mine()'; } |
    sed '1i import normbench' >test_mine.py
"$python" test_mine.py >"$WORK/log" 2>&1 || bad "kernels.md's test: $(tail -n 5 "$WORK/log")"
exit "$failed"
