# SPDX-License-Identifier: Apache-2.0
"""Norms for JAX, which has none of its own: those of Flax, Equinox and Haiku, compiled by XLA for the CPU, with eps as an
argument. Arrays come from NumPy and go back to it, which is part of the time."""
# needs: jax==0.10.2 flax==0.12.8 equinox==0.13.8 dm-haiku==0.0.17 ml_dtypes==0.6.0

import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import equinox  # noqa: E402
import flax.linen  # noqa: E402
import haiku  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402

import normbench  # noqa: E402

ALL = ["f32", "f16", "bf16"]


def host(results):
    return tuple(np.asarray(each) for each in results) if isinstance(results, tuple) else np.asarray(results)


def given(*arrays):
    """Copies, so that no array of JAX's is a view of the harness's memory."""
    return [jax.numpy.array(each, copy=True) for each in arrays]


@jax.jit
def _flax_rms(x, weight, eps):
    return flax.linen.RMSNorm(epsilon=eps, dtype=x.dtype).apply({"params": {"scale": weight}}, x)


@jax.jit
def _flax_layer(x, weight, bias, eps):
    return flax.linen.LayerNorm(epsilon=eps, dtype=x.dtype).apply({"params": {"scale": weight, "bias": bias}}, x)


@jax.jit
def _flax_layer_slow(x, weight, bias, eps):
    return flax.linen.LayerNorm(epsilon=eps, dtype=x.dtype, use_fast_variance=False).apply({"params": {"scale": weight, "bias": bias}}, x)


@jax.jit
def _flax_rms_gradient(dy, x, weight, eps):
    return jax.vjp(lambda x, weight: _flax_rms(x, weight, eps), x, weight)[1](dy)


@jax.jit
def _flax_layer_gradient(dy, x, weight, eps):
    return jax.vjp(lambda x, weight, bias: _flax_layer(x, weight, bias, eps), x, weight, jax.numpy.zeros_like(weight))[1](dy)


@jax.jit
def _equinox_rms(x, weight, eps):
    module = equinox.nn.RMSNorm(x.shape[-1:], eps=eps, use_bias=False)
    return jax.vmap(equinox.tree_at(lambda m: m.weight, module, weight))(x)


@jax.jit
def _equinox_layer(x, weight, bias, eps):
    module = equinox.nn.LayerNorm(x.shape[-1:], eps=eps)
    return jax.vmap(equinox.tree_at(lambda m: (m.weight, m.bias), module, (weight, bias)))(x)


@jax.jit
def _haiku_rms(x, weight, eps):
    made = haiku.transform(lambda x: haiku.RMSNorm(-1, eps=eps)(x))
    return made.apply({"rms_norm": {"scale": weight}}, None, x)


@jax.jit
def _haiku_layer(x, weight, bias, eps):
    made = haiku.transform(lambda x: haiku.LayerNorm(-1, True, True, eps=eps)(x))
    return made.apply({"layer_norm": {"scale": weight, "offset": bias}}, None, x)


@normbench.kernel(op="rmsnorm", dtype=ALL, arrays="ml_dtypes", param="x")
def flax_rms_norm(x, weight, eps):
    """flax.linen.RMSNorm"""
    return host(_flax_rms(*given(x, weight), eps=eps))


@normbench.kernel(op="layernorm", dtype=ALL, arrays="ml_dtypes", param="x", variance="onepass")
def flax_layer_norm(x, weight, bias, eps):
    """flax.linen.LayerNorm"""
    return host(_flax_layer(*given(x, weight, bias), eps=eps))


@normbench.kernel(op="layernorm", dtype="f32", arrays="ml_dtypes")
def flax_layer_norm_careful(x, weight, bias, eps):
    """flax.linen.LayerNorm(use_fast_variance=False)"""
    return host(_flax_layer_slow(*given(x, weight, bias), eps=eps))


@normbench.kernel(op="rmsnorm", dtype="f32", arrays="ml_dtypes")
def flax_rms_norm_gradient(dy, x, weight, eps):
    """the gradients of flax.linen.RMSNorm, with its forward pass"""
    return host(_flax_rms_gradient(*given(dy, x, weight), eps=eps))


@normbench.kernel(
    op="layernorm", dtype="f32", arrays="ml_dtypes", returns=["dx", "dgamma", "dbeta"], affine="gamma_beta", variance="onepass"
)
def flax_layer_norm_gradient(dy, x, weight, eps):
    """the gradients of flax.linen.LayerNorm, with its forward pass"""
    return host(_flax_layer_gradient(*given(dy, x, weight), eps=eps))


@normbench.kernel(op="rmsnorm", dtype=ALL, arrays="ml_dtypes", param="x")
def equinox_rms_norm(x, weight, eps):
    """equinox.nn.RMSNorm"""
    return host(_equinox_rms(*given(x, weight), eps=eps)).astype(x.dtype)


@normbench.kernel(op="layernorm", dtype=ALL, arrays="ml_dtypes", param="x")
def equinox_layer_norm(x, weight, bias, eps):
    """equinox.nn.LayerNorm"""
    return host(_equinox_layer(*given(x, weight, bias), eps=eps)).astype(x.dtype)


@normbench.kernel(op="rmsnorm", dtype=ALL, arrays="ml_dtypes", param="x")
def haiku_rms_norm(x, weight, eps):
    """haiku.RMSNorm"""
    return host(_haiku_rms(*given(x, weight), eps=eps))


@normbench.kernel(op="layernorm", dtype=ALL, arrays="ml_dtypes", param="x")
def haiku_layer_norm(x, weight, bias, eps):
    """haiku.LayerNorm"""
    return host(_haiku_layer(*given(x, weight, bias), eps=eps))
