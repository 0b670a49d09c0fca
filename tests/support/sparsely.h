// SPDX-License-Identifier: Apache-2.0
#ifndef NB_TEST_SPARSELY_H
#define NB_TEST_SPARSELY_H

/* The step of loops over examples that take the same ways through the code. A sanitizer looks at what is read and written, not at
 * figures, and is many times slower: it sees one example in five. */
#if defined(__SANITIZE_ADDRESS__)
enum { SPARSELY = 5 };
#else
enum { SPARSELY = 1 };
#endif

#endif
