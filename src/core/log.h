// SPDX-License-Identifier: Apache-2.0
/* Messages to people, on stderr; data goes to stdout and never through here. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NB_PROGRESS_LINE_S = 30, NB_USUAL_WIDTH = 80 };

/* Prints "normbench: error: ..." and returns -1, so that a function can end with `return nb_error(...)`. */
int nb_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void nb_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void nb_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Messages name a file by what the user called it: where they would say `path` (a private copy), they say `name`. Both are borrowed until
 * nb_log_shows(NULL, NULL). */
void nb_log_shows(const char *path, const char *name);

/* --quiet: notes and progress are left out; errors and warnings stay. Returns what it was before. */
bool nb_log_quiet(bool quiet);

enum nb_color { NB_COLOR_AUTO, NB_COLOR_ALWAYS, NB_COLOR_NEVER };
void nb_log_color(enum nb_color color);
/* May this stream carry colour? auto: a terminal, TERM not dumb, NO_COLOR empty or unset. */
bool nb_color_on(int fd);
/* Cells of a line: COLUMNS is the user's word, else what the terminal says; a file or a pipe: 80. */
size_t nb_screen_width(FILE *out);

/* How far it is, and from a tenth on how long it takes yet, where steps are of equal length (else elapsed_s is 0): a bar where stderr is a
 * terminal, elsewhere a line every half minute. */
void nb_progress(double done, double total, double elapsed_s, const char *what);
/* Of a total that is not known yet; most may be infinite. */
void nb_progress_between(double done, double least, double most, double elapsed_s, const char *what);
void nb_progress_end(void);

/* Memory that cannot be had ends the program: a benchmark cannot go on without. */
void *nb_alloc(unsigned long long n, unsigned long long size); /* zeroed */
void *nb_realloc(void *p, unsigned long long n, unsigned long long size);
char *nb_strdup(const char *s);
/* The place of one more item behind the n of an array that grows, whose number then counts it. */
#define NB_PUSH(array, n) ((array) = nb_realloc((array), (unsigned long long)(n) + 1, sizeof *(array)), &(array)[(n)++])
/* Frees each of the pointers, some of which may be null: what a struct owns. */
#define nb_free_all(...) nb_free_pointers((void *const[]){__VA_ARGS__}, sizeof((void *const[]){__VA_ARGS__}))
static inline void nb_free_pointers(void *const *pointers, size_t bytes) {
    for (size_t i = 0; i < bytes / sizeof *pointers; i++) free(pointers[i]);
}

/* A variable that says what releases it is released where its scope ends, in the reverse order of declarations; what goes to somebody else
 * does not say so:
 *     struct nb_oracle oracle released_by(nb_oracle_release) = {0};
 *     char *path freed = nb_path_join(dir, "x"), *text freed = NULL; */
#define released_by(release) __attribute__((cleanup(release)))
#define freed released_by(nb_free_held)
static inline void nb_free_held(const void *variable) {
    void *memory;
    memcpy(&memory, variable, sizeof memory);
    free(memory);
}
