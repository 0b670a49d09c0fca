# SPDX-License-Identifier: Apache-2.0
"""For tests: is this function right, and are these two arrays as close as the arithmetic allows?"""

import dataclasses
import functools
import inspect
import itertools
import json
import math
import os
import pathlib
import shutil
import struct
import sys
import tempfile

from . import _kernel
from ._program import Error, program, records, run

# ---- a function ------------------------------------------------------------------------------------------------------------


class Report:
    """What `normbench run` found of a function's kernels. It is true where all is right; str() has every failure with the command that
    repeats it, repr() the first in one line, as pytest prints it."""

    def __init__(self, name, cases, folder, output):
        self.name, self.cases, self.folder, self.output = name, cases, folder, output
        self.failures = [case for case in cases if case["status"] not in ("ok", "out_of_range", "skipped", "not_run")]
        self.ok = not self.failures and any(case["status"] == "ok" for case in cases)

    def __bool__(self):
        return self.ok

    def __repr__(self):
        if self.ok:
            return f"<{self.name}: right in {len(self.cases)} cases>"
        return f"<{self.name}: {self._count()}; {self._first()[:150]}>"

    def _count(self):
        return f"{len(self.failures)} of {len(self.cases)} cases are wrong" if self.failures else "nothing could be checked"

    def _first(self):
        if self.failures:
            return f"{self.failures[0]['status']}: {self.failures[0].get('reason') or 'no reason given'}"
        return next((case.get("reason") or case["status"] for case in self.cases), " ".join(self.output.split()))

    def __str__(self):
        lines = [f"{self.name}: " + (f"right in {len(self.cases)} cases" if self.ok else self._count())]
        for case in self.failures:
            lines += [
                f"  {case['key']}",
                f"    {case['status']}: {case.get('reason') or 'no reason given'}",
                f"    {case['replay']}",
            ]
        if not self.ok and not self.failures:
            lines.append(f"  {self._first()}")
        if self.folder:
            lines.append(f"  everything is in {self.folder}: normbench report {self.folder}")
        return "\n".join(lines)


def _address(function):
    """(module, file, qualified name) by which another process finds a function."""
    inner = inspect.unwrap(function)
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    path = getattr(module, "__file__", None)
    if module is None or path is None:
        raise Error(f"check: {_kernel.place(function)} is in no file; it is called in a process of its own, which imports it")
    for name in (getattr(function, "__qualname__", ""), getattr(inner, "__name__", "")):
        try:
            if functools.reduce(getattr, name.split("."), module) is function:
                return module.__name__, os.path.abspath(path), name
        except AttributeError:
            pass
    for name, value in vars(module).items():
        if value is function:
            return module.__name__, os.path.abspath(path), name
    raise Error(
        f"check: {_kernel.place(function)} is made inside of another function; put it at the top of its file,"
        " for it is called in a process of its own, which imports it by its name"
    )


def _texts(shapes):
    texts = [shapes] if isinstance(shapes, str) else list(shapes)
    for text in texts:
        if not isinstance(text, str):
            raise Error(f'check: shapes={shapes!r}: a shape is a text, such as "7x1000"')
    return texts


def check(function, *, hard_rows=True, shapes=None, timeout=120, keep=None, **declared):
    """Checks a function as `normbench run` checks a kernel, with nothing timed: against the exact result, inside the bound of its formula,
    on ordinary and (about a second) on hard rows, and what it does to memory. The arguments are those of normbench.kernel(); a function
    that it decorates needs none. The result is a Report:

        assert normbench.check(mine)
        assert normbench.check(rms_norm, op="rmsnorm", dtype=["f32", "bf16"], arrays="torch")

    shapes: a list such as ["64x384", "7x1000"], or one, in place of the usual one; timeout: seconds that a case may stand still; keep: a
    folder for the results, which are otherwise kept only where something is wrong."""
    declared = {**getattr(function, "__normbench__", {}), **declared}
    if "op" not in declared:
        raise Error(f'check: {_kernel.place(function)} says nowhere what it computes: check(..., op="rmsnorm", dtype="f32")')
    if os.environ.get("NORMBENCH_WORKER_FD"):
        raise Error("check: is called while the function's own file is imported; put it into a function, such as a test")
    shapes = _texts(shapes) if shapes else None
    module, path, name = _address(function)
    declared.setdefault("name", getattr(function, "__name__", ""))
    _kernel.declare(function, **declared)  # its errors, here and now
    work = pathlib.Path(tempfile.mkdtemp(prefix="normbench-check-"))
    plugin = work / f"checked_{declared['name']}.py"  # its folder is searched first: no name that something else may import
    plugin.write_text(
        "import normbench\nfrom normbench.worker import find\n\n"
        f"normbench.kernel(**{declared!r})(find({('__normbench_main__' if module == '__main__' else module)!r}, {path!r}, {name!r}))\n",
        encoding="utf-8",
    )
    out = pathlib.Path(keep) if keep else work / "results"
    options = ["--launches", 0, "--no-plots", "--quiet", "--case-timeout", timeout, "--out", out]
    options += [] if hard_rows else ["--no-stress"]
    options += ["--axis", "shape=" + ",".join(shapes), "--axis", "data=normal"] if shapes else []
    done = run("run", "quick", "--plugin", plugin, "--filter", f"{plugin.stem}:*", *options, path=sys.path)
    output = done.stderr or done.stdout
    report = Report(declared["name"], records(out) if (out / "results.json").exists() else [], str(out), output)
    if report.ok and not keep:
        shutil.rmtree(work)
        report.folder = None
    elif not report.ok:
        print(report, file=sys.stderr)  # pytest shows it whole, but an assertion's value in one line
    return report


