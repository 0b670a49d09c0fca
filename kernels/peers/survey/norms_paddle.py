# SPDX-License-Identifier: Apache-2.0
"""PaddlePaddle's norms on the CPU."""
# needs: paddlepaddle==3.3.1 ml_dtypes

import numpy as np
import paddle
import paddle.nn.functional as F

import normbench

paddle.set_device("cpu")
paddle.set_num_threads(1) if hasattr(paddle, "set_num_threads") else None
ALL = ["f32", "f16", "bf16"]


def given(array):
    if array.dtype.name == "bfloat16":
        return paddle.to_tensor(np.ascontiguousarray(array).view(np.uint16)).view("bfloat16")
    return paddle.to_tensor(np.array(array))


def host(tensor, like):
    return tensor.numpy().view(like.dtype)


@normbench.kernel(op="layernorm", dtype=ALL, arrays="ml_dtypes", param="x")
def layer_norm(x, weight, bias, eps):
    """paddle.nn.functional.layer_norm"""
    return host(F.layer_norm(given(x), x.shape[-1:], given(weight), given(bias), eps), x)


@normbench.kernel(op="rmsnorm", dtype=ALL, arrays="ml_dtypes", param="x")
def rms_norm(x, weight, eps):
    """paddle.nn.functional.rms_norm"""
    return host(F.rms_norm(given(x), x.shape[-1:], given(weight), eps), x)


@normbench.kernel(op="layernorm", dtype="f32", arrays="ml_dtypes", returns=["dx", "dgamma", "dbeta"], affine="gamma_beta")
def layer_norm_gradient(dy, x, weight, eps):
    """the gradients of paddle.nn.functional.layer_norm, with its forward pass"""
    inputs = [given(x), given(weight), given(np.zeros_like(weight))]
    for each in inputs:
        each.stop_gradient = False
    y = F.layer_norm(inputs[0], x.shape[-1:], inputs[1], inputs[2], eps)
    return tuple(each.numpy() for each in paddle.grad(y, inputs, given(dy)))


@normbench.kernel(op="batchnorm", dtype="f32", arrays="ml_dtypes", layout="nchw")
def batch_norm(x, weight, bias, eps, momentum, running_mean, running_var):
    """paddle.nn.functional.batch_norm, in training; its momentum weighs the old value"""
    mean, var = given(running_mean), given(running_var)
    y = F.batch_norm(given(x[:, :, None, :]), mean, var, given(weight), given(bias), training=True, momentum=1 - momentum, epsilon=eps)
    return y.numpy()[:, :, 0, :], mean.numpy(), var.numpy()
