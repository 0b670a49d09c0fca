# SPDX-License-Identifier: Apache-2.0
"""The process in which kernels in Python are called: main() with the file as its argument, in a process that the harness has started
(not with -m, which looks for standard modules in the current folder). cmd/guide/protocol.md has the messages and what the memory is."""

import ctypes
import faulthandler
import functools
import gc
import importlib
import importlib.util
import itertools
import json
import mmap
import os
import platform
import signal
import socket
import struct
import sys
import time
import traceback
import warnings

from . import _arrays, _kernel
from ._program import Error

VERSION = 1
HELLO, DESCRIBE, OPEN, CALL, CLOSE, BYE = range(1, 7)
NO_KERNEL = 1  # a flag of a call
MOST = 65536
HEADER = struct.Struct("<4sHHII")
STATUS = struct.Struct("<iI")
DESCRIPTION = struct.Struct("<4I7I2I4I6fI96s96s")
CASE = struct.Struct("<4I6q3d7II")
TENSOR = struct.Struct("<4q2I")
AREA = struct.Struct("<2q")
FAILED = 1
VECTORS = (
    "gamma",
    "beta",
    "dgamma",
    "dbeta",
    "dalpha",
    "running_mean_in",
    "running_var_in",
    "running_mean_out",
    "running_var_out",
)


class Failure(Exception):
    """A kernel's, in a sentence."""


# ---- the memory ------------------------------------------------------------------------------------------------------


class Memory:
    """The harness's file, mapped whole and accessible where a case that is open lies."""

    def __init__(self, descriptor, n_bytes):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.mmap.restype = ctypes.c_void_p
        self.libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]
        self.libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        no_reserve = 0x4000  # MAP_NORESERVE, which the module mmap has from Python 3.11 on
        self.start = self.libc.mmap(None, n_bytes, 0, mmap.MAP_SHARED | no_reserve, descriptor, 0)
        if self.start == ctypes.c_void_p(-1).value:
            raise Error(f"the memory: mmap: {os.strerror(ctypes.get_errno())}")
        self.n_bytes = n_bytes
        self.users = {}  # of an area: how many open cases

    def _protect(self, area, access):
        offset, n_bytes = area
        if offset < 0 or n_bytes <= 0 or offset + n_bytes > self.n_bytes:
            raise Error(f"the memory: no area of {n_bytes} bytes at {offset}")
        if self.libc.mprotect(self.start + offset, n_bytes, access) != 0:
            raise Error(f"the memory: mprotect: {os.strerror(ctypes.get_errno())}")

    def allow(self, areas):
        for area in areas:
            if area not in self.users:
                self._protect(area, mmap.PROT_READ | mmap.PROT_WRITE)
            self.users[area] = self.users.get(area, 0) + 1

    def forbid(self, areas):
        for area in areas:
            self.users[area] -= 1
            if self.users[area] == 0:
                del self.users[area]
                self._protect(area, 0)


# ---- one case, ready to be called ---------------------------------------------------------------------------------------