# ---- arrays ----------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Tolerance:
    """|actual - expected| <= atol + rtol |expected|"""

    rtol: float
    atol: float

    def excess(self, actual, expected):
        """The error as a multiple of what is allowed; infinite where only one is a number, or infinite itself."""
        if actual == expected or (math.isnan(actual) and math.isnan(expected)):
            return 0.0
        error, allowed = abs(actual - expected), self.atol + self.rtol * abs(expected)
        return error / allowed if math.isfinite(error) and allowed > 0 else math.inf


def _cache_file():
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(root) / "normbench" / "tolerances.json"


@functools.cache
def _tolerance(arguments):
    """Derived by the program within some seconds, and then kept for later processes, as long as the program is the same file."""
    key = " ".join([program(), str(os.stat(program()).st_mtime_ns), *arguments])
    path = _cache_file()
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        return Tolerance(*map(float, known[key]))
    except (OSError, ValueError, KeyError, TypeError):
        pass
    criteria = json.loads(run("tolerance", "--format", "json", *arguments).stdout)["criteria"]
    found = next(criterion for criterion in criteria if criterion["name"] == "derived")
    _keep(path, key, [found["rtol"], found["atol"]])
    return Tolerance(found["rtol"], found["atol"])


def _keep(path, key, value):
    """Another process may do so at the same time: a file is replaced whole. Where there is no place for it, it is derived again."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            known = dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            known = {}
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
            json.dump({**known, key: value}, file, indent=1)
        os.replace(file.name, path)
    except OSError:
        pass


def tolerance(*, op="rmsnorm", dtype="f32", n=4096, eps=None, data=None, affine=None, design=None, trials=None):
    """rtol and atol that a correct kernel of this op and dtype meets on rows of n elements, as `normbench tolerance` derives them from the
    rounding errors of the formula. data says what the rows are like (`normbench list data`), design which arithmetic is meant, in place of
    op and dtype (`normbench emulate --help`); fewer trials take less time. What was derived once is kept in ~/.cache/normbench."""
    arguments = ["--design", design] if design else ["--op", op, "--dtype", dtype]
    arguments += ["--n", str(n)]
    for name, value in (("eps", eps), ("data", data), ("affine", affine), ("trials", trials)):
        arguments += [f"--{name}", str(value)] if value is not None else []
    return _tolerance(tuple(arguments))


def _bf16(bits):
    return struct.unpack("<f", struct.pack("<I", bits << 16))[0]


def _refuse(what):
    raise TypeError(f"assert_close: compares arrays and lists of real numbers, not {what}")


def _values(array, dtype):
    """(numbers in one list, shape)"""
    if hasattr(array, "detach"):  # PyTorch
        if array.is_complex() or "bool" in str(array.dtype):
            _refuse(f"a tensor of {array.dtype}")
        array = array.detach()
        return array.double().flatten().tolist(), tuple(array.shape)
    if hasattr(array, "astype"):  # NumPy
        if array.dtype.kind not in "fiu" and array.dtype.isbuiltin != 2:  # 2: a number of another package, such as ml_dtypes
            _refuse(f"an array of {array.dtype}")
        bits = dtype == "bf16" and array.dtype == "u2"
        values = array.ravel().tolist() if bits else array.astype("f8").ravel().tolist()
        return [_bf16(value) for value in values] if bits else values, tuple(array.shape)
    if isinstance(array, (str, bytes, bytearray, bool, dict, set, frozenset)):
        _refuse(type(array).__name__)
    if hasattr(array, "__len__"):
        rows = [_values(row, dtype) for row in array]
        shape = rows[0][1] if rows else ()
        if any(row[1] != shape for row in rows):
            raise ValueError("assert_close: rows of different lengths")
        return list(itertools.chain.from_iterable(row[0] for row in rows)), (len(rows), *shape)
    try:
        return [float(array)], ()
    except TypeError:
        _refuse(type(array).__name__)


def assert_close(actual, expected, *, op="rmsnorm", dtype="f32", n=None, rtol=None, atol=None, **of_rows):
    """Fails where an element of a norm's result is farther from the expected one than a correct kernel's may be: with the tolerance that
    tolerance(op=, dtype=, n=, eps=, data=, ...) derives; n is by default the length of the last dimension. expected is exact, or of higher
    precision: against another kernel of the same dtype, whose errors count as well, give twice the rtol. Takes arrays of NumPy (bf16 as
    uint16 bits too) and PyTorch, and lists."""
    got, shape = _values(actual, dtype)
    want, wanted_shape = _values(expected, dtype)
    if shape != wanted_shape:
        raise AssertionError(f"shapes differ: {shape}, expected {wanted_shape}")
    if not got:
        raise ValueError(f"assert_close: there is nothing to compare in arrays of shape {shape}")
    cols = shape[-1] if shape else 1
    limit = tolerance(op=op, dtype=dtype, n=n or cols, **of_rows)
    limit = Tolerance(limit.rtol if rtol is None else rtol, limit.atol if atol is None else atol)
    excesses = [limit.excess(a, e) for a, e in zip(got, want)]
    n_wrong = sum(excess > 1 for excess in excesses)
    if n_wrong == 0:
        return
    at = excesses.index(max(excesses))
    raise AssertionError(
        f"{n_wrong} of {len(got)} elements are farther off than a correct {op} in {dtype} with n = {n or cols}"
        f" (rtol {limit.rtol:g}, atol {limit.atol:g})\n"
        f"worst: {got[at]!r}, expected {want[at]!r}, at {_index(at, shape)}, {excesses[at]:.3g} times the tolerance"
    )


def _index(flat, shape):
    index = []
    for length in reversed(shape):
        index.insert(0, flat % length)
        flat //= length
    return tuple(index)
