// SPDX-License-Identifier: Apache-2.0
/* Command lines read by a table, and the kernels that they name. */
#include "cmd/shared/options.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/guard.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/peers.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "src/core/tuning.h"
#include "src/measure/pool.h"

const char *const nb_table_json[] = {"table", "json", NULL};
const char *const nb_table_markdown_json[] = {"table", "markdown", "json", NULL};
const char *const nb_table_markdown_csv_json[] = {"table", "markdown", "csv", "json", NULL};

/* ---- the table of options -------------------------------------------------------------------------------------------- */

enum { MOST_OPTIONS = 48, FIRST_ID = 1000 };

static void bad_option(const char *typed, const struct option *options, const char *command) {
    const char *names[MOST_OPTIONS];
    size_t n = 0, n_begun = 0;
    for (; options[n].name; n++) names[n] = options[n].name;
    char word[64];
    snprintf(word, sizeof word, "%s", typed + strspn(typed, "-"));
    word[strcspn(word, "=")] = '\0';
    const char *nearest = nb_nearest(word, names, n);
    const struct option *meant = NULL;
    struct nb_strbuf begun released_by(nb_strbuf_release) = {0};
    for (size_t i = 0; i < n && *word; i++) {
        if (strncmp(names[i], word, strlen(word)) != 0) continue;
        nb_strbuf_addf(&begun, "%s--%s", n_begun++ ? ", " : "", names[i]);
        if (!meant || strcmp(names[i], word) == 0) meant = &options[i];
    }
    if (meant && (n_begun == 1 || strcmp(meant->name, word) == 0))
        nb_error("%s: option --%s %s", command, meant->name, meant->has_arg ? "needs a value" : "takes no value");
    else if (meant)
        nb_error("%s: option '%s' may be one of %s", command, typed, begun.text);
    else if (nearest)
        nb_error("%s: no option '%s'; did you mean '--%s'?", command, typed, nearest);
    else
        nb_error("%s: no option '%s'; `normbench %s --help` lists them", command, typed, command);
}

int nb_option_number(const char *option, const char *text, double least, double most, double *out) {
    char *end;
    *out = strtod(text, &end);
    if (end != text && *end == '\0' && isfinite(*out) && *out >= least && *out <= most) return 0;
    return nb_error("--%s %s: a number from %.10g to %.10g", option, text, least, most);
}

int nb_option_name(const char *option, const char *text, const char *const *names) {
    char reason[256];
    const int found = nb_name_find(names, text);
    if (found >= 0) return found;
    nb_name_refuse(names, reason, sizeof reason);
    return nb_error("--%s '%s' %s", option, text, reason);
}

static int take_whole(const struct nb_option *o, const char *value) {
    double number;
    if (nb_option_number(o->name, value, o->least, o->seed ? 0x1p53 : o->most, &number) != 0) return -1;
    if (number != floor(number)) return nb_error("--%s %s: a whole number", o->name, value);
    if (o->count) *o->count = (int)number;
    if (o->large) *o->large = (int64_t)number;
    if (o->seed) *o->seed = (uint64_t)number;
    return 0;
}

static int take_text(const struct nb_option *o, const char *value) {
    struct nb_strbuf allowed released_by(nb_strbuf_release) = {0};
    *o->text = value;
    if (!o->among || nb_name_find(o->among, value) >= 0) return 0;
    for (size_t i = 0; o->among[i]; i++) nb_strbuf_addf(&allowed, "%s%s", i ? ", " : "", o->among[i]);
    return nb_error("--%s %s: one of %s", o->name, value, allowed.text);
}

static int take(const struct nb_option *o, const char *value) {
    if (o->given) *o->given = true;
    if (o->flag) *o->flag = true;
    if ((o->texts || o->text || o->take) && !*value)
        return nb_error("--%s: an empty text; leave the option out", o->name);
    if (o->texts) nb_strings_add(o->texts, value);
    if (o->text && take_text(o, value) != 0) return -1;
    if (o->number && nb_option_number(o->name, value, o->least, o->most, o->number) != 0) return -1;
    if ((o->count || o->large || o->seed) && take_whole(o, value) != 0) return -1;
    return o->take ? o->take(o->to, value) : 0;
}

static const char *const colors[] = {"auto", "always", "never", NULL};

static int take_color(void *unused, const char *when) {
    const int color = nb_option_name("color", when, colors);
    if (color >= 0) nb_log_color((enum nb_color)color);
    return color < 0 ? -1 : 0;
}

int nb_take_affine(void *affine, const char *name) {
    const int found = nb_option_name("affine", name, nb_affine_names);
    if (found >= 0) *(enum nb_affine *)affine = (enum nb_affine)found;
    return found < 0 ? -1 : 0;
}

