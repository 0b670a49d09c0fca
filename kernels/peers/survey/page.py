#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README.md of the survey, from what survey.py leaves and the reproducers beside it. With --check: is it what they say?"""

import argparse
import json
import pathlib
import re
import sys

DTYPES = ("f32", "f16", "bf16")
OPS = {
    "rmsnorm": "RMSNorm",
    "layernorm": "LayerNorm",
    "batchnorm": "BatchNorm",
    "l2norm": "L2 norm",
    "add_rmsnorm": "RMSNorm of a sum",
    "add_layernorm": "LayerNorm of a sum",
}
ORDER = ["A+", "A", "B", "C", "D", "F"]
SMALL, LARGE = "64x1024", "2048x4096"
HEAD = """# The survey: norms that people run

What the norms of other libraries are worth on a CPU: how accurate, on which public bug inputs they fail{speed}.
{facts}

**Grade** on usual rows (ordinary and real rows, outliers of language models, rows of 64 to 16,384; configs/survey.json): A+ correctly
rounded, A within 1 ulp, B within the bound of the formula, C at most twice what half an ulp of input noise does, D right in norm alone, F
NaN, Inf or 0 where a number belongs, or none of these; behind it the largest error in ulp (LayerNorm: of at least a sixteenth of the
row's root mean square, since single y may be near 0). `*`: some cases are beyond the bound of the formula with float32 statistics, as
they are where the arithmetic is in 16 bits, or break the relation *exact*: where nothing but the last rounding rounds, y is not the exact
result rounded to nearest even. That makes an F too. *not_reproducible*: the bits of a row depend on how many rows there are, as where a
compiler makes a program for each shape; such a case counts as F, whatever its error. **Fails**: of the inputs of public bug reports
([configs/bugs.json](../../../configs/bugs.json)) in all its dtypes; a plain float32 norm fails those whose squares leave the range of
float32. *(C)*: called through its C or C++ interface; the others are called through Python. PyTorch's BatchNorm is
held against the bound of what it computes, x a + b, where it is called in C++, and of what is documented, (x - mean) a + b, in Python.{times}

## Which to choose
"""

TIMES = """ **Time**: of our fastest kernel's, one thread, f32, in cache ({small}) and in memory ({large}), with its 95 %
interval; what Python adds to a call is included."""
GRADIENTS = """
## Gradients

The largest error of dx on usual rows. Behind *(C)*, with a grade, a kernel is given the exact mean and 1/sqrt; the others take dx by automatic
differentiation, with what the forward pass rounds. `*`: dx or a gradient of the parameters is beyond the bound of the formula with float32 sums.
PyTorch's LayerNorm keeps mean and 1/sqrt for its backward pass in the dtype of its parameters, which is x's here and float32 behind *(C)*.
"""
UNTIMED = " Times are not here; `SURVEY=--time` adds them."


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(cell(each) for each in row) + " |" for row in rows]) + "\n"


def is_in_python(library):
    return library["variants"][0]["kernel"].startswith("norms_")


def title(library):
    """Its name and version; (C): called without Python."""
    if not is_in_python(library):
        return re.match(r"\S+ [\d.]+", library["by"])[0] + " (C)"
    versions = library["versions"]
    version = versions.get(library["library"]) or next(iter(versions.values()), "")
    return f"{library['library']} {version}".strip()


def grade(entry):
    """Grade and largest error of a variant on usual rows."""
    usual = entry["usual"]
    failures = {status: each["n"] for status, each in usual["failures"].items()}
    beyond = failures.pop("inaccurate", 0)
    text = " ".join([usual["grade"] or "", f"{usual['componentwise_ulp']:.3g}" if "text" in usual else "-"]).strip()
    text += "*" if beyond else ""
    return "; ".join([text, *(f"{status} {n}" for status, n in failures.items())])


def interval_of(times, name):
    value = times.get(name) if times else None
    return value if value and value.get("value") is not None else None


