# SPDX-License-Identifier: Apache-2.0
"""Models of one norm each, as an exporter writes them, for the libraries that read ONNX."""

import functools

import onnx
from onnx import TensorProto, helper

TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}
# operator: (domain, its version, inputs, outputs, the name of eps)
OPERATORS = {
    "LayerNormalization": ("", 17, "x weight bias", "y", "epsilon"),
    "RMSNormalization": ("", 23, "x weight", "y", "epsilon"),
    "SimplifiedLayerNormalization": ("", 17, "x weight", "y", "epsilon"),
    "SkipLayerNormalization": ("com.microsoft", 17, "x residual weight bias", "y _ _ sum", "epsilon"),
    "SkipSimplifiedLayerNormalization": ("com.microsoft", 17, "x residual weight", "y _ _ sum", "epsilon"),
    "BatchNormalization": ("", 17, "x weight bias mean var", "y", "epsilon"),
    "LpNormalization": ("", 22, "x", "y", None),
}


@functools.cache
def model(operator, dtype, eps, rank=2, parameters=None):
    """Its bytes. `parameters`: their dtype, where it is not x's."""
    domain, version, inputs, outputs, eps_name = OPERATORS[operator]
    kinds = {name: TYPES[(parameters or dtype) if name in ("weight", "bias", "mean", "var") else dtype] for name in inputs.split()}
    shapes = {name: [None] if name in ("weight", "bias", "mean", "var") else [None] * rank for name in inputs.split()}
    attributes = {eps_name: eps} if eps_name else {"p": 2, "axis": -1}
    if operator in ("LayerNormalization", "RMSNormalization", "SimplifiedLayerNormalization"):
        attributes["axis"] = -1
    node = helper.make_node(
        operator, inputs.split(), [name if name != "_" else "" for name in outputs.split()], domain=domain, **attributes
    )
    graph = helper.make_graph(
        [node],
        operator,
        [helper.make_tensor_value_info(name, kinds[name], shapes[name]) for name in inputs.split()],
        [helper.make_tensor_value_info(name, TYPES[dtype], [None] * rank) for name in outputs.split() if name != "_"],
    )
    imports = [helper.make_opsetid("", version)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=imports, ir_version=min(10 if version < 23 else 11, onnx.IR_VERSION)).SerializeToString()
