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
