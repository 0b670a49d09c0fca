# SPDX-License-Identifier: Apache-2.0
"""What tests are given: tolerances, comparisons, reports and results. NORMBENCH names the program."""

import json
import os
import pathlib
import re
import stat
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [os.environ.get("NORMBENCH_PYTHON_PACKAGE", str(ROOT / "cmd/packaging/python/src"))]
import normbench  # noqa: E402
from normbench import _program, _testing  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None
try:
    import torch
except ImportError:
    torch = None


def mine(x, gamma, eps):
    return x


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        before = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(before)))
        os.environ["XDG_CACHE_HOME"] = folder.name
        _testing._tolerance.cache_clear()

    def program(self, text):
        """A program in the place of ours."""
        path = self.folder / "program"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        os.environ["NORMBENCH"] = str(path)

    def answers(self, rtol, atol):
        document = json.dumps({"criteria": [{"name": "derived", "rtol": rtol, "atol": atol}]})
        self.program(f"echo asked >> {self.folder}/asked\necho '{document}'\n")


class Closeness(Folder):
    def test_tolerances_are_the_programs(self):
        found = normbench.tolerance(op="rmsnorm", dtype="bf16", n=64, trials=2)
        self.assertTrue(2**-9 < found.rtol < 2**-7, found)

    def test_a_tolerance_is_derived_once(self):
        self.answers(0.5, 0)
        for _ in range(2):
            self.assertEqual(normbench.tolerance(n=8), normbench.Tolerance(0.5, 0))
        _testing._tolerance.cache_clear()  # as another process
        normbench.tolerance(n=8)
        self.assertEqual((self.folder / "asked").read_text(), "asked\n")
        normbench.tolerance(n=9)
        (self.folder / "normbench/tolerances.json").write_text("[1]")  # damaged: derived again
        _testing._tolerance.cache_clear()
        self.assertEqual(normbench.tolerance(n=8).rtol, 0.5)
        self.assertEqual((self.folder / "asked").read_text(), "asked\n" * 3)

    def test_what_is_close(self):
        self.answers(0.1, 0.01)
        inf, nan = float("inf"), float("nan")
        for actual, expected in (
            ([1.0, -2.0], [1.1, -2.2]),
            ([0.01], [0.0]),
            ([nan, inf, -inf], [nan, inf, -inf]),
            ([[1], [2]], [[1], [2]]),
        ):
            normbench.assert_close(actual, expected)
        for actual, expected, said in (
            ([1.0, 1.2], [1.0, 1.0], r"1 of 2 .*\nworst: 1.2, expected 1.0, at \(1,\), 1.8"),
            ([[1, 1], [1, 3]], [[1, 1], [1, 1]], r"at \(1, 1\)"),
            ([nan], [1.0], "worst: nan"),
            ([1.0], [nan], "expected nan"),
            ([inf], [1.0], "worst: inf"),
            ([1.0], [inf], "expected inf"),
            ([1.0], [1.0, 2.0], r"shapes differ: \(1,\), expected \(2,\)"),
        ):
            with self.assertRaisesRegex(AssertionError, said):
                normbench.assert_close(actual, expected)

    @unittest.skipUnless(numpy, "NumPy is not installed")
    def test_arrays(self):
        self.answers(0.01, 0)
        x = numpy.linspace(-3, 3, 12).reshape(3, 4)
        normbench.assert_close(x.astype("f4"), x)
        bits = (x.astype("f4").view("u4") >> 16).astype("u2")  # bf16, cut off
        normbench.assert_close(bits, x, dtype="bf16")
        with self.assertRaisesRegex(AssertionError, r"1 of 12 .*\n.* at \(2, 1\)"):
            x[2, 1] *= 1.02
            normbench.assert_close(bits, x, dtype="bf16")


    def test_what_is_no_number_is_refused(self):
        self.answers(0.1, 0.01)
        wrong = [(value, "str|bytes|bool|dict|set|None") for value in ("1.0", ["1.0"], b"1", [True], {"a": 1}, {1.0}, None, [None])]
        wrong.append((1 + 2j, "complex"))
        if numpy:
            for array in (numpy.ones(3) * 1j, numpy.ones(3) > 0, numpy.array(["1"]), numpy.array([None]), numpy.zeros(2, "M8[s]")):
                wrong.append((array, re.escape(str(array.dtype))))
        if torch:
            wrong += [(torch.ones(3) * 1j, "complex64"), (torch.ones(3) > 0, "torch.bool")]
        for value, said in wrong:
            for both in ((value, [1.0]), ([1.0], value), (value, value)):
                with self.subTest(repr(value)), self.assertRaisesRegex(TypeError, f"real numbers, not .*({said})"):
                    normbench.assert_close(*both)
        for empty in ([], [[], []], *([numpy.zeros((0, 4))] if numpy else [])):
            with self.subTest(repr(empty)), self.assertRaisesRegex(ValueError, "nothing to compare"):
                normbench.assert_close(empty, empty)
        with self.assertRaisesRegex(ValueError, "rows of different lengths"):
            normbench.assert_close([[1], [1, 2]], [[1], [1, 2]])