def spoken(error):
    """An exception as one line, with where it comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = os.path.dirname(__file__)
    frames = [frame for frame in frames if os.path.dirname(frame.filename) != ours and not frame.filename.startswith("<frozen")]
    frames = [frame for frame in frames if frame.filename == frames[0].filename]  # the file of the function, not what it calls
    at = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno}, in {frames[-1].name})" if frames else ""
    if isinstance(error, SyntaxError):
        at = f" ({os.path.basename(error.filename or '?')}:{error.lineno})"
        return f"{type(error).__name__}: {error.msg}{at}"
    if isinstance(error, ModuleNotFoundError):
        at += f"; install it for {sys.executable}, or name another interpreter in NORMBENCH_PYTHON"
    return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}{at}"


def unpack_case(message):
    """(fields by name, tensors by name, areas)."""
    names = "mode layout n_threads n_areas rows cols n c hw k eps alpha momentum".split() + list(_kernel.FORMULA)
    at = HEADER.size + 8
    case = dict(zip(names, CASE.unpack_from(message, at)))
    at += CASE.size
    tensors = {}
    for name in _kernel.TENSORS:
        tensors[name] = TENSOR.unpack_from(message, at)
        at += TENSOR.size
    return case, tensors, [AREA.unpack_from(message, at + i * AREA.size) for i in range(case["n_areas"])]


def shape_of(name, tensor, case):
    """What a function is given: (shape, strides in elements)."""
    _, rows, cols, stride, _, _ = tensor
    if name in VECTORS or (name in ("mean", "rstd") and case["layout"] != 0):
        return (rows * cols,), (1,)
    if name in ("mean", "rstd"):
        return (rows * cols, 1), (1, 1)
    n, c, hw = case["n"], case["c"], case["hw"]
    if _kernel.LAYOUTS[case["layout"]] == "nchw":
        return (n, c, hw), (c * stride, stride, 1)
    if _kernel.LAYOUTS[case["layout"]] == "nhwc":  # rows are positions; seen as the other layout, as PyTorch's channels_last
        return (n, c, hw), (hw * stride, 1, stride)
    return (rows, cols), (stride, 1)


def held(buffers):
    """The names of those that something else refers to."""
    alone = held_by({"": ctypes.create_string_buffer(1)})[""]
    return [name for name, n in held_by(buffers).items() if n > alone]


def held_by(buffers):
    return {name: sys.getrefcount(buffer) for name, buffer in buffers.items()}


class Case:
    def __init__(self, kernel, memory, message):
        self.kernel, self.style = kernel, _arrays.style(kernel.arrays)
        self.fields, self.tensors, self.areas = unpack_case(message)
        self.memory = memory
        self.buffers = {}
        self.idle = None
        self.tried = False
        memory.allow(self.areas)
        try:
            self.style.use_threads(self.fields["n_threads"])
            self._prepare()
        except BaseException:
            memory.forbid(self.areas)
            raise

    def _view(self, name, written):
        tensor = self.tensors[name] if self.tensors[name][0] >= 0 else self._unwanted(name)
        offset, rows, cols, stride, dtype, _ = tensor
        dtype = _kernel.DTYPES[dtype]
        n_bytes = ((rows - 1) * stride + cols) * _arrays.ELEMENT_BYTES[dtype]
        buffer = _arrays.buffer_at(self.memory.start + offset, n_bytes) if offset >= 0 else ctypes.create_string_buffer(n_bytes)
        self.buffers[name] = buffer
        return self.style.view(buffer, dtype, *shape_of(name, tensor, self.fields), written)

    def _unwanted(self, name):
        """An output that nobody reads, for a function that writes to it whatever happens."""
        _, rows, cols, _, dtype, _ = self.tensors["x"]
        if name in ("mean", "rstd") and self.fields["layout"] == 0:
            return -1, 1, rows, rows, 0, 1
        if name in VECTORS or name in ("mean", "rstd"):
            n = 1 if name == "dalpha" else self.fields["c"] if self.fields["layout"] != 0 else cols
            return -1, 1, n, n, 0, 1
        return -1, rows, cols, cols, dtype, 1

    def _argument(self, name, optional):
        if name.endswith("_stride"):
            return self.tensors[name[: -len("_stride")]][3]
        if name in _kernel.TENSORS:
            is_output = name in self.kernel.outputs
            if self.tensors[name][0] < 0 and (optional or not is_output):
                if not optional:
                    raise Failure(f"{self.kernel.where}: there is no {name} here; an argument with a default ({name}=None) may be without")
                return None
            return self._view(name, is_output)
        if name in ("layout", "training"):
            return _kernel.LAYOUTS[self.fields["layout"]] if name == "layout" else self.fields["mode"] == 0
        return _kernel.FORMULA[name][self.fields[name]] if name in _kernel.FORMULA else self.fields[name]

    def _prepare(self):
        self.positional, self.keywords = [], {}
        for name, keyword, optional in self.kernel.arguments:
            value = self._argument(name, optional)
            if keyword:
                self.keywords[keyword] = value
            else:
                self.positional.append(value)
        self.wanted = [self._view(name, True) if self.tensors[name][0] >= 0 else None for name in self.kernel.returns]
        for name in self._owed():
            if self.tensors[name][0] >= 0 and name not in self.kernel.outputs:
                raise Failure(f"{self.kernel.where}: {name} is wanted, and neither returned nor an argument to write to")
        self.given = (*self.positional, *self.keywords.values())
        self.step = self._step_of(self.kernel.function)

    def _owed(self):
        """The outputs of the op, but for statistics, which a function may leave out."""
        affine = _kernel.FORMULA["affine"][self.fields["affine"]]
        if self.kernel.backward:
            return ["dx", *(["dgamma"] if affine != "none" else []), *(["dbeta"] if affine == "gamma_beta" else [])]
        if self.kernel.op == "batchnorm" and self.fields["mode"] == 0:
            return ["y", "running_mean_out", "running_var_out"]
        return ["y", "residual_out"] if self.kernel.op.startswith("add_") else ["y"]

    def _step_of(self, function):
        call = functools.partial(function, *self.positional, **self.keywords)
        return functools.partial(self._with_results if self.kernel.returns else self._without_results, call)

    def _without_results(self, call):
        result = call()
        if result is not None:
            self._judge_needless(result)

    def _judge_needless(self, result):
        """A function may give back the array that it was told to write to, as NumPy's do, and a C function a 0."""
        if self.kernel.arrays == "pointer" and isinstance(result, int):
            if result != 0:
                raise Failure(f"{self.kernel.where}: returned {result}")
        elif not any(result is argument for argument in self.given):
            raise Failure(
                f"{self.kernel.where}: returned {type(result).__name__}, but it takes {self.kernel.outputs[0]} to write to;"
                " one or the other (returns= names what it returns)"
            )

    def _with_results(self, call):
        results = call()
        if not isinstance(results, (tuple, list)):
            results = (results,)
        if len(results) != len(self.wanted):
            self._judge_number(results)
        for name, view, value in zip(self.kernel.returns, self.wanted, results):
            if view is not None:
                kind = self.style.kind(value)
                if kind != self.style.kind(view):
                    self._judge_kind(name, view, value, kind)
                self.style.store(view, value)

    def _judge_number(self, results):
        missing = [name for name, view in zip(self.kernel.returns[len(results) :], self.wanted[len(results) :]) if view is not None]
        if len(results) > len(self.wanted) or missing:
            raise Failure(f"{self.kernel.where}: returned {len(results)} values, not {len(self.wanted)}: {', '.join(self.kernel.returns)}")

    def _judge_kind(self, name, view, value, kind):
        dtype, shape = self.style.kind(view)
        if kind is None:
            raise Failure(f"{self.kernel.where}: {name} is {type(value).__name__}, not an array ({self.kernel.arrays})")
        if kind[1] != shape:
            raise Failure(f"{self.kernel.where}: {name} has shape {kind[1]}, not {shape}")
        raise Failure(f"{self.kernel.where}: {name} is {kind[0]}, not {dtype}")

    def judge_kept(self):
        """After its first calls: does the function hold on to what it was given? The views are let go, and made anew."""
        self.tried = True
        buffers, self.buffers = self.buffers, {}
        self.positional = self.keywords = self.given = self.wanted = self.step = self.idle = None
        kept = held(buffers)
        if kept:
            gc.collect()
            kept = held(buffers)
        self._prepare()
        return f"{self.kernel.where}: keeps a view of {', '.join(kept)} after the call" if kept else ""

    def nothing(self):
        """The step of a function that does nothing; what it returns was made before."""
        if self.idle is None:
            results = tuple(view if view is None else self.style.clone(view) for view in self.wanted)
            self.idle = self._step_of(lambda *arguments, **keywords: results or None)
        return self.idle

    def close(self):
        self.memory.forbid(self.areas)


