// SPDX-License-Identifier: Apache-2.0
/* Help has one form: usage, paragraphs, headings of one line, options with what they do from column 23 on, and a paragraph that begins with
 * "Exit codes:". The tables of options add which take a value, and which values those may be. */
#include "cmd/shared/describe.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/run/report.h"
#include "src/core/log.h"
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
static void put_line(const char *text, size_t n) {
    put_text(text, n);
    putchar('\n');
}

static size_t indent_of(const char *line) { return strspn(line, " "); }
static size_t length_of(const char *line) { return strcspn(line, "\n"); }
static const char *after(const char *line) {
    line += length_of(line);
    return *line ? line + 1 : line;
}
static bool is_option(const char *line) { return strncmp(line, "  --", 4) == 0; }

/* A line at the margin above options, with indented text between at most. */
static bool is_heading(const char *line) {
    if (indent_of(line) > 0 || length_of(line) == 0) return false;
    do line = after(line);
    while (indent_of(line) > 0 && length_of(line) > 0 && !is_option(line));
    return is_option(line);
}

/* "  --name VALUE   what it does"; returns the length of "--name VALUE". The words of one that is longer than its column end with the name's
 * value. */
static size_t head_of(const char *line) {
    enum { COLUMN = 23 };
    const size_t len = length_of(line);
    const char *gap = memmem(line + 2, len - 2, "  ", 2);
    if (gap) return (size_t)(gap - line) - 2;
    return len > COLUMN && line[COLUMN - 1] == ' ' ? COLUMN - 3 : len - 2;
}

static void put_option(const char *line) {
    const size_t len = length_of(line), head = head_of(line), name = strcspn(line + 2, " \n");
    const char *what = line + 2 + head;
    fputs(".TP\n\\fB", stdout);
    put_text(line + 2, name < head ? name : head);
    fputs("\\fR", stdout);
    if (head > name) fputs(" \\fI", stdout), put_text(line + 3 + name, head - name - 1), fputs("\\fR", stdout);
    putchar('\n');
    what += strspn(what, " ");
    if (what < line + len) put_line(what, (size_t)(line + len - what));
}

/* The lines of the usage, as they are. */
static const char *put_usage(const char *line) {
    fputs(".SH SYNOPSIS\n.nf\n", stdout);
    for (; *line && *line != '\n'; line = after(line)) {
        const size_t skipped = strncmp(line, "usage: ", 7) == 0 ? 7 : indent_of(line);
        put_line(line + skipped, length_of(line) - skipped);
    }
    fputs(".fi\n", stdout);
    return line;
}

/* Everything behind the usage. Indented lines that are no option keep their form. */
static void put_body(const char *line) {
    bool in_options = false, as_is = false, is_first = true;
    fputs(".SH DESCRIPTION\n", stdout);
    for (; *line; line = after(line)) {
        const size_t len = length_of(line), indent = indent_of(line);
        const bool continues = in_options && indent > 4;
        const bool is_list = indent > 0 && indent < len && !is_option(line) && !continues;
        if (as_is != is_list) puts(is_list ? ".nf" : ".fi");
        as_is = is_list;
        if (len == 0) {
            const char *next = after(line);
            if (*next && !is_first && !is_option(next) && !is_heading(next) && strncmp(next, "Exit codes:", 11) != 0)
                puts(".PP");
            in_options = false;
            continue;
        }
        is_first = false;
        if (is_option(line)) {
            put_option(line);
            in_options = true;
        } else if (is_heading(line)) {
            fputs(".SS ", stdout);
            put_line(line, len);
        } else if (strncmp(line, "Exit codes:", 11) == 0) {
            puts(".SH EXIT STATUS");
            put_line(line + 12, len - 12);
        } else {
            put_line(is_list ? line : line + indent, is_list ? len : len - indent);
        }
    }
    if (as_is) puts(".fi");
}

static void put_title(const char *name, const char *summary) {
    printf(".\\\" SPDX-License-Identifier: Apache-2.0\n.TH \"");
    for (const char *c = name; *c; c++) putchar(*c >= 'a' && *c <= 'z' ? *c - 'a' + 'A' : *c);
    printf("\" 1 \"\" \"normbench " NB_VERSION "\" \"User Commands\"\n.SH NAME\n");
    put_text(name, strlen(name));
    fputs(" \\- ", stdout);
    put_line(summary, strlen(summary));
}

