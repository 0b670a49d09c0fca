#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What would other tools have said? Judges the samples of `normbench gate --self-test --out DIR` by the rules of other tools.

usage: judge_samples.py [--out FILE.md] [--windows N] [--max-gap SECONDS] [--compare-py compare.py] SAMPLES.jsonl[.gz]...

Every launch of a self-test times the baseline, byte copies of it and the injected slowdowns in the same blocks. From that:
  as used      A is the baseline in launches 1..L of a case, B the other arm in the next L launches
  interleaved  A and B are arms of the same L launches: the best that a tool can be given
L is the number of processes that the tool's rule takes. Windows of launches do not overlap, and none reaches over a gap in time, a
change of load or another case. normbench's own row is what the gate said while the samples were recorded.
--compare-py also runs the real script (it needs scipy) on all windows and says how often the imitation agrees."""
import argparse
import collections
import gzip
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import rules

Launch = collections.namedtuple("Launch", "at_s arms")  # arms: {(name, percent): samples in ns}


class Recording:
    def __init__(self):
        self.sessions, self.verdicts, self.n_launches = [], [], 0
        self.series = collections.defaultdict(list)  # (session, load, case): [Launch]

    def read(self, path):
        opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)
        with opened as lines:
            for number, line in enumerate(lines, 1):
                try:
                    self.take(json.loads(line))
                except (ValueError, KeyError, TypeError) as error:
                    sys.exit(f"{path}:{number}: not a line of a self-test's samples: {error!r}")

    def take(self, line):
        if line["type"] == "session":
            self.sessions.append(line)
        elif line["type"] == "verdict":
            self.verdicts.append(line)
        elif line["type"] == "launch":
            arms = {(arm["arm"], arm["effect_percent"]): arm["sample_ns"] for arm in line["arms"]}
            if any(value is None for samples in arms.values() for value in samples):
                return  # samples that were not timed
            if min(len(samples) for samples in arms.values()) < 9:
                raise ValueError("fewer than 9 blocks: too few for the tools' repetitions")
            self.series[line["session"], line["load"], line["case"]].append(Launch(line["at_s"], arms))
            self.n_launches += 1

    def is_plain(self, launch):
        return all(percent == 0 for _, percent in launch.arms)

    def has_plain(self):
        return any(self.is_plain(launch) for launches in self.series.values() for launch in launches)

    def stretches(self, max_gap, plain=False):
        """Launches that follow each other: (load, [Launch]). plain: of those without injected arms."""
        for (_, load, _), launches in sorted(self.series.items()):
            launches = [launch for launch in launches if self.is_plain(launch) or not plain]
            if not launches:
                continue
            run = launches[:1]
            for before, after in zip(launches, launches[1:]):
                if after.at_s - before.at_s > max_gap:
                    yield load, run
                    run = []
                run.append(after)
            yield load, run


def windows(stretches, length, percent, interleaved):
    """(load, A's processes, B's processes), for the byte copy (0 %) or an injected slowdown."""
    baseline, other = ("baseline", 0), ("copy" if percent == 0 else "injected", percent)
    for load, launches in stretches:
        with_arm = [launch for launch in launches if other in launch.arms]
        step = length if interleaved else 2 * length
        for at in range(0, len(with_arm) - step + 1, step):
            a, b = with_arm[at:at + length], with_arm[at + step - length:at + step]
            yield load, [launch.arms[baseline] for launch in a], [launch.arms[other] for launch in b]


# ---- tallies -----------------------------------------------------------------------------------------------------------


class Tally:
    def __init__(self):
        self.n, self.slower, self.faster = 0, 0, 0

    def add(self, verdict):
        self.n += 1
        self.slower += verdict > 0
        self.faster += verdict < 0

    def cell(self, either=False):
        if self.n == 0:
            return "-"
        k = self.slower + self.faster if either else self.slower
        low, high = rules.clopper_pearson(k, self.n)
        return f"{100 * k / self.n:.1f} [{100 * low:.1f}, {100 * high:.1f}] ({self.n})"


def thin(items, most):
    """Evenly spread over all, so that every load keeps its share."""
    return items if len(items) <= most else [items[i * len(items) // most] for i in range(most)]


def judge_rule(stretches_of, rule, length, interleaved, most):
    """stretches_of: by percent."""
    tallies = {}
    for percent, stretches in stretches_of.items():
        for load, a, b in thin(list(windows(stretches, length, percent, interleaved)), most):
            verdict = rule(a, b)
            for key in (percent, None), (percent, load):
                tallies.setdefault(key, Tally()).add(verdict)
    return tallies


def fair_verdicts(verdicts):
    """The copy's of trials without injected arms, where there are any; and all of injected arms."""
    powered = {(v["session"], v["trial"]) for v in verdicts if v["effect_percent"] > 0}
    plain = [v for v in verdicts if v["effect_percent"] == 0 and (v["session"], v["trial"]) not in powered]
    return verdicts if not plain else plain + [v for v in verdicts if v["effect_percent"] > 0]


