// SPDX-License-Identifier: Apache-2.0
/* The common parts of the command lines, and the kernels that they name. */
#include "cmd/shared/options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/case.h"
#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/foreign.h"
#include "src/core/log.h"
#include "src/core/peers.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "src/core/tuning_file.h"
#include "src/measure/pool.h"

void nb_texts_add(struct nb_texts *t, const char *item) {
    t->items = nb_realloc(t->items, t->n + 1, sizeof *t->items);
    t->items[t->n++] = item;
}
void nb_texts_own(struct nb_texts *t, size_t i, char *text) {
    t->items[i] = text;
    t->owned = nb_realloc(t->owned, t->n_owned + 1, sizeof *t->owned);
    t->owned[t->n_owned++] = text;
}
void nb_texts_release(struct nb_texts *t) {
    for (size_t i = 0; i < t->n_owned; i++) free(t->owned[i]);
    free(t->owned);
    free(t->items);
    *t = (struct nb_texts){0};
}

static int bad_option(const char *typed, const struct option *options, const struct nb_command *command) {
    const char *names[64];
    size_t n = 0;
    for (; n < 64 && options[n].name; n++) names[n] = options[n].name;
    char word[64];
    snprintf(word, sizeof word, "%s", typed + strspn(typed, "-"));
    word[strcspn(word, "=")] = '\0';
    const char *nearest = nb_nearest(word, names, n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], word) == 0) {
            nb_error("%s: option --%s %s", command->name, word,
                     options[i].has_arg ? "needs a value" : "takes no value");
            return NB_EXIT_USAGE;
        }
    struct nb_strbuf begun = {0};
    for (size_t i = 0; i < n && *word; i++)
        if (strncmp(names[i], word, strlen(word)) == 0)
            nb_strbuf_addf(&begun, "%s--%s", begun.len ? ", " : "", names[i]);
    if (begun.len)
        nb_error("%s: option '%s' may be one of %s", command->name, typed, begun.text);
    else if (nearest)
        nb_error("%s: no option '%s'; did you mean '--%s'?", command->name, typed, nearest);
    else
        nb_error("%s: no option '%s'; `normbench %s --help` lists them", command->name, typed, command->name);
    nb_strbuf_release(&begun);
    return NB_EXIT_USAGE;
}

static int set_color(const char *when) {
    static const char *const names[] = {"auto", "always", "never"};
    for (int i = 0; i < 3; i++)
        if (strcmp(when, names[i]) == 0) {
            nb_log_color((enum nb_color)i);
            return 0;
        }
    return nb_error("--color %s: one of auto, always, never", when);
}

int nb_next_option(int argc, char **argv, const struct option *options, const struct nb_command *command, bool *done,
                   int *exit_code) {
    opterr = 0;
    for (;;) {
        int before = optind ? optind : 1;
        int id = getopt_long(argc, argv, "h", options, NULL);
        if (id == NB_OPT_HELP || id == 'h') {
            fputs(command->help, stdout);
            *done = true;
            *exit_code = NB_EXIT_OK;
            return -1;
        }
        if (id == '?') {
            *done = true;
            const char *typed = before < argc && argv[before][0] == '-' ? argv[before] : argv[optind - 1];
            *exit_code = bad_option(typed, options, command);
            return -1;
        }
        if (id == NB_OPT_QUIET) {
            nb_log_quiet(true);
        } else if (id == NB_OPT_COLOR || id == NB_OPT_TUNING) {
            if ((id == NB_OPT_COLOR ? set_color(optarg) : nb_tuning_choose(optarg)) != 0) {
                *done = true;
                *exit_code = NB_EXIT_USAGE;
                return -1;
            }
        } else {
            return id;
        }
    }
}

int nb_option_number(const char *option, const char *text, double least, double most, double *out) {
    char *end;
    *out = strtod(text, &end);
    if (end != text && *end == '\0' && isfinite(*out) && *out >= least && *out <= most) return 0;
    return nb_error("%s %s: a number from %.10g to %.10g", option, text, least, most);
}

/* ---- the folder that a command leaves behind ----------------------------------------------------------------------- */

int nb_output_option_set(struct nb_output_options *o, int id, const char *value, bool (*format_known)(const char *),
                         const char *formats) {
    switch (id) {
    case NB_OUTPUT_OUT:
        o->out = value;
        return 0;
    case NB_OUTPUT_RESUME:
        o->resume = value;
        return 0;
    case NB_OUTPUT_FORMAT:
        o->format = value;
        return format_known(value) ? 0 : nb_error("--format %s: %s", value, formats);
    case NB_OUTPUT_LIST:
        o->list = true;
        return 0;
    case NB_OUTPUT_NO_PLOTS:
        o->no_plots = true;
        return 0;
    default:
        return nb_option_number("--case-timeout", value, 0.1, 86400, &o->case_timeout_s);
    }
}

/* ---- peers and kernels ---------------------------------------------------------------------------------------------- */

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

static int start_peers(void) {
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

static int limit_width(const char *text) {
    const char *names[NB_N_WIDTHS];
    for (uint32_t w = 0; w < NB_NATIVE; w++) {
        names[w] = nb_width_name(w);
        if (strcmp(text, names[w]) == 0) {
            nb_cpu_limit_width((enum nb_width)w);
            return 0;
        }
    }
    return nb_error("--max-width %s: one of scalar, 128, 256, 256x, 512", text);
}

int nb_load_kernels(const struct nb_texts *plugins, const char *max_width) {
    if (max_width && limit_width(max_width) != 0) return -1;
    nb_tuning_choose_once(NULL);
    if (nb_registry_load_builtin() != 0) return -1;
    for (size_t i = 0; plugins && i < plugins->n; i++)
        if (nb_registry_load(plugins->items[i]) != 0) return -1;
    return start_peers();
}
