// SPDX-License-Identifier: Apache-2.0
/* The memory that programs with kernels map too (cmd/guide/protocol.md). It is freed by nb_program_memory_free() (kernel_program.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct area;

/* How far buffers lie from each other, so that an index of 32 bits, wrapped or not, finds nothing of anyone else's: addresses cost nothing,
 * but in an emulator, which keeps a note of each page (seconds for one buffer). */
size_t nb_buffer_distance(void);
/* Whole pages, so far from all others, that programs of this process map too. Null: no program has been started
 * by this process (errno is 0), or there is no memory. */
void *nb_program_memory_new(size_t bytes);

/* An empty file, mapped nowhere yet, and its size. -1: none to be had. */
int nb_program_memory_create(size_t *bytes);

/* ---- for kernel_program.c ---- */

/* The file, mapped in this process from now on, and its size. -1: none to be had. */
int nb_program_memory_file(size_t *bytes);
/* A file of nb_program_memory_create() that another process has made is this one's. */
void nb_program_memory_take(int fd);
/* No more of it from now on: programs that another process has greeted map so much. */
void nb_program_memory_limit(size_t bytes);
/* Where in the file the address is, and the area that it lies in. False: in none. */
bool nb_program_memory_find(const void *address, int64_t *offset, struct area *area);
/* Gives the area at this address back; no program may have it open. */
void nb_program_memory_give_back(void *address);
