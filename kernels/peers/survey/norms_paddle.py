# SPDX-License-Identifier: Apache-2.0
"""PaddlePaddle's norms on the CPU, where layer_norm has f32 (and f64) alone, and rms_norm no kernel."""
# needs: paddlepaddle==3.3.1 ml_dtypes==0.6.0

import numpy as np
import paddle
import paddle.nn.functional as F

import normbench

paddle.set_device("cpu")


def given(array):
    return paddle.to_tensor(np.array(array))


def within_range(x, eps):
    """The same norm with an eps that Paddle takes, which is at most 1e-3: x and sqrt(eps) may have a common power of two as a factor."""
    half = 0
    while eps / 4**half > 1e-3:
        half += 1
    return x * np.float32(0.5**half), eps / 4**half


@normbench.kernel(op="layernorm", dtype="f32", arrays="ml_dtypes")
def layer_norm(x, weight, bias, eps):
    """paddle.nn.functional.layer_norm"""
    x, eps = within_range(x, eps)
    return F.layer_norm(given(x), x.shape[-1:], given(weight), given(bias), eps).numpy()


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
    """paddle.nn.functional.batch_norm, in training"""
    scaled, small_eps = within_range(x, eps)
    settings = {"training": True, "momentum": 1 - momentum, "epsilon": small_eps}  # its momentum weighs the old value
    mean, var = given(running_mean), given(running_var)
    y = F.batch_norm(given(scaled[:, :, None, :]), mean, var, given(weight), given(bias), **settings)
    if small_eps != eps:
        mean, var = given(running_mean), given(running_var)
        F.batch_norm(given(x[:, :, None, :]), mean, var, given(weight), given(bias), **settings)
    # Its running variance follows the batch's variance, as documented; here it is that of a sample, as PyTorch has it.
    n = x.shape[0] * x.shape[2]
    kept = (1 - momentum) * running_var.astype("f8")
    return y.numpy()[:, :, 0, :], mean.numpy(), (kept + (var.numpy() - kept) * n / max(n - 1, 1)).astype("f4")
