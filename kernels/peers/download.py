# SPDX-License-Identifier: Apache-2.0
"""download.py FILE SHA256 URL..: the first of the addresses whose content has that hash becomes FILE; a FILE that has it already stays."""

import hashlib
import http.client
import os
import sys
import urllib.request


def hash_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def fetch(url, path):
    with urllib.request.urlopen(url, timeout=60) as answer, open(path, "wb") as out:
        while block := answer.read(1 << 20):
            out.write(block)


def main():
    path, wanted, urls = sys.argv[1], sys.argv[2], sys.argv[3:]
    if os.path.exists(path) and hash_of(path) == wanted:
        return 0
    for url in urls:
        try:
            fetch(url, path + ".part")
        except (OSError, ValueError, http.client.HTTPException) as error:
            print(f"  {url}: {error}", file=sys.stderr)
            continue
        if hash_of(path + ".part") == wanted:
            os.replace(path + ".part", path)
            return 0
        print(f"  {url}: its SHA-256 is not {wanted}; left aside", file=sys.stderr)
    return 1


sys.exit(main())