# ---- the messages --------------------------------------------------------------------------------------------------------


def run_calls(turns):
    """(how many were made, nanoseconds, what went wrong). Nothing but the calls is in the loop. turns: [the steps in order]; no frame that a
    kernel is called from says how many are to come, or a single call could be told from those of a sample."""
    i = -1
    begin = time.monotonic_ns()
    try:
        for i, step in enumerate(turns.pop()):
            step()
    except Failure as failure:
        return i, time.monotonic_ns() - begin, str(failure)
    except BaseException as error:  # SystemExit too: a kernel ends no process
        return i, time.monotonic_ns() - begin, error
    return i + 1, time.monotonic_ns() - begin, ""


class Worker:
    def __init__(self, connection, memory_descriptor, load):
        self.connection, self.memory_descriptor, self.load = connection, memory_descriptor, load
        self.pid = os.getpid()
        self.forked = False
        self.cases = {}
        os.register_at_fork(after_in_parent=self._saw_fork)

    def _saw_fork(self):
        self.forked = True

    def answer(self, kind, sequence, body=b"", text="", status=0):
        text = text.encode("utf-8", "replace")[:4000].decode("utf-8", "ignore").encode()
        length = HEADER.size + STATUS.size + len(body) + len(text)
        head = HEADER.pack(b"NBWP", VERSION, kind, sequence, length) + STATUS.pack(status, len(text))
        self.transfer(self.connection.send, head + body + text)

    def transfer(self, how, what):
        try:
            return how(what)
        except OSError as error:
            print(f"normbench.worker: descriptor 3, the socket to the harness: {error}; has a kernel closed it?", file=sys.stderr)
            os._exit(1)

    def hello(self, message):
        self.kernels = self.load()
        versions = [f"Python {platform.python_version()}", *(_arrays.style(kernel.arrays).versions for kernel in self.kernels)]
        self.memory = Memory(self.memory_descriptor, struct.unpack_from("<Q", message, HEADER.size)[0])
        return struct.pack("<2I", len(self.kernels), 0), ", ".join(dict.fromkeys(versions))

    def kernel(self, message):
        number = struct.unpack_from("<I", message, HEADER.size)[0]
        if number >= len(self.kernels):
            raise Error(f"no kernel {number}; there are {len(self.kernels)}")
        return self.kernels[number]

    def describe(self, message):
        kernel = self.kernel(message)
        return (
            DESCRIPTION.pack(
                _kernel.OPS.index(kernel.op),
                kernel.backward,
                _kernel.DTYPES.index(kernel.dtype),
                kernel.flags,
                *kernel.formulas,
                kernel.layouts,
                kernel.modes,
                *kernel.properties,
                *kernel.cost,
                *kernel.range,
                0,
                kernel.name.encode(),
                b"",
            ),
            kernel.summary,
        )

    def open(self, message):
        handle = struct.unpack_from("<I", message, HEADER.size + 4)[0]
        if handle in self.cases:
            raise Error(f"handle {handle} is open already")
        self.cases[handle] = Case(self.kernel(message), self.memory, message)
        return b"", ""

    def chosen(self, first, n):
        missing = [handle for handle in range(first, first + n) if handle not in self.cases]
        if n == 0 or missing:
            raise Error(f"handle {missing[0] if missing else first} is not open")
        return [self.cases[handle] for handle in range(first, first + n)]

    def call(self, message):
        first, n, start, flags, calls = struct.unpack_from("<4IQ", message, HEADER.size)
        cases = self.chosen(first, n)
        self.forked = False
        steps = [case.nothing() if flags & NO_KERNEL else case.step for case in cases]
        turns = [itertools.islice(itertools.cycle(steps), start % n, start % n + calls)]
        del steps, calls, message
        made, nanoseconds, failure = run_calls(turns)
        if os.getpid() != self.pid:  # a child that the kernel left behind
            os._exit(1)
        if isinstance(failure, BaseException):
            failure = f"{cases[(start + made) % n].kernel.where}: {spoken(failure)}"
        for case in cases:
            if not (failure or case.tried or flags & NO_KERNEL):
                failure = case.judge_kept()
        if not failure and self.forked:
            failure = f"{cases[0].kernel.where}: forks"
        return struct.pack("<2Q", made, nanoseconds), failure

    def close(self, message):
        first, n = struct.unpack_from("<2I", message, HEADER.size)
        for case in self.chosen(first, n):
            case.close()
        for handle in range(first, first + n):
            del self.cases[handle]
        return b"", ""

    def serve(self):
        """Until bye, or the harness is gone."""
        tasks = {HELLO: self.hello, DESCRIBE: self.describe, OPEN: self.open, CALL: self.call, CLOSE: self.close}
        lengths = {HELLO: 8, DESCRIBE: 288, CALL: 16}
        while True:
            messages = [self.transfer(self.connection.recv, MOST)]
            if not messages[0]:
                return
            magic, version, kind, sequence, length = HEADER.unpack_from(messages[0])
            if magic != b"NBWP" or length != len(messages[0]):
                sys.exit("normbench.worker: not a message of the harness")
            if kind == BYE:
                sys.stdout.flush()  # after the answer the harness does not wait
                self.answer(kind, sequence)
                return
            try:
                if version != VERSION:
                    raise Error(f"speaks version {VERSION} of the protocol, not {version}")
                if kind not in tasks:
                    raise Error(f"no question of type {kind}")
                body, text = tasks[kind](messages.pop())
                self.answer(kind, sequence, body, text, FAILED if kind == CALL and text else 0)
            except (Error, Failure) as error:
                self.answer(kind, sequence, bytes(lengths.get(kind, 0)), str(error), FAILED)
            except BaseException as error:
                self.answer(kind, sequence, bytes(lengths.get(kind, 0)), spoken(error), FAILED)