void nb_print_man(const struct nb_command *command, const struct nb_command *const *commands, size_t n) {
    if (command) {
        char *name = nb_textf("normbench-%s", command->name);
        put_title(name, command->summary);
        free(name);
        put_body(put_usage(command->help));
        puts(".SH SEE ALSO\n.BR normbench (1)");
        return;
    }
    put_title("normbench", "a laboratory for normalization kernels");
    puts(".SH SYNOPSIS\n.B normbench\n.I COMMAND\n.RI [ OPTIONS ]\n.SH COMMANDS");
    for (size_t i = 0; i < n; i++) {
        printf(".TP\n.BR normbench\\-");
        put_text(commands[i]->name, strlen(commands[i]->name));
        puts(" (1)");
        put_line(commands[i]->summary, strlen(commands[i]->summary));
    }
    puts(".SH EXIT STATUS\n"
         "0 ok, 1 a case failed, 2 usage or configuration, 3 regression, 4 inconclusive, 5 not comparable,\n"
         "77 nothing of what was selected can run here, 128+n ended by signal n.");
}

/* ---- completions ------------------------------------------------------------------------------------------------- */

/* The first line of what the help says of an option, and how long it is; "" where it says nothing. */
static const char *said_of(const struct nb_command *command, const char *name, size_t *n) {
    for (const char *line = command->help; *line; line = after(line)) {
        const size_t len = strlen(name);
        if (!is_option(line) || strncmp(line + 4, name, len) != 0 || !strchr(" \n", line[4 + len])) continue;
        const char *what = line + 2 + head_of(line), *end = line + length_of(line);
        what += strspn(what, " ");
        *n = what < end ? (size_t)(end - what) : 0;
        return what;
    }
    *n = 0;
    return "";
}

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
static void put_values(const struct nb_option *o) { put_words(values_of(o)); }

/* Text within a shell's single quotes: an apostrophe becomes a typographic one; what zsh's brackets and colons
 * or another shell would take for its own is left out. */
static void put_quoted(const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '\'')
            fputs("\u2019", stdout);
        else if (!strchr("[]:\\`$\"", text[i]))
            putchar(text[i]);
    }
}

static void put_said(const struct nb_command *command, const struct nb_option *o) {
    size_t n;
    const char *said = said_of(command, o->name, &n);
    put_quoted(said, n);
}
static void put_summary(const struct nb_command *command) { put_quoted(command->summary, strlen(command->summary)); }

static void bash_options(const struct nb_option *const *rows, size_t n, const char *const *words) {
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
        put_values(rows[i]);
        printf("' ;;\n");
    }
    printf("        esac\n        ;;\n");
}

static void zsh_options(const struct nb_command *command, const struct nb_option *const *rows, size_t n,
                        const char *const *words) {
    printf("        _arguments");
    for (size_t i = 0; i < n; i++) {
        const struct nb_option *o = rows[i];
        printf(" \\\n            '%s--%s[", o->texts ? "*" : "", o->name);
        put_said(command, o);
        fputs("]", stdout);
        if (!o->flag && values_of(o)) fputs(":value:(", stdout), put_values(o), fputs(")", stdout);
        if (!o->flag && !values_of(o)) fputs(":value:_files", stdout);
        fputs("'", stdout);
    }
    if (words) printf(" \\\n            '1:what:("), put_words(words), printf(")'");
    printf(" \\\n            '*:file:_files'\n        ;;\n");
}

static void fish_options(const struct nb_command *command, const struct nb_option *const *rows, size_t n,
                         const char *const *words) {
    for (size_t i = 0; i < n; i++) {
        const struct nb_option *o = rows[i];
        printf("complete -c normbench -n 'contains -- %s (commandline -opc)[2]' -l %s%s", command->name, o->name,
               o->flag ? "" : " -r");
        if (values_of(o)) fputs(" -f -a '", stdout), put_values(o), fputs("'", stdout);
        fputs(" -d '", stdout);
        put_said(command, o);
        puts("'");
    }
    if (!words) return;
    printf("complete -c normbench -n 'contains -- %s (commandline -opc)[2]; and not __fish_seen_subcommand_from ",
           command->name);
    put_words(words);
    fputs("' -a '", stdout), put_words(words), puts("'");
}

void nb_describe_options(const struct nb_command *command, const struct nb_option *const *rows, size_t n,
                         const char *const *words, const char *shell) {
    if (strcmp(shell, "bash") == 0) bash_options(rows, n, words);
    if (strcmp(shell, "zsh") == 0) zsh_options(command, rows, n, words);
    if (strcmp(shell, "fish") == 0) fish_options(command, rows, n, words);
}

