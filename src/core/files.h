// SPDX-License-Identifier: Apache-2.0
/* Paths and whole files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "src/core/text.h"

/* For reading; null after nb_error. A pipe or a device is refused, since whoever reads it would wait for its other end. limit: largest
 * size accepted. */
FILE *nb_file_open(const char *path, size_t limit);
void nb_file_release(FILE **file); /* for released_by(); null: nothing to do */
/* Whole file as an owned, null-terminated string; null after nb_error. */
char *nb_file_read(const char *path, size_t limit, size_t *len);
/* The first line without its newline; false, and "": it cannot be read. */
bool nb_file_line(const char *path, char *text, size_t n);
/* Can a file be written or deleted there, as far as what stands there now says? -1 after nb_error: a folder, a pipe or a device. */
int nb_file_check_place(const char *path);
/* Writes to a temporary name beside path, or beside what a link there leads to, then renames. -1 after nb_error. */
int nb_file_write(const char *path, const char *text, size_t len);
/* The same of a text that is never whole in memory: next appends to an empty buffer; false: that was the last part. */
int nb_file_write_parts(const char *path, bool (*next)(void *context, struct nb_strbuf *part), void *context);
/* dir and its parents; fine when it is there. */
int nb_dir_make(const char *dir);
bool nb_path_exists(const char *path);
bool nb_dir_holds(const char *dir, const char *name); /* dir: or null, which holds nothing */
/* The path, which it takes over, where something is; else null. */
char *nb_path_found(char *path);
/* A new folder in TMPDIR, "normbench-NAME-XXXXXX", owned, and whoever dies without removing it leaves it to the next that wants one of this name: *lock is held
 * until then. Null after nb_error. */
char *nb_temporary_dir(const char *name, int *lock);
/* Removes the folder with what is in it, lets go the lock and frees the path (null: nothing to do). */
void nb_temporary_dir_remove(char *dir, int lock);
/* Moves a descriptor to a random number, closed on exec: foreign code has been seen to write to the first ones. Returns it, or fd as it
 * is where that cannot be had. alone: no other stays open but the first three. */
int nb_fd_out_of_reach(int fd, bool alone);
/* For released_by(); negative: nothing to do. */
void nb_fd_release(const int *fd);
/* A packet with descriptors, at most NB_MOST_FDS. False: it was not sent. */
enum { NB_MOST_FDS = 8 };
bool nb_fds_send(int socket, const void *data, size_t bytes, const int *fds, size_t n);
/* Waits for one of so many bytes; how many descriptors came with it, which are closed on exec; -1: something else, or nobody is there. */
int nb_fds_receive(int socket, void *data, size_t bytes, int fds[NB_MOST_FDS]);
/* What the folder's files that end so are called without that end, sorted; none where dir is null or cannot be read. */
struct nb_strings nb_dir_list(const char *dir, const char *end);
/* "a/b" from "a" and "b"; owned. */
char *nb_path_join(const char *dir, const char *name);
/* As it is named from any folder; owned. What is not there stays as it is. */
char *nb_path_absolute(const char *path);
/* The folder that holds the running program; owned. */
char *nb_program_dir(void);
/* The first that exists of $ENVIRONMENT (null: there is none), program/FOLDER, program/../FOLDER, program/../share/normbench/FOLDER; owned or
 * null. */
char *nb_share_dir(const char *environment, const char *folder);
/* The user's own: $VARIABLE/normbench where that is absolute, as the XDG specification wants it, else $HOME/BELOW/normbench; owned. Null: the
 * environment names neither. */
char *nb_user_dir(const char *variable, const char *below);