# ---- the file of kernels ---------------------------------------------------------------------------------------------------


def import_file(path, name=None):
    """A file as a module that imports what lies beside it, as a script does."""
    if not name:
        name = os.path.splitext(os.path.basename(path))[0]
        name = f"normbench file {name}" if name in sys.modules else name  # of json.py: what has imported json keeps its own
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location(name, path)
    if not spec:
        raise Error(f"{os.path.basename(path)} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def find(module, path, name):
    """For check(): a function of another module, which is imported by its name where that leads to the same file. The kernels that are
    declared there are not asked for."""
    spec = importlib.util.find_spec(module)
    same = spec and spec.origin and os.path.exists(spec.origin) and os.path.samefile(spec.origin, path)
    found = importlib.import_module(module) if same else import_file(path, module)
    _kernel.registered.clear()
    for part in name.split("."):
        found = getattr(found, part)
    return found


def load(path):
    """The kernels that a file declares."""
    if not os.path.isfile(path):
        raise Error("no such file")
    if "NORMBENCH_SYS_PATH" in os.environ:
        sys.path[:] = json.loads(os.environ["NORMBENCH_SYS_PATH"])
    import_file(path)
    if not _kernel.registered:
        raise Error('no kernel in it: @normbench.kernel(op="rmsnorm", dtype="f32") over a function declares one')
    return _kernel.registered


def main():
    if len(sys.argv) != 2 or "NORMBENCH_WORKER_FD" not in os.environ:
        sys.exit("normbench.worker: is started by the harness; `normbench try mine.py`")
    faulthandler.enable()
    sys.stdout.reconfigure(line_buffering=True)  # what was printed before a crash is to be seen
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if not sys.warnoptions:  # hard rows overflow on purpose, and the harness says what comes of it
        warnings.simplefilter("ignore", RuntimeWarning)
    # A library of NumPy's has threads of its own otherwise; PyTorch is told how many.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    connection = socket.socket(fileno=int(os.environ["NORMBENCH_WORKER_FD"]))
    Worker(connection, int(os.environ["NORMBENCH_MEMORY_FD"]), functools.partial(load, sys.argv[1])).serve()
    os._exit(0)  # threads that a library left running do not keep it


if __name__ == "__main__":
    main()
