// SPDX-License-Identifier: Apache-2.0
/* Code that is not ours: shared objects with kernels, opened so that two builds can live in one process, and where their code lies. */
#pragma once

#include <stdbool.h>

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
