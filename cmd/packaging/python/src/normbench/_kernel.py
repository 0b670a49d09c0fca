# SPDX-License-Identifier: Apache-2.0
"""What a function computes, as its decorator and the names of its arguments say it."""

import inspect
import os
import re

from ._program import Error

# In the order of their numbers in kernels/kernel.h.
OPS = ("rmsnorm", "prmsnorm", "layernorm", "batchnorm", "l2norm", "dyt", "add_rmsnorm", "add_layernorm")
DTYPES = ("f32", "f16", "bf16")
LAYOUTS = ("rows", "nchw", "nhwc")
MODES = ("training", "inference")
FORMULA = {
    "root": ("div_sqrt", "mul_recip", "rsqrt_nr", "rsqrt_raw"),
    "eps_place": ("inside", "outside", "clamp"),
    "cast": ("after", "before"),
    "weight_offset": (0, 1),
    "affine": ("none", "gamma", "gamma_beta"),
    "param": ("f32", "x"),
    "round_sum": (0, 1),
}
PROPERTIES = {
    "style": ("fused", "composed"),
    "stats": ("register", "keepdim", "expanded"),
    "stats_dtype": ("f32", "x"),
    "variance": ("none", "twopass", "corrected", "welford", "onepass", "shifted"),
}
TENSORS = tuple(
    "x residual gamma beta y residual_out dy dresidual_out dx dresidual dgamma dbeta dalpha mean rstd"
    " running_mean_in running_var_in running_mean_out running_var_out".split()
)
SCALARS = tuple("eps alpha momentum k rows cols n c hw n_threads training layout".split())
FORWARD_OUTPUTS = ("y", "residual_out", "mean", "rstd", "running_mean_out", "running_var_out")
BACKWARD_OUTPUTS = ("dx", "dgamma", "dbeta", "dalpha")
MOST_COST, MOST_LIMIT = 10000, 1e38
SYNONYMS = {"weight": "gamma", "bias": "beta", "running_mean": "running_mean_in", "running_var": "running_var_in"}
STYLES = ("numpy", "ml_dtypes", "torch", "pointer")
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,79}")  # the message has 96 bytes for it, with the dtype and a null byte

registered = []  # every Kernel, in the order of their decorators


def place(function):
    """name (file:line), for messages."""
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    name = getattr(function, "__name__", type(function).__name__)
    return f"{name} ({os.path.basename(code.co_filename)}:{code.co_firstlineno})" if code else name


