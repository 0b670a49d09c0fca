// SPDX-License-Identifier: Apache-2.0
/* A shared object like any other: it exports a function, but not normbench_kernels(). */
int some_function(void);

int some_function(void) { return 42; }
