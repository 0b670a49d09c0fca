#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The survey: what the norms of other libraries are worth. Of each LIBRARY, which norms_LIBRARY.py beside this file declares:

  1. a virtual environment of its own, with the packages and versions of the file's line "# needs:"
  2. accuracy: `normbench stress` on usual rows (configs/survey.json) and on hard ones (the presets stress and bugs)
  3. probe: what each norm does inside
  4. time: each forward norm beside our fast kernel, on one thread (only with --time or --add time, on a quiet machine)

and LIBRARY.json in the folder of pages, which page.py makes the page of. A LIBRARY that is a C peer (onednn-omp, pytorch, ggml) needs
`make peers` instead. A file with a line "# left out:" gets a LIBRARY.json that says why. Where something fails, LIBRARY.json
stays as it was.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import venv

here = pathlib.Path(__file__).resolve().parent
root = here.parents[2]
PEERS = ("onednn", "onednn-omp", "onednn-3.2", "pytorch", "ggml")
QUESTIONS = (
    "eps_place eps_effective eps_dtype statistics_dtype variance accumulator lanes order root cast affine_fma"
    " subnormal_inputs subnormal_outputs nan inf repeatable depends_on_neighbours depends_on_batch depends_on_alignment"
).split()
# A preset names the usual formula alone where it does not ask about another; libraries have theirs.
EVERY_FORMULA = ("param_dtype=f32,x", "cast=after,before", "weight_offset=0,1", "eps_place=inside,outside,clamp")
# What replay takes for an axis that its line does not name, as `normbench list axes` has it.
DEFAULTS = (
    "seed:1 eps_place:inside root:mul_recip cast:after weight_offset:0 param_dtype:f32 round_sum:0 momentum:0.1 stride:packed"
    " threads:1 cache:hot"
).split()
SHAPES = ["64x1024", "2048x4096"]


class LeftOut(Exception):
    """Why a library is not in the survey, as its file says."""


class Failed(Exception):
    """What went wrong here, which says nothing about the library."""


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def say(text):
    print(f"survey: {text}", file=sys.stderr, flush=True)


