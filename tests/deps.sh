#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages named that are missing, and nothing else. Needs root or sudo only when something is.
set -eu
missing=
for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
echo "normbench: installing$missing" >&2
if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null; then
    as_root=sudo
else
    echo "normbench: error: missing packages, and neither root nor sudo; as root: apt-get install$missing" >&2
    exit 1
fi
$as_root apt-get update -qq
# shellcheck disable=SC2086 # one word a package
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
