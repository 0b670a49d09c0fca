// SPDX-License-Identifier: Apache-2.0
/* Peers by name: where their adapters are looked for, what is refused, and how they stand among the kernels. */
#include "src/registry/peers.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/files.h"
#include "src/base/log.h"
#include "src/registry/registry.h"

static const char *plugins(void) {
    const char *folder = getenv("NORMBENCH_TEST_PLUGINS");
    cr_assert(folder, "NORMBENCH_TEST_PLUGINS is not set");
    return folder;
}

/* Adapters are the test plugins from now on. */
static void use_fakes(void) { setenv("NORMBENCH_PEERS", plugins(), 1); }

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

Test(peers, what_is_not_there_is_refused) {
    setenv("NORMBENCH_PEERS", "/some/where", 1);
    cr_assert_null(nb_peer_spec("onednn", NULL), "it is not built");
    cr_assert_null(nb_peer_spec("onednm", NULL));
    cr_assert_null(nb_peer_spec("../fakelib", NULL));
    cr_assert_null(nb_peer_spec("", NULL));
    use_fakes();
    cr_assert_null(nb_peer_spec("fakelib", "/no/such/library.so"));
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

Test(peers, an_adapter_joins_the_registry_under_its_name) {
    use_fakes();
    cr_assert_eq(nb_registry_load("peer:fakelib"), 0);
    const struct nb_entry *e = nb_registry_find("fakelib:rmsnorm_f32");
    cr_assert_not_null(e);
    cr_assert(e->is_peer);
    cr_assert_str_eq(e->plugin, "fakelib");
    cr_assert_str_eq(e->file, "peer:fakelib", "so that a worker loads it the same way");
    cr_assert(strstr(nb_registry_file(0), "/fakelib.so"), "the fingerprint takes the adapter's file");
    cr_assert_str_eq(e->kernel->version(), "fakelib 1.0");
    cr_assert_eq(nb_registry_load("peer:fakelib"), 0, "once more is no error");
    cr_assert_eq(nb_registry_size(), 1);
    cr_assert_eq(nb_registry_load("peer:fakelib=/proc/self/exe"), -1, "another library beside the first");
    nb_registry_release();
}

Test(peers, a_library_that_does_not_load_is_named) {
    use_fakes();
    cr_assert_eq(nb_registry_load("peer:fakelib=/tmp/broken.so"), -1);
    cr_assert_eq(nb_registry_load("peer:example"), -1, "a plugin is no adapter");
    cr_assert_eq(nb_registry_load("peer:nosuch"), -1);
    cr_assert_eq(nb_registry_size(), 0);
}

Test(peers, a_library_can_be_given) {
    use_fakes();
    cr_assert_eq(nb_registry_load("peer:fakelib=/proc/self/exe"), 0);
    cr_assert_str_eq(nb_registry_at(0)->kernel->version(), "fakelib 1.0, given");
    nb_registry_release();
}

Test(peers, every_peer_has_its_list_of_wheels_and_a_size) {
    for (size_t i = 0; i < nb_n_peers; i++) {
        char path[256];
        snprintf(path, sizeof path, "kernels/peers/wheels/%s.txt", nb_peers[i].name);
        cr_assert(nb_path_exists(path), "%s", path);
        cr_assert(nb_peers[i].what[0] && nb_peers[i].size[0]);
    }
}
