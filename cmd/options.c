// SPDX-License-Identifier: Apache-2.0
/* The common part of the command lines. */
#include "cmd/options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/peer_options.h"
#include "src/core/case.h"
#include "src/core/cpu.h"
#include "src/core/log.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "src/core/tuning_file.h"

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
    return nb_peers_start();
}
