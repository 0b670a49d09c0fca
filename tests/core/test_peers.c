// SPDX-License-Identifier: Apache-2.0
/* Peers by name: where their adapters are looked for, what is refused, and how they stand among the kernels. */
#include "src/core/peers.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Adapters are the test plugins from now on. */
static void use_fakes(void) { setenv("NORMBENCH_PEERS", getenv("NORMBENCH_TEST_PLUGINS"), 1); }

Test(peers, a_spec_is_read_back) {
    const char *library;
    cr_assert(nb_peer_is("peer:onednn"));
    cr_assert(!nb_peer_is("./peer.so") && !nb_peer_is("onednn"));
    char *name = nb_peer_name("peer:onednn", &library);
    cr_assert_str_eq(name, "onednn");
    cr_assert_null(library);
    free(name);
    name = nb_peer_name("peer:onednn=/a=b/libdnnl.so.3", &library);
    cr_assert_str_eq(name, "onednn");
    cr_assert_str_eq(library, "/a=b/libdnnl.so.3");
    free(name);
}

Test(peers, adapters_lie_where_the_environment_says) {
    setenv("NORMBENCH_PEERS", "/some/where", 1);
    char *path = nb_peer_adapter("onednn");
    cr_assert_str_eq(path, "/some/where/onednn.so");
    free(path);
    unsetenv("NORMBENCH_PEERS");
    path = nb_peer_adapter("onednn");
    cr_assert_str_eq(path + strlen(path) - strlen("/peers/onednn.so"), "/peers/onednn.so");
    free(path);
}

Test(peers, a_library_is_given_by_its_absolute_path) {
    use_fakes();
    char *spec = nb_peer_spec("fakelib", "/proc/self/../self/exe"), self[4096], wanted[4200];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    cr_assert(n > 0);
    self[n] = '\0';
    snprintf(wanted, sizeof wanted, "peer:fakelib=%s", self);
    cr_assert_str_eq(spec, wanted);
    free(spec);
    spec = nb_peer_spec("fakelib", NULL);
    cr_assert_str_eq(spec, "peer:fakelib");
    free(spec);
}