static void describe(const struct nb_command *command, const char *shell) {
    char name[64], option[] = NB_DESCRIBE, how[8];
    snprintf(name, sizeof name, "%s", command->name);
    snprintf(how, sizeof how, "%s", shell);
    char *argv[] = {name, option, how, NULL};
    command->run(3, argv);
}

#define SHELLS "bash zsh fish"

static void put_names(const struct nb_command *const *commands, size_t n) {
    for (size_t i = 0; i < n; i++) printf("%s ", commands[i]->name);
}

static void print_bash(const struct nb_command *const *commands, size_t n) {
    puts(
        "# Completion of normbench for bash; from `normbench help --completions bash`.\n"
        "_normbench() {\n"
        "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} options= values=\n"
        "    COMPREPLY=()\n"
        "    if [ \"$COMP_CWORD\" = 1 ]; then");
    printf("        mapfile -t COMPREPLY < <(compgen -W '");
    put_names(commands, n);
    puts("help --help --version' -- \"$current\")\n"
         "        return\n"
         "    fi\n"
         "    case $command in");
    for (size_t i = 0; i < n; i++) {
        printf("    %s)\n", commands[i]->name);
        describe(commands[i], "bash");
    }
    printf("    help)\n        values='");
    put_names(commands, n);
    printf("--man --completions'\n        [ $previous != --completions ] || values='" SHELLS
           "'\n        [ $previous != --man ] || values='");
    put_names(commands, n);
    puts("'\n        ;;\n"
         "    esac\n"
         "    if [ -n \"$values\" ]; then\n"
         "        mapfile -t COMPREPLY < <(compgen -W \"$values\" -- \"$current\")\n"
         "    elif [[ $current == -* ]]; then\n"
         "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")\n"
         "    fi\n"
         "}\n"
         "complete -o default -F _normbench normbench");
}

static void print_zsh(const struct nb_command *const *commands, size_t n) {
    puts("#compdef normbench\n"
         "# Completion of normbench for zsh; from `normbench help --completions zsh`.\n"
         "_normbench() {\n"
         "    local -a commands=(");
    for (size_t i = 0; i < n; i++) {
        printf("        '%s:", commands[i]->name);
        put_summary(commands[i]);
        puts("'");
    }
    puts("        'help:what a command does'\n"
         "    )\n"
         "    if (( CURRENT == 2 )); then\n"
         "        _describe command commands\n"
         "        return\n"
         "    fi\n"
         "    local command=$words[2]\n"
         "    shift words\n"
         "    (( CURRENT-- ))\n"
         "    case $command in");
    for (size_t i = 0; i < n; i++) {
        printf("    %s)\n", commands[i]->name);
        describe(commands[i], "zsh");
    }
    printf("    help)\n        _arguments '--completions[prints the completions of a shell]:shell:(" SHELLS ")' \\\n"
           "            '--man[prints a manual page]:command:(");
    put_names(commands, n);
    printf(")' \\\n            '1:command:(");
    put_names(commands, n);
    puts(")'\n        ;;\n"
         "    esac\n"
         "}\n"
         "_normbench \"$@\"");
}

static void print_fish(const struct nb_command *const *commands, size_t n) {
    puts("# Completion of normbench for fish; from `normbench help --completions fish`.");
    for (size_t i = 0; i < n; i++) {
        printf("complete -c normbench -n __fish_use_subcommand -f -a %s -d '", commands[i]->name);
        put_summary(commands[i]);
        puts("'");
    }
    for (size_t i = 0; i < n; i++) describe(commands[i], "fish");
    puts("complete -c normbench -n __fish_use_subcommand -f -a help -d 'what a command does'\n"
         "complete -c normbench -n 'contains -- help (commandline -opc)[2]' -l completions -r -f -a '" SHELLS "'");
    for (int man = 0; man < 2; man++) {
        printf("complete -c normbench -n 'contains -- help (commandline -opc)[2]'%s -f -a '", man ? " -l man -r" : "");
        put_names(commands, n);
        puts("'");
    }
}

int nb_print_completions(const char *shell, const struct nb_command *const *commands, size_t n) {
    if (strcmp(shell, "bash") == 0)
        print_bash(commands, n);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh(commands, n);
    else if (strcmp(shell, "fish") == 0)
        print_fish(commands, n);
    else
        return nb_error("--completions %s: one of bash, zsh, fish", shell);
    return 0;
}