def header(path, what):
    found = re.search(rf"^# {what}: *(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return found.group(1) if found else ""


def environment_of(path, folder):
    """The interpreter of a library's own environment, made where it is missing or has other versions."""
    needs = header(path, "needs").split()
    name = header(path, "environment") or path.stem.removeprefix("norms_")
    python, made = folder / name / "bin" / "python3", folder / name / "needs.txt"
    if not needs:
        return sys.executable
    if made.exists() and made.read_text() == "\n".join(needs):
        return str(python)
    say(f"installs {' '.join(needs)}")
    venv.create(folder / name, with_pip=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *needs]
    done = subprocess.run(install, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
        raise Failed("pip: " + " ".join(lines[:2])[:300])
    made.write_text("\n".join(needs))
    return str(python)


def versions_of(python, path):
    """Of the packages that the file asks for by name, as they are installed."""
    names = [re.split(r"[=<>\[]", need)[0] for need in header(path, "needs").split()]
    code = "import sys, json, importlib.metadata as m; print(json.dumps({n: m.version(n) for n in sys.argv[1:]}))"
    return json.loads(subprocess.run([python, "-c", code, *names], check=True, stdout=subprocess.PIPE, text=True).stdout)


class Library:
    def __init__(self, name, options):
        self.name, self.options = name, options
        self.out = options.out / name
        self.environment, self.shared = dict(os.environ), ""
        if name in PEERS:
            self.which, self.versions = ["--peer", name], {}
            listed = subprocess.run([options.program, "list", "peers"], check=True, stdout=subprocess.PIPE, text=True).stdout
            self.keep_runs_of({"listed": [line.split() for line in listed.splitlines() if line.startswith(f"{name} ")]})
            return
        path = options.libraries / f"norms_{name}.py"
        if not path.exists():
            known = sorted(file.stem.removeprefix("norms_") for file in options.libraries.glob("norms_*.py"))
            sys.exit(f"survey: no library '{name}': {' '.join([*known, *PEERS])}")
        if header(path, "left out"):
            raise LeftOut(header(path, "left out"))
        python, self.shared = environment_of(path, options.environments), header(path, "environment")
        self.environment["NORMBENCH_PYTHON"] = python
        self.which, self.versions = ["--plugin", os.path.relpath(path)], versions_of(python, path)
        self.keep_runs_of({"versions": self.versions, "needs": header(path, "needs"), "file": path.read_text(encoding="utf-8")})

    def keep_runs_of(self, what):
        """Drops the runs that are there unless they are of this."""
        made = self.out / "made.json"
        if self.out.exists() and not (made.exists() and json.loads(made.read_text(encoding="utf-8")) == what):
            say(f"{self.name}: the runs in {self.out} are of another version or file, and are dropped")
            shutil.rmtree(self.out)
        self.out.mkdir(parents=True, exist_ok=True)
        made.write_text(json.dumps(what, indent=1), encoding="utf-8")

    def run(self, *arguments):
        """One command of the program: its standard output."""
        program = [self.options.program, *arguments, "--quiet", "--case-timeout", "300"]
        with open(self.out / "log.txt", "a", encoding="utf-8") as log:
            log.write(f"\n$ {' '.join(map(str, program))}\n")
            log.flush()
            done = subprocess.run(program, env=self.environment, capture_output=True, text=True)
            log.write(done.stderr + done.stdout[-4000:])
        if done.returncode not in (0, 1):
            raise Failed(f"normbench {arguments[0]}: {done.stderr.strip()[-400:]}")
        return done.stdout

    def stress(self, what, *arguments):
        folder = self.out / what
        if not (folder / "stress.json").exists():
            axes = [word for axis in EVERY_FORMULA for word in ("--axis", axis)]
            self.run("stress", *arguments, *self.which, *axes, "--no-plots", "--no-search", "--out", folder)
        return json.loads((folder / "stress.json").read_text()), json.loads((folder / "results.json").read_text())["records"]

    def probe(self):
        path = self.out / "probe.json"
        if not path.exists():
            everything = [f"{self.name}:*", *self.which] if self.name in PEERS else self.which[1:]
            path.write_text(self.run("probe", *everything, "--format", "json"))
        return json.loads(path.read_text())["probes"]

    def times(self, variants):
        """Records of each forward norm in f32 beside our fast kernel, by variant and shape."""
        folder = self.out / "time"
        records = []
        for op in sorted({line["op"] for line in variants if line["pass"] == "forward"} & {"rmsnorm", "layernorm"}):
            one = folder / op
            if not (one / "results.json").exists():
                folder.mkdir(exist_ok=True)
                config = folder / f"{op}.json"
                block = {"op": op, "width": "256", "kernel": [f"{op}_fast", "*:*"], "shape": SHAPES}
                config.write_text(json.dumps({"reference": f"{op}_fast*", "blocks_per_launch": 6, "blocks": [block]}))
                self.run("run", config, *self.which, "--no-plots", "--no-stress", "--no-counters", "--launches", "6", "--out", one)
            records += json.loads((one / "results.json").read_text())["records"]
        return [record for record in records if ":" in record["variant"]]


def round_figures(value):
    """Four digits are enough for a page."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: round_figures(each) for key, each in value.items()}
    return [round_figures(each) for each in value] if isinstance(value, list) else value


def as_text(page):
    """JSON with a line for each variant; replay lines name only what is not the default."""
    variants = [json.dumps(each, ensure_ascii=False) for each in page.get("variants", [])]
    about = json.dumps({key: value for key, value in page.items() if key != "variants"}, ensure_ascii=False)
    text = about[:-1] + (', "variants": [\n' + ",\n".join(variants) + "\n]" if variants else "") + "}\n"
    return re.sub(rf"/(?:{'|'.join(map(re.escape, DEFAULTS))})(?=[/'])", "", text)


def is_rounding(record):
    """A gradient of the parameters that is right but for its rounding to x's dtype, in which libraries return it."""
    found = re.match(r"d(?:gamma|beta)\[\d+\] is (\S+), should be (\S+) within", record["reason"] or "")
    unit = {"f16": 2.0**-11, "bf16": 2.0**-8}.get(record["dtype"])
    return bool(found and unit) and abs(float(found[1]) - float(found[2])) <= unit * abs(float(found[2]))


def failures_of(records):
    """Cases that are wrong, by status: how many, and the first with its replay line."""
    found = {}
    for record in records:
        if record["status"] not in ("ok", "out_of_range") and not is_rounding(record):
            entry = found.setdefault(record["status"], {"n": 0, "reason": record["reason"], "replay": record["replay"]})
            entry["n"] += 1
    return found


def grade_of(lines, records):
    """The lowest grade over a variant's formulas, with what set it. Gradients in Python have none: their bound is that of a kernel that is
    given mean and rstd, and these libraries compute them again from x."""
    order = ["A+", "A", "B", "C", "D", "F"]
    graded = [line for line in lines if line["all"]]
    result = {"n_cases": sum(line["n_cases"] for line in lines), "failures": failures_of(records), "grade": None}
    graded_by_bound = not any(record["pass"] == "backward" and record["backend"].startswith("plugin:") for record in records)
    if not graded_by_bound:
        result["failures"].pop("inaccurate", None)
    if graded:
        worst = max(graded, key=lambda line: order.index(line["all"]))
        why = worst["why_all"]
        result.update(grade=worst["all"] if graded_by_bound else None, formula=worst["formula"], text=why["text"], replay=why["replay"])
        for name in ("componentwise_ulp", "bound_ratio", "noise_ratio", "nan", "inf", "zero"):
            result[name] = max(line[name] or 0 for line in lines)
        result["bias_u"] = max((line["bias_u"] or 0 for line in lines), key=abs)
    return result


def add_probe(library, page):
    """What each norm does inside."""
    probes = {probe["variant"]: probe for probe in library.probe()}
    for entry in page["variants"]:
        if entry["variant"] in probes:
            answers = [each for each in probes[entry["variant"]]["answers"] if each["question"] in QUESTIONS and each["value"]]
            entry["probe"] = {each["question"]: each["value"] for each in answers}


def add_time(library, page):
    """The time of each forward norm in f32."""
    page["timed"] = {"date": now(), "load": os.getloadavg()[0]}
    timed = library.times(page["variants"])
    for entry in page["variants"]:
        mine = [record for record in timed if record["variant"] == entry["variant"]]
        entry["times"] = [{"shape": record["axes"]["shape"], "status": record["status"], "times": record["timing"]} for record in mine]


ADD = {"probe": add_probe, "time": add_time}


def added_to(path, library):
    """LIBRARY.json with what --add names."""
    if not path.exists():
        raise Failed(f"no {path} to add to; survey it without --add first")
    page = json.loads(path.read_text(encoding="utf-8"))
    if page.get("versions") != library.versions:
        raise Failed(f"{path} is of {page.get('versions')}, and here is {library.versions}: survey it without --add first")
    for what in library.options.add:
        ADD[what](library, page)
    return page


def survey(library):
    """All that is known of a library, as its JSON."""
    load_before = os.getloadavg()[0]
    usual, usual_records = library.stress("usual", str(root / "configs/survey.json"))
    hard, hard_records = {"grades": [], "bugs": [], "relations": []}, []
    if library.options.hard != "none":
        presets = library.options.hard.split()
        hard, hard_records = library.stress("-".join(["hard", *presets]), *presets)
    variants = {}
    for line in usual["grades"] + hard["grades"]:
        entry = variants.setdefault(line["variant"], {key: line[key] for key in ("kernel", "variant", "op", "pass", "dtype")})
        entry.setdefault("usual", []), entry.setdefault("hard", [])
    for entry in variants.values():
        name = entry["variant"]
        for what, stress, records in (("usual", usual, usual_records), ("hard", hard, hard_records)):
            mine = [record for record in records if record["variant"] == name]
            entry[what] = grade_of([line for line in stress["grades"] if line["variant"] == name], mine)
        tried = [bug for bug in hard["bugs"] if any(who["variant"] == name for who in bug["failed"] + bug["survived"])]
        failed = {bug["label"]: who["text"] for bug in tried for who in bug["failed"] if who["variant"] == name}
        entry["bugs"] = {"tried": len(tried), "failed": failed}
        broken = [each for each in hard["relations"] if each["key"].startswith(name + "/")]
        entry["relations"] = [{key: each[key] for key in ("relation", "replay", "text")} for each in broken[:3]]
        entry["times"] = []
    about = usual["fingerprint"]
    page = {
        "library": library.name,
        "versions": library.versions,
        "by": next((record["library"] for record in usual_records if record.get("library")), None),
        "cpu": about["cpu"],
        "date": usual["started"],
        "load": load_before,
        "normbench": usual["version"],
        "hard": library.options.hard,
        "environment": library.shared,
        "variants": list(variants.values()),
    }
    if not library.options.no_probe:
        add_probe(library, page)
    if library.options.time:
        add_time(library, page)
    return page


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="+", metavar="LIBRARY")
    parser.add_argument("--program", default=str(root / "build/normbench"))
    parser.add_argument("--libraries", type=pathlib.Path, default=here, help="the folder of the norms_LIBRARY.py")
    parser.add_argument("--environments", type=pathlib.Path, default=root / "peers/survey", help="where the virtual environments are")
    parser.add_argument("--out", type=pathlib.Path, default=root / "results/survey", help="of the runs; what is there is not run again")
    parser.add_argument("--pages", type=pathlib.Path, default=root / "reports/published/survey")
    parser.add_argument("--hard", default="", metavar="PRESET", help="bugs: only the inputs of bug reports; none")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--add", action="append", choices=ADD, help="only this, to the LIBRARY.json that is there; repeatable")
    parser.add_argument("--no-probe", action="store_true")
    options = parser.parse_args()
    options.pages.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in options.names:
        say(name)
        try:
            library = Library(name, options)
            result = added_to(options.pages / f"{name}.json", library) if options.add else survey(library)
        except LeftOut as why:
            say(f"{name}: left out: {why}")
            result = {"library": name, "left_out": str(why), "date": now()}
        except (Failed, OSError, subprocess.SubprocessError) as why:
            say(f"{name}: failed, and its results stay as they were: {why}")
            failed.append(name)
            continue
        (options.pages / f"{name}.json").write_text(as_text(round_figures(result)), encoding="utf-8")
    if failed:
        sys.exit(f"survey: failed: {' '.join(failed)}")


if __name__ == "__main__":
    main()
