# SPDX-License-Identifier: Apache-2.0
"""OpenVINO's norms on the CPU: models of ONNX, of which it makes its own operations. It is told to compute in x's dtype, which it does
where the CPU can, and otherwise in float32."""
# needs: openvino==2026.4.1 onnx==1.23.2 numpy==2.4.6 ml_dtypes==0.6.0

import functools
import io

import numpy as np
import openvino
from onnx_models import model

import normbench

ALL = ["f32", "f16", "bf16"]
core = openvino.Core()
NAMES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}


@functools.cache
def request(operator, dtype, eps, rank=2):
    made = core.read_model(io.BytesIO(model(operator, dtype, eps, rank)))
    settings = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": NAMES[dtype] if dtype != "float16" else "f32", "NUM_STREAMS": 1}
    return core.compile_model(made, "CPU", settings).create_infer_request()


def call(operator, eps, **inputs):
    x = inputs["x"]
    kind = {"float32": openvino.Type.f32, "float16": openvino.Type.f16, "bfloat16": openvino.Type.bf16}[x.dtype.name]
    given = {}
    for name, each in inputs.items():
        each = np.ascontiguousarray(each)
        if x.dtype.name == "bfloat16":
            tensor = openvino.Tensor(kind, openvino.Shape(each.shape))
            tensor.data.view(np.uint16)[...] = each.view(np.uint16)
            each = tensor
        given[name] = each
    made = request(operator, x.dtype.name, eps, x.ndim)
    made.infer(given)
    y = np.array(made.get_output_tensor(0).data)
    return y.view(x.dtype) if y.dtype.itemsize == x.dtype.itemsize else y


@normbench.kernel(op="layernorm", dtype=ALL, arrays="ml_dtypes", param="x")
def layer_normalization(x, weight, bias, eps):
    """ONNX's LayerNormalization"""
    return call("LayerNormalization", eps, x=x, weight=weight, bias=bias)


@normbench.kernel(op="rmsnorm", dtype=ALL, arrays="ml_dtypes", param="x")
def rms_normalization(x, weight, eps):
    """ONNX's RMSNormalization"""
    return call("RMSNormalization", eps, x=x, weight=weight)


@normbench.kernel(op="batchnorm", dtype="f32", arrays="ml_dtypes", mode="inference")
def batch_normalization(x, weight, bias, eps, running_mean, running_var):
    """BatchNormalization, in inference"""
    return call("BatchNormalization", eps, x=x, weight=weight, bias=bias, mean=running_mean, var=running_var)
