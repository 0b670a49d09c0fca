// SPDX-License-Identifier: Apache-2.0
// oneDNN 3.2, 3.12 and 3.13: layer normalization takes a source whose rows are apart, and reads and writes packed rows
// The descriptor has the strides; creating the plan and executing it return success. Found in no report. gcc FILE -ldnnl
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
int main(void) {
    float x[] = {1, 2, 3, 4, 99, 99, 10, 20, 30, 40, 99, 99}, y[12] = {0};
    dnnl_engine_t cpu; dnnl_stream_t work; dnnl_memory_desc_t apart; dnnl_primitive_desc_t plan; dnnl_primitive_t norm; dnnl_memory_t in, out;
    dnnl_engine_create(&cpu, dnnl_cpu, 0), dnnl_stream_create(&work, cpu, dnnl_stream_default_flags);
    dnnl_memory_desc_create_with_strides(&apart, 2, (dnnl_dims_t){2, 4}, dnnl_f32, (dnnl_dims_t){6, 1});
    int status = dnnl_layer_normalization_forward_primitive_desc_create(&plan, cpu, dnnl_forward_inference, apart, apart, NULL, 1e-5f, dnnl_normalization_flags_none, NULL);
    dnnl_primitive_create(&norm, plan), dnnl_memory_create(&in, apart, cpu, x), dnnl_memory_create(&out, apart, cpu, y);
    status |= dnnl_primitive_execute(norm, work, 2, (dnnl_exec_arg_t[]){{DNNL_ARG_SRC, in}, {DNNL_ARG_DST, out}}) | dnnl_stream_wait(work);
    printf("oneDNN %d.%d.%d, status %d\n", dnnl_version()->major, dnnl_version()->minor, dnnl_version()->patch, status);
    for (float *row = y; row < y + 12; row += 6)
        printf("%g %g %g %g, not -1.34 -0.447 0.447 1.34\n", row[0], row[1], row[2], row[3]);
}
