// SPDX-License-Identifier: Apache-2.0
/* Peers by name: where their adapters are looked for, what is refused, and how they stand among the kernels. */
#include "src/core/peers.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/measure/pool.h"

enum { CPUS_TRIED = 64 };

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

Test(peers, every_peer_has_its_wheels_or_its_recipe_and_a_size) {
    for (size_t i = 0; i < nb_n_peers; i++) {
        char wheels[256], recipe[256];
        snprintf(wheels, sizeof wheels, "kernels/peers/wheels/%s.txt", nb_peers[i].name);
        snprintf(recipe, sizeof recipe, "kernels/peers/get_%s.sh", nb_peers[i].name);
        cr_assert(nb_path_exists(wheels) != nb_path_exists(recipe), "%s, %s", wheels, recipe);
        cr_assert(nb_peers[i].what[0] && nb_peers[i].size[0]);
    }
}

/* ---- those that are built ------------------------------------------------------------------------------------------- */

/* The adapters that lie beside the program under test, which is where `make peers` puts them. */
static bool use_built(const char *name) {
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/../../peers", getenv("NORMBENCH_TEST_PLUGINS"));
    setenv("NORMBENCH_PEERS", folder, 1);
    char *adapter = nb_peer_adapter(name), *spec = NULL;
    const bool there = nb_path_exists(adapter);
    if (there) spec = nb_peer_spec(name, NULL);
    free(adapter);
    if (spec) cr_assert_eq(nb_registry_load(spec), 0, "%s", name);
    free(spec);
    return there;
}

/* Threads of this process; pinned_to >= 0: those alone that may run on that CPU and no other. */
static int count_threads(int pinned_to) {
    DIR *folder = opendir("/proc/self/task");
    int n = 0;
    for (struct dirent *e; (e = readdir(folder)) != NULL;) {
        cpu_set_t set;
        const pid_t id = (pid_t)atoi(e->d_name);
        if (id > 0 && sched_getaffinity(id, sizeof set, &set) == 0)
            n += pinned_to < 0 || (CPU_ISSET(pinned_to, &set) && CPU_COUNT(&set) == 1);
    }
    closedir(folder);
    return n;
}

enum { ROWS = 64, COLS = 1024 };
static struct nb_call norm_call(float *x) {
    return (struct nb_call){.struct_size = sizeof(struct nb_call),
                            .n_threads = 2,
                            .rows = ROWS,
                            .cols = COLS,
                            .x_stride = COLS,
                            .y_stride = COLS,
                            .eps = 1e-5,
                            .x = x,
                            .y = x + ROWS * COLS};
}

/* A team that comes up at the first call, when the caller has pinned itself, would share the caller's CPU: every region then ends with
 * the scheduler's next tick. */
static void team_is_up_once_opened(const char *name, const char *variant) {
    int cpus[CPUS_TRIED];
    char reason[200];
    if (nb_cpu_allowed(cpus, CPUS_TRIED) < 2 || !use_built(name)) cr_skip_test("%s is not built, or one CPU", name);
    const struct nb_entry *entry = nb_registry_find(variant);
    float *x = nb_alloc(2 * ROWS * COLS, sizeof *x);
    const struct nb_call call = norm_call(x);
    cr_assert_not_null(entry);
    cr_assert_eq(nb_kernels_open(&entry, 1, 2, cpus, reason, sizeof reason), 0, "%s", reason);
    const int n = count_threads(-1);
    cr_assert_eq(count_threads(cpus[1]), 1, "%s: its other thread", name);
    cr_assert_eq(entry->kernel->run(&call, 0, 0, 1), 0);
    cr_assert_eq(count_threads(-1), n, "%s: a thread came up at the first call", name);
    nb_kernels_close(&entry, 1);
    free(x);
}
Test(peers, pytorch_has_its_team_once_opened) { team_is_up_once_opened("pytorch", "pytorch:rmsnorm_native_f32"); }
Test(peers, onednn_on_openmp_has_its_team_once_opened) {
    team_is_up_once_opened("onednn-omp", "onednn-omp:layernorm_native_f32");
}
Test(peers, ggml_has_its_team_once_opened) { team_is_up_once_opened("ggml", "ggml:rmsnorm_native_f32"); }