def _listed(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _mask(what, values, names, where):
    """Of one value or several; never empty."""
    mask = 0
    for value in _listed(values) or [values]:
        if value not in names:
            raise Error(f"{where}: {what}={value!r}: one of {', '.join(map(str, names))}")
        mask |= 1 << names.index(value)
    return mask


class Kernel:
    """One function at one dtype."""

    def __init__(self, function, dtype, *, op, arrays, returns, name, strided, row_local, flushes, layout, mode, limits, cost, said):
        self.function, self.dtype, self.op, self.arrays = function, dtype, op, arrays
        self.where = place(function)
        for what, value, names in (("op", op, OPS), ("dtype", dtype, DTYPES), ("arrays", arrays, STYLES)):
            if value not in names:
                raise Error(f"{self.where}: {what}={value!r}: one of {', '.join(names)}")
        self.name = name or getattr(function, "__name__", "")
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name):
            raise Error(
                f"{self.where}: its name is {str(self.name)[:100]!r}: a letter, then letters, digits and _, 80 at most;"
                " name= gives it another"
            )
        self.layouts = _mask("layout", layout, LAYOUTS, self.where) if op == "batchnorm" else 0
        self.modes = _mask("mode", mode, MODES, self.where) if op == "batchnorm" else 0
        self._read_signature(returns)
        recomputes = self.backward and op != "dyt" and not any(argument[0] == "rstd" for argument in self.arguments)
        self.flags = bool(row_local) | self._strided(strided) << 1 | self._threads() << 2 | bool(flushes) << 3 | recomputes << 4
        said = {"root": "mul_recip", "affine": self._affines(), **said}
        if op in ("layernorm", "batchnorm", "add_layernorm"):
            said.setdefault("variance", "twopass")
        for what in said:
            if what not in FORMULA and what not in PROPERTIES:
                raise Error(f"{self.where}: kernel() has no '{what}'; {', '.join([*FORMULA, *PROPERTIES])}, and what help() says")
        self.formulas = [_mask(what, said.get(what, names[0]), names, self.where) for what, names in FORMULA.items()]
        self.properties = []
        for what, names in PROPERTIES.items():
            mask = _mask(what, said.get(what, names[0]), names, self.where)
            if mask & (mask - 1):
                raise Error(f"{self.where}: {what}: a kernel has one")
            self.properties.append(mask.bit_length() - 1)
        self.cost = [self._number(what, value, MOST_COST, "for each element of x, 0 where it is not known,") for what, value in cost.items()]
        self.range = [0 if value is None else self._number(what, value, MOST_LIMIT, "above 0", False) for what, value in limits.items()]

    def _number(self, what, value, most, meant, may_be_0=True):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= most or (value == 0 and not may_be_0):
            raise Error(f"{self.where}: {what}={value!r}: a number {meant} up to {most:g}")
        return value

    def _read_signature(self, returns):
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):
            raise Error(f"{self.where}: has no signature that Python knows; put a function round it") from None
        self.backward = "dy" in signature.parameters
        self.arguments = []  # (our name, keyword or None, can be left out)
        by_keyword = False
        for parameter in signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise Error(f"{self.where}: takes *{parameter.name}; arguments are given by their names, so these must be spelt out")
            meant = SYNONYMS.get(parameter.name, parameter.name)
            meant = ("dx" if self.backward else "y") if meant == "out" else meant
            optional = parameter.default is not parameter.empty
            by_keyword |= parameter.kind == parameter.KEYWORD_ONLY
            if meant in TENSORS or meant in self._scalars() or meant.removesuffix("_stride") in TENSORS:
                self.arguments.append((meant, parameter.name if by_keyword else None, optional))
            elif not optional:
                known = ", ".join((*TENSORS, *self._scalars()))
                raise Error(f"{self.where}: no argument is called '{parameter.name}'; {known}, out")
            else:
                by_keyword = True  # it keeps its default
        names = [argument[0] for argument in self.arguments]
        if len(set(names)) < len(names):
            raise Error(f"{self.where}: one argument has two names")
        if "x" not in names:
            raise Error(f"{self.where}: has no argument x; they are given by their names: {', '.join(TENSORS)}")
        outputs = BACKWARD_OUTPUTS if self.backward else FORWARD_OUTPUTS
        written = [name for name in names if name in outputs]
        self.returns = self._usual_returns() if returns is None else _listed(returns)
        if self.arrays == "pointer" and returns is not None:
            raise Error(f"{self.where}: returns=: a function of pointers writes its outputs")
        if written and returns is None or self.arrays == "pointer":
            self.returns = []
        for name in self.returns:
            if name not in outputs:
                raise Error(f"{self.where}: returns={name!r}: one of {', '.join(outputs)}")
        self.outputs = [*written, *self.returns]
        if len(set(self.outputs)) < len(self.outputs):
            raise Error(f"{self.where}: what it returns is among its arguments too")
        if outputs[0] not in self.outputs:
            raise Error(f"{self.where}: neither returns {outputs[0]} nor takes it (out) to write to")

    def _scalars(self):
        return [name for name in (*SCALARS, *FORMULA) if self.op == "batchnorm" or name not in ("n", "c", "hw", "momentum", "training")]

    def _usual_returns(self):
        """What a function gives back that takes no output."""
        if not self.backward:
            running = ["running_mean_out", "running_var_out"] if self.op == "batchnorm" and self.modes & 1 else []
            return ["y", "residual_out"] if self.op.startswith("add_") else ["y", *running]
        names = [argument[0] for argument in self.arguments]
        gamma = ["dgamma"] if "gamma" in names else []
        beta = ["dbeta"] if gamma and self.op in ("layernorm", "batchnorm", "add_layernorm", "dyt") else []
        return ["dx", *gamma, *beta, *(["dalpha"] if self.op == "dyt" else [])]

    def _affines(self):
        optional = {name: may_lack for name, _, may_lack in self.arguments}
        if "gamma" not in optional:
            return "none"
        has_beta = "dbeta" in self.outputs if self.backward else "beta" in optional
        needs_beta = not self.backward and has_beta and not optional["beta"]
        none = ["none"] if optional["gamma"] and not needs_beta else []
        return [*none, *([] if needs_beta else ["gamma"]), *(["gamma_beta"] if has_beta else [])]

    def _strided(self, strided):
        if strided is not None:
            return bool(strided)
        return self.arrays != "pointer" or any(name == "x_stride" for name, _, _ in self.arguments)

    def _threads(self):
        return self.arrays == "torch" or any(name == "n_threads" for name, _, _ in self.arguments)

    @property
    def summary(self):
        text = (inspect.getdoc(self.function) or "").partition("\n")[0].strip() or f"{self.op} in Python"
        copied = f"; {', '.join(self.returns)} returned and copied" if self.returns else ""
        return f"{text} ({self.arrays}{copied})"


