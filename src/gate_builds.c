// SPDX-License-Identifier: Apache-2.0
/* Copies in a folder for each layout: PLACE/0/baseline.so, PLACE/0/control.so, PLACE/0/candidate.so, PLACE/1/... */
#include "src/gate_builds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/files.h"
#include "src/log.h"
#include "src/shared_object.h"

const char *const nb_build_names[NB_N_BUILDS] = {"baseline", "control", "candidate"};

enum { LARGEST = 512 << 20 };

static char *copy_path(const struct nb_gate_builds *b, int layout, int build) {
    struct nb_strbuf path = {0};
    nb_strbuf_addf(&path, "%s/%d", b->dir, layout);
    if (build >= 0) nb_strbuf_addf(&path, "/%s.so", nb_build_names[build]);
    return path.text;
}

static int copy(struct nb_gate_builds *b, int layout, int build, const char *from) {
    size_t len;
    char *bytes = nb_file_read(from, LARGEST, &len);
    if (!bytes) return -1;
    char *to = copy_path(b, layout, build);
    b->files[layout][build] = to;
    b->sources[layout][build] = from;
    int result = nb_file_write(to, bytes, len);
    free(bytes);
    return result;
}

static int make_dir(struct nb_gate_builds *b) {
    const char *tmp = getenv("TMPDIR");
    b->dir = nb_path_join(tmp && *tmp ? tmp : "/tmp", "normbench-gate-XXXXXX");
    if (mkdtemp(b->dir)) return 0;
    int result = nb_error("%s: no folder for the copies of the builds: %s", b->dir, strerror(errno));
    free(b->dir);
    b->dir = NULL;
    return result;
}

int nb_gate_builds_init(struct nb_gate_builds *b, const char *const *baselines, size_t n_baselines,
                        const char *const *candidates, size_t n_candidates) {
    *b = (struct nb_gate_builds){.n_layouts = (int)(n_baselines > n_candidates ? n_baselines : n_candidates)};
    if (n_baselines == 0 || n_candidates == 0) return nb_error("the gate compares a --baseline with a --candidate");
    if (b->n_layouts > NB_GATE_LAYOUTS) return nb_error("%d layouts; %d are the most", b->n_layouts, NB_GATE_LAYOUTS);
    if (make_dir(b) != 0) return -1;
    for (int l = 0; l < b->n_layouts; l++) {
        const char *baseline = baselines[(size_t)l % n_baselines], *candidate = candidates[(size_t)l % n_candidates];
        char *dir = copy_path(b, l, -1);
        int result = nb_dir_make(dir);
        free(dir);
        if (result != 0 || copy(b, l, NB_BUILD_BASELINE, baseline) != 0 ||
            copy(b, l, NB_BUILD_CONTROL, baseline) != 0 || copy(b, l, NB_BUILD_CANDIDATE, candidate) != 0)
            return -1;
    }
    for (int build = 0; build < NB_N_BUILDS; build++)
        if (nb_registry_load(b->files[0][build]) != 0)
            return nb_error("%s is no build of kernels that can be compared",
                            build == NB_BUILD_CANDIDATE ? candidates[0] : baselines[0]);
    return 0;
}

void nb_gate_builds_release(struct nb_gate_builds *b) {
    for (int l = 0; l < b->n_layouts && b->dir; l++) {
        for (int build = 0; build < NB_N_BUILDS; build++) {
            if (!b->files[l][build]) continue;
            unlink(b->files[l][build]);
            free((char *)(uintptr_t)b->files[l][build]);
        }
        char *dir = copy_path(b, l, -1);
        rmdir(dir);
        free(dir);
    }
    if (b->dir) rmdir(b->dir);
    free(b->dir);
    *b = (struct nb_gate_builds){0};
}

const char *nb_gate_same_code(const struct nb_entry *baseline, const struct nb_entry *candidate) {
    const char *in_baseline = NULL, *in_candidate = NULL;
    const void *a = nb_object_of((void *)(uintptr_t)baseline->kernel->run, &in_baseline);
    const void *b = nb_object_of((void *)(uintptr_t)candidate->kernel->run, &in_candidate);
    if (baseline->kernel->run == candidate->kernel->run || a == b)
        return "both builds run the same function of one loaded file: build them with hidden visibility and -Bsymbolic";
    return NULL;
}