def ratio(entry, shape):
    for each in entry["times"]:
        found = interval_of(each["times"], "vs_reference") if each["shape"] == shape and each["status"] == "ok" else None
        if found:
            low, high = found.get("low"), found.get("high")
            around = f" [{low:.3g}, {high:.3g}]" if low is not None and high is not None else ""
            return f"{found['value']:.3g}x{around}"
    return "-"


def failed_bugs(entries):
    tried = sum(entry["bugs"]["tried"] for entry in entries)
    failed = sum(len(entry["bugs"]["failed"]) for entry in entries)
    return f"{failed} of {tried}" if tried else "not tried"


def kernels_of(library):
    """Its variants by kernel, in the order of their names."""
    found = {}
    for entry in library["variants"]:
        found.setdefault(entry["kernel"], {})[entry["dtype"]] = entry
    return found


def table_of(libraries, op, direction, head):
    """The norms of one op, the best first; the times of forward ones, where there are some."""
    timed = direction == "forward" and any(entry["times"] for library in libraries for entry in library["variants"])
    rows = []
    for library in libraries:
        for kernel, dtypes in kernels_of(library).items():
            first = next(iter(dtypes.values()))
            if (first["op"], first["pass"]) != (op, direction):
                continue
            f32 = dtypes.get("f32")
            worst = max(ORDER.index(entry["usual"]["grade"] or "F") for entry in dtypes.values())
            grades = [grade(dtypes[dtype]) if dtype in dtypes else "-" for dtype in DTYPES]
            fails = [failed_bugs(dtypes.values())] if direction == "forward" else []
            times = [ratio(f32, shape) if f32 else "-" for shape in (SMALL, LARGE)] if timed else []
            rows.append((worst, [title(library), kernel.partition(":")[2], *grades, *fails, *times]))
    if not rows:
        return ""
    columns = ["library", "norm", *head, *(["fails"] if direction == "forward" else []), *(["in cache", "in memory"] if timed else [])]
    return f"\n**{OPS[op]}**\n\n" + table(columns, [row for _, row in sorted(rows, key=lambda row: row[0])])


def chosen(libraries):
    """The tables of the first screen, and below them the gradients'."""
    text = "".join(table_of(libraries, op, "forward", [f"{dtype}: grade, ulp" for dtype in DTYPES]) for op in OPS)
    gradients = "".join(table_of(libraries, op, "backward", [f"{dtype}: ulp of dx" for dtype in DTYPES]) for op in OPS)
    return text + (GRADIENTS + gradients if gradients else "")


INSIDE = {
    "eps place": "eps",
    "statistics dtype": "statistics",
    "accumulator": "accumulator",
    "variance": "variance",
    "cast": "rounded",
    "root": "root",
}


WORDS = {"mul_recip": "times 1 / sqrt", "div_sqrt": "divided by sqrt", "twopass": "two passes"}


def found_inside(dtypes, question):
    """What probe found, by dtype where they differ."""
    values = {dtype: entry["probe"].get(question.replace(" ", "_")) for dtype, entry in dtypes.items() if "probe" in entry}
    known = {dtype: WORDS.get(value, value) for dtype, value in values.items() if value}
    if len(set(known.values())) < 2:
        return next(iter(known.values()), "-")
    return ", ".join(f"{dtype} {value}" for dtype, value in known.items())


def insides(libraries):
    """The table of what forward norms do, as their outputs show it."""
    rows = []
    for library in libraries:
        for kernel, dtypes in kernels_of(library).items():
            if any("probe" in entry for entry in dtypes.values()):
                found = [found_inside(dtypes, question) for question in INSIDE]
                rows.append([title(library), kernel.partition(":")[2], *found])
    if not rows:
        return ""
    unasked = [title(library) for library in libraries if not any("probe" in entry for entry in library["variants"])]
    note = (
        "What `normbench probe` finds from outputs alone; `-`: they do not show it. eps *inside* is added to the mean of squares, *outside* to"
        " its root; *clamp*: the larger of root and eps. *rounded*, in 16 bits: *after* the weight, or *before* and after it."
    )
    note += f" Not asked: {', '.join(unasked)}." if unasked else ""
    return "\n## What they do inside\n\n" + note + "\n\n" + table(["library", "norm", *INSIDE.values()], rows)


