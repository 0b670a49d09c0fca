// SPDX-License-Identifier: Apache-2.0
/* The kernel ABI: what a normalization kernel receives and what it declares. Plain C, used by the built-in
 * kernels, by adapters to other libraries and by any other shared object. `normbench new-plugin` writes an example.
 *
 * A shared object exports one function, normbench_kernels(), that returns its table. Every struct starts with its size, so
 * that fields can be added at the end: a reader takes a field as absent (zero) when struct_size does not cover it.
 *
 * Rules for a kernel: every call is idempotent (outputs never alias inputs, gradients overwrite, nothing is kept between
 * calls); it never allocates and never starts threads; it reads and writes nothing outside the rows and columns it is
 * given; results do not depend on n_threads, on how a phase is cut into ranges, or on alignment beyond the element's.
 *
 * Backward, with w = gamma (1 + gamma with a weight offset, 1 without gamma), xhat = (x - mean) * rstd (mean 0 where the op does not
 * centre), g = dy * w, and means over the n elements that the statistics saw:
 *   dx     = rstd * (g - mean(g) - xhat * mean(g * xhat))   rmsnorm and l2norm without mean(g), l2norm with the sum for the last
 *            mean; prmsnorm: the last term for the first k elements alone, sum over all of g * xhat divided by k
 *            batchnorm: n = all values of a channel; in inference rstd * g
 *   dgamma = sum of dy * xhat over the rows (batchnorm: over a channel), dbeta = sum of dy
 * The formula holds for eps inside the root, where eps does not appear. mean and rstd are taken as given, and count as exact; a kernel
 * that finds its own in x and eps declares NB_FLAG_RECOMPUTES, and is judged by the exact ones. For add_* x is the
 * sum that the forward call stored (residual_out), dresidual_out the gradient that reaches that sum past the norm (null: none), and
 * dx = that gradient + the norm's own, rounded once; it is the gradient of the residual too, and dresidual is null. dgamma is null where
 * the formula has no gamma, dbeta where it has no beta; a gradient that is not wanted is null, dx too. */
#ifndef NB_KERNEL_H
#define NB_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NB_ABI_VERSION 1

enum nb_op {
    NB_OP_RMSNORM,       /* y = x / sqrt(mean(x^2) + eps) * gamma + beta, over the last dimension(s) */
    NB_OP_PRMSNORM,      /* the same with statistics from the first k elements (Zhang & Sennrich 2019, section 4) */
    NB_OP_LAYERNORM,     /* y = (x - mean) / sqrt(var + eps) * gamma + beta, biased variance (Ba et al. 2016) */
    NB_OP_BATCHNORM,     /* the same per channel over batch and positions; running statistics (Ioffe & Szegedy 2015) */
    NB_OP_L2NORM,        /* y = x / sqrt(sum(x^2) + eps) * gamma */
    NB_OP_DYT,           /* y = gamma * tanh(alpha * x) + beta (Zhu et al. 2025) */
    NB_OP_ADD_RMSNORM,   /* residual_out = x + residual; y = rmsnorm(residual_out) */
    NB_OP_ADD_LAYERNORM, /* residual_out = x + residual; y = layernorm(residual_out) */
    NB_OP_COPY, /* no arithmetic: the compulsory loads and stores of another op, beside which its group is timed */
    NB_N_OPS
};
enum nb_pass { NB_FORWARD, NB_BACKWARD, NB_N_PASSES };
enum nb_dtype { NB_F32, NB_F16, NB_BF16, NB_N_DTYPES };
enum nb_width { NB_SCALAR, NB_128, NB_256, NB_256X, NB_512, NB_NATIVE, NB_N_WIDTHS };

/* How 1/sqrt(v) is formed and applied. */
enum nb_root {
    NB_ROOT_DIV_SQRT,  /* x / sqrt(v), a division per element */
    NB_ROOT_MUL_RECIP, /* x * (1 / sqrt(v)) */
    NB_ROOT_RSQRT_NR,  /* x * r, r from the hardware's estimate and a Newton step (aarch64: two) */
    NB_ROOT_RSQRT_RAW, /* x * r, r the hardware's estimate as it comes (relative error up to 1.5 * 2^-12; aarch64: 2^-8) */
    NB_N_ROOTS
};
enum nb_eps_place {
    NB_EPS_INSIDE,  /* sqrt(v + eps) */
    NB_EPS_OUTSIDE, /* sqrt(v) + eps */
    NB_EPS_CLAMP,   /* max(sqrt(v), eps), as torch.nn.functional.normalize */
    NB_N_EPS_PLACES
};
enum nb_cast {
    NB_CAST_AFTER,  /* everything in f32, one rounding to the dtype at the end (Gemma, TransformerEngine) */
    NB_CAST_BEFORE, /* x * rstd is rounded to the dtype, then multiplied by the weight in the dtype (Llama) */
    NB_N_CASTS
};
enum nb_affine { NB_AFFINE_NONE, NB_AFFINE_GAMMA, NB_AFFINE_GAMMA_BETA, NB_N_AFFINES };
enum nb_param { NB_PARAM_F32, NB_PARAM_X, NB_N_PARAMS }; /* gamma and beta in f32, or in x's dtype */
enum nb_mode { NB_TRAINING, NB_INFERENCE, NB_N_MODES };  /* BatchNorm: statistics of the batch, or running ones */
enum nb_layout { NB_ROWS, NB_NCHW, NB_NHWC, NB_N_LAYOUTS };
/* Where a kernel runs. CUDA: all pointers of a call, but for tuning, are the device's; run() enqueues on call.stream and returns.
 * CUDA_EMULATED: the same kernel executed by the CPU, synchronously, on the host's memory. */
