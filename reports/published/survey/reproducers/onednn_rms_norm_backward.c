// SPDX-License-Identifier: Apache-2.0
// oneDNN 3.12 and 3.13: the backward pass of layer normalization with dnnl_rms_norm returns LayerNorm's dx: it subtracts the mean of dy
// Documented for backward propagation: the derivative is with respect to the RMS norm only, and the mean is taken for 0. So dx is (dy - xhat mean(dy xhat)) / rms. Found in no report. gcc FILE -ldnnl
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
int main(void) {
    float x[] = {1, -1, 1, -1}, dy[] = {1, 1, 1, 1}, dx[4], v[] = {1}; // the mean of dy xhat is 0: dx is dy, whose mean LayerNorm's would subtract
    dnnl_engine_t cpu; dnnl_stream_t work; dnnl_memory_desc_t row, one; dnnl_primitive_desc_t hint, plan; dnnl_primitive_t norm; dnnl_memory_t in, grad, out, var;
    dnnl_engine_create(&cpu, dnnl_cpu, 0), dnnl_stream_create(&work, cpu, dnnl_stream_default_flags);
    dnnl_memory_desc_create_with_tag(&row, 2, (dnnl_dims_t){1, 4}, dnnl_f32, dnnl_ab), dnnl_memory_desc_create_with_tag(&one, 1, (dnnl_dims_t){1}, dnnl_f32, dnnl_a);
    dnnl_layer_normalization_forward_primitive_desc_create(&hint, cpu, dnnl_forward_training, row, row, one, 0, dnnl_rms_norm, NULL);
    dnnl_layer_normalization_backward_primitive_desc_create(&plan, cpu, dnnl_backward_data, row, row, row, one, 0, dnnl_rms_norm, hint, NULL);
    dnnl_memory_create(&in, row, cpu, x), dnnl_memory_create(&grad, row, cpu, dy), dnnl_memory_create(&out, row, cpu, dx), dnnl_memory_create(&var, one, cpu, v);
    dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, in}, {DNNL_ARG_DIFF_DST, grad}, {DNNL_ARG_VARIANCE, var}, {DNNL_ARG_DIFF_SRC, out}};
    dnnl_primitive_create(&norm, plan);
    int status = dnnl_primitive_execute(norm, work, 4, args) | dnnl_stream_wait(work);
    printf("oneDNN %d.%d.%d, status %d\n", dnnl_version()->major, dnnl_version()->minor, dnnl_version()->patch, status);
    printf("dx = %g %g %g %g, not 1 1 1 1\n", dx[0], dx[1], dx[2], dx[3]);
}
