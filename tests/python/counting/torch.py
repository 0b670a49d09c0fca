# SPDX-License-Identifier: Apache-2.0
"""A PyTorch that computes nothing and counts: each operation on a tensor is noted in `calls` by its name. A cast to the dtype that a
tensor has is none, as in PyTorch. Enough of it for normbench.models.classes and the worker's questions about a device."""

import types

__version__ = "2.15.0+counting"
float32, bfloat16 = "f32", "bf16"
calls = []


class Tensor:
    def __init__(self, shape, dtype=float32):
        self.shape, self.dtype = shape, dtype

    def _count(self, name, dtype=None):
        calls.append(name)
        return Tensor(self.shape, dtype or self.dtype)

    def to(self, dtype):
        return self if dtype == self.dtype else self._count("cast", dtype)

    def float(self):
        return self.to(float32)

    def type_as(self, other):
        return self.to(other.dtype)


def _operation(name):
    def operation(self, *_, **__):
        return self._count(name)

    return operation


for _name in "mean var pow norm".split():
    setattr(Tensor, _name, _operation(_name))
for _name in "add sub mul truediv".split():
    setattr(Tensor, f"__{_name}__", _operation(_name))
    setattr(Tensor, f"__r{_name}__", _operation(_name))


def sqrt(x):
    return x._count("sqrt")


def rsqrt(x):
    return x._count("rsqrt")


def split(x, sizes, dim):
    return [x, x]  # views


def full(shape, value):
    return Tensor(shape)


class Module:
    def __init__(self):
        pass

    def __call__(self, x):
        return self.forward(x)


def _parameter(tensor, requires_grad=True):
    return tensor


nn = types.SimpleNamespace(Module=Module, Parameter=_parameter, LayerNorm=Module, Identity=Module, BatchNorm1d=Module)
cuda = types.SimpleNamespace(is_available=lambda: False)
