#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# make check-deb: is the package right? lintian; then, in a root of Debian's own: installed, used by a user who is nobody special (tests/), purged.
# 77: skipped, with the reason. The root stays in $BUILD/deb/root for the next time.
set -eu
here=cmd/packaging/debian
work=$(mkdir -p "$BUILD/deb" && cd "$BUILD/deb" && pwd)
root=$work/root
skip() { echo "check-deb: skipped: $*"; exit 77; }
fail() { echo "check-deb: $*" >&2; exit 1; }
step() { echo "== $* ($SECONDS s)"; }

changes=$(ls "$work"/normbench_*.changes 2>/dev/null) || fail "no package in $work; make deb"
package=$(ls "$work"/normbench_*.deb)
[ "$(cat "$work/commit" 2>/dev/null)" = "$(git rev-parse HEAD 2>/dev/null)" ] || fail "the package in $work is of another commit than HEAD; make deb"

step "lintian"
tests/deps.sh lintian
lintian --allow-root --display-info --pedantic --fail-on error,warning,info,pedantic "$changes"

step "a root of Debian's own"
[ "$(id -u)" = 0 ] || skip "a root of its own needs root"
tests/deps.sh debootstrap
if [ ! -e "$root/complete" ]; then
    rm -rf "$root"
    debootstrap --variant=minbase --cache-dir="$(mkdir -p "$work/debs" && echo "$work/debs")" bookworm "$root" >"$work/debootstrap.log" || skip "debootstrap: $(tail -n 1 "$work/debootstrap.log")"
    touch "$root/complete"
fi
inside() { # COMMAND: in the root, with processes and mounts of its own, which end with it
    # shellcheck disable=SC2016 # of the inner shell
    unshare --mount --pid --fork --propagation private sh -c 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount --rbind /sys "$0/sys" && exec chroot "$0" "$@"' \
        "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb DEBIAN_FRONTEND=noninteractive "$@"
}
inside true 2>/dev/null || skip "no mounts of one's own here"
# What its tests need, then what it depends on; the package alone is left to be installed.
needs=$(sed -n 's/^Depends: @, //p' $here/tests/control | tr '\n' ',')$(dpkg-deb -f "$package" Depends)
cp /etc/resolv.conf "$root/etc/resolv.conf"
{ inside apt-get -qq update && inside apt-get -qq -y --no-install-recommends satisfy "$needs"; } >"$work/apt.log" 2>&1 || skip "apt-get: $(tail -n 1 "$work/apt.log")"
inside dpkg --purge normbench >/dev/null 2>&1 # of a check that failed
inside id tester >/dev/null 2>&1 || inside useradd --create-home tester
files() {
    inside find / -xdev \( -path /home -o -path /tmp -o -path /run -o -path /root -o -path /var/log -o -path /var/cache -o -path /var/lib/apt \
        -o -path /var/lib/dpkg \) -prune -o -print | sort
}
files >"$work/before"

step "installed"
cp "$package" "$root/tmp/"
inside dpkg -i "/tmp/${package##*/}" >"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log"; fail "is not installed"; }
rm -rf "$root/home/tester/tests"
cp -r $here/tests "$root/home/tester/tests"
# Where a proxy signs for the world outside, this machine knows its certificate.
cp /etc/ssl/certs/ca-certificates.crt "$root/home/tester/certificates"
for test in $(sed -n 's/^Tests: //p' $here/tests/control); do
    step "tests/$test, as another user"
    inside runuser -u tester -- sh -c "rm -rf ~/$test && mkdir ~/$test && cd / && HOME=/home/tester PIP_CERT=/home/tester/certificates AUTOPKGTEST_TMP=/home/tester/$test exec /home/tester/tests/$test" \
        >"$work/$test.log" 2>&1 && { cat "$work/$test.log"; continue; }
    cat "$work/$test.log"
    [ "$test" = peers ] && grep -qE 'ConnectionError|Temporary failure|No matching distribution' "$work/$test.log" && { echo "peers: skipped: no PyPI"; continue; }
    fail "tests/$test"
done

step "purged"
# Root may have run it too, which leaves compiled Python where it may write.
inside sh -c 'cd /tmp && python3 -c "import normbench"'
inside dpkg --purge normbench >"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log"; fail "is not purged"; }
files >"$work/after"
diff "$work/before" "$work/after" || fail "purging leaves files behind, or takes others"
rm -rf "$root/home/tester"/* "$root/tmp"/*
step "done"
