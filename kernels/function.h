// SPDX-License-Identifier: Apache-2.0
/* What `normbench gate --function` calls in a shared object. No build needs this file: the types below are all there is to it, in C
 * (extern "C" in C++) or as C++ functions of these parameters. For `--function parse` the other four are parse_setup, parse_bytes,
 * parse_check and parse_teardown where the shared object has them, or what --setup, --bytes, --check and --teardown name.
 *
 *     void *parse_setup(void);                                called once in a process; without it the state is null
 *     void parse(void *state);                                timed; does the same work in every call
 *     const void *parse_bytes(const void *state, size_t *n);  what a call computed: n bytes, compared between the builds
 *     int parse_check(const void *state, const void *other);  0: the state holds what it should; other: the baseline's
 *     void parse_teardown(void *state);
 *
 * Each call writes all of its output anew: between calls the harness spoils one of the bytes, so that a call that leaves its work out
 * is seen. Bytes that are made when they are asked for, or may not be written, cannot be spoilt. Bytes hold no pointers, no padding and
 * no times. A function that grows its state, reads or writes files or sockets, or waits cannot be compared so: its calls are not equal. */
#ifndef NB_FUNCTION_H
#define NB_FUNCTION_H

#include <stddef.h>

typedef void *nb_function_setup(void);
typedef void nb_function_timed(void *state);
typedef const void *nb_function_bytes(const void *state, size_t *n);
typedef int nb_function_check(const void *state, const void *other);
typedef void nb_function_teardown(void *state);

#endif
