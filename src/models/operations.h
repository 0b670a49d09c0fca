// SPDX-License-Identifier: Apache-2.0
/* A step of a model as a list of operations: configs/models/NAME.json, or a config.json as Hugging Face has it.
 *
 *   { "title": "RNNSearch (Bahdanau et al. 2015)", "source": "who publishes these sizes, where",
 *     "work": "training", "tokens": 2400, "parameters": 75000000, "tensors": 40,
 *     "operations": [
 *       { "op": "product", "shape": "2400x620x2000", "count": 2, "where": "encoder, input to the gates" },   rows x inner x columns
 *       { "op": "norm", "shape": "80x2000", "count": 120 },                                                   rows x columns
 *       { "op": "elementwise", "shape": "80x1000", "reads": 3, "writes": 1, "dispatches": 5, "count": 60 },
 *       { "op": "softmax", "shape": "2400x32000" }, { "op": "embedding", "shape": "2400x620", "count": 2 } ] }
 *
 * Forward operations alone are listed. In training the backward pass follows from them, and the update from the parameters:
 *
 *   product      y = x w: two products, dx = dy w' (rows x columns x inner) and dw = x' dy (inner x rows x columns)
 *   norm         its backward kernel
 *   elementwise  reads + writes tensors read, `reads` written, with as many dispatches
 *   softmax      one tensor read and one written; backward two and one
 *   embedding    rows of a table, likewise; backward a scattered add, two and one
 *   update       "transfers" (7: AdamW reads parameter, gradient and two moments, and writes all but the gradient) of all parameters, and
 *                "dispatches" (1: fused) for each of the tensors
 *
 * Products may be a "batch" of many, launched as one, and "hot": their second matrix was used just before, as in a recurrence.
 * `count` is how often a step has the operation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"

enum nb_operation_kind { NB_PRODUCT, NB_NORM, NB_ELEMENTWISE, NB_SOFTMAX, NB_EMBEDDING, NB_N_OPERATION_KINDS };

/* Of a norm: rows are timed whole, and one in f32 is 32 MiB. */
enum { NB_NORM_COLUMNS = 1 << 23 };

struct nb_operation {
    enum nb_operation_kind kind;
    int64_t rows, inner, cols; /* inner: of a product; else 0 */
    int64_t batch;
    int count;
    int reads, writes, dispatches; /* of all but products and norms: tensors of the shape; 1 but of elementwise */
    bool hot;
    char *where; /* or null */
};

enum nb_model_part { NB_PART_FORWARD, NB_PART_BACKWARD, NB_PART_UPDATE, NB_N_MODEL_PARTS };
enum { NB_PART_PASSES = NB_N_MODEL_PARTS, NB_PART_STEP }; /* of questions: both passes; all of it */
extern const char *const nb_model_part_names[]; /* "forward", "backward", "update", "passes", "step"; null-terminated */
bool nb_part_has(int asked, enum nb_model_part part);

/* What a step consists of, all parts: products, norms, and bytes that are moved. */
enum nb_step_work_kind { NB_WORK_PRODUCT, NB_WORK_NORM, NB_WORK_MOVE };
struct nb_step_work {
    enum nb_model_part part;
    enum nb_step_work_kind kind;
    int64_t rows, inner, cols; /* of a product and a norm */
    int64_t batch;
    bool hot;
    double count;         /* in a step; what follows is of one */
    double flops;         /* of a product: 2 batch rows inner cols */
    double reads, writes; /* bytes of a move */
    double dispatches;    /* 0: of a norm, whose style says it */
};

struct nb_model_step {
    char *name; /* as the user named it, less folder and ending: "rnnsearch" */
    char *path, *title, *source;
    bool training;
    double tokens, parameters, tensors; /* of one step; of the model */
    int context;                        /* tokens that a token attends to; 0: the list's own */
    enum nb_dtype dtype;                /* of activations and weights */
    double transfers, dispatches;       /* of the update */
    struct nb_operation *operations;
    size_t n_operations;
    struct nb_step_work *works; /* each distinct piece of work once */
    size_t n_works;
};

/* name: a preset (configs/models/NAME.json) or a path when it holds a slash or ends in .json. tokens: of a config.json, 0: as many as it
 * takes by itself (src/models/huggingface.c); of a list: 0, or its own. -1 after nb_error naming file, line, key and mend; release in either
 * case. */
int nb_model_step_read(struct nb_model_step *step, const char *name, int tokens);
/* The same from a text that errors call by a path. */
int nb_model_step_parse(struct nb_model_step *step, const char *path, const char *text, size_t len, int tokens);
void nb_model_step_release(struct nb_model_step *step);

/* For readers of other formats: an operation more, which the step takes over. */
void nb_model_step_add(struct nb_model_step *step, const struct nb_operation *operation);
struct nb_jsonc;
/* A config.json: what it says of a transformer as the operations of a step. */
int nb_huggingface_read(struct nb_model_step *step, const struct nb_jsonc *file, int tokens);
