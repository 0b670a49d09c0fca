# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime: on a CPU, BatchNormalization loses digits where the mean is large

It takes x * scale + (bias - mean * scale), where ONNX's formula is (x - mean) * scale. Reported as onnxruntime#26522."""

import numpy as np
import onnx.helper as h
import onnxruntime as ort

print("onnxruntime", ort.__version__)
names = ["x", "scale", "bias", "mean", "var"]
node = h.make_node("BatchNormalization", names, ["y"], epsilon=0.0)
inputs = [h.make_tensor_value_info(name, 1, [1, 1, 4] if name == "x" else [1]) for name in names]
graph = h.make_graph([node], "g", inputs, [h.make_tensor_value_info("y", 1, [1, 1, 4])])
session = ort.InferenceSession(h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=10).SerializeToString())
x = np.array([[[1000.0, 1000.125, 1001.0, 1003.0]]], np.float32)
one = np.ones(1, np.float32)
(y,) = session.run(None, {"x": x, "scale": one, "bias": 0 * one, "mean": 1000 * one, "var": 3 * one})
exact = (x.astype(np.float64) - 1000) / np.sqrt(3)
print(f"y     {y[0, 0]}\nexact {exact[0, 0]}\nerror {np.abs(y - exact)[0, 0]}")
