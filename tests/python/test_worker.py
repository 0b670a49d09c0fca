# SPDX-License-Identifier: Apache-2.0
"""The worker of kernels in Python, against a harness of the test's own that knows the protocol's page alone."""

import array
import mmap
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = os.environ.get("NORMBENCH_PYTHON_PACKAGE", str(ROOT / "cmd/packaging/python/src"))
MEMORY = 1 << 40
PAGE = mmap.PAGESIZE
TENSORS = (
    "x residual gamma beta y residual_out dy dresidual_out dx dresidual dgamma dbeta dalpha mean rstd"
    " running_mean_in running_var_in running_mean_out running_var_out"
).split()
try:
    import numpy
except ImportError:
    numpy = None


class Harness:
    """A worker with its socket and memory. Tensors lie one to a page, the rest of which is looked at."""

    def __init__(self, text):
        self.folder = tempfile.TemporaryDirectory()
        path = pathlib.Path(self.folder.name) / "mine.py"
        path.write_text("import normbench\n" + textwrap.dedent(text))
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.memory = os.memfd_create("tensors")
        os.ftruncate(self.memory, MEMORY)
        self.map = mmap.mmap(self.memory, 64 * PAGE)
        environment = {
            **os.environ,
            "PYTHONPATH": PACKAGE,
            "NORMBENCH_WORKER_FD": str(theirs.fileno()),
            "NORMBENCH_MEMORY_FD": str(self.memory),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from normbench.worker import main; main()", str(path)],
            pass_fds=(theirs.fileno(), self.memory),
            env=environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        theirs.close()
        self.socket = ours
        self.socket.settimeout(60)
        self.sequence = 0

    def ask(self, kind, body=b"", version=1):
        """(status, body, text) of the answer."""
        self.sequence += 1
        self.socket.send(struct.pack("<4sHHII", b"NBWP", version, kind, self.sequence, 16 + len(body)) + body)
        answer = self.socket.recv(65536)
        if not answer:
            return None
        magic, version, its_kind, sequence, length, status, n_text = struct.unpack_from("<4sHHIIiI", answer)
        assert (magic, version, its_kind, sequence, length) == (b"NBWP", 1, kind, self.sequence, len(answer)), answer[:24]
        sizes = {1: 8, 2: 288, 4: 16}
        assert len(answer) == 24 + sizes.get(kind, 0) + n_text, answer
        return status, answer[24 : len(answer) - n_text], answer[len(answer) - n_text :].decode()

    def hello(self):
        return self.ask(1, struct.pack("<Q", MEMORY))

    def open(self, tensors, rows=3, cols=4, handle=0, kernel=0, affine=1, eps=1e-5, page=1):
        """tensors: {name: (values or None, rows, cols, stride, dtype)}; floats are written as f32."""
        self.at, body, areas = {}, b"", b""
        for number, name in enumerate(TENSORS):
            values, n_rows, n_cols, stride, dtype = tensors.get(name, (None, 0, 0, 0, 0))
            if name not in tensors:
                body += struct.pack("<4q2I", -1, 0, 0, 0, 0, 0)
                continue
            self.at[name] = (number + page) * PAGE
            if values is not None:
                self.map[self.at[name] : self.at[name] + 4 * len(values)] = array.array("f", values).tobytes()
            body += struct.pack("<4q2I", self.at[name], n_rows, n_cols, stride, dtype, values is None)
            areas += struct.pack("<2q", self.at[name], PAGE)
        head = struct.pack("<2I", kernel, handle) + struct.pack(
            "<4I6q3d7II", 0, 0, 1, len(tensors), rows, cols, 0, 0, 0, cols, eps, 0.0, 0.0, 1, 0, 0, 0, affine, 0, 0, 0
        )
        return self.ask(3, head + body + areas)

    def call(self, calls=1, first=0, n=1, flags=0):
        status, body, text = self.ask(4, struct.pack("<4IQ", first, n, 0, flags, calls)) or (None, bytes(16), "")
        return status, struct.unpack("<2Q", body), text

    def floats(self, name, n):
        return list(struct.unpack_from(f"<{n}f", self.map, self.at[name]))

    def end(self):
        self.socket.close()
        self.process.wait(10)
        text = self.process.stderr.read().decode()
        self.process.stderr.close()
        self.map.close()
        os.close(self.memory)
        self.folder.cleanup()
        return text


X = [1.0, 2.0, 3.0, 4.0, -1.0, 0.5, 2.0, 8.0, 0.0, 1.0, 0.0, 1.0]
NORM = {"x": (X, 3, 4, 4, 0), "gamma": ([1.0, 2.0, 3.0, 4.0], 1, 4, 4, 0), "y": (None, 3, 4, 4, 0)}
POINTER = """
    import ctypes
    @normbench.kernel(op="rmsnorm", arrays="pointer", max_abs=100)
    def mine(x, gamma, out, rows, cols, x_stride, y_stride, eps):
        "A norm of pointers."
        f = ctypes.POINTER(ctypes.c_float)
        X, G, Y = (ctypes.cast(p, f) for p in (x, gamma, out))
        for r in range(rows):
            row = [X[r * x_stride + c] for c in range(cols)]
            scale = (sum(v * v for v in row) / cols + eps) ** -0.5
            for c in range(cols):
                Y[r * y_stride + c] = row[c] * scale * G[c]
"""


def norms(gamma=(1.0, 2.0, 3.0, 4.0)):
    result = []
    for r in range(3):
        row = X[4 * r : 4 * r + 4]
        scale = (sum(v * v for v in row) / 4 + 1e-5) ** -0.5
        result += [v * scale * g for v, g in zip(row, gamma)]
    return result


class Worker(unittest.TestCase):
    def start(self, text):
        self.harness = Harness(text)
        self.addCleanup(self.harness.end)
        return self.harness

    def test_a_whole_conversation(self):
        h = self.start(POINTER)
        status, body, text = h.hello()
        self.assertEqual((status, struct.unpack("<2I", body)), (0, (1, 0)), text)
        self.assertIn("Python 3.", text)
        status, body, text = h.ask(2, struct.pack("<2I", 0, 0))
        fields = struct.unpack("<4I7I2I4I6fI96s96s", body)
        self.assertEqual(fields[:4], (0, 0, 0, 2))  # rmsnorm, forward, f32, rows that are apart
        self.assertEqual(fields[4], 1 << 1)  # mul_recip
        self.assertEqual(fields[8], 1 << 1)  # gamma
        self.assertEqual(fields[20:23], (0.0, 100.0, 0.0))  # the range that it claims: to max_abs
        self.assertEqual(fields[-2].rstrip(b"\0"), b"mine")
        self.assertIn("A norm of pointers.", text)
        self.assertEqual(h.open(NORM)[0], 0)
        self.assertEqual(h.call(3)[:2][1][0], 3)
        for got, want in zip(h.floats("y", 12), norms()):
            self.assertAlmostEqual(got, want, 5)
        self.assertEqual(h.ask(5, struct.pack("<2I", 0, 1))[0], 0)
        self.assertEqual(h.ask(6)[0], 0)
        self.assertEqual(h.process.wait(10), 0)

    def test_questions_that_cannot_be_answered(self):
        h = self.start(POINTER)
        self.assertEqual(h.hello()[0], 0)
        self.assertIn("no kernel 7", h.ask(2, struct.pack("<2I", 7, 0))[2])
        self.assertIn("handle 3 is not open", h.call(first=3)[2])
        self.assertIn("version", h.ask(2, struct.pack("<2I", 0, 0), version=9)[2])
        self.assertEqual(h.open(NORM)[0], 0)
        self.assertIn("is open already", h.open(NORM)[2])
        self.assertIn("gamma", h.open({name: NORM[name] for name in ("x", "y")}, handle=1, affine=0)[2])

    def test_a_file_that_cannot_be_read(self):
        for text, said in (
            ("", "no kernel in it"),
            ("import nothing_of_that_name", f"ModuleNotFoundError.*mine.py:2.*{re.escape(sys.executable)}.*NORMBENCH_PYTHON"),
            ("def f(:", "SyntaxError.*mine.py:2"),
            ('@normbench.kernel(op="rms")\ndef f(x): return x', r"f \(mine.py:2\): op='rms'"),
            ('@normbench.kernel(op="rmsnorm")\ndef f(x, w): return x', r"f \(mine.py:2\): no argument is called 'w'"),
            ('@normbench.kernel(op="rmsnorm")\ndef f(y): return y', "no argument x"),
            ('@normbench.kernel(op="rmsnorm")\ndef f(x, *rest): return x', r"takes \*rest"),
            ("@normbench.kernel\ndef f(x): return x", "says what it computes"),
        ):
            with self.subTest(text):
                h = self.start(text)
                status, _, answer = h.hello()
                self.assertNotEqual(status, 0)
                self.assertRegex(answer, said)

    def test_memory_of_a_closed_case_is_gone(self):
        h = self.start("""
    import ctypes
    kept = []
    @normbench.kernel(op="rmsnorm", arrays="pointer")
    def mine(x, out):
        kept.append(x)
        ctypes.cast(kept[0], ctypes.POINTER(ctypes.c_float))[0]
""")
        self.assertEqual(h.hello()[0], 0)
        self.assertEqual(h.open(NORM)[0], 0)
        self.assertEqual(h.open(NORM, handle=1)[0], 0)
        self.assertEqual(h.call()[0], 0)
        self.assertEqual(h.ask(5, struct.pack("<2I", 0, 1))[0], 0)
        self.assertEqual(h.call(first=1)[0], 0)  # a case that is open lies there too
        self.assertEqual(h.open(NORM, handle=2, page=30)[0], 0)
        self.assertEqual(h.ask(5, struct.pack("<2I", 1, 1))[0], 0)
        self.assertEqual(h.call(first=2)[0], None)
        self.assertEqual(h.process.wait(10), -signal.SIGSEGV)

    def misbehaves(self, body, said, arguments="x, gamma, eps", arrays="numpy", calls=1, **options):
        h = self.start(
            f'import os, sys, ctypes\nkept = []\n@normbench.kernel(op="rmsnorm", arrays="{arrays}"{options.pop("more", "")})\n'
            f"def mine({arguments}):\n    {body}\n"
        )
        status, _, text = h.hello()
        self.assertEqual(status, 0, text)
        status, _, text = h.open(NORM)
        if status == 0:
            status, _, text = h.call(calls)
        self.assertNotEqual(status, 0)
        self.assertRegex(text, said)
        self.assertRegex(text, r"mine \(mine.py:4\)")

    def test_what_pointers_misbehave(self):
        pointer = {"arguments": "x, out", "arrays": "pointer"}
        self.misbehaves("raise ValueError('so')", r"ValueError: so \(mine.py:6, in mine\)", **pointer)
        self.misbehaves("sys.exit(3)", "SystemExit: 3", **pointer)
        self.misbehaves("return 7", "returned 7", **pointer)
        self.misbehaves("return 'y'", "returned str, but it takes y to write to", **pointer)
        self.misbehaves("os.fork() or os._exit(0)", "forks", **pointer)
        self.misbehaves("os.fork()", "forks", **pointer)

    def test_a_kernel_that_closes_the_socket(self):
        h = self.start("""
    import os
    @normbench.kernel(op="rmsnorm", arrays="pointer")
    def mine(x, out):
        os.close(int(os.environ["NORMBENCH_WORKER_FD"]))
""")
        self.assertEqual(h.hello()[0], 0)
        self.assertEqual(h.open(NORM)[0], 0)
        self.assertEqual(h.call()[0], None)
        self.assertEqual(h.process.wait(10), 1)
        self.assertRegex(h.process.stderr.read().decode(), "descriptor 3, .* has a kernel closed it")

    @unittest.skipUnless(numpy, "NumPy is not installed")
    def test_what_arrays_misbehave(self):
        self.misbehaves("return x[:2]", r"y has shape \(2, 4\), not \(3, 4\)")
        self.misbehaves("return x.astype('f8')", "y is float64, not float32")
        self.misbehaves("return None", "y is NoneType, not an array")
        self.misbehaves("return x, x", "returned 2 values, not 1: y")
        self.misbehaves("x[0, 0] = 1", r"ValueError: assignment destination is read-only \(mine.py:6, in mine\)")
        self.misbehaves("return x + gamma[:3]", r"ValueError: operands could not be broadcast")
        self.misbehaves("kept.append(x[0]); return x * 2", "keeps a view of x after the call")
        self.misbehaves("kept[:] = [gamma.T]; return x * 2", "keeps a view of gamma after the call", calls=5)

    @unittest.skipUnless(numpy, "NumPy is not installed")
    def test_arrays_are_views_and_rows_may_be_apart(self):
        for body in (
            "numpy.multiply(x, scale * gamma, out=out)",
            "out[...] = x * scale * gamma",
            "return out.__imul__(0).__iadd__(x * scale * gamma)",
        ):
            self.conversation(body, "x, gamma, eps, out")
        self.conversation("return x * scale * gamma", "x, weight, eps=1e-3, unknown=None, *, rows")

    def conversation(self, body, arguments):
        h = self.start(
            f"""
import numpy
@normbench.kernel(op="rmsnorm")
def mine({arguments}):
    {"gamma = weight" if "weight" in arguments else ""}
    scale = (1 / numpy.sqrt((x * x).mean(1, keepdims=True) + numpy.float32(eps))).astype("f4")
    {body}
"""
        )
        self.assertEqual(h.hello()[0], 0)
        apart = [*X[:4], 99.0, *X[4:8], 99.0, *X[8:], 99.0]
        status, _, text = h.open({**NORM, "x": (apart, 3, 4, 5, 0), "y": (None, 3, 4, 6, 0)})
        self.assertEqual(status, 0, text)
        status, _, text = h.call(2)
        self.assertEqual(status, 0, text)
        got = h.floats("y", 18)
        for r in range(3):
            for value, want in zip(got[6 * r : 6 * r + 4], norms()[4 * r : 4 * r + 4]):
                self.assertAlmostEqual(value, want, 5)
            self.assertEqual(got[6 * r + 4 : 6 * r + 6], [0.0, 0.0])
        # The function that does nothing writes what was there, and takes less.
        status, (made, _), _ = h.call(10, flags=1)
        self.assertEqual((status, made), (0, 10))
        self.assertEqual(h.floats("y", 18), got)

    def test_the_harness_is_gone(self):
        h = self.start(POINTER)
        self.assertEqual(h.hello()[0], 0)
        h.socket.close()
        self.assertEqual(h.process.wait(10), 0)


if __name__ == "__main__":
    unittest.main()
