// SPDX-License-Identifier: Apache-2.0
/* What machine, system and build a result belongs to. */
#ifndef NB_FINGERPRINT_H
#define NB_FINGERPRINT_H

#include <cjson/cJSON.h>

/* CPU (libcpuid, CPUID), caches, ISA, hypervisor, kernel, governor, clock source, compiler, flags, commit and dirty state, hash of
 * each kernel object file loaded, library versions. Keys in a fixed order; 64-bit integers and hashes are strings. */
cJSON *nb_fingerprint(void);
/* Hex digest of a file's bytes (FNV-1a, 64 bits): "" when it cannot be read. */
void nb_file_hash(const char *path, char out[20]);
/* Hash of a string, same function. */
void nb_text_hash(const char *text, char out[20]);

#endif