def declare(
    function,
    *,
    op,
    dtype="f32",
    arrays="numpy",
    returns=None,
    name=None,
    strided=None,
    row_local=False,
    flushes=False,
    layout=("nchw", "nhwc"),
    mode="training",
    loads=0,
    stores=0,
    flops=0,
    min_rms=None,
    max_abs=None,
    max_rho=None,
    **said,
):
    """The Kernels of a function, one for each dtype."""
    if not callable(function):
        raise Error(f"kernel: {function!r} is no function")
    if not _listed(dtype):
        raise Error(f"{place(function)}: dtype={dtype!r}: one of {', '.join(DTYPES)}, or several")
    return [
        Kernel(
            function,
            each,
            op=op,
            arrays=arrays,
            returns=returns,
            name=name,
            strided=strided,
            row_local=row_local,
            flushes=flushes,
            layout=layout,
            mode=mode,
            limits={"min_rms": min_rms, "max_abs": max_abs, "max_rho": max_rho},
            cost={"loads": loads, "stores": stores, "flops": flops},
            said=said,
        )
        for each in _listed(dtype)
    ]


def kernel(op, dtype="f32", **declared):
    """Decorates a function that computes a norm; the function itself stays as it is.

    op         rmsnorm, prmsnorm, layernorm, batchnorm, l2norm, dyt, add_rmsnorm, add_layernorm
    dtype      f32, f16, bf16, or a list of them
    arrays     what the function gets: "numpy" (bf16 as uint16 bits), "ml_dtypes" (NumPy with ml_dtypes.bfloat16), "torch" (CPU
               tensors) or "pointer" (addresses as integers, for ctypes, cffi and numba)

    Arguments are given by their names. Forward: x, gamma (or weight), beta (or bias), eps, residual, ...; backward, which a function is
    that has an argument dy: dy, x, gamma, mean, rstd (without rstd it finds its own, and is judged by the exact one). x has rows and columns, for batchnorm (n, c, hw); gamma and beta one value a
    column (None where there is none, for an argument with a default); mean and rstd are columns. A function writes to an argument of
    an output's name (out, or y, dx, dgamma, ...), or returns the outputs, which are then copied: y, with add_* residual_out too, for
    batchnorm in training the new running_mean and running_var; backward dx, dgamma, dbeta. With pointers go rows, cols and strides in
    elements: x, out, rows, cols, x_stride, y_stride.

    root, eps_place, cast, weight_offset, affine, param, round_sum
               the formulas that it implements, a value or a list (`normbench list axes`); by default mul_recip, inside, after, 0,
               what the arguments allow, f32, 0. An argument of that name gets the one of the case
    style, stats, stats_dtype, variance
               its properties
    returns    names of what it returns, where that is something else
    name       in place of the function's own
    strided    whether rows may be apart (True; for pointers where x_stride is an argument)
    row_local  whether a row's result depends on that row alone (False); flushes: takes subnormal numbers for 0 (False)
    layout, mode
               for batchnorm, by default both nchw and nhwc, and training
    loads, stores, flops
               of the tensors' size, for each element of x, where they are known
    min_rms, max_abs, max_rho
               the rows for which it claims its accuracy, where that is not all of them: the least root mean square, the largest
               magnitude, the largest |mean| / standard deviation
    """
    if callable(op):
        raise Error(f'{place(op)}: @normbench.kernel(op="rmsnorm", dtype="f32") says what it computes')

    def decorate(function):
        for new in declare(function, op=op, dtype=dtype, **declared):
            for other in registered:
                if (other.name, other.dtype) == (new.name, new.dtype):
                    raise Error(f"{new.where}: {other.where} is called {new.name} too; name= tells them apart")
            registered.append(new)
        try:
            function.__normbench__ = {"op": op, "dtype": dtype, **declared}
        except AttributeError:
            pass  # a built-in function: check() is told again
        return function

    return decorate
