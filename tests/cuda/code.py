#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What nvcc makes of the device functions of kernels/cuda/: tests/cuda/code.json, by device and function.

    code.py NVCC TOOLS CUBIN.. >tests/cuda/code.json     reads what NVCC made with cuobjdump of the folder TOOLS
    code.py --check tests/cuda/code.json NVCC TOOLS CUBIN..

The check fails where a function keeps anything in local memory (a stack, a spill) or has too many registers, and where one that says it is wide moves tensors by less than
16 bytes; where the compiler is that of the table, also where the table says otherwise of a function. The table is of CODE=all. Each fast function of
sm_90 is a line: a thread of it is followed (trace.py) on a usual shape, and its loads must overlap, be enough of them, and its instructions few."""
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import trace

# Scalars that a wide function loads and stores, by its source: of them there is one for a row or a channel, not one for an element.
# A sum of operations.cu stores one number and no vector.
SCALARS = [("rows_", 0, 4), ("kept_.*_short", 0, 8), ("kept_", 0, 2), ("gradient_.*_long", 2, 0), ("gradient_", 2, 2), ("apply_", 6, 0), ("batchnorm_.*_train", 6, 5),
           ("batchnorm_.*_gradient", 4, 2), ("columns_.*_sums", 0, 0), ("operations_.*_map", 2, 0), ("operations_.*_sum", 0, 1),
           ("copies_", 0, 0)]
STORES_NO_VECTOR = re.compile("operations_.*_sum")
LOADS_LATER = re.compile("kept_.*_(pair|ring)$")  # to shared memory
SPILLS_LITTLE = re.compile("kept_.*_ln_own_pair$")  # 8 bytes, stored and loaded once: 1024 threads leave it 64 registers
# Registers of a thread, at most, by the function; above 128 a processor has fewer than 512 threads.
REGISTERS = [("kept_.*_(block|warp)$", 88), ("kept_.*_cluster(_64)?$", 96), ("kept_.*_(short|pair)$", 112), ("kept_.*_ring$", 120),
             ("kept_.*_cluster_128$", 232), ("", 128)]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def functions(tools, cubin):
    """What is in the table of a function, and the text of its instructions."""
    found = {}
    tool = os.path.join(tools, "cuobjdump")
    usage = run(tool, "-res-usage", cubin)
    for name, registers, stack, local in re.findall(r"Function (\w+):\s+REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)", usage):
        found[name] = {"registers": int(registers), "stack": int(stack) + int(local), "local": 0, "wide_loads": 0, "other_loads": 0,
                       "wide_stores": 0, "other_stores": 0, "generic_stores": 0}
    texts = trace.texts_of(run(tool, "-sass", cubin))
    for name, f in found.items():
        for kind, suffix in re.findall(r"\*/\s+(?:@!?U?P\w+\s+)?(LDG|STG|ST|LDL|STL)((?:\.\w+)*)\s", texts[name]):
            field = {"LDL": "local", "STL": "local", "ST": "generic_stores"}.get(kind)
            f[field or ("wide_" if ".128" in suffix else "other_") + ("loads" if kind == "LDG" else "stores")] += 1
    return found, texts


def complaints(name, f):
    if (f["stack"] or f["local"]) and not (SPILLS_LITTLE.match(name) and f["stack"] <= 8 and f["local"] <= 2):
        yield "keeps %d bytes in local memory, accessed %d times" % (f["stack"], f["local"])
    most = next(n for form, n in REGISTERS if re.match(form, name))
    if f["registers"] > most:
        yield "has %d registers, of which %d may be" % (f["registers"], most)
    if f["generic_stores"]:
        yield "stores %d times to it does not know which memory" % f["generic_stores"]
    if "_wide_" not in name or not any(f[kind] for kind in ("wide_loads", "other_loads", "wide_stores", "other_stores")):
        return  # of a cluster, for a device that has none
    loads, stores = next((s[1:] for s in SCALARS if re.match(s[0], name)), (0, 0))
    if not (f["wide_loads"] or LOADS_LATER.match(name)) or f["other_loads"] > loads:
        yield "loads %d vectors of 16 bytes and %d times less, of which %d may be" % (f["wide_loads"], f["other_loads"], loads)
    if not (f["wide_stores"] or STORES_NO_VECTOR.match(name)) or f["other_stores"] > stores:
        yield "stores %d vectors of 16 bytes and %d times less, of which %d may be" % (f["wide_stores"], f["other_stores"], stores)


# ---- the fast functions of sm_90 ------------------------------------------------------------------------------------------------------

# By what their names end with: threads that share a row, blocks of a cluster, columns, elements of a thread, rows that it has at once.
PARTS = {"short": (32, 1, 256, 8, 4), "warp": (32, 1, 1024, 32, 1), "block": (64, 1, 2048, 32, 1), "pair": (512, 1, 16384, 32, 1),
         "ring": (256, 4, 32768, 32, 1), "cluster": (256, 4, 32768, 32, 1), "cluster_64": (256, 8, 131072, 64, 1),
         "cluster_128": (256, 8, 262144, 128, 1), "16": (128, 1, 2048, 16, 1), "4": (256, 1, 0, 32, 1)}
# Instructions an element, at most; more where a thread has few elements of its rows at once, and for the sums of other blocks.
MOST = {"copies": 1.5, "rms": 14, "ln": 20, "add": 18, "gradient": 22, "gradient_centred": 30, "gradient_past": 26}
MORE = {"short": 28, "pair": 4, "ring": 4, "cluster": 4}
LEAST_THREADS = {8: 768, 32: 768, 64: 512, 128: 256, 16: 256}  # of a processor, by the elements of a thread
BLOCKS, ROWS = 264, 8  # rows of a thread that goes on to further ones: more than a ring sends for ahead
LEAST_KB = 36  # in flight a processor: twice 3.35 TB/s of memory times 700 ns, over 132 processors
FAST = re.compile(r"(copies)_wide_1_1_by_(4)$|kept_bf16_wide_(rms|ln|add)_f32_(\w+)$|(gradient)_bf16_wide(?:_(centred|past))?_(16)$")


def launch_of(kind, how, part, rows):
    """Struct and members of its arguments."""
    group, cluster, cols = PARTS[part][:3]
    if kind == "copies":
        return "copy_args", {"in[0]": 1 << 32, "out[0]": 2 << 32, "rows": 1, "bytes": 1 << 30}
    back, centre = kind == "gradient", int(kind == "ln" or how == "centred")
    tensors = ["x", "dy", "dx"] if back else ["x", "y"]
    tensors += ["dresidual_out"] if how == "past" else ["residual", "residual_out"] if kind == "add" else []
    vectors = ["gamma", "mean", "rstd", "partial"] if back else ["gamma", "beta", "rstd"]
    values = {name: i + 1 << 32 for i, name in enumerate(tensors + vectors)}
    values.update({name + "_stride": cols for name in tensors})
    values.update({"team.group": group, "team.cluster": cluster, "formula.root": 1, "formula.affine": 1 + centre, "formula.centre": centre,
                   "rows": rows, "cols": cols, "seen": cols})
    if back:
        values.update(padded=cols, sums=1 + centre)
    return "gradient_args" if back else "row_args", values


def judge_fast(name, f, text):
    """A line, and what is wrong with it; None: it is none of them."""
    found = FAST.match(name)
    if not found:
        return None
    code = trace.code_of(text)
    kind, how, part = found[1] or found[3] or found[5], found[6], found[2] or found[4] or found[7]
    if part not in PARTS:
        return "", ["its form is not known here"]
    group, cluster, _, elements, at_once = PARTS[part]
    at_once = 2 if part == "short" and kind == "ln" else at_once
    threads = max(group, 128) if group < 64 else group

    def count(rows):
        struct, values = launch_of(kind, how, part, BLOCKS // cluster * rows)
        log = trace.follow(code, struct, values, threads, BLOCKS)
        return len(log), trace.in_flight(log)

    n, of_thread = count(ROWS)
    further = n - count(ROWS - 1)[0]  # 0: it has but one row
    each = further / elements if further else n / elements / at_once
    warps = 4 * (16384 // (-(-f["registers"] // 8) * 8 * 32))
    resident = min(warps * 32 // threads, 2048 // threads, 2 if kind == "gradient" else 2048) * threads
    kb = resident * of_thread / 1024
    most = MOST["_".join(filter(None, [kind, how]))] + MORE.get(part.split("_")[0], 0) / at_once
    line = "%.1f instructions an element, %d registers, %d threads and %.0f kB in flight a processor" % (each, f["registers"], resident, kb)
    wrong = []
    if each > most:
        wrong.append("more than %g instructions" % most)
    wanted = 2 * elements * at_once * {"add": 2, "gradient": 4}.get(kind, 1)  # two tensors; of the ring two rows
    if of_thread < wanted:
        wrong.append("its loads wait for each other: %d bytes of %d ahead of the first wait" % (of_thread, wanted))
    if resident < LEAST_THREADS[elements]:
        wrong.append("less than %d threads" % LEAST_THREADS[elements])
    if kb < LEAST_KB:
        wrong.append("less than %d kB" % LEAST_KB)
    return line, wrong


def table_of(nvcc, tools, cubins):
    table, texts = {"compiler": re.search(r"release \S+ V(\S+)", run(nvcc, "--version")).group(1)}, {}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        read = list(pool.map(lambda cubin: functions(tools, cubin), sorted(cubins)))
    for cubin, (found, texts_here) in zip(sorted(cubins), read):
        device = cubin.split(".")[-2]
        table.setdefault(device, {}).update(found)
        if device == "sm_90":
            texts.update(texts_here)
    return table, texts


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
    table, texts = table_of(arguments[0], arguments[1], arguments[2:])
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
    unseen = {name.split("_")[0] for name in texts} & {"copies", "kept", "gradient"}
    for name in sorted(texts):
        judged = judge_fast(name, table["sm_90"][name], texts[name])
        if judged:
            print("sm_90 %s: %s" % (name, "; ".join([judged[0], *judged[1]])))
            unseen.discard(name.split("_")[0])
            failed = failed or bool(judged[1])
    for family in sorted(unseen):
        print("sm_90: no function of %s is one of the fast ones that are known here" % family)
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
