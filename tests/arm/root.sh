#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Debian's arm64 packages, and what they depend on, unpacked into a folder: tests/arm/root.sh FOLDER PACKAGE... Needs no root, and leaves
# the system's own packages alone. Exit 77: they cannot be had here.
set -eu
root=$(mkdir -p "$1" && cd "$1" && pwd)
shift
[ "$(cat "$root/.packages" 2>/dev/null)" != "$*" ] || exit 0
missing() {
    echo "$1"
    exit 77
}
command -v apt-get >/dev/null || missing "Debian's arm64 packages are got by apt-get, which is not here"
codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
keys=/usr/share/keyrings/debian-archive-keyring.gpg
[ -n "$codename" ] || missing "/etc/os-release names no release of Debian"
[ -f "$keys" ] || missing "$keys is missing; apt-get install debian-archive-keyring"

apt=$(mktemp -d)
trap 'rm -rf "$apt"' EXIT
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
: >"$apt/status"
echo "deb [arch=arm64 signed-by=$keys] http://deb.debian.org/debian $codename main" >"$apt/sources.list"
cat >"$apt/conf" <<END
APT::Architecture "arm64";
APT::Architectures "arm64";
APT::Install-Recommends "0";
APT::Sandbox::User "";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "-";
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
Debug::NoLocking "1";
END
export APT_CONFIG="$apt/conf"
echo "normbench: getting arm64 packages: $*" >&2
{ apt-get update -qq && apt-get install -y -qq --download-only "$@"; } >"$apt/log" 2>&1 ||
    missing "Debian's arm64 packages cannot be had: $(grep -m 1 '^E:' "$apt/log" || tail -n 1 "$apt/log")"
for package in "$apt"/cache/archives/*.deb; do dpkg -x "$package" "$root"; done
# Links to places under / mean this folder.
find "$root" -type l -lname '/*' | while read -r link; do ln -sfn "$root$(readlink "$link")" "$link"; done
# A package's own script makes this one when it is installed.
for library in "$root"/usr/lib/aarch64-linux-gnu/openblas-pthread/libopenblas.so.0; do
    [ ! -f "$library" ] || ln -sfn openblas-pthread/libopenblas.so.0 "$root/usr/lib/aarch64-linux-gnu/libopenblas.so.0"
done
echo "$*" >"$root/.packages"
