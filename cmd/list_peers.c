// SPDX-License-Identifier: Apache-2.0
/* Each library is loaded in a process of its own, where it can meet no other, and only to be asked for its version. */
#include "cmd/list_peers.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/core/files.h"
#include "src/core/foreign.h"
#include "src/core/log.h"
#include "src/core/peers.h"
#include "src/core/text.h"

struct answer {
    bool loads;
    char library[512], version[128]; /* version: or why it does not load */
};

static void ask(const char *adapter, struct answer *a) {
    void *handle = dlopen(adapter, RTLD_NOW | RTLD_LOCAL);
    void *symbol = handle ? nb_object_symbol(handle, adapter, "normbench_peer") : NULL;
    if (!symbol) {
        snprintf(a->version, sizeof a->version, "%s", handle ? "an adapter of another version" : dlerror());
        return;
    }
    const struct nb_peer *peer = ((const struct nb_peer *(*)(void))(uintptr_t)symbol)();
    snprintf(a->library, sizeof a->library, "%s", peer->library);
    a->loads = peer->use(NULL, a->version, sizeof a->version) == 0;
    if (a->loads) snprintf(a->version, sizeof a->version, "%s", peer->version());
}

/* What a child that asks writes into the pipe; nothing when the library ends it. */
static void ask_apart(const char *adapter, struct answer *a) {
    int ends[2];
    *a = (struct answer){.version = "its library ends the program that loads it"};
    fflush(NULL);
    if (pipe(ends) != 0) return;
    pid_t child = fork();
    if (child == 0) {
        struct answer found = {0};
        ask(adapter, &found);
        ssize_t written = write(ends[1], &found, sizeof found);
        _exit(written == (ssize_t)sizeof found ? 0 : 1);
    }
    close(ends[1]);
    struct answer found;
    if (child > 0 && read(ends[0], &found, sizeof found) == (ssize_t)sizeof found) *a = found;
    close(ends[0]);
    if (child > 0) waitpid(child, NULL, 0);
}

static void add_peer(struct nb_grid *grid, const struct nb_peer_info *info) {
    struct nb_strbuf command = {0};
    struct answer a = {0};
    char *adapter = nb_peer_adapter(info->name);
    const bool is_built = nb_path_exists(adapter);
    if (is_built) ask_apart(adapter, &a);
    nb_strbuf_add(&command, "");
    if (!a.loads) nb_strbuf_addf(&command, "make peers PEERS=%s   # %s", info->name, info->size);
    nb_grid_add(grid, info->name);
    nb_grid_add(grid, is_built ? "built" : "not built");
    nb_grid_add(grid, a.loads ? "found" : is_built ? "missing" : "");
    nb_grid_add(grid, a.version);
    nb_grid_add(grid, a.library);
    nb_grid_add(grid, command.text);
    nb_grid_add(grid, info->what);
    nb_strbuf_release(&command);
    free(adapter);
}

int nb_list_peers(struct nb_grid *grid) {
    static const char *const titles[] = {"peer", "adapter", "library", "version", "file", "get", "what"};
    nb_grid_init(grid, titles, sizeof titles / sizeof titles[0]);
    for (size_t i = 0; i < nb_n_peers; i++) add_peer(grid, &nb_peers[i]);
    return 0;
}