def described(path):
    """What a program says of itself at its top, behind the licence: the first line, and the others."""
    text = path.read_text(encoding="utf-8").partition("\n")[2]
    said = re.match(r'"""(.*?)"""', text, re.DOTALL)
    words = said[1] if said else re.match(r"(?:// .*\n)+", text)[0].replace("// ", "")
    first, _, others = words.partition("\n")
    return first, " ".join(others.split())


def defects(folder):
    """A row for each reproducer: 'LIBRARY: what a user sees', then what is promised and what is known."""
    rows = []
    for path in sorted(folder.glob("reproducers/*.[pc]*")):
        first, others = described(path)
        name, _, what = first.partition(": ")
        printed = path.with_suffix(".txt")
        said = f"[{path.name}](reproducers/{path.name})" + (f", [its output](reproducers/{printed.name})" if printed.exists() else "")
        rows.append([name, f"{what}. {others}".strip(), said])
    if not rows:
        return ""
    note = (
        "Each has a program of at most 20 lines that needs that library, NumPy and, for ONNX Runtime, onnx. What a dtype's own rounding"
        " explains, or an overflow that the formula predicts, is not here.\n\n"
    )
    return "\n## Defects, and shortcuts that a user notices\n\n" + note + table(["library", "what a user sees", "reproducer"], rows)


def machine(cpu):
    return f"{cpu['vendor']} {cpu['codename']}, {cpu['n_online']} CPUs" + (" of a virtual machine" if cpu["hypervisor"] else "")


def page(folder):
    libraries = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    seen = [library for library in libraries if "left_out" not in library]
    if not seen:
        sys.exit(f"page.py: no LIBRARY.json in {folder}; make survey makes them")
    machines = "; ".join(dict.fromkeys(machine(library["cpu"]) for library in seen))
    dates = sorted({library["date"][:10] for library in seen})
    loads = sorted(library["load"] for library in seen)
    timed_at = sorted(library["timed"]["load"] for library in seen if library.get("timed"))
    at = f" Times were taken at a load of {timed_at[0]:.2g} to {timed_at[-1]:.2g}." if timed_at else ""
    when = " to ".join(dict.fromkeys((dates[0], dates[-1])))
    facts = (
        f"{machines}; {when}; load {loads[0]:.2g} to {loads[-1]:.2g}, which leaves accuracy as it is.{at}\n"
        "Written by `make survey LIBS=...` ([how](../../../kernels/peers/survey/README.md)); the replay lines of what is\n"
        "wrong and the bug inputs that fail are in LIBRARY.json. A replay line repeats single calls; what breaks a relation between calls is seen by\n"
        "`normbench stress`, with a part of the line as `--filter`."
    )
    timed = any(entry["times"] for library in seen for entry in library["variants"])
    times = TIMES.format(small=SMALL, large=LARGE) if timed else UNTIMED
    text = HEAD.format(facts=facts, times=times, speed=", how fast beside ours" if timed else "") + chosen(seen) + defects(folder)
    out = [[library["library"], library["left_out"]] for library in libraries if "left_out" in library]
    text += insides(seen)
    if out:
        text += "\n## Left out\n\n" + table(["library", "why"], out)
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    readme, text = options.folder / "README.md", page(options.folder)
    if not options.check:
        readme.write_text(text, encoding="utf-8")
    elif readme.read_text(encoding="utf-8") != text:
        sys.exit(f"page.py: {readme} is not what its JSON says; kernels/peers/survey/page.py {options.folder} writes it")


if __name__ == "__main__":
    main()
