// SPDX-License-Identifier: Apache-2.0
/* What every model does alike: a step, with clipping and the loss scale. */
#include "src/train/workload.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "src/core/log.h"
#include "src/core/timer.h"
#include "src/train/tensor.h"

int nb_model_init(struct nb_model *model, const struct nb_workload *workload, const struct nb_train_options *options) {
    assert(model && workload && options);
    *model = (struct nb_model){.workload = workload, .options = *options};
    struct nb_train_options *o = &model->options;
    if (o->n_threads < 1) o->n_threads = 1;
    const char *refused = workload->family->complete(workload->own, o);
    if (refused) return nb_error("workload %s: %s", workload->name, refused);
    if (nb_matrix_open(o->n_threads) != 0) return -1;
    nb_loss_scale_init(&model->loss_scale, o->dtype);
    model->pool = nb_pool_new(o->n_threads, NULL);
    if (!model->pool) return -1;
    nb_pool_park(model->pool);
    workload->family->create(model);
    model->activation_bytes += model->kept.bytes;
    if (!model->failed) return 0;
    nb_model_release(model);
    return -1;
}

double nb_model_forward(struct nb_model *model, const struct nb_text *text, int64_t batch, bool training) {
    const double start = nb_now_s();
    nb_parameters_round(&model->parameters, model->options.dtype);
    const double loss = model->workload->family->forward(model, text, batch, training);
    model->forward_seconds += nb_now_s() - start;
    return loss;
}

void nb_model_backward(struct nb_model *model, double scale) {
    const double start = nb_now_s();
    model->workload->family->backward(model, scale);
    nb_parameters_round_gradients(&model->parameters, model->options.dtype);
    model->backward_seconds += nb_now_s() - start;
}

/* PyTorch's clip_grad_norm_: the small number keeps a norm of 0 from dividing. */
static void scale_and_clip(struct nb_model *model, double scaled_norm, double scale) {
    const double clip = model->options.clip, norm = scaled_norm / scale;
    double factor = 1 / scale;
    if (clip > 0 && norm + 1e-6 > clip) factor *= clip / (norm + 1e-6);
    if (factor != 1) nb_parameters_scale_gradients(&model->parameters, (float)factor);
}

static struct nb_optimizer optimizer_of(const struct nb_model *model) {
    const struct nb_model_family *family = model->workload->family;
    if (family->optimizer) return family->optimizer(model->workload->own, &model->options);
    return (struct nb_optimizer){
        .kind = NB_ADAMW, .learning_rate = model->options.learning_rate, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
}

double nb_model_step(struct nb_model *model, const struct nb_text *text, int64_t batch) {
    const struct nb_optimizer optimizer = optimizer_of(model);
    const double scale = model->loss_scale.scale;
    nb_parameters_zero_gradients(&model->parameters);
    const double loss = nb_model_forward(model, text, batch, true);
    nb_model_backward(model, scale);
    const double norm = nb_parameters_gradient_norm(&model->parameters);
    model->gradient_norm = norm / scale;
    if (!nb_loss_scale_update(&model->loss_scale, isfinite(norm))) return loss;
    scale_and_clip(model, norm, scale);
    nb_optimizer_update(&optimizer, &model->parameters);
    return loss;
}

void nb_model_release(struct nb_model *model) {
    nb_arena_release(&model->kept);
    nb_arena_release(&model->passing);
    nb_parameters_release(&model->parameters);
    nb_pool_free(model->pool);
    *model = (struct nb_model){0};
}

void nb_model_take(struct nb_model *model, int64_t n, float **values, float **gradient) {
    *values = nb_arena_take(&model->kept, n);
    *gradient = nb_arena_take(&model->passing, n);
}

void nb_model_observe(const struct nb_model *model, enum nb_observed what, const char *place, const char *part,
                      const float *values, int64_t n) {
    if (!model->observer) return;
    model->observer->see(model->observer->context, what, nb_place_of(place, part).text, values, n);
}

/* ---- the workloads there are ---- */

const struct nb_workload *const nb_workloads[] = {
    &nb_workload_minimind2_small,  &nb_workload_minimind_3,
    &nb_workload_transformer_base, &nb_workload_tiny_transformer,
    &nb_workload_rnnsearch,        &nb_workload_tiny_rnnsearch,
    &nb_workload_order_embedding,  &nb_workload_tiny_order_embedding,
    &nb_workload_attentive_reader, &nb_workload_tiny_attentive_reader,
    &nb_workload_convpool,         &nb_workload_tiny_convpool,
};
const size_t nb_n_workloads = sizeof nb_workloads / sizeof nb_workloads[0];

const struct nb_workload *nb_workload_find(const char *name) {
    assert(name);
    for (size_t i = 0; i < nb_n_workloads; i++)
        if (strcmp(nb_workloads[i]->name, name) == 0) return nb_workloads[i];
    return NULL;
}
