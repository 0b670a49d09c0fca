// SPDX-License-Identifier: Apache-2.0
#ifndef NB_TEST_RELEASED_H
#define NB_TEST_RELEASED_H

/* `struct nb_oracle o released_by(nb_oracle_release);` is released where its scope ends, in the reverse order of declarations. */
#define released_by(release) __attribute__((cleanup(release)))

#endif
