#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What cmd/gate.sh would build and compare after a change, and the layouts that it links. Nothing is built here.
set -u
git rev-parse --git-dir >/dev/null 2>&1 || { echo "no git checkout"; exit 77; }
failed=0
git clone -q --shared . "$WORK/repository" 2>/dev/null || { echo "the checkout cannot be cloned"; exit 77; }
cp cmd/gate.sh "$WORK/repository/cmd/"
unset KERNELS WIDTHS DTYPES
gate() { (cd "$WORK/repository" && BUILD=$WORK/build cmd/gate.sh --differs HEAD); }
# CODE NAMES: what differs, in a line
differs() {
    local code=0 got
    got=$(gate 2>"$WORK/err") || code=$?
    [ "$code $(paste -sd' ' <<<"$got")" = "$1 $2" ] || { echo "exit $code: $got; wanted $1: $2"; cat "$WORK/err"; failed=1; }
    git -C "$WORK/repository" checkout -q -f HEAD -- kernels
    git -C "$WORK/repository" clean -q -d -f kernels
}
edit() { for f in "$@"; do echo "// changed" >>"$WORK/repository/kernels/$f"; done; }
users() { (cd "$WORK/repository/kernels" && grep -l "#include \"kernels/$1\"" [!cp]*/*.c copies/*.c | sed 's|.*/||; s|\.c$||' | sort | paste -sd' '); }
all=$(cd "$WORK/repository/kernels" && printf '%s\n' [!cp]*/*.c copies/*.c | sed 's|.*/||; s/\.c$//' | sort | paste -sd' ')

differs 0 ""
edit README.md cuda/rows.cu cuda/driver.c cuda/copy.c
differs 0 ""
edit rows/rmsnorm_serial.c
differs 0 "rmsnorm_serial"
edit shared/tanh.h
differs 0 "$(users shared/tanh.h)"
edit batchnorm/composed_batchnorm.h
differs 0 "$(users batchnorm/composed_batchnorm.h)"
edit kernel.h
differs 0 "$all"
edit simd/256.h
differs 0 "$all"
edit table.c operations.c
differs 0 ""
cp "$WORK/repository/kernels/rows/rmsnorm_serial.c" "$WORK/repository/kernels/rows/rmsnorm_more.c"
differs 5 ""
rm "$WORK/repository/kernels/rows/rmsnorm_serial.c"
differs 5 ""
edit rows/rmsnorm_serial.c rows/rmsnorm_twopass.c rows/dyt_fused.c
KERNELS="rmsnorm_% nothing" differs 0 "rmsnorm_serial rmsnorm_twopass"
code=0
(cd "$WORK/repository" && cmd/gate.sh no-such-ref) >"$WORK/out" 2>&1 || code=$?
{ [ "$code" = 2 ] && grep -q "no-such-ref is no commit" "$WORK/out"; } || { echo "no-such-ref: exit $code"; failed=1; }

# ---- layouts: every object once, a gap behind each, another order for each layout and each side --------------------------------
printf 'dir/kernel_%s.o\n' a b c d e f g h i j k l m n o p >"$WORK/objects"
layout() { awk -v layout="$1" -v seed="$2" -v gaps=gaps -f cmd/layout.awk; }
orders=
for seed in 1 2; do
    for number in 1 2 3 4 5 6; do
        layout $number $seed <"$WORK/objects" >"$WORK/order"
        grep -v '^gaps/' "$WORK/order" | sort | cmp -s - "$WORK/objects" || { echo "layout $number: not every object once"; failed=1; }
        [ "$(grep -c '^gaps/gap_[1-8]\.o$' "$WORK/order")" = 16 ] || { echo "layout $number: gaps"; failed=1; }
        orders+="$(md5sum <"$WORK/order")"$'\n'
    done
done
[ "$(printf %s "$orders" | sort -u | wc -l)" = 12 ] || { echo "two layouts are the same"; failed=1; }
# Whatever order they come in, and whatever folder they are in.
[ "$(sort -r "$WORK/objects" | layout 2 1 | md5sum)" = "$(layout 2 1 <"$WORK/objects" | md5sum)" ] || { echo "order"; failed=1; }
exit "$failed"
