// SPDX-License-Identifier: Apache-2.0
/* Folders, texts and what is written to stderr. Folders, texts and JSON values last as long as
 * the test's process, which removes them. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

/* Take over what the test need not free. */
char *kept(char *text);
cJSON *kept_json(cJSON *json);
/* A JSON value as one line; `of` deletes it. */
char *json_text(const cJSON *json);
char *json_text_of(cJSON *json);

/* At the end of the process release() is called with a copy of the object, so that tests need not. */
void release_at_end(const void *object, size_t n, void (*release)(void *copy));

/* An empty folder. */
char *new_folder(void);
/* Writes DIR/NAME. */
void put_file(const char *dir, const char *name, const void *bytes, size_t n);
void put_text(const char *dir, const char *name, const char *text);
/* The test fails without the file. */
char *get_file(const char *dir, const char *name);
bool has_file(const char *dir, const char *name);
/* tests/plugins/NAME.c, built. */
char *plugin_path(const char *name);
/* Replaces the first `old` in a file, which must be there. */
void change_file(const char *dir, const char *name, const char *old, const char *new);

/* The text holds each of these parts; or none of them. */
#define HAS(text, ...) expect_parts(text, true, (const char *const[]){__VA_ARGS__, NULL})
#define LACKS(text, ...) expect_parts(text, false, (const char *const[]){__VA_ARGS__, NULL})
void expect_parts(const char *text, bool wanted, const char *const *parts);
int times_in(const char *text, const char *part);

/* What is written to stderr between the two. */
void begin_errors(void);
char *end_errors(void);
/* `what` must be refused by the call (result -1), in these words. */
#define expect_refused(call, what, words) (begin_errors(), expect_refused_so(call, what, words))
void expect_refused_so(int result, const char *what, const char *words);

/* .init of a suite: the log is quiet. */
void quiet(void);
