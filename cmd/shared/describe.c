// SPDX-License-Identifier: Apache-2.0
/* A manual page is what --help prints. The tables of options add which take a value, and which values those may be. */
#include "cmd/shared/describe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/run/report.h"
#include "src/core/text.h"

/* ---- manual pages ------------------------------------------------------------------------------------------------ */

/* As troff takes it: no command in it, hyphens that can be copied. */
static void put_text(const char *text, size_t n) {
    if (n > 0 && (text[0] == '.' || text[0] == '\'')) fputs("\\&", stdout);
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\\')
            fputs("\\e", stdout);
        else if (text[i] == '-')
            fputs("\\-", stdout);
        else
            putchar(text[i]);
    }
}
static void put_line(const char *text) {
    put_text(text, strcspn(text, "\n"));
    putchar('\n');
}

static void put_title(const char *name, const char *summary) {
    printf(".\\\" SPDX-License-Identifier: Apache-2.0\n.TH \"");
    for (const char *c = name; *c; c++) putchar(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    printf("\" 1 \"\" \"normbench " NB_VERSION "\" \"User Commands\"\n.SH NAME\n");
    put_text(name, strlen(name));
    fputs(" \\- ", stdout);
    put_line(summary);
}

void nb_print_man(const struct nb_command *command, const struct nb_command *const *commands, size_t n) {
    if (command) {
        char *name = nb_textf("normbench-%s", command->name);
        put_title(name, command->summary);
        free(name);
        puts(".SH DESCRIPTION\n.nf");
        for (const char *line = command->help; *line; line += strcspn(line, "\n"), line += *line != '\0')
            put_line(line);
        puts(".fi\n.SH SEE ALSO\n.BR normbench (1)");
        return;
    }
    put_title("normbench", "a laboratory for normalization kernels");
    puts(".SH SYNOPSIS\n.B normbench\n.I COMMAND\n.RI [ OPTIONS ]\n.SH COMMANDS");
    for (size_t i = 0; i < n; i++) {
        printf(".TP\n.BR normbench\\-");
        put_text(commands[i]->name, strlen(commands[i]->name));
        puts(" (1)");
        put_line(commands[i]->summary);
    }
    puts(".SH EXIT STATUS\n"
         "0 ok, 1 a case failed, 2 usage or configuration, 3 regression, 4 inconclusive, 5 not comparable,\n"
         "77 nothing of what was selected can run here, 128+n ended by signal n.");
}

/* ---- completion: of bash, in words that zsh's bashcompinit takes too ------------------------------------------------------------------------------------------------- */

/* A --format that says none is of a run's results. */
static const char *const *renderers(void) {
    enum { MOST = 64 };
    static const char *names[MOST];
    for (size_t i = 0; i < MOST - 1 && nb_renderer_at(i); i++) names[i] = nb_renderer_at(i)->name;
    return names;
}

static const char *const *values_of(const struct nb_option *o) {
    return o->among ? o->among : strcmp(o->name, "format") == 0 ? renderers() : NULL;
}

/* With blanks between. */
static void put_words(const char *const *words) {
    for (size_t i = 0; words && words[i]; i++) printf("%s%s", i ? " " : "", words[i]);
}

void nb_describe_options(const struct nb_option *const *rows, size_t n, const char *const *words) {
    if (words) {
        printf("        [[ $COMP_CWORD != 2 || $current == -* ]] || values='");
        put_words(words);
        puts("'");
    }
    printf("        options='");
    for (size_t i = 0; i < n; i++) printf("%s--%s", i ? " " : "", rows[i]->name);
    printf("'\n        case $previous in\n");
    for (size_t i = 0; i < n; i++) {
        if (!values_of(rows[i])) continue;
        printf("        --%s) values='", rows[i]->name);
        put_words(values_of(rows[i]));
        printf("' ;;\n");
    }
    printf("        esac\n        ;;\n");
}

static void put_names(const struct nb_command *const *commands, size_t n) {
    for (size_t i = 0; i < n; i++) printf("%s ", commands[i]->name);
}

void nb_print_completions(const struct nb_command *const *commands, size_t n) {
    puts(
        "# Completion of normbench for bash; from `normbench help --completions bash`.\n"
        "_normbench() {\n"
        "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} options= values=\n"
        "    COMPREPLY=()\n"
        "    if [ \"$COMP_CWORD\" = 1 ]; then");
    printf("        COMPREPLY=($(compgen -W '");
    put_names(commands, n);
    puts("help --help --version' -- \"$current\"))\n"
         "        return\n"
         "    fi\n"
         "    case $command in");
    for (size_t i = 0; i < n; i++) {
        char name[64], option[] = NB_DESCRIBE;
        snprintf(name, sizeof name, "%s", commands[i]->name);
        printf("    %s)\n", name);
        commands[i]->run(2, (char *[]){name, option, NULL});
    }
    printf("    help)\n        values='");
    put_names(commands, n);
    printf("--man --completions'\n        [ $previous != --completions ] || values=bash\n"
           "        [ $previous != --man ] || values='");
    put_names(commands, n);
    puts("'\n        ;;\n"
         "    esac\n"
         "    if [ -n \"$values\" ]; then\n"
         "        COMPREPLY=($(compgen -W \"$values\" -- \"$current\"))\n"
         "    elif [[ $current == -* ]]; then\n"
         "        COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
         "    fi\n"
         "}\n"
         "complete -o default -F _normbench normbench");
}