enum nb_backend { NB_BACKEND_CPU, NB_BACKEND_CUDA, NB_BACKEND_CUDA_EMULATED, NB_N_BACKENDS };

/* What is structural in a kernel. */
enum nb_style { NB_FUSED, NB_COMPOSED, NB_N_STYLES }; /* one sweep with everything, or unfused, with temporaries */
enum nb_stats {
    NB_STATS_REGISTER, /* statistics never leave the registers */
    NB_STATS_KEEPDIM,  /* written to a [rows, 1] tensor, then broadcast with stride 0 */
    NB_STATS_EXPANDED, /* materialised to the size of x */
    NB_N_STATS
};
enum nb_stats_dtype {
    NB_STATS_F32,
    NB_STATS_X,
    NB_N_STATS_DTYPES
}; /* f32, or every intermediate rounded to x's dtype */
enum nb_variance {
    NB_VAR_NONE,      /* no variance (RMSNorm, L2, DyT, copies), or the sum of squares */
    NB_VAR_TWOPASS,   /* mean, then mean of (x - mean)^2 */
    NB_VAR_CORRECTED, /* two-pass, minus the square of the mean residual (Chan, Golub & LeVeque 1983) */
    NB_VAR_WELFORD,   /* updating, merged over lanes by Chan's formula */
    NB_VAR_ONEPASS,   /* E[x^2] - mean^2 */
    NB_VAR_SHIFTED,   /* one pass over x - x_0 */
    NB_N_VARIANCES
};

/* How a call computes: chosen at run time, dispatched once per call, outside the loops over rows. */
struct nb_formula {
    uint32_t struct_size;
    uint32_t root;          /* enum nb_root */
    uint32_t eps_place;     /* enum nb_eps_place */
    uint32_t cast;          /* enum nb_cast */
    uint32_t weight_offset; /* 0: gamma, 1: 1 + gamma (added in f32; with NB_CAST_BEFORE rounded to the dtype) */
    uint32_t affine;        /* enum nb_affine */
    uint32_t param;         /* enum nb_param */
    uint32_t round_sum;     /* add_*: statistics see the sum rounded to the dtype (1), or the f32 sum (0) */
};

/* What is best on this machine (`normbench tune` measures it). The same for all arms of a group, and recorded. Only
 * `native` may change a bit of a result. */
struct nb_tuning {
    uint32_t struct_size;
    uint32_t native;  /* mask of enum nb_cpu_feature: instructions beyond the variant's own that may be used */
    int64_t l1_bytes; /* data caches of one core */
    int64_t l2_bytes;
    int64_t stream_bytes; /* calls with more bytes of tensors use non-temporal stores; 0: none does */
    int32_t column_tile;  /* columns whose sums over rows a backward call keeps in the cache, at least; 0: few */
    int64_t slab_bytes;   /* what a channel (NCHW) may take to be read twice, the second time from L2 */
};

/* One call. Tensors are void pointers to elements of the kernel's dtype; a null output is not wanted. Strides count
 * elements between the starts of two rows. NCHW: rows = n * c, cols = hw; NHWC: rows = n * hw, cols = c. */
struct nb_call {
    uint32_t struct_size;
    uint32_t mode;     /* enum nb_mode */
    uint32_t layout;   /* enum nb_layout */
    int32_t n_threads; /* a hint */
    int64_t rows, cols;
    int64_t n, c, hw;            /* BatchNorm only */
    int64_t k;                   /* pRMSNorm: how many leading elements the statistics see, 1..cols */
    double eps, alpha, momentum; /* momentum is the weight of the new value, as in PyTorch */
    struct nb_formula formula;

    const void *x, *residual, *gamma, *beta;
    void *y, *residual_out;
    int64_t x_stride, residual_stride, y_stride, residual_out_stride;

    const void *dy, *dresidual_out; /* backward */
    void *dx, *dresidual;
    int64_t dy_stride, dresidual_out_stride, dx_stride, dresidual_stride;
    float *dgamma, *dbeta, *dalpha;

