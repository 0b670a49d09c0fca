// SPDX-License-Identifier: Apache-2.0
/* The options behind peers, and their start in the process that plans. */
#include "cmd/peer_options.h"

#include <stdlib.h>
#include <string.h>

#include "src/core/files.h"
#include "src/core/foreign.h"
#include "src/core/log.h"
#include "src/core/peers.h"
#include "src/measure/pool.h"

enum { START_LIMIT_S = 60 };

/* Gives the library to the peer of that name, or to the last one (null). */
static int set_library(struct nb_texts *plugins, const char *name, const char *library) {
    for (size_t i = plugins->n; i > 0; i--) {
        const char *other;
        if (!nb_peer_is(plugins->items[i - 1])) continue;
        char *known = nb_peer_name(plugins->items[i - 1], &other);
        const bool is_it = !name || strcmp(known, name) == 0;
        char *spec = is_it ? nb_peer_spec(known, library) : NULL;
        free(known);
        if (!is_it) continue;
        if (spec) nb_texts_own(plugins, i - 1, spec);
        return spec ? 0 : -1;
    }
    return nb_error("--peer-lib %s%s%s: stands behind the --peer whose library it names", name ? name : "",
                    name ? "=" : "", library);
}

/* NAME=PATH or PATH: a name has no slash in it. */
static int add_library(struct nb_texts *plugins, const char *value) {
    const char *equals = strchr(value, '='), *slash = strchr(value, '/');
    if (!equals || equals == value || (slash && slash < equals)) return set_library(plugins, NULL, value);
    char *name = nb_strdup(value);
    name[equals - value] = '\0';
    int result = set_library(plugins, name, equals + 1);
    free(name);
    return result;
}

int nb_peer_option(struct nb_texts *plugins, int option, const char *value) {
    if (option == NB_OPT_PEER_LIB) return add_library(plugins, value);
    char *spec = nb_peer_spec(value, NULL);
    if (!spec) return -1;
    nb_texts_add(plugins, spec);
    nb_texts_own(plugins, plugins->n - 1, spec);
    return 0;
}

/* Is the peer in the list, or another build of its library ("onednn", "onednn-omp"), of which a process holds one alone? */
static bool is_named(const struct nb_texts *plugins, const char *peer) {
    const size_t len = strcspn(peer, "-");
    bool named = false;
    for (size_t i = 0; i < plugins->n && !named; i++) {
        const char *library;
        char *name = nb_peer_is(plugins->items[i]) ? nb_peer_name(plugins->items[i], &library) : NULL;
        named = name && strcspn(name, "-") == len && strncmp(name, peer, len) == 0;
        free(name);
    }
    return named;
}

int nb_peers_add_built(struct nb_texts *plugins) {
    int result = 0;
    for (size_t i = 0; i < nb_n_peers && result == 0; i++) {
        char *adapter = nb_peer_adapter(nb_peers[i].name);
        if (adapter && nb_path_exists(adapter) && !is_named(plugins, nb_peers[i].name))
            result = nb_peer_option(plugins, NB_OPT_PEER, nb_peers[i].name);
        free(adapter);
    }
    return result;
}

struct start {
    const struct nb_entry **peers;
    size_t n;
    char reason[160];
    int result;
};
static void start(void *arg) {
    struct start *s = arg;
    s->result = nb_kernels_open(s->peers, s->n, 1, NULL, s->reason, sizeof s->reason);
}

int nb_peers_start(void) {
    static struct start s; /* outlives a jump out of a library */
    s = (struct start){.peers = nb_alloc(nb_registry_size(), sizeof *s.peers), .result = -1};
    for (size_t i = 0; i < nb_registry_size(); i++)
        if (nb_registry_at(i)->is_peer) s.peers[s.n++] = nb_registry_at(i);
    const char *why = s.n > 0 ? nb_guarded(start, &s, START_LIMIT_S) : NULL;
    free(s.peers);
    if (s.n == 0) return 0;
    if (why) return nb_error("a peer's library does not start: %s", why);
    return s.result == 0 ? 0 : nb_error("a peer's library does not start: %s", s.reason);
}
