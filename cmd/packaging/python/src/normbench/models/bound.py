# SPDX-License-Identifier: Apache-2.0
"""The fused kernels of libnormkernels.so behind autograd: kernels/kernel.h in ctypes. Rows of f32, f16 or bf16 on a CPU."""

import concurrent.futures
import ctypes
import functools

from ctypes import POINTER, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_void_p

from .._kernel import DTYPES, FORMULA

ABI_VERSION = 1
FORWARD, BACKWARD = range(2)
WAYS = {"fused": (("fast", "twopass"), ("backward_fast", "backward_plain")), "composed": (("composed",), ("backward_composed",))}
FEATURES = (  # bit 0 on, of enum nb_cpu_feature: what /proc/cpuinfo calls them
    {"avx2", "fma", "f16c", "bmi2"},
    {"avx512f", "avx512bw", "avx512vl", "avx512dq"},
    {"avx512_bf16"},
    {"avx512_fp16"},
    {"asimd"},
)
NATIVE = 5  # enum nb_width: its features are not declared


def _struct(*fields):
    return type("Struct", (ctypes.Structure,), {"_fields_": [(name, kind) for kind, names in fields for name in names.split()]})


Formula = _struct((c_uint32, f"struct_size {' '.join(FORMULA)}"))
Call = _struct(
    (c_uint32, "struct_size mode layout"),
    (c_int32, "n_threads"),
    (c_int64, "rows cols n c hw k"),
    (c_double, "eps alpha momentum"),
    (Formula, "formula"),
    (c_void_p, "x residual gamma beta y residual_out"),
    (c_int64, "x_stride residual_stride y_stride residual_out_stride"),
    (c_void_p, "dy dresidual_out dx dresidual"),
    (c_int64, "dy_stride dresidual_out_stride dx_stride dresidual_stride"),
    (c_void_p, "dgamma dbeta dalpha mean rstd running_mean_in running_var_in running_mean_out running_var_out scratch tuning stream"),
)
Asked = POINTER(Call)
Kernel = _struct(
    (c_uint32, "struct_size op pass_ dtype width cpu_features"),
    (ctypes.c_char_p, "name variant summary"),
    (c_uint32, "style stats stats_dtype variance flags roots eps_places casts weight_offsets affines params round_sums"),
    (c_float, "loads stores flops"),
    (ctypes.CFUNCTYPE(c_int, Asked, c_int, c_int64, c_int64), "run"),
    (ctypes.CFUNCTYPE(ctypes.c_char_p, Asked), "applicable"),
    (c_void_p, "row_local chain"),
    (ctypes.CFUNCTYPE(c_size_t, Asked), "scratch_bytes"),
    (ctypes.CFUNCTYPE(c_int, Asked), "n_phases"),
    (ctypes.CFUNCTYPE(c_int64, Asked, c_int), "n_units"),
)


class Unbound(Exception):
    """Why a kernel cannot be had, in one sentence."""


@functools.cache
def _features():
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            words = set(file.read().split())
    except OSError:
        words = set()
    return sum(1 << bit for bit, needed in enumerate(FEATURES) if needed <= words)


@functools.cache
def table(path):
    """All kernels of a library."""
    try:
        library = ctypes.CDLL(path)
        library.normbench_kernels.restype = POINTER(POINTER(Kernel))
        library.normbench_kernels.argtypes = [c_uint32, POINTER(c_size_t)]
    except (OSError, AttributeError, TypeError) as error:
        raise Unbound(f"our kernels: {path}: {error}; build it (make)") from None
    count = c_size_t()
    kernels = library.normbench_kernels(ABI_VERSION, ctypes.byref(count))
    return [kernels[i].contents for i in range(count.value)] if kernels else []


def find(path, op, direction, dtype, style="fused"):
    """The widest variant that this machine runs, of the first kernel that is there."""
    for way in WAYS[style][direction]:
        name = f"{op}_{way}".encode()
        mine = [k for k in table(path) if k.name == name and k.dtype == DTYPES.index(dtype) and k.width != NATIVE]
        mine = [k for k in mine if not k.cpu_features & ~_features()]
        if mine:
            return max(mine, key=lambda k: k.width)
    raise Unbound(f"our kernels: {path} has no {style} {op} in {dtype} for this CPU: take another style")


def call_of(op, rows, cols, eps, has_beta, k=0):
    """A call of rows in a piece, without its tensors."""
    sizes = {name: cols for name in ("x_stride", "y_stride", "dy_stride", "dx_stride")}
    formula = Formula(struct_size=ctypes.sizeof(Formula), root=1, affine=2 if has_beta else 1)
    return Call(struct_size=ctypes.sizeof(Call), n_threads=1, rows=rows, cols=cols, k=k or cols, eps=eps, formula=formula, **sizes)


def n_phases(kernel, call):
    """Operations of a composed kernel; a fused one has a phase or two."""
    return kernel.n_phases(ctypes.byref(call)) if kernel.n_phases else 1


@functools.cache
def _pool(threads):
    return concurrent.futures.ThreadPoolExecutor(threads)


def _run_range(kernel, asked, phase, bounds):
    return kernel.run(asked, phase, *bounds)


def run(kernel, call, threads):
    """All phases, each cut into as many ranges as there are threads."""
    asked = ctypes.byref(call)
    for phase in range(n_phases(kernel, call)):
        units = kernel.n_units(asked, phase) if kernel.n_units else call.rows
        part = -(-units // max(1, threads))
        ranges = [(first, min(first + part, units)) for first in range(0, units, part)]
        walk = _pool(threads).map if len(ranges) > 1 else map
        if any(walk(functools.partial(_run_range, kernel, asked, phase), ranges)):
            raise RuntimeError(f"{kernel.variant.decode()} failed")


def scratch_bytes(kernel, call):
    return kernel.scratch_bytes(ctypes.byref(call)) if kernel.scratch_bytes else 0
