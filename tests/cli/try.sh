#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# From an installed copy, in an empty folder: new-plugin writes what each compiler builds without a warning, in C and in C++, and try says that it
# is right, how accurate and how fast, in about the time that it was given.
. tests/support/cli.sh
make --no-print-directory BUILD="$BUILD" PREFIX="$WORK/prefix" KERNEL_LIBRARY="${NORMBENCH_KERNELS:-$BUILD/libnormkernels.so}" install-built \
    >"$WORK/make.log" 2>&1 || { cat "$WORK/make.log"; exit 1; }
cp "$NORMBENCH" "$WORK/prefix/bin/normbench" # whose time is played
unset NORMBENCH_KERNELS NORMBENCH_CONFIGS NORMBENCH_DATA NORMBENCH_PEERS
PATH=$WORK/prefix/bin:$PATH NORMBENCH=normbench # so that the commands that it prints have no path, which might be long
rm -f "$WORK/prefix/lib/normbench/peers/"*.so # those that are built here
mkdir -p "$WORK/prefix/lib/normbench/peers"
cp "$BUILD/tests/plugins/fakelib.so" "$WORK/prefix/lib/normbench/peers/ggml.so" # a peer whose adapter needs no library
mkdir "$WORK/empty"
cd "$WORK/empty" || exit 1
ok() { "$NORMBENCH" "$@" >out 2>err || bad "normbench $*: exit $?: $(cat out err)"; }
holds() { grep -qE -- "$2" "$1" || bad "$1 has no /$2/: $(cat "$1")"; }

# ---- new-plugin, and the lines that it prints, as they stand ---------------------------------------------------------------------
warn="-Wall -Wextra -Wpedantic -Werror"
ok new-plugin mine
holds out '^cc -O2 -shared -fPIC mine\.c -o mine\.so -lm$'
holds out '^normbench try \./mine\.so$'
ok new-plugin mine_too --lang c++
holds out '^c\+\+ -O2 -shared -fPIC mine_too\.cpp -o mine_too\.so$'
grep -q example mine.c mine_too.cpp && bad "the example's name is left"
grep -q SPDX mine.c mine_too.cpp && bad "the example's licence is left"
cmp kernel.h "$OLDPWD/kernels/kernel.h" || bad "kernel.h is another"
for compiler in gcc clang g++ clang++; do
    command -v $compiler >/dev/null || continue
    source=mine.c standard=-std=c11 plugin=mine
    case $compiler in *++) source=mine_too.cpp standard=-std=c++17 plugin=mine_too ;; esac
    # shellcheck disable=SC2086 # words on purpose
    $compiler -O2 $standard $warn -shared -fPIC $source -o $plugin.so -lm || { bad "$compiler refuses $source"; continue; }
    ok run --plugin ./$plugin.so --axis kernel=$plugin:$plugin --axis shape=8x64 --axis data=normal --launches 0 --no-stress --no-plots --out "run-$compiler" --format json
    holds out "\"key\": \"$plugin:${plugin}_f32/"
done
[ -e mine.so ] || { echo "skipped: no compiler"; exit 77; }

# ---- try -------------------------------------------------------------------------------------------------------------------------
ok try ./mine.so --budget 5 --out try-mine
holds out '^mine:mine_f32: rmsnorm forward f32 of \./mine\.so$'
holds out '^right\? +yes: [0-9]+ cases, [1-9][0-9]+ of them hard rows'
holds out '^how accurate\? +grade [AB] in its declared range, beyond it F$'
holds out '^  worst +[0-9a-z:]+x[0-9]+, data [^ ]+: .'
holds out 'normbench replay .*try-mine/checks|^.*try-mine/checks .*$'
holds out '^how fast\? +in cache: 64x384 +from memory: 1024x1024$'
holds out '^  it takes +100 us \[100, 100\]' # 2 us a call and 4 ns an element
holds out '^  speed +[0-9]+% of copy'
holds out '^  our (reference|fast one) +1\.00x (faster|slower) \[1\.00, 1\.00\]'
holds out '^  ggml +[0-9.]+x (faster|slower)'
holds out '^inside +.'
[ "$(wc -l <out)" -le 15 ] || bad "more than fifteen lines: $(cat out)"
awk 'length > 82' out | grep -q . && bad "a line is too long: $(cat out)"
# The line that replays the worst row does, as it stands.
command=$(sed -n '/^  worst/,/^how fast/p' out | sed '1d;$d')
eval "$command" >replayed 2>err && grep -q 'right (ok)' replayed || bad "does not replay: $command: $(cat err)"

