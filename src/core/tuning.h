// SPDX-License-Identifier: Apache-2.0
/* What kernels know of the machine (struct nb_tuning of kernels/kernel.h), field by field, as text and as JSON; and what the
 * calls of this process carry.
 *
 * As text: FIELD=VALUE,FIELD=VALUE. Bytes may end in K, M, G (times 1024); native is 0 or names of instruction sets joined by '+'.
 * As JSON: an object of the fields; native is the text above. */
#ifndef NB_CASE_TUNING_H
#define NB_CASE_TUNING_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernel.h"
#include "src/core/text.h"

struct nb_tuning_field {
    const char *name, *help; /* help: one line */
    size_t offset, size;     /* in struct nb_tuning; 4 or 8 bytes */
    int64_t most;
    bool is_bytes;
};
extern const struct nb_tuning_field nb_tuning_fields[];
extern const size_t nb_n_tuning_fields;
const struct nb_tuning_field *nb_tuning_field_find(const char *name); /* null */

int64_t nb_tuning_get(const struct nb_tuning *t, const struct nb_tuning_field *field);
void nb_tuning_set(struct nb_tuning *t, const struct nb_tuning_field *field, int64_t value);
bool nb_tuning_equal(const struct nb_tuning *a, const struct nb_tuning *b);

/* Changes the fields that the text names. On a text that is none writes the reason, beginning with the field, and returns -1. */
int nb_tuning_parse(struct nb_tuning *t, const char *text, char *reason, size_t n);
/* The fields in which t is not like base, as nb_tuning_parse() reads them; base may be null: all. */
void nb_tuning_print(const struct nb_tuning *t, const struct nb_tuning *base, struct nb_strbuf *out);
/* One field's value as a person reads it: "512 KiB", "avx512_bf16", "4". */
void nb_tuning_print_field(const struct nb_tuning *t, const struct nb_tuning_field *field, struct nb_strbuf *out);

cJSON *nb_tuning_to_json(const struct nb_tuning *t);
/* Fields that are absent stay as they are. -1 after nb_error. */
int nb_tuning_from_json(struct nb_tuning *t, const cJSON *json);

/* What cases made from now on carry into their calls (nb_case_init). Like the mask of CPU features it belongs to the process: set
 * once, before any case is made; workers get it with their job. Null until then: kernels take their own defaults. */
void nb_tuning_use(const struct nb_tuning *t);
const struct nb_tuning *nb_tuning_used(void);

#endif
