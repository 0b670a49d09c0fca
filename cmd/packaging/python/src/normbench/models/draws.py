# SPDX-License-Identifier: Apache-2.0
"""Random numbers by position: value i of a stream is a function of seed, stream and i alone, the same on every machine and device, as
src/core/random.h has them (splitmix64, and the quantile of the normal distribution). Numbers of 64 bits are kept in int64."""

import torch

STEP, SPREAD = 0x9E3779B97F4A7C15, 0xD1342543DE82EF95
CHUNK = 1 << 23  # numbers drawn at a time: 64 MB


def signed(value):
    """Of 64 bits, as int64 holds them."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _right(z, n):
    return (z >> n) & ((1 << (64 - n)) - 1)


def mixed(z):
    z = (z ^ _right(z, 30)) * signed(0xBF58476D1CE4E5B9)
    z = (z ^ _right(z, 27)) * signed(0x94D049BB133111EB)
    return z ^ _right(z, 31)


def stream(seed, number):
    """Where a stream starts; seed: an int or a tensor of them, number: an int."""
    seed = torch.as_tensor(seed, dtype=torch.int64)
    return mixed(mixed(seed + signed(STEP)) + signed(number * SPREAD))


def bits(start, i):
    return mixed(start + (torch.as_tensor(i) + 1) * signed(STEP))


def below(bits, n):
    """The remainder of a number without a sign."""
    return (_right(bits, 1) % n * 2 + (bits & 1)) % n


def uniform(start, i):
    """In (0, 1), in f64."""
    return (_right(bits(start, i), 12).double() + 0.5) * 2.0**-52


def normal(start, i):
    return torch.special.ndtri(uniform(start, i))


def hash_of(data):
    """FNV-1a of bytes, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return value


def matrix(name, shape, deviation, seed, device):
    """First values of a parameter, in f32: by its name and the seed."""
    values = torch.empty(shape, device=device)
    flat, start = values.view(-1), stream(seed, hash_of(name.encode())).to(device)
    for first in range(0, flat.numel(), CHUNK):
        part = flat[first : first + CHUNK]
        part.copy_(deviation * normal(start, torch.arange(first, first + part.numel(), device=device)))
    return values
