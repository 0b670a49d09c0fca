#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds that get part of their code from libraries of their own: one name of two libraries is refused, since the loader would give both
# builds the first one's code; what is the same library, or has a name of its own, is compared.
. tests/support/cli.sh
command -v gcc >/dev/null || { echo "skipped: no gcc"; exit 77; }
export TMPDIR=$WORK
cat >"$WORK/helper.c" <<'C'
int helper(void) { return WORTH; }
C
cat >"$WORK/build.c" <<'C'
int helper(void);
static volatile int sink;
__attribute__((visibility("default"))) void work(void *state) {
    (void)state;
    for (int i = 0; i < 2000; i++) sink += helper();
}
C
library() { # FOLDER WORTH SONAME
    mkdir -p "$WORK/$1"
    gcc -shared -fPIC -O2 -DWORTH="$2" ${3:+-Wl,-soname,$3} "$WORK/helper.c" -o "$WORK/$1/libhelper.so"
}
build() { # SIDE FOLDER RUNPATH FLAGS...
    gcc -shared -fPIC -O2 -fvisibility=hidden "$WORK/build.c" "$WORK/$2/libhelper.so" -Wl,-Bsymbolic -Wl,-rpath,"$3" "${@:4}" -o "$WORK/$1.so"
}
pair() { pair=(gate --quiet --function work --baseline "$WORK/$1.so" --candidate "$WORK/$2.so" --budget 0.001); }
not_compared() { pair "$1" "$2"; refuses "$3" "${pair[@]}"; } # BASELINE CANDIDATE PATTERN
compared() { # BASELINE CANDIDATE
    local code=0
    pair "$1" "$2"
    "$NORMBENCH" "${pair[@]}" >"$WORK/out" 2>"$WORK/err" || code=$?
    case $code in 0 | 4) ;; *) bad "$1, $2: exit $code: $(cat "$WORK/err")" ;; esac
}

library old 1 libhelper.so.1
library new 2 libhelper.so.1
library copy 1 libhelper.so.1
library other 2 libhelper.so.2
library plain 1 # without a name, it is asked for by its path
library bare 2
for folder in old new copy other plain bare; do
    ln -sf libhelper.so "$WORK/$folder/libhelper.so.1"
    ln -sf libhelper.so "$WORK/$folder/libhelper.so.2"
    build $folder $folder "$WORK/$folder"
done
not_compared old new "old.so needs $WORK/old/libhelper.so.1, and .*/new.so needs $WORK/new/libhelper.so.1: .*-Wl,-soname"
compared old copy
compared old other
compared plain bare

# One file, and so one machine code, in two folders with libraries of their own.
mkdir "$WORK/here" "$WORK/there"
# shellcheck disable=SC2016 # the loader's
for folder in here there; do
    build $folder/build old '$ORIGIN'
    build $folder/first old '$ORIGIN' -Wl,--disable-new-dtags # comes before LD_LIBRARY_PATH
done
cp "$WORK/old/libhelper.so" "$WORK/here/libhelper.so.1"
cp "$WORK/new/libhelper.so" "$WORK/there/libhelper.so.1"
cmp "$WORK/here/build.so" "$WORK/there/build.so"
# shellcheck disable=SC2016
origin='here/build.so: its RUNPATH has \$ORIGIN.*libhelper.so.1.*-Wl,-rpath,FOLDER'
not_compared here/build there/build "$origin"
export LD_LIBRARY_PATH=$WORK/old
not_compared here/first there/first "here/first.so: its RUNPATH has.*($WORK/here/libhelper.so.1)"
compared here/build there/build
exit "$failed"
