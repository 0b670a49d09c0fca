// SPDX-License-Identifier: Apache-2.0
/* Names that a config gives to the cases of its blocks, so that a reader can take together what belongs to one question or to
 * one public bug report. A case that several blocks make has all their labels. */
#ifndef NB_LABELS_H
#define NB_LABELS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

struct nb_label {
    char *name;          /* "onnxruntime#28463" */
    char *source, *text; /* where it comes from, what it is about; may be null */
};
/* Zero-initialise. */
struct nb_labels {
    struct nb_label *items;
    size_t n;
};
/* The index of the name, which is added when it is new; source and text are those it was first given with. */
size_t nb_labels_add(struct nb_labels *labels, const char *name, const char *source, const char *text);
/* [{"name","source","text"}] */
cJSON *nb_labels_to_json(const struct nb_labels *labels);
void nb_labels_release(struct nb_labels *labels);

/* The labels of one case, by index, in the order in which they were given. Zero-initialise. */
struct nb_label_set {
    size_t *at;
    size_t n;
};
void nb_label_set_add(struct nb_label_set *set, size_t label);
void nb_label_set_release(struct nb_label_set *set);

#endif
