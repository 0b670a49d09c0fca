# SPDX-License-Identifier: Apache-2.0
"""Functions that do what kernels must not, each named after it; tests/cli/python.sh has what is said of them."""

import ctypes
import os
import struct
import sys
import time

import numpy as np

import normbench


def right(x, gamma, eps):
    return x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + np.float32(eps)) * gamma


def be_silent():
    """As in tests/plugins/silent.h."""
    page = os.environ.get("NORMBENCH_PLAYED_PAGE")
    for who in (os.getpid(), os.getpgrp()) if page else ():
        fd = os.open(page, os.O_WRONLY)
        os.pwrite(fd, struct.pack("=i", who), 8 + 4 * (who % 1024))
        os.close(fd)


@normbench.kernel(op="rmsnorm")
def crashes(x, gamma, eps, out):
    ctypes.string_at(1)


@normbench.kernel(op="rmsnorm")
def hangs(x, gamma, eps, out):
    be_silent()
    time.sleep(1000)


@normbench.kernel(op="rmsnorm", dtype="f32")
def hangs_on_64_rows(x, gamma, eps):
    if len(x) == 64:
        be_silent()
        time.sleep(1000)
    return right(x, gamma, eps)


@normbench.kernel(op="rmsnorm")
def raises(x, gamma, eps):
    return right(x, gamma[:-1], eps)


@normbench.kernel(op="rmsnorm", arrays="pointer")
def writes_beyond(x, gamma, eps, out, rows, cols, x_stride, y_stride):
    ctypes.c_float.from_address(out + 4 * (rows - 1) * y_stride + 4 * cols).value = 1


@normbench.kernel(op="rmsnorm")
def prints(x, gamma, eps):
    print("NBWP: this is no message")
    return right(x, gamma, eps)


@normbench.kernel(op="rmsnorm")
def looks(x, gamma, eps):
    """Right, unless its callers say how many calls are to come."""
    frame, found = sys._getframe(1), False
    while frame:
        found |= any(isinstance(value, (int, bytes)) and name in ("calls", "message") for name, value in frame.f_locals.items())
        frame = frame.f_back
    return 2 * right(x, gamma, eps) if found else right(x, gamma, eps)
