// SPDX-License-Identifier: Apache-2.0
/* normbench peers: gets other libraries and builds the adapters to them, from the sources that are installed with the program
 * (kernels/peers/), so that no checkout is needed. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/shared/options.h"
#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/peers.h"
#include "src/core/text.h"

static const char help[] =
    "usage: normbench peers NAME... [OPTIONS]\n\n"
    "Download other libraries, each file held to its SHA-256, and build the adapters to them, so that their norms can\n"
    "be measured beside ours: `normbench run peers`, or --peer NAME. `normbench list peers` has the names, and what is there\n"
    "already. Nothing is installed: all of it goes to $XDG_DATA_HOME/normbench, else ~/.local/share/normbench, and is gone with\n"
    "that folder. Needs make, a C compiler, python3 with pip; pytorch a C++20 compiler; onednn-omp, which is\n"
    "compiled, cmake and g++.\n\n" NB_COMMON_HELP "\n"
    "In a checkout `make peers` does the same into build/peers/, for one library's own build too (kernels/peers/README.md).\n"
    "Exit codes: 0 they are built, 2 usage, or something failed and was said.\n";

/* Names go to make and from there to a shell: only those that the program has. As one text; owned, null after nb_error. */
static char *names_of(int n, char **names) {
    struct nb_strbuf text = {0};
    for (int i = 0; i < n; i++) {
        const char *known[16];
        bool is_known = false;
        for (size_t k = 0; k < nb_n_peers; k++) is_known |= strcmp(known[k] = nb_peers[k].name, names[i]) == 0;
        if (!is_known) {
            nb_error("peers: there is no '%s' (`normbench list peers` has the names)%s", names[i],
                     nb_did_you_mean(names[i], known, nb_n_peers).text);
            nb_strbuf_release(&text);
            return NULL;
        }
        nb_strbuf_addf(&text, "%s%s", i ? " " : "PEERS=", names[i]);
    }
    if (!text.text) nb_error("peers: NAME of a library; `normbench list peers` has them");
    return text.text;
}

/* Make cannot have a folder with a blank in its name, and a shell reads the others. */
static int check_folder(const char *folder) {
    if (!folder) return nb_error("peers: neither HOME nor XDG_DATA_HOME says where to");
    const char *odd = folder + strcspn(folder, " \t\n'\"\\$#%:;&|<>()*?[]~`");
    return *odd ? nb_error("peers: %s: make cannot work in a folder with '%c' in its name; set XDG_DATA_HOME", folder,
                           *odd)
                : nb_dir_make(folder);
}

/* Make takes this process's place; what it prints is progress. Comes back only where that cannot be. */
static void become_make(const char *sources, const char *folder, char *peers) {
    released_by(nb_strbuf_release) struct nb_strbuf root = {0}, build = {0}, libraries = {0};
    nb_strbuf_addf(&root, "%s/../..", sources);
    nb_strbuf_addf(&build, "BUILD=%s", folder);
    nb_strbuf_addf(&libraries, "PEERS_DIR=%s/libraries", folder);
    char make[] = "make", quiet[] = "--no-print-directory", in[] = "-C", file[] = "-f",
         rules[] = "kernels/peers/rules.mk", target[] = "peers";
    char *argv[] = {make, quiet, in, root.text, file, rules, build.text, libraries.text, peers, target, NULL};
    nb_note("to %s/peers", folder);
    fflush(NULL);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execvp(argv[0], argv);
    nb_error("peers: make: %s%s", strerror(errno), errno == ENOENT ? "; apt-get install make gcc python3-pip" : "");
}

static int peers_main(int argc, char **argv) {
    const struct nb_option options[] = {{.name = NULL}};
    int exit_code;
    if (!nb_read_options(help, options, NB_ANY_ARGUMENTS, argc, argv, &exit_code)) return exit_code;
    char *names freed = names_of(argc - optind, argv + optind), *folder freed = nb_peer_user_dir();
    char *sources freed = nb_share_dir(NULL, "kernels/peers");
    if (names && !sources)
        nb_error("peers: no sources of adapters near the program; in a checkout: make peers '%s'", names);
    if (names && sources && check_folder(folder) == 0) become_make(sources, folder, names);
    return exit_code;
}

const struct nb_command nb_command_peers = {"peers", "download and build third-party libraries to compare with", help,
                                            peers_main};
