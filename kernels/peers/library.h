// SPDX-License-Identifier: Apache-2.0
/* Loading of a peer's library. */
#ifndef NB_PEER_LIBRARY_H
#define NB_PEER_LIBRARY_H

#include <stddef.h>

/* dlopen(), where libraries that it needs and that the system does not find are taken from its own folder: what a wheel holds side
 * by side is not in the loader's path. Null with the reason written. Nothing is closed again: a library whose threads run cannot be. */
void *peer_library_open(const char *path, char *reason, size_t n);
/* The function's address; null with the reason written. */
void *peer_library_symbol(void *handle, const char *path, const char *symbol, char *reason, size_t n);

#endif
