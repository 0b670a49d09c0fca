# SPDX-License-Identifier: Apache-2.0
"""unpack.py FOLDER LIST WHEELS: headers and libraries of the wheels whose SHA-256 stand in LIST, into FOLDER/include and FOLDER/lib,
whatever folders the wheels have them in. A file that a wheel holds under several names (it cannot hold links) becomes links.
"# only: GLOB .." in LIST names the libraries that are wanted."""

import fnmatch
import hashlib
import os
import re
import sys
import zipfile


def place(name):
    """Where a file of a wheel goes, or None."""
    parts = name.split("/")
    for i, part in enumerate(parts[:-1]):
        if part == "include":
            return os.path.join("include", *parts[i + 1:])
        if part in ("lib", "lib64") or part.endswith(".libs"):
            return os.path.join("lib", *parts[i + 1:])
    return None


def unpack(wheel, folder, only):
    written = {}
    with zipfile.ZipFile(wheel) as archive:
        for info in archive.infolist():
            where = place(info.filename)
            if where is None or info.is_dir() or ".." in where.split("/"):
                continue
            if where.startswith("lib") and only and not any(fnmatch.fnmatch(os.path.basename(where), g) for g in only):
                continue
            target = os.path.join(folder, where)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            key = (os.path.dirname(target), info.CRC, info.file_size)
            if key in written and info.file_size > 0:
                os.symlink(os.path.basename(written[key]), target)
                continue
            with archive.open(info) as source, open(target, "wb") as out:
                while chunk := source.read(1 << 20):
                    out.write(chunk)
            written[key] = target


def main():
    folder, listing, wheels = sys.argv[1:]
    with open(listing, encoding="utf-8") as file:
        text = file.read()
    wanted = set(re.findall(r"sha256:([0-9a-f]{64})", text))
    only = [glob for line in re.findall(r"^# only: (.*)$", text, re.M) for glob in line.split()]
    for name in sorted(os.listdir(wheels)):
        path = os.path.join(wheels, name)
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest in wanted:
            unpack(path, folder, only)
            wanted.remove(digest)
    if wanted:
        sys.exit(f"make peers: {len(wanted)} of the wheels in {listing} are not in {wheels}")


main()
