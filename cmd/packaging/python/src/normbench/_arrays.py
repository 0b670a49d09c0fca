# SPDX-License-Identifier: Apache-2.0
"""What a function is given for a tensor: a view of the memory, never a copy, in each of the styles."""

import ctypes

from ._program import not_installed

ELEMENT_BYTES = {"f32": 4, "f16": 2, "bf16": 2}


def buffer_at(address, n_bytes):
    """Everything that looks at this memory holds a reference to the object, which shows who still does."""
    return (ctypes.c_char * n_bytes).from_address(address)


class Numpy:
    def __init__(self, bfloat16=None):
        try:
            import numpy
        except ImportError:
            raise not_installed("NumPy", "numpy") from None
        self.numpy = numpy
        self.dtypes = {"f32": numpy.dtype("f4"), "f16": numpy.dtype("f2"), "bf16": numpy.dtype(bfloat16 or "u2")}
        self.versions = f"NumPy {numpy.__version__}"

    def view(self, buffer, dtype, shape, strides, written):
        item = ELEMENT_BYTES[dtype]
        array = self.numpy.ndarray(shape, self.dtypes[dtype], buffer, 0, [item * stride for stride in strides])
        array.flags.writeable = written
        return array

    def kind(self, value):
        """Its dtype and shape; None where it is no array."""
        return (value.dtype, value.shape) if isinstance(value, self.numpy.ndarray) else None

    def store(self, view, value):
        view[...] = value

    def clone(self, view):
        return view.copy()

    def use_threads(self, n):
        pass


class MlDtypes(Numpy):
    def __init__(self):
        try:
            import ml_dtypes
        except ImportError:
            raise not_installed("ml_dtypes", 'ml_dtypes (arrays="numpy" gives uint16 bits)') from None
        super().__init__(ml_dtypes.bfloat16)
        self.versions += f", ml_dtypes {ml_dtypes.__version__}"


class Torch:
    def __init__(self):
        try:
            import torch
        except ImportError:
            raise not_installed("PyTorch", "torch") from None
        self.torch = torch
        self.dtypes = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
        self.versions = f"PyTorch {torch.__version__}"

    def view(self, buffer, dtype, shape, strides, written):
        flat = self.torch.frombuffer(buffer, dtype=self.dtypes[dtype])
        return flat.as_strided(shape, strides)

    def kind(self, value):
        return (value.dtype, tuple(value.shape)) if isinstance(value, self.torch.Tensor) else None

    def store(self, view, value):
        view.copy_(value.detach())

    def clone(self, view):
        return view.clone()

    def use_threads(self, n):
        self.torch.set_num_threads(n)


class Pointer:
    versions = "pointers"

    def view(self, buffer, dtype, shape, strides, written):
        return ctypes.addressof(buffer)

    def use_threads(self, n):
        pass


_makers = {"numpy": Numpy, "ml_dtypes": MlDtypes, "torch": Torch, "pointer": Pointer}
_made = {}


def style(name):
    if name not in _made:
        _made[name] = _makers[name]()
    return _made[name]
