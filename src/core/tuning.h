// SPDX-License-Identifier: Apache-2.0
/* What kernels know of the machine (struct nb_tuning of kernels/kernel.h), field by field, as text and as JSON; what the
 * calls of this process carry, and where that comes from.
 *
 * As text: FIELD=VALUE,FIELD=VALUE. Bytes may end in K, M, G (times 1024); native is 0 or avx512_bf16.
 * As JSON: an object of the fields; native is the text above. */
#pragma once

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
/* Is the address that of a kernel's store to it, which faults? May be asked in a signal handler. */
bool nb_tuning_holds(const void *address);

/* ---- the file in which `normbench tune` keeps what it found: one for each kind of CPU, since a home may be shared by many machines;
 * reports/schema/tuning.schema.json describes it ---- */

#define NB_TUNING_SCHEMA "1.0"

/* The largest stream_bytes that anything but a user asks for. A last cache larger than this is shared with a socket of neighbours, and
 * no core has it for itself. */
#define NB_MOST_STREAM_BYTES (INT64_C(64) << 20)

/* Sound values for the CPU at hand: what CPUID and the sizes of its caches say, nothing measured. */
void nb_tuning_default(struct nb_tuning *t);

/* "AuthenticAMD-26-36-0-1f2e3d4c": vendor, family, model, stepping, and a hash of features, caches and brand; owned. Virtual CPUs
 * of one brand may be of several kinds, which is why the brand alone is none. */
char *nb_tuning_cpu(void);
/* $NORMBENCH_TUNING, else $XDG_CACHE_HOME/normbench/tuning-CPU.json, else the same under $HOME/.cache; owned. Null: the environment
 * says "none", or names no home. */
char *nb_tuning_path(void);

/* The file as JSON, owned: its schema, its CPU and its fields are what they must be. Null after nb_error, which says what is wrong
 * with it. */
cJSON *nb_tuning_file_read(const char *path);
/* Makes the folders too. */
int nb_tuning_file_write(const char *path, const cJSON *json);

/* ---- the choice ---- */

/* Which tuning this process takes, and why: the defaults for the CPU, in their place what the file says, in its place what the user
 * says. */

/* What --tuning takes: "default" (no file), FIELD=VALUE (nb_tuning_parse) or "default,FIELD=VALUE"; null: nothing is said. What is
 * chosen is used from now on (nb_tuning_use). A file that is broken or another CPU's is left aside with a warning. -1 after
 * nb_error: the text is none, or wants instructions that the CPU does not have. */
int nb_tuning_choose(const char *option);
/* The same, unless something was chosen already; a text that is none is warned of, and the defaults are taken. */
void nb_tuning_choose_once(const char *option);
/* What a run chose that goes on, as nb_tuning_choice_to_json() said it, unless something was chosen already. */
void nb_tuning_choose_again(const cJSON *choice);

/* What was chosen, for records (as reports/schema has it):
 *   source    "defaults", "file"; with an option "option"
 *   file      the file that was read, or null
 *   measured  when that was made, or null
 *   replay    what --tuning must say to have the same anywhere, or null: the defaults, which need nothing said
 *   fields    all of them */
cJSON *nb_tuning_choice_to_json(void);
/* The text "replay" alone; owned, or null. */
char *nb_tuning_replay(void);