class Reports(Folder):
    def report(self, *cases):
        return normbench.Report(
            "mine", [{"key": f"k{i}", "replay": f"normbench replay k{i}", **case} for i, case in enumerate(cases)], "out", ""
        )

    def test_right_and_wrong(self):
        self.assertTrue(self.report({"status": "ok"}, {"status": "out_of_range"}))
        wrong = self.report({"status": "ok"}, {"status": "inaccurate", "reason": "3 of 4 elements beyond the bound"})
        self.assertFalse(wrong)
        self.assertEqual(repr(wrong), "<mine: 1 of 2 cases are wrong; inaccurate: 3 of 4 elements beyond the bound>")
        self.assertIn("normbench replay k1", str(wrong))
        self.assertFalse(self.report())
        skipped = self.report({"status": "skipped", "reason": "no AVX2"})
        self.assertFalse(skipped)
        self.assertIn("nothing could be checked; no AVX2", repr(skipped))

    def test_what_cannot_be_checked(self):
        def inside(x):
            return x

        for function, declared, said in (
            (inside, {"op": "rmsnorm"}, "is made inside of another function"),
            (mine, {}, "says nowhere what it computes"),
            (mine, {"op": "rms"}, "op='rms': one of rmsnorm"),
            (mine, {"op": "rmsnorm", "dtype": "f64"}, "dtype='f64': one of f32"),
            (mine, {"op": "rmsnorm", "arays": "torch"}, "has no 'arays'"),
            (mine, {"op": "rmsnorm", "arrays": "pointer", "returns": "y"}, "a function of pointers writes its outputs"),
            (mine, {"op": "rmsnorm", "arrays": "pointer"}, r"mine \(test_testing.py:\d+\): neither returns y nor takes it"),
            (mine, {"op": "rmsnorm", "root": "sqrt"}, "root='sqrt': one of div_sqrt"),
            (mine, {"op": "rmsnorm", "dtype": []}, r"mine .*: dtype=\[\]: one of f32"),
            (mine, {"op": "rmsnorm", "loads": "x"}, "mine .*: loads='x': a number"),
            (mine, {"op": "rmsnorm", "max_abs": -1}, "mine .*: max_abs=-1: a number above 0"),
            (mine, {"op": "rmsnorm", "name": "n" * 81}, "mine .*: its name is 'nnn.*80 at most"),
            (mine, {"op": "rmsnorm", "shapes": [(7, 100)]}, r'shapes=\[\(7, 100\)\]: a shape is a text, such as "7x1000"'),
            (len, {"op": "rmsnorm"}, "len is in no file"),
        ):
            with self.subTest(said), self.assertRaisesRegex(normbench.Error, said):
                normbench.check(function, **declared)

    def test_what_the_program_is_asked(self):
        self.addCleanup(setattr, tempfile, "tempdir", tempfile.tempdir)
        tempfile.tempdir = str(self.folder)  # results of what was not right are kept
        self.program(f'for each; do echo "$each"; done >{self.folder}/asked\ncp "$4" {self.folder}/plugin.py\n')
        for shapes, asked in (("7x100", "shape=7x100"), (["7x100", "8x8"], "shape=7x100,8x8")):
            normbench.check(mine, op="rmsnorm", name="json", shapes=shapes)
            lines = (self.folder / "asked").read_text().splitlines()
            self.assertIn(asked, lines)
            self.assertEqual(os.path.basename(lines[3]), "checked_json.py")  # json.py would be what others import as json

    def test_results(self):
        (self.folder / "results.json").write_text(
            '{"records": [{"key": "a", "accuracy": {"max_ulp": 1.5, "histogram": [1]}, "reason": null}]}'
        )
        flat = {"key": "a", "accuracy.max_ulp": 1.5, "accuracy.histogram": [1], "reason": None}
        self.assertEqual(normbench.load(self.folder, frame=False), [flat])
        self.assertEqual(normbench.load(self.folder / "results.json", frame=False), [flat])
        with self.assertRaisesRegex(normbench.Error, "nothing: is not there$"):
            normbench.load(self.folder / "nothing")
        (self.folder / "results.json").write_text("[]")
        with self.assertRaisesRegex(normbench.Error, "no results of normbench"):
            normbench.load(self.folder)

    def test_the_programs_own_words(self):
        self.program("echo 'normbench: error: no such thing' >&2; exit 2\n")
        with self.assertRaisesRegex(normbench.Error, "no such thing"):
            normbench.run("list")
        self.assertEqual(_program.environment()["NORMBENCH_PYTHON"], os.environ.get("NORMBENCH_PYTHON", sys.executable))


if __name__ == "__main__":
    unittest.main()
