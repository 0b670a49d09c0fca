// SPDX-License-Identifier: Apache-2.0
/* A folder of the test's own that pages and pictures are written into. */
#ifndef NB_TEST_SUPPORT_FOLDER_H
#define NB_TEST_SUPPORT_FOLDER_H

#include <stdbool.h>

extern char folder[];
/* .init and .fini of a suite */
void make_folder(void);
void remove_folder(void);        /* with all that is in it */
char *read_in(const char *name); /* owned; the test fails without the file */
bool exists_in(const char *name);

#endif
