#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What nvcc makes of the device functions of kernels/cuda/: tests/cuda/code.json, by device and function.

    code.py NVCC TOOLS CUBIN.. >tests/cuda/code.json     reads what NVCC made with cuobjdump and nvdisasm of the folder TOOLS
    code.py --check tests/cuda/code.json NVCC TOOLS CUBIN..

The check fails where a function keeps anything in local memory (a stack, a spill), and where one that says it is wide moves tensors by less than
16 bytes; where the compiler is that of the table, also where the table says otherwise of a function. The table is of CODE=all."""
import json
import os
import re
import subprocess
import sys

# Scalars that a wide function loads and stores, by its source: of them there is one for a row or a channel, not one for an element.
# A sum of operations.cu stores one number and no vector.
SCALARS = [("rows_", 0, 4), ("kept_", 0, 2), ("gradient_.*_long", 2, 0), ("gradient_", 2, 2), ("apply_", 6, 0), ("batchnorm_.*_train", 6, 5),
           ("batchnorm_.*_gradient", 4, 2), ("columns_.*_sums", 0, 0), ("operations_.*_map", 2, 0), ("operations_.*_sum", 0, 1),
           ("copies_", 0, 0)]
STORES_NO_VECTOR = re.compile("operations_.*_sum")


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def functions(tools, cubin):
    found = {}
    usage = run(os.path.join(tools, "cuobjdump"), "-res-usage", cubin)
    for name, registers, stack, local in re.findall(r"Function (\w+):\s+REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)", usage):
        found[name] = {"registers": int(registers), "stack": int(stack) + int(local), "local": 0, "wide_loads": 0, "other_loads": 0,
                       "wide_stores": 0, "other_stores": 0, "generic_stores": 0}
    name = None
    for line in run(os.path.join(tools, "nvdisasm"), "-c", cubin).splitlines():
        label = re.match(r"\.text\.(\w+):", line)
        if label:
            name = label.group(1)
        code = re.search(r"\*/\s+(?:@!?U?P\w+\s+)?(LDG|STG|ST|LDL|STL)((?:\.\w+)*)\s", line)
        if not code or name not in found:
            continue
        kind, suffix = code.groups()
        field = {"LDL": "local", "STL": "local", "ST": "generic_stores"}.get(kind)
        if not field:
            field = ("wide_" if ".128" in suffix else "other_") + ("loads" if kind == "LDG" else "stores")
        found[name][field] += 1
    return found


def complaints(name, f):
    if f["stack"] or f["local"]:
        yield "keeps %d bytes in local memory, accessed %d times" % (f["stack"], f["local"])
    if f["generic_stores"]:
        yield "stores %d times to it does not know which memory" % f["generic_stores"]
    if "_wide_" not in name:
        return
    loads, stores = next((s[1:] for s in SCALARS if re.match(s[0], name)), (0, 0))
    if not f["wide_loads"] or f["other_loads"] > loads:
        yield "loads %d vectors of 16 bytes and %d times less, of which %d may be" % (f["wide_loads"], f["other_loads"], loads)
    if not (f["wide_stores"] or STORES_NO_VECTOR.match(name)) or f["other_stores"] > stores:
        yield "stores %d vectors of 16 bytes and %d times less, of which %d may be" % (f["wide_stores"], f["other_stores"], stores)


def table_of(nvcc, tools, cubins):
    table = {"compiler": re.search(r"release \S+ V(\S+)", run(nvcc, "--version")).group(1)}
    for cubin in sorted(cubins):
        device = cubin.split(".")[-2]
        table.setdefault(device, {}).update(functions(tools, cubin))
    return table


def written(table):
    parts = ['  "compiler": %s' % json.dumps(table["compiler"])]
    for device in sorted(set(table) - {"compiler"}):
        lines = ",\n".join("    %s: %s" % (json.dumps(name), json.dumps(f)) for name, f in sorted(table[device].items()))
        parts.append("  %s: {\n%s\n  }" % (json.dumps(device), lines))
    return "{\n%s\n}\n" % ",\n".join(parts)


def main(arguments):
    known = None
    if arguments[0] == "--check":
        with open(arguments[1]) as f:
            known = json.load(f)
        arguments = arguments[2:]
    table = table_of(arguments[0], arguments[1], arguments[2:])
    if known is None:
        sys.stdout.write(written(table))
        return 0
    failed = False
    devices = sorted(set(table) - {"compiler"})
    for device in devices:
        for name, f in sorted(table[device].items()):
            for complaint in complaints(name, f):
                print("%s %s: %s" % (device, name, complaint))
                failed = True
    if table["compiler"] != known["compiler"]:
        print("the table is of nvcc %s, this is %s: not compared" % (known["compiler"], table["compiler"]))
    else:
        for device in devices:
            for name in sorted(table[device]):
                if table[device].get(name) != known.get(device, {}).get(name):
                    print("%s %s is not as in the table: %s" % (device, name, table[device].get(name)))
                    failed = True
    print(", ".join("%d functions for %s" % (len(table[d]), d) for d in devices))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