# ---- what is wrong is said ---------------------------------------------------------------------------------------------------------
sed 's/call->cols + /call->cols + 1 + /' mine.c >wrong.c
gcc -O2 -shared -fPIC wrong.c -o wrong.so -lm
ends 1 "" "$NORMBENCH" try ./wrong.so --no-peers --budget 5 --out try-wrong
holds ../out '^right\? +NO: inaccurate in [0-9]+ of [0-9]+ cases$'
holds ../out '^  first +[0-9]+ of [0-9]+ elements beyond the bound; row [0-9]+'
holds ../out 'try-wrong'
holds ../out '^how fast\? +not timed'
holds ../out '^inside +.*rounding nearest' # of a wrong one, too: it may say why
# Right but for a factor in each row, which names the mistake.
sed 's/(float)call->cols + /(float)(call->cols - 7) + /' mine.c >short.c
gcc -O2 -shared -fPIC short.c -o short.so -lm
ends 1 "" "$NORMBENCH" try ./short.so --no-peers --budget 5 --out try-short
holds ../out '^  why +every row is too small by a factor of 1\.0034 to 1\.0092, as if$'
holds ../out '^ +the sum were divided by n - 7$'
holds ../out '^inside .*; undetermined: sums \(' # and why
# So fast that it cannot do its work, whatever comes out.
echo "mine:* 2000 0.5" >played
NORMBENCH_PLAYED=$PWD/played ends 4 "" "$NORMBENCH" try ./mine.so --no-peers --budget 5 --out try-fast
holds ../out '^right\? +SUSPECT: no case of [0-9]+ is beyond its bound'
# The variance as sum of squares / n - mean^2 in f32, not clipped, passes allclose on normal rows. Though it says so of itself, it is wrong.
sed -e 's/= 0;$/= 0, mean = 0;/; s/sum += x\[i\] \* x\[i\];/sum += x[i] * x[i], mean += x[i];/' -e 's/NB_OP_RMSNORM/NB_OP_LAYERNORM/; s/\.range = range/.variance = NB_VAR_ONEPASS/' \
    -e 's/float rstd = .*/mean \/= (float)call->cols; float rstd = 1 \/ sqrtf(sum \/ (float)call->cols - mean * mean + (float)call->eps);/' \
    -e 's/x\[i\] \* rstd/(x[i] - mean) * rstd/g' mine.c >moments.c
gcc -O2 -w -shared -fPIC moments.c -o moments.so -lm
ends 1 "" "$NORMBENCH" try ./moments.so --no-peers --budget 5 --out try-moments
holds ../out '^right\? +NO: inaccurate in [0-9]+ of [0-9]+ cases$'
holds ../out '^  why +variance as E\[x\^2\] - mean\^2: NaN or Inf from mean/sd = [0-9]+'
refuses "mine.c: is there already" new-plugin mine
refuses "one of c, c\+\+, python" new-plugin other --lang rust
refuses "nothing.py: No such file" try nothing.py
refuses "mine.c: is a source; cc -O2 -shared -fPIC mine.c -o mine.so" try mine.c
refuses "letters, digits" new-plugin a-b
for name in class numpy normbench json None zoneinfo; do
    refuses "'$name': a word of Python's, or a module" new-plugin "$name" --lang python
done
refuses "without \"lib\"" new-plugin libmine
refuses "NAME" new-plugin
refuses "FILE, a shared object, Python or a program" try
refuses "try-wrong: already holds a run; use another folder$" try ./mine.so --out try-wrong
refuses "No such file|cannot" try ./nothing.so
refuses "none of its kernels is called 'mine:mien'; it has mine:mine_f32" try ./mine.so --kernel mine:mien
exit "$failed"
