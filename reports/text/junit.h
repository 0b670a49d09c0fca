// SPDX-License-Identifier: Apache-2.0
/* One JUnit test suite as XML, as Jenkins and GitLab read it and as actions for GitHub do: <testsuites><testsuite> with the
 * properties first, then the cases, in the order that their schemas ask for. */
#ifndef NB_JUNIT_H
#define NB_JUNIT_H

#include <stddef.h>

#include "src/core/text.h"

/* Zero-initialise. */
struct nb_junit {
    struct nb_strbuf properties, cases;
    size_t n, n_failures, n_skipped;
};

struct nb_junit_case {
    const char *class_name, *name;
    double time_s;       /* NaN: not known */
    const char *failure; /* its type, such as "REGRESSION", or null */
    const char *skipped; /* why it tells nothing, or null */
    const char *message; /* of a failure, one line */
    const char *output;  /* what else there is to say, or null */
};

void nb_junit_property(struct nb_junit *j, const char *name, const char *value);
void nb_junit_add(struct nb_junit *j, const struct nb_junit_case *c);
/* The document; started: ISO 8601, or "". Releases j. */
void nb_junit_finish(struct nb_junit *j, const char *suite, const char *started, double time_s, struct nb_strbuf *out);

#endif