    float *mean, *rstd; /* per row, BatchNorm per channel; forward: outputs or null; backward: inputs */
    const float *running_mean_in, *running_var_in;
    float *running_mean_out, *running_var_out; /* variance with n/(n-1), as in PyTorch */

    void *scratch;                  /* scratch_bytes(call) bytes, aligned to 64, contents undefined */
    const struct nb_tuning *tuning; /* null: a kernel's own defaults */
    void *stream;                   /* CUDA: the CUstream */
};

/* Bit masks of the formulas a kernel implements: bit (1 << value) of each enum. */
struct nb_formulas {
    uint32_t roots, eps_places, casts, weight_offsets, affines, params, round_sums;
};

enum nb_kernel_flag {
    NB_FLAG_ALLOCATES = 1,       /* an adapter whose library allocates */
    NB_FLAG_OWN_THREADS = 2,     /* an adapter whose library has threads of its own */
    NB_FLAG_STREAMING = 4,       /* non-temporal stores */
    NB_FLAG_FOLDED = 8,          /* y = x * a + b with the mean inside b = beta - mean * a */
    NB_FLAG_FLUSHES = 16,        /* takes subnormal numbers for 0 */
    NB_FLAG_STREAMS_BEYOND = 32, /* non-temporal stores in calls of more than tuning->stream_bytes */
    NB_FLAG_RECOMPUTES = 64,     /* backward: finds mean and rstd in x and eps, and ignores those that it is given */
};

/* CPU features a variant needs; which of them this machine has is decided by CPUID and XGETBV. */
enum nb_cpu_feature {
    NB_CPU_AVX2 = 1,   /* AVX2, FMA, F16C, BMI2 */
    NB_CPU_AVX512 = 2, /* AVX-512 F, BW, VL, DQ */
    NB_CPU_AVX512BF16 = 4,
    NB_CPU_AVX512FP16 = 8,
    NB_CPU_NEON = 16,
    NB_CPU_SVE256 = 32, /* SVE with vectors of 256 bits */
};

/* Rows for which a kernel claims its accuracy; grades are given within and beyond it. Infinity: no limit. */
struct nb_range {
    double min_rms, max_abs; /* root mean square and largest magnitude of the elements (of add_*: of the sum) */
    double max_rho;          /* |mean| / standard deviation */
};

struct nb_kernel {
    uint32_t struct_size;
    uint32_t op, pass, dtype, width; /* enums above */
    uint32_t cpu_features;           /* mask of enum nb_cpu_feature */
    const char *name;                /* the kernel: "rmsnorm_twopass"; its variants share it */
    const char *variant;             /* "rmsnorm_twopass_v256_f32" */
    const char *summary;             /* one line */

    uint32_t style, stats, stats_dtype, variance;
    uint32_t flags;              /* mask of enum nb_kernel_flag */
    struct nb_formulas formulas; /* a mask of 0 means: only the value 0 */

    /* Byte model: tensor-sized loads and stores that the kernel makes, and flops, per element of x. The compulsory ones of
     * the op are the harness's business (the copy's). */
    float loads, stores, flops;

    /* Computes units [begin, end) of a phase. Returns 0, or an error code of its own. */
    int (*run)(const struct nb_call *call, int phase, int64_t begin, int64_t end);

    /* All below may be null. */
    const char *(*applicable)(const struct nb_call *call);     /* null: yes; else the reason why not */
    int (*row_local)(const struct nb_call *call);              /* does a row's result depend on that row alone? (no) */
    int64_t (*chain)(const struct nb_call *call);              /* longest chain of dependent roundings in a reduction
                                                                    (the number of elements reduced) */
    size_t (*scratch_bytes)(const struct nb_call *call);       /* (0) */
    int (*n_phases)(const struct nb_call *call);               /* (1) */
    int64_t (*n_units)(const struct nb_call *call, int phase); /* (rows) */
    int (*open)(int n_threads);                                /* adapters: before the first call, before pinning */
    void (*close)(void);
    void (*range)(const struct nb_call *call, struct nb_range *range); /* narrows it from 0, inf, inf (all rows) */
    int64_t (*column_chain)(const struct nb_call *call); /* backward: the same as chain for the sums over rows, of
                                                                    dgamma and dbeta (rows) */
    const char *(*version)(void);                        /* adapters: the library and its version */
    const char *(*implementation)(
        const struct nb_call *call); /* what was chosen for the call: a library's implementation,
                                                                    instructions beyond the variant's; null: nothing */
    uint32_t backend;                /* enum nb_backend */
};

#if defined(__GNUC__)
#define NB_EXPORT __attribute__((visibility("default")))
#else
#define NB_EXPORT
#endif

/* The one exported function: the table of n kernels, or null when it cannot serve this ABI version. */
NB_EXPORT const struct nb_kernel *const *normbench_kernels(uint32_t abi_version, size_t *n);

#ifdef __cplusplus
}
#endif

#endif