def judge_gate(verdicts):
    values = {"REGRESSION": 1, "IMPROVED": -1}
    tallies = {}
    for v in verdicts:
        for key in (v["effect_percent"], None), (v["effect_percent"], v["load"]):
            tallies.setdefault(key, Tally()).add(values.get(v["verdict"], 0))
    return tallies


# ---- the real script ----------------------------------------------------------------------------------------------------


def google_benchmark(named):
    rows = [{"name": name, "run_name": name, "run_type": "iteration", "repetitions": len(times), "repetition_index": i,
             "threads": 1, "iterations": 1, "real_time": t, "cpu_time": t, "time_unit": "ns"}
            for name, times in named for i, t in enumerate(times)]
    return json.dumps({"context": {"json_schema_version": 1}, "benchmarks": rows})


def check_compare_py(script, stretches_of, most):
    """(windows, same verdicts, largest difference of p) of the imitation against the real compare.py."""
    cases = [(f"w{percent}_{i}_{way}", a, b) for percent, stretches in stretches_of.items() for way in (False, True)
             for i, (_, a, b) in enumerate(thin(list(windows(stretches, 1, percent, way)), most))]
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        (place / "a.json").write_text(google_benchmark((n, rules.repetitions(a[0])) for n, a, _ in cases))
        (place / "b.json").write_text(google_benchmark((n, rules.repetitions(b[0])) for n, _, b in cases))
        done = subprocess.run([sys.executable, script, "-d", place / "out.json", "benchmarks", place / "a.json",
                               place / "b.json"], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{script}: {done.stderr.strip()[-300:]}")
        told = {row["name"]: row["utest"].get("time_pvalue", 1.0) for row in json.loads((place / "out.json").read_text())}
    pairs = [(told[name], rules.compare_py_p(a, b)) for name, a, b in cases]
    same = sum((real < 0.05) == (ours < 0.05) for real, ours in pairs)
    return len(pairs), same, max(abs(real - ours) for real, ours in pairs)


# ---- the page ------------------------------------------------------------------------------------------------------------


def table(rows, percents):
    head = ["rule", "samples", "nothing changed: slower", "nothing changed: any difference"] + [f"+{p} %" for p in percents[1:]]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name, way, tallies in rows:
        get = lambda percent: tallies.get((percent, None), Tally())
        cells = [name, way, get(0).cell(), get(0).cell(either=True)] + [get(p).cell() for p in percents[1:]]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def table_by_load(rows, loads):
    head = ["rule", "samples"] + [f"{load}" for load in loads]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for name, way, tallies in rows:
        lines.append("| " + " | ".join([name, way] + [tallies.get((0, load), Tally()).cell() for load in loads]) + " |")
    return lines


def machine(session):
    cpu = session["fingerprint"].get("cpu") or {}
    under = f", under {cpu['hypervisor']}" if cpu.get("hypervisor") else ""
    return f"{cpu.get('model') or 'a CPU that does not say its name'}, {cpu.get('n_online')} CPUs{under}"


def gate_sentences(recording, percents):
    for percent in percents:
        said = collections.Counter(v["verdict"] for v in recording.verdicts if v["effect_percent"] == percent)
        if said:
            yield f"- {'nothing changed' if percent == 0 else f'+{percent} %'}: " + ", ".join(
                f"{n} {verdict}" for verdict, n in said.most_common())


def write(recording, rows, percents, loads, checked, out):
    times = [v["seconds"] for v in recording.verdicts if v["effect_percent"] == 0]
    cases = {case for _, _, case in recording.series}
    print(f"""# What other rules say of the gate's samples

What `normbench gate --self-test --out DIR` recorded, judged by `tests/tools/judge_samples.py`, which wrote this page.

- machine: {"; ".join(sorted({machine(s) for s in recording.sessions}))}
- recorded: {", ".join(s["session"] for s in recording.sessions)}; load: {", ".join(loads)}
- {recording.n_launches} launches of {len(cases)} cases; seconds a trial: median {statistics.median(times):.1f}, all arms together

In each cell: per cent of comparisons that say "B is slower" [exact 95 % bounds] (comparisons). Where nothing changed, B is a byte
copy of A and every such verdict is false; else B is the same machine code on more rows. *As used*: A's processes ran first, then
B's. *Interleaved*: both in the same launches, samples in random order. Injected arms all run the copy's code, which makes it a little
warmer than the baseline's; false alarms are those of launches without such arms, where the recording has any. Comparisons near in
time are not independent, so that the bounds are somewhat too narrow, for every row alike.
""", file=out)
    print("\n".join(table(rows, percents)), file=out)
    if len(loads) > 1:
        print("\n## False alarms by load\n", file=out)
        print("\n".join(table_by_load(rows, loads)), file=out)
    print("\n## What the gate said\n", file=out)
    print("\n".join(gate_sentences(recording, percents)), file=out)
    print("""
## How far the imitations go

The rules are those of compare.py 1.7.1, benchstat since 2023, criterion.rs 0.5 and hyperfine 1.x, applied to samples that the gate
timed: a repetition is the mean of a ninth of a launch's samples, a run the mean of all of them, criterion's sample the samples
themselves. The tools' own loops, warm-up and choice of iterations are not imitated. As used, one launch follows
the other at once, which is kinder than a stored baseline of yesterday. Between two samples of an arm the other arms run, so that a
process here spans more time than its own samples fill.""", file=out)
    if checked:
        n, same, worst = checked
        print(f"\nThe real compare.py on the same samples: {same} of {n} verdicts as the imitation's, p to {worst:.1e}.", file=out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("samples", nargs="+")
    parser.add_argument("--out", help="the page; default: stdout")
    parser.add_argument("--windows", type=int, default=500, help="most comparisons of a cell (default 500)")
    parser.add_argument("--max-gap", type=float, default=30, help="seconds between launches that still follow each other")
    parser.add_argument("--compare-py", help="path of Google Benchmark's script")
    options = parser.parse_args()
    recording = Recording()
    for path in options.samples:
        recording.read(path)
    percents = sorted({v["effect_percent"] for v in recording.verdicts} | {0})
    loads = sorted({load for _, load, _ in recording.series})
    if not recording.verdicts or not recording.sessions:
        sys.exit("no verdicts in these samples: the self-test was cut off before its first trial was over")
    stretches = list(recording.stretches(options.max_gap))
    stretches_of = {percent: stretches for percent in percents}
    if recording.has_plain():
        stretches_of[0] = list(recording.stretches(options.max_gap, plain=True))
    recording.verdicts = fair_verdicts(recording.verdicts)
    rows = [("**normbench gate**", "as used", judge_gate(recording.verdicts))]
    for group, ways in ((rules.PAIRED, (True,)), (rules.TOOLS, (False, True)), (rules.THRESHOLDS, (False, True))):
        for name, length, rule in group:
            for way in ways:
                tallies = judge_rule(stretches_of, rule, length, way, options.windows)
                rows.append((name, "interleaved" if way else "as used", tallies))
    checked = check_compare_py(options.compare_py, stretches_of, options.windows) if options.compare_py else None
    if options.out:
        with open(options.out, "w") as out:
            write(recording, rows, percents, loads, checked, out)
    else:
        write(recording, rows, percents, loads, checked, sys.stdout)


if __name__ == "__main__":
    main()
