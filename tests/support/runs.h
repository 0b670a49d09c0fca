// SPDX-License-Identifier: Apache-2.0
/* Runs made by hand for the tests of journal, fold and merge: folders under the temporary one, journals as text. */
#ifndef NB_TEST_SUPPORT_RUNS_H
#define NB_TEST_SUPPORT_RUNS_H

#include <stddef.h>

#define KEY_RMS "rmsnorm_a_v256_f32/shape:4x8"
#define KEY_LN "layernorm_a_v256_f32/shape:4x8"
#define KEY_PLUGIN "mine:rmsnorm_b_v256_f32/shape:4x8"

/* A new, empty folder. Owned; the caller removes it with remove_run. */
char *new_folder(void);
void remove_run(char *dir); /* what a run leaves in it, and the folder; frees dir */
/* DIR/NAME = text. */
void put_file(const char *dir, const char *name, const char *text, size_t len);
char *get_file(const char *dir, const char *name); /* owned */
/* Runs session on stderr's behalf: what was written to stderr while f ran; owned. */
char *errors_of(int (*f)(void *arg), void *arg, int *result);

/* A "run" line: groups and skips are the JSON of these members, shard "null" or "[1,2]". Owned, ends in a newline. */
char *run_line(const char *groups, const char *skips, const char *shard, int launches);
/* A whole small journal: group 0 with KEY_RMS (reference), KEY_LN and KEY_PLUGIN, checked, six launches, counters, end. */
char *small_journal(void);

#endif
