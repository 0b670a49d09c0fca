# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's norms on the CPU: Keras's operations, and TensorFlow's own."""
# needs: tensorflow-cpu==2.21.0 ml_dtypes==0.6.0

import os

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import normbench  # noqa: E402

tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
ALL = ["f32", "f16", "bf16"]


def given(*arrays):
    """Copies, so that no tensor is a view of the harness's memory."""
    return [tf.constant(np.array(each)) for each in arrays]


@normbench.kernel(op="rmsnorm", dtype=ALL, arrays="ml_dtypes", param="x")
def keras_rms_normalization(x, weight, eps):
    """keras.ops.rms_normalization"""
    x, weight = given(x, weight)
    return keras.ops.rms_normalization(x, weight, axis=-1, epsilon=eps).numpy()


@normbench.kernel(op="layernorm", dtype=ALL, arrays="ml_dtypes", param="x")
def keras_layer_normalization(x, weight, bias, eps):
    """keras.ops.layer_normalization"""
    x, weight, bias = given(x, weight, bias)
    return keras.ops.layer_normalization(x, weight, bias, axis=-1, epsilon=eps).numpy()


@normbench.kernel(op="batchnorm", dtype=ALL, arrays="ml_dtypes", layout="nhwc")
def fused_batch_norm(x, weight, bias, eps, momentum, running_mean, running_var):
    """tf.raw_ops.FusedBatchNormV3, in training"""
    x, weight, bias, mean, var = given(x.transpose(0, 2, 1)[:, :, None, :], weight, bias, running_mean, running_var)
    made = tf.raw_ops.FusedBatchNormV3(
        x=x,
        scale=weight,
        offset=bias,
        mean=mean,
        variance=var,
        epsilon=eps,
        exponential_avg_factor=momentum,
        data_format="NHWC",
        is_training=True,
    )
    return made.y.numpy()[:, :, 0, :].transpose(0, 2, 1), made.batch_mean.numpy(), made.batch_variance.numpy()
