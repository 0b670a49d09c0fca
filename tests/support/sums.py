# SPDX-License-Identifier: Apache-2.0
"""The sums of the files that normbench writes, as reports/schema/results.schema.json says. `sums.py FILE...` renews those of documents
that a test has changed."""
import json
import re
import sys

ESCAPED = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff\"\\\\]")


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & (1 << 64) - 1
    return f"{value:016x}"


def quoted(text):
    return '"' + ESCAPED.sub(lambda c: "\\n" if c[0] == "\n" else "\\" + c[0] if c[0] in '"\\' else f"\\u{ord(c[0]):04x}", text) + '"'


def compact(value):
    if isinstance(value, dict):
        return "{" + ",".join(quoted(name) + ":" + compact(member) for name, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(compact, value)) + "]"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float):
        texts = ("%.*g" % (digits, value) for digits in (15, 16, 17))
        return next(text for text in texts if float(text) == value)
    return json.dumps(value)


def sum_of(document):
    return fnv(compact({name: member for name, member in document.items() if name not in ("sum", "records")}).encode())


def parts(text):
    """What of a document has a sum of its own: itself, then its records. Whole numbers as floats, since -0 is one."""
    document = json.loads(text, parse_int=float)
    return [document, *document.get("records", [])]


def main():
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            found = parts(file.read())
        for part in found:
            part["sum"] = sum_of(part)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(found[0], file)


if __name__ == "__main__":
    main()