bool nb_read_options(const char *text, const struct nb_option *options, int arguments, int argc, char **argv,
                     int *exit_code) {
    bool help = false, quiet = false;
    const struct nb_option common[] = {{"help", .flag = &help},
                                       {"quiet", .flag = &quiet},
                                       {"color", .take = take_color, .among = colors},
                                       {.name = NULL}};
    const struct nb_option *const tables[] = {options, common}, *rows[MOST_OPTIONS];
    struct option known[MOST_OPTIONS] = {{0}};
    const struct nb_option *row = options;
    int n = 0;
    while (row->name) row++;
    const char *const *words = row->among;
    for (size_t t = 0; t < 2; t++)
        for (row = tables[t]; row->name; row++, n++) {
            assert(n < MOST_OPTIONS - 1);
            rows[n] = row;
            known[n] = (struct option){row->name, row->flag ? no_argument : required_argument, NULL, FIRST_ID + n};
        }
    if (argc == 2 && strcmp(argv[1], NB_DESCRIBE) == 0) {
        nb_describe_options(rows, (size_t)n, words);
        *exit_code = NB_EXIT_OK;
        return false;
    }
    *exit_code = NB_EXIT_USAGE;
    opterr = optind = 0;
    for (;;) {
        const int before = optind ? optind : 1;
        const int id = getopt_long(argc, argv, "h", known, NULL);
        if (id == -1) break;
        if (id == '?') {
            bad_option(before < argc && argv[before][0] == '-' ? argv[before] : argv[optind - 1], known, argv[0]);
            return false;
        }
        if (id != 'h' && take(rows[id - FIRST_ID], optarg) != 0) return false;
        if (id == 'h' || help) {
            nb_print_help(text, stdout);
            *exit_code = NB_EXIT_OK;
            return false;
        }
        if (quiet) nb_log_quiet(true);
    }
    for (int i = optind; i < argc; i++)
        if (!*argv[i]) return nb_error("%s: an argument is empty", argv[0]), false;
    if (argc - optind <= arguments) return true;
    nb_error("%s: '%s' is one argument too many; see `normbench %s --help`", argv[0], argv[optind + arguments],
             argv[0]);
    return false;
}

/* ---- peers and kernels ---------------------------------------------------------------------------------------------- */

enum { START_LIMIT_S = 60 };

/* Gives the library to the peer of that name, or to the last one (null). */
static int set_library(struct nb_strings *plugins, const char *name, const char *library) {
    for (size_t i = plugins->n; i > 0; i--) {
        const char *other;
        if (!nb_peer_is(plugins->items[i - 1])) continue;
        char *known freed = nb_peer_name(plugins->items[i - 1], &other);
        if (name && strcmp(known, name) != 0) continue;
        char *spec = nb_peer_spec(known, library);
        if (!spec) return -1;
        free(plugins->items[i - 1]);
        plugins->items[i - 1] = spec;
        return 0;
    }
    return nb_error("--peer-lib %s%s%s: goes after the --peer whose library it names", name ? name : "",
                    name ? "=" : "", library);
}

/* NAME=PATH or PATH: a name has no slash in it. */
int nb_take_peer_library(void *plugins, const char *value) {
    const char *equals = strchr(value, '='), *slash = strchr(value, '/');
    if (!equals || equals == value || (slash && slash < equals)) return set_library(plugins, NULL, value);
    char *name freed = nb_textf("%.*s", (int)(equals - value), value);
    return set_library(plugins, name, equals + 1);
}

int nb_take_peer(void *plugins, const char *name) {
    char *spec freed = nb_peer_spec(name, NULL);
    if (spec) nb_strings_add(plugins, spec);
    return spec ? 0 : -1;
}

/* Is the peer in the list, or another build of its library ("onednn", "onednn-omp"), of which a process holds one alone? */
static bool is_named(const struct nb_strings *plugins, const char *peer) {
    const size_t len = strcspn(peer, "-");
    bool named = false;
    for (size_t i = 0; i < plugins->n && !named; i++) {
        const char *library;
        char *name freed = nb_peer_is(plugins->items[i]) ? nb_peer_name(plugins->items[i], &library) : NULL;
        named = name && strcspn(name, "-") == len && strncmp(name, peer, len) == 0;
    }
    return named;
}

int nb_peers_add_built(struct nb_strings *plugins) {
    int result = 0;
    for (size_t i = 0; i < nb_n_peers && result == 0; i++) {
        char *adapter freed = nb_peer_adapter(nb_peers[i].name);
        if (adapter && nb_path_exists(adapter) && !is_named(plugins, nb_peers[i].name))
            result = nb_take_peer(plugins, nb_peers[i].name);
    }
    return result;
}

struct start {
    char reason[160];
    int result;
};

static void start(void *arg) {
    struct start *s = arg;
    size_t n = 0;
    const struct nb_entry **peers freed = nb_alloc(nb_registry_size() + 1, sizeof *peers);
    for (size_t i = 0; i < nb_registry_size(); i++)
        if (nb_registry_at(i)->is_peer) peers[n++] = nb_registry_at(i);
    s->result = nb_kernels_open(peers, n, 1, NULL, s->reason, sizeof s->reason);
}

static int start_peers(void) {
    struct start s = {.result = -1};
    bool any = false;
    for (size_t i = 0; i < nb_registry_size() && !any; i++) any = nb_registry_at(i)->is_peer;
    const char *why = any ? nb_guarded(start, &s, sizeof s, START_LIMIT_S) : NULL;
    if (!any) return 0;
    if (why) return nb_error("a peer's library does not start: it %s", why);
    return s.result == 0 ? 0 : nb_error("a peer's library does not start: %s", s.reason);
}

static int limit_width(const char *text) {
    const int width = nb_name_find(nb_width_names, text);
    if (width < 0 || width >= NB_NATIVE) return nb_error("--max-width %s: one of scalar, 128, 256, 256x, 512", text);
    nb_cpu_limit_width((enum nb_width)width);
    return 0;
}

int nb_take_load_timeout(void *unused, const char *value) {
    double seconds;
    if (nb_option_number("load-timeout", value, 1, 86400, &seconds) != 0) return -1;
    return setenv(NB_LOAD_TIMEOUT, value, 1); /* for the processes that load them, too */
}

int nb_take_tuning(void *unused, const char *value) { return nb_tuning_choose(value); }

int nb_load_kernels(const struct nb_strings *plugins, const char *max_width) {
    if (max_width && limit_width(max_width) != 0) return -1;
    nb_tuning_choose_once(NULL);
    if (nb_registry_load_builtin() != 0) return -1;
    for (size_t i = 0; plugins && i < plugins->n; i++)
        if (nb_registry_describe(plugins->items[i]) != 0) return -1;
    return start_peers();
}
