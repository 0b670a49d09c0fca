// SPDX-License-Identifier: Apache-2.0
/* calls LIBRARY KEYS: checks the cases of a library of GPU kernels by their keys, a line of a file each (`normbench run --list`), as a run does, but all in
 * this one process: compute-sanitizer does not bear the processes of a run, which are forked or close what they inherit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/measure/check.h"

/* What the case came out with; "": right. */
static void check(const struct nb_case *c, const struct nb_entry *entry, char *said, size_t n) {
    struct nb_inputs in released_by(nb_inputs_release) = {0};
    struct nb_oracle oracle released_by(nb_oracle_release) = {0};
    struct nb_gradient gradient released_by(nb_gradient_release) = {0};
    struct nb_checked checked;
    const bool back = c->pass == NB_BACKWARD && c->op != NB_OP_COPY;
    snprintf(said, n, "its inputs or its exact result cannot be had");
    if (nb_inputs_init(&in, c) != 0) return;
    if (nb_saved_statistics_add(&in, c) != 0 || nb_oracle_init(&oracle, c, &in) != 0) return;
    if (back && nb_saved_statistics_gradient(&gradient, c, &in) != 0) return;
    const struct nb_exact exact = {.oracle = &oracle, .gradient = back ? &gradient : NULL};
    nb_check_case(c, entry, &in, &exact, &checked);
    const bool right = nb_status_timed(checked.status);
    snprintf(said, n, "%s%s%s", right ? "" : nb_status_name(checked.status), right ? "" : ": ",
             right ? "" : checked.reason);
    free(checked.digests);
}

int main(int argc, char **argv) {
    char key[1000], said[400];
    int n = 0, n_wrong = 0;
    if (argc != 3 || !freopen(argv[2], "r", stdin) || nb_registry_load(argv[1]) != 0) return 2;
    const char *refusal = nb_device_cuda.open();
    if (refusal) {
        puts(refusal);
        return 77;
    }
    while (fgets(key, sizeof key, stdin)) {
        struct nb_case c;
        key[strcspn(key, "\n")] = '\0';
        const struct nb_entry *entry = nb_case_parse(&c, key) == 0 ? nb_registry_find(c.variant) : NULL;
        if (!entry) return 2;
        nb_case_set_entry(&c, entry);
        check(&c, entry, said, sizeof said);
        n++;
        n_wrong += said[0] != '\0';
        if (said[0]) printf("%s: %s\n", key, said);
    }
    printf("%d cases in one process, %d of them wrong\n", n, n_wrong);
    return n == 0 || n_wrong > 0;
}
