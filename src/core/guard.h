// SPDX-License-Identifier: Apache-2.0
/* Code from outside never runs in the process that decides: it is loaded and asked in the guard, a fork of this process, which may
 * crash, hang or end in its place. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum { NB_GUARD_BYTES = 64 << 10 };

/* Has work(arg) done in the guard, within limit_s seconds; arg, of at most NB_GUARD_BYTES, is copied there and back. What it points to
 * must be older than the guard, which lives from the first call to the first that fails. Null: done. Else what the code did instead
 * ("ended the process with exit code 0", "did not end within 2 s"), good until the next call; arg is as it was. In the
 * guard itself the work is simply done. Not for several threads at once. */
const char *nb_guarded(void (*work)(void *arg), void *arg, size_t bytes, double limit_s);
/* What a new guard begins with: to load again what the last one had. Null: nothing. */
void nb_guard_begins_with(void (*begin)(void));
/* The longest that foreign code may take to be loaded, in seconds: as usual for its kind, or what this variable of the environment says. */
#define NB_LOAD_TIMEOUT "NORMBENCH_LOAD_TIMEOUT"
double nb_load_timeout_s(double usual_s);
/* A guard that is waited for while this says other than 0 is given up: "was interrupted". */
void nb_guard_ends_when(int (*is_over)(void));
/* Ends the guard and all that it started; the next call starts another. */
void nb_guard_end(void);

/* Code that is not ours: shared objects with kernels, opened so that two builds can live in one process, and where their code lies. */

/* Null after nb_error naming the file. One handle for one file, however often it is opened; each is closed by dlclose.
 */
void *nb_object_open(const char *path);
/* The address of an exported symbol that lies in the file itself and not in a library it depends on; null without a
 * word. */
void *nb_object_symbol(void *handle, const char *path, const char *symbol);
/* Says the names of all functions that the file exports. */
void nb_object_functions(void *handle, void (*take)(const char *name, void *arg), void *arg);
/* Is what lies there a function, as the file's symbols say? */
bool nb_object_is_function(const void *address);
/* Start of the loaded object that holds an address, null: none does. name, when not null: its file. */
const void *nb_object_of(const void *address, const char **name);
/* The name that the loader knows a loaded file by (DT_SONAME), as long as it is loaded; null: it has none, or is not loaded. */
const char *nb_object_soname(const char *path);
/* Loads a file for good and says all others that are loaded then: those that it needs, the program's, what was opened before. soname: as
 * above. Null, or what the loader says instead. */
const char *nb_object_libraries(const char *path, void (*take)(const char *file, const char *soname, void *arg),
                                void *arg);
/* Of the symbols that a loaded object both defines and refers to by the loader, one that was bound to another object: what
 * stands before it in the search (the program, LD_PRELOAD), or the first of all that define it when it is unique in the process
 * (C++). Null: none; else its name, and whose it is. handle: from nb_object_open. */
const char *nb_object_foreign(void *handle, const char **where);
