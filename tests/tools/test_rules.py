#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The rules of other tools on samples with known answers; figures of tests and bounds are those that scipy 1.10.1 gives."""
import contextlib
import io
import json
import math
import pathlib
import random
import sys
import tempfile
import unittest

import judge_samples
import rules

X = [4.1, 5.3, 2.2, 7.9, 6.4, 3.8, 5.9, 4.7, 6.1]
Y = [6.6, 7.1, 5.0, 8.8, 9.3, 4.9, 7.7, 6.9, 8.1]


def processes(rng, n, mean=300000.0, within=0.002, between=0.0, samples=100):
    """Launches with a level of their own each."""
    levels = [mean * math.exp(rng.gauss(0, between)) for _ in range(n)]
    return [[level * math.exp(rng.gauss(0, within)) for _ in range(samples)] for level in levels]


class Statistics(unittest.TestCase):
    def test_mann_whitney(self):
        self.assertAlmostEqual(rules.mann_whitney(X, Y, exact=True), 0.018757712875359933, 12)
        self.assertAlmostEqual(rules.mann_whitney(X, Y, exact=False), 0.021684111364991994, 12)
        self.assertAlmostEqual(rules.mann_whitney([1, 2, 2, 3, 3, 3], [2, 3, 4, 4, 5, 5], exact=True), 0.047967873742731204, 12)

    def test_smallest_possible_p_of_ten_against_ten(self):
        self.assertAlmostEqual(rules.mann_whitney(range(10), range(10, 20), exact=True), 2 / math.comb(20, 10), 15)

    def test_welch(self):
        t, df = rules.welch_t(X, Y)
        self.assertAlmostEqual(rules.student_p(t, df), 0.017602002505739008, 10)

    def test_signed_rank(self):
        self.assertAlmostEqual(rules.signed_rank([a - b for a, b in zip(X, Y)]), 0.00390625, 12)
        self.assertEqual(rules.signed_rank([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), 2 / 1024)

    def test_clopper_pearson(self):
        for (k, n), (low, high) in {(0, 10): (0.0, 0.308497107819), (3, 10): (0.066739511178, 0.65245285006), (17, 500): (0.019928600046, 0.053880350736), (10, 10): (0.691502892181, 1.0)}.items():
            found = rules.clopper_pearson(k, n)
            self.assertAlmostEqual(found[0], low, 10)
            self.assertAlmostEqual(found[1], high, 10)


class Rules(unittest.TestCase):
    def test_all_find_a_large_change_and_its_sign(self):
        rng = random.Random(1)
        for name, n, rule in rules.TOOLS + rules.THRESHOLDS + rules.PAIRED:
            a, b = processes(rng, n), processes(rng, n, mean=400000.0)
            self.assertEqual(rule(a, b), 1, name)
            self.assertEqual(rule(b, a), -1, name)
            self.assertEqual(rule(a, a), 0, name)

    def test_thresholds_are_exact(self):
        one, more = [[100.0] * 10], [[104.9] * 10]
        self.assertEqual([rules.threshold(min, p)(one, more) for p in (2, 5, 10)], [1, 0, 0])

    def test_criterion_ignores_what_is_below_its_noise_threshold(self):
        rng = random.Random(2)
        a = processes(rng, 1)
        self.assertEqual(rules.criterion(a, [[1.005 * v for v in a[0]]]), 0)
        self.assertEqual(rules.criterion(a, [[1.02 * v for v in a[0]]]), 1)

    def rate(self, rule, n, between, trials=300):
        rng = random.Random(3)
        return sum(rule(processes(rng, n, between=between, samples=18), processes(rng, n, between=between, samples=18)) != 0
                   for _ in range(trials)) / trials

    def test_independent_processes_keep_the_level(self):
        self.assertLess(self.rate(rules.benchstat, 10, between=0.05), 0.09)
        self.assertLess(self.rate(rules.hyperfine_welch, 10, between=0.05), 0.09)
        self.assertLess(self.rate(rules.compare_py, 1, between=0.0), 0.09)

    def test_repetitions_inside_one_process_do_not(self):
        self.assertGreater(self.rate(rules.compare_py, 1, between=0.05), 0.8)

    def test_pairing_forgets_what_a_launch_has_in_common(self):
        rng, found = random.Random(4), 0
        for _ in range(100):
            a = processes(rng, 10, between=0.2)
            b = [[1.01 * v * math.exp(rng.gauss(0, 0.002)) for v in p] for p in a]
            found += rules.paired_medians(a, b) == 1
            self.assertEqual(rules.benchstat(a, b), 0)
        self.assertEqual(found, 100)


def line(**members):
    return json.dumps(members)


def samples(folder, launches, plain=False):
    """A recording: launches at times, the copy as the baseline, +5 % injected."""
    rng = random.Random(5)
    path = pathlib.Path(folder) / "samples.jsonl"
    lines = [line(type="session", session="s", fingerprint={"cpu": {"model": "a CPU", "n_online": 2}})]
    for at_s, load in launches:
        base = processes(rng, 1, samples=18)[0]
        arms = [("baseline", 0, base), ("control", 0, base), ("copy", 0, base), ("injected", 5, [1.05 * v for v in base])]
        arms = arms[:3] if plain and at_s % 2 == 0 else arms
        lines.append(line(type="launch", session="s", load=load, case="k", at_s=at_s,
                          arms=[dict(arm=n, effect_percent=p, sample_ns=v) for n, p, v in arms]))
    for percent, verdict in ((0, "PASS"), (5, "REGRESSION")):
        lines.append(line(type="verdict", session="s", load="idle", case="k", effect_percent=percent, verdict=verdict, seconds=2, trial=0))
    path.write_text("\n".join(lines) + "\n")
    return str(path)


class Samples(unittest.TestCase):
    def test_windows_follow_each_other_and_do_not_overlap(self):
        with tempfile.TemporaryDirectory() as folder:
            recording = judge_samples.Recording()
            recording.read(samples(folder, [(t, "idle") for t in range(25)]))
            stretches = list(recording.stretches(30))
        launches = stretches[0][1]
        self.assertEqual(len(launches), 25)
        used = list(judge_samples.windows(stretches, 5, 5, interleaved=False))
        self.assertEqual(len(used), 2)
        self.assertIs(used[1][1][0], launches[10].arms["baseline", 0])
        self.assertIs(used[1][2][0], launches[15].arms["injected", 5])
        beside = list(judge_samples.windows(stretches, 5, 0, interleaved=True))
        self.assertEqual(len(beside), 5)
        self.assertIs(beside[1][2][0], launches[5].arms["copy", 0])

    def test_gaps_and_loads_end_a_stretch(self):
        with tempfile.TemporaryDirectory() as folder:
            recording = judge_samples.Recording()
            recording.read(samples(folder, [(0, "idle"), (1, "idle"), (100, "idle"), (101, "cpu")]))
            stretches = [(load, len(run)) for load, run in recording.stretches(30)]
        self.assertEqual(sorted(stretches), [("cpu", 1), ("idle", 1), ("idle", 2)])

    def test_false_alarms_are_those_beside_no_injected_arm(self):
        with tempfile.TemporaryDirectory() as folder:
            recording = judge_samples.Recording()
            recording.read(samples(folder, [(t, "idle") for t in range(20)], plain=True))
        self.assertTrue(recording.has_plain())
        (_, launches), = recording.stretches(30, plain=True)
        self.assertEqual([launch.at_s for launch in launches], list(range(0, 20, 2)))
        told = [dict(session="s", trial=t, effect_percent=p) for t, p in ((0, 0), (1, 0), (1, 5))]
        self.assertEqual(judge_samples.fair_verdicts(told), [told[0], told[2]])
        self.assertEqual(judge_samples.fair_verdicts(told[1:]), told[1:])

    def test_the_page_holds_every_rule_and_the_gates_own_verdicts(self):
        with tempfile.TemporaryDirectory() as folder:
            path = samples(folder, [(t, "idle") for t in range(40)])
            out = pathlib.Path(folder) / "gate.md"
            sys.argv = ["judge_samples.py", path, "--out", str(out)]
            judge_samples.main()
            page = out.read_text()
        for name, _, _ in rules.TOOLS + rules.THRESHOLDS + rules.PAIRED:
            self.assertIn(name, page)
        self.assertIn("- +5 %: 1 REGRESSION", page)
        ours = next(row for row in page.splitlines() if row.startswith("| **normbench gate**"))
        self.assertIn("| 0.0 [0.0, 97.5] (1) | 0.0 [0.0, 97.5] (1) | 100.0 [2.5, 100.0] (1) |", ours)
        paired = next(row for row in page.splitlines() if row.startswith("| paired launch medians"))
        self.assertTrue(paired.endswith("| 0.0 [0.0, 60.2] (4) | 0.0 [0.0, 60.2] (4) | 100.0 [39.8, 100.0] (4) |"), paired)

    def test_foreign_and_empty_files_are_refused(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
            path = pathlib.Path(folder) / "x"
            short = line(type="launch", session="s", load="idle", case="k", at_s=0,
                         arms=[dict(arm="baseline", effect_percent=0, sample_ns=[1.0] * 8)])
            for text in ("{", "[]\n", '{"type":"launch"}\n', short, ""):
                path.write_text(text)
                sys.argv = ["judge_samples.py", str(path)]
                with self.assertRaises(SystemExit) as end:
                    judge_samples.main()
                self.assertTrue(end.exception.code, text)


if __name__ == "__main__":
    unittest.main()
