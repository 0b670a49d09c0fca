# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's norms on the CPU: a model of one node each, whose eps is an attribute."""
# needs: onnxruntime==1.32.0 onnx==1.23.2 numpy==2.4.6 ml_dtypes==0.6.0

import functools

import numpy as np
import onnxruntime
from onnx_models import TYPES, model

import normbench

HALVES = ["f32", "f16"]


@functools.cache
def session(operator, dtype, eps, rank=2):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model(operator, dtype, eps, rank), options, providers=["CPUExecutionProvider"])


def call(operator, eps, outputs=("y",), **inputs):
    """Runs the model; bfloat16 goes in and out as its bits, which NumPy has no type for."""
    x = inputs["x"]
    made = session(operator, x.dtype.name, eps, x.ndim)
    if x.dtype.name != "bfloat16":
        results = made.run(list(outputs), inputs)
        return results[0] if len(results) == 1 else tuple(results)
    y = np.empty_like(x, order="C")
    kept = [np.ascontiguousarray(each) for each in inputs.values()]
    binding = made.io_binding()
    for name, each in zip(inputs, kept):
        binding.bind_input(name, "cpu", 0, TYPES["bfloat16"], each.shape, each.ctypes.data)
    binding.bind_output("y", "cpu", 0, TYPES["bfloat16"], y.shape, y.ctypes.data)
    made.run_with_iobinding(binding)
    return y


@normbench.kernel(op="layernorm", dtype=[*HALVES, "bf16"], arrays="ml_dtypes", param="x")
def layer_normalization(x, weight, bias, eps):
    """ONNX's LayerNormalization"""
    return call("LayerNormalization", eps, x=x, weight=weight, bias=bias)


@normbench.kernel(op="rmsnorm", dtype=HALVES, arrays="ml_dtypes", param="x")
def rms_normalization(x, weight, eps):
    """ONNX's RMSNormalization; bf16 is not implemented"""
    return call("RMSNormalization", eps, x=x, weight=weight)


@normbench.kernel(op="rmsnorm", dtype=[*HALVES, "bf16"], arrays="ml_dtypes", param="x")
def simplified_layer_normalization(x, weight, eps):
    """SimplifiedLayerNormalization, what models of transformers have"""
    return call("SimplifiedLayerNormalization", eps, x=x, weight=weight)


@normbench.kernel(op="add_rmsnorm", dtype=HALVES, arrays="ml_dtypes", param="x", round_sum=[0, 1])
def skip_simplified_layer_normalization(x, residual, weight, eps):
    """SkipSimplifiedLayerNormalization"""
    return call("SkipSimplifiedLayerNormalization", eps, ("y", "sum"), x=x, residual=residual, weight=weight)


@normbench.kernel(op="add_layernorm", dtype=HALVES, arrays="ml_dtypes", param="x", round_sum=[0, 1])
def skip_layer_normalization(x, residual, weight, bias, eps):
    """SkipLayerNormalization"""
    return call("SkipLayerNormalization", eps, ("y", "sum"), x=x, residual=residual, weight=weight, bias=bias)


@normbench.kernel(op="batchnorm", dtype=HALVES, arrays="ml_dtypes", param="x", mode="inference")
def batch_normalization(x, weight, bias, eps, running_mean, running_var):
    """BatchNormalization, in inference"""
    mean, var = running_mean.astype(x.dtype), running_var.astype(x.dtype)
    return call("BatchNormalization", eps, x=x, weight=weight, bias=bias, mean=mean, var=var)
