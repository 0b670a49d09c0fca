// SPDX-License-Identifier: Apache-2.0
/* A fault's last word: which tensor's guard page was hit, reading or writing, said before the process ends. */
#ifndef NB_FAULTS_H
#define NB_FAULTS_H

#include "src/measure/buffers.h"

/* Installs the handlers. A fault is said to the parent (src/measure/answers.h):
 * {"type":"fault","signal":11,"status":"read_outside","reason":"..."}; then the process ends by that signal. */
void nb_faults_watch(void);
/* The buffers whose guards are in force; null: none. */
void nb_faults_set_buffers(const struct nb_buffers *b);

#endif
