// SPDX-License-Identifier: Apache-2.0
/* Names, places and loading of peers. */
#include "src/core/peers.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/files.h"
#include "src/core/guard.h"
#include "src/core/kernel_fields.h"
#include "src/core/log.h"
#include "src/core/text.h"

const struct nb_peer_info nb_peers[] = {
    /* Of several builds of one library the first that is there is the default. */
    {"onednn-omp", "oneDNN 3.13 on OpenMP: LayerNorm, RMSNorm, BatchNorm, forward and backward",
     "14 MB, compiled here in 54 minutes of CPU time"},
    {"onednn-3.2", "oneDNN 3.2 of 2023 on OpenMP, without RMSNorm", "39 MB"},
    {"onednn", "oneDNN 3.13 on SYCL, some 10 us a call", "0.6 GB"},
    {"pytorch", "PyTorch's CPU operators, from C++", "0.6 GB"},
    {"ggml", "ggml's CPU backend: RMSNorm, LayerNorm, f32", "3 MB"},
};
const size_t nb_n_peers = sizeof nb_peers / sizeof nb_peers[0];

static const char prefix[] = "peer:";

bool nb_peer_is(const char *plugin) { return strncmp(plugin, prefix, sizeof prefix - 1) == 0; }

char *nb_peer_name(const char *spec, const char **library) {
    assert(spec && nb_peer_is(spec));
    const char *name = spec + sizeof prefix - 1, *equals = strchr(name, '=');
    *library = equals ? equals + 1 : NULL;
    return nb_textf("%.*s", (int)strcspn(name, "="), name);
}

char *nb_peer_user_dir(void) { return nb_user_dir("XDG_DATA_HOME", ".local/share"); }

static char *adapter_in(const char *folder, const char *below, const char *name) {
    char *file freed = nb_textf("%s%s.so", below, name);
    return nb_path_join(folder, file);
}

char *nb_peer_adapter(const char *name) {
    const char *named = getenv("NORMBENCH_PEERS");
    if (named && *named) return adapter_in(named, "", name);
    char *program freed = nb_program_dir(), *own freed = nb_peer_user_dir(), *found = NULL;
    const struct {
        const char *folder, *below;
    } places[] = {{program, "peers/"}, {own, "peers/"}, {program, "../lib/normbench/peers/"}};
    for (size_t i = 0; i < sizeof places / sizeof places[0] && !found; i++)
        if (places[i].folder) found = nb_path_found(adapter_in(places[i].folder, places[i].below, name));
    if (!found) found = adapter_in(program, places[0].below, name);
    return found;
}

/* ---- what the user names ---- */

static int refuse_adapter(const char *name, const char *path) {
    const char *names[sizeof nb_peers / sizeof nb_peers[0]];
    for (size_t i = 0; i < nb_n_peers; i++) {
        names[i] = nb_peers[i].name;
        if (strcmp(name, names[i]) == 0)
            return nb_error("--peer %s: %s is not built; `normbench peers %s` gets the library (%s) and builds it",
                            name, path, name, nb_peers[i].size);
    }
    const char *nearest = nb_nearest(name, names, nb_n_peers);
    return nb_error("--peer %s: there is no adapter %s; %s%s%s`normbench list peers` says what there is", name, path,
                    nearest ? "did you mean '" : "", nearest ? nearest : "", nearest ? "'? " : "");
}

char *nb_peer_spec(const char *name, const char *library) {
    if (!nb_name_is_plain(name))
        return nb_error("--peer %s: a name of letters, digits, '_', '.', '+' or '-'", name), NULL;
    char *adapter freed = nb_peer_adapter(name);
    if (!nb_path_exists(adapter) && refuse_adapter(name, adapter) != 0) return NULL;
    char *resolved freed = library ? realpath(library, NULL) : NULL;
    if (library && !resolved && nb_error("--peer-lib %s: %s", library, strerror(errno)) != 0) return NULL;
    return nb_textf("%s%s%s%s", prefix, name, resolved ? "=" : "", resolved ? resolved : "");
}

/* ---- loading ---- */

/* A parallel region begins sooner when the threads of the last one still spin, so that back-to-back calls are not charged for a
 * wake-up; after a tenth of a millisecond or so they sleep, before the next arm's slot. */
static void limit_spinning(void) {
    setenv("GOMP_SPINCOUNT", "30000", 0); /* GNU OpenMP: turns; its default is ten times that */
    setenv("KMP_BLOCKTIME", "1", 0);      /* Intel's and LLVM's: milliseconds; the default is 200 */
}

/* The libraries in use, by name without a version ("libdnnl"), and by whom: what is loaded is a property of the process. */
static struct { char library[64], peer[64]; } used[32];

/* Two builds of a library in one process would find each other's symbols. 0, or -1 with the reason written. */
static int claim_library(const char *path, const char *peer, char *reason, size_t n) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *end = strstr(name, ".so");
    char base[sizeof used[0].library];
    snprintf(base, sizeof base, "%.*s", (int)(end ? (size_t)(end - name) : strlen(name)), name);
    for (size_t i = 0; i < sizeof used / sizeof used[0]; i++) {
        if (!used[i].peer[0]) {
            snprintf(used[i].library, sizeof used[i].library, "%s", base);
            snprintf(used[i].peer, sizeof used[i].peer, "%s", peer);
            return 0;
        }
        if (strcmp(used[i].library, base) != 0) continue;
        if (strcmp(used[i].peer, peer) == 0) return 0;
        return nb_reason(
            reason, n,
            "%s and %s are both %s, and two builds of a library in one process find each other's symbols; measure them in separate runs",
            used[i].peer, peer, base);
    }
    return nb_reason(reason, n, "too many peers in one process");
}

/* A file may have any name: what the loader knows a library by is seen once it is loaded. */
static int use(const struct nb_peer *peer, const char *name, const char *library, char *reason, size_t n) {
    if (!peer || peer->struct_size < sizeof *peer || !peer->use)
        return nb_reason(reason, n, "its normbench_peer() has another version; rebuild it with `normbench peers`");
    const char *path = library ? library : peer->library;
    if (claim_library(path, name, reason, n) != 0 || peer->use(library, reason, n) != 0) return -1;
    const char *soname = nb_object_soname(path);
    return soname ? claim_library(soname, name, reason, n) : 0;
}

int nb_peer_use(void *handle, const char *adapter, const char *name, const char *library) {
    char reason[400] = "";
    void *symbol = nb_object_symbol(handle, adapter, "normbench_peer");
    if (!symbol) return nb_error("%s: does not export normbench_peer(); it is a plugin: use --plugin", adapter);
    limit_spinning();
    const struct nb_peer *peer = ((const struct nb_peer *(*)(void))(uintptr_t)symbol)();
    if (use(peer, name, library, reason, sizeof reason) == 0) return 0;
    return nb_error("%s: its library does not load: %s", adapter, reason);
}
