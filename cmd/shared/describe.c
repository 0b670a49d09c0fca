// SPDX-License-Identifier: Apache-2.0
/* A manual page is what --help prints. The tables of options add which take a value, and which values those may be. */
#include "cmd/shared/options.h"

#include <string.h>

#include "reports/run/report.h"
#include "src/core/log.h"
#include "src/core/text.h"

/* ---- help --------------------------------------------------------------------------------------------------------- */

enum { USUAL_WIDTH = 80, TEXT_AT = 23, NARROWEST_TEXT = 30 }; /* TEXT_AT: where the texts of options begin */

struct wrapped {
    struct nb_strbuf *out;
    size_t width, column, hanging; /* hanging: the indent of the lines after the first */
    bool begun;                    /* a word stands in this line */
};

static void add_blanks(struct wrapped *w, size_t to) {
    for (; w->column < to; w->column++) nb_strbuf_add(w->out, " ");
}
static void break_line(struct wrapped *w) {
    nb_strbuf_add(w->out, "\n");
    w->column = 0;
    w->begun = false;
    add_blanks(w, w->hanging);
}
/* A quoted command is one word, where a line holds it. */
static size_t word_length(const char *text, size_t most) {
    size_t n = strcspn(text, " \n");
    const char *quote = memchr(text, '`', n), *end = quote ? strpbrk(quote + 1, "`\n") : NULL;
    if (end && *end == '`' && end > text + n) {
        const size_t quoted = (size_t)(end - text) + strcspn(end, " \n");
        if (quoted <= most) n = quoted;
    }
    return n;
}
static void add_words(struct wrapped *w, const char *text) {
    for (text += strspn(text, " "); *text && *text != '\n'; text += strspn(text, " ")) {
        const size_t n = word_length(text, w->width - w->hanging);
        if (w->begun && w->column + 1 + n > w->width) break_line(w);
        if (w->begun) add_blanks(w, w->column + 1);
        nb_strbuf_addf(w->out, "%.*s", (int)n, text);
        w->column += n;
        w->begun = true;
        text += n;
    }
}
/* Where the text of a row begins, behind its term and two blanks; 0: the line is no row. */
static size_t row_text(const char *line) {
    const size_t end = strcspn(line, "\n"), indent = strspn(line, " ");
    for (size_t i = indent; i + 2 < end && indent > 0; i++)
        if (line[i] == ' ' && line[i + 1] == ' ') return i + strspn(line + i, " ");
    const char *spaced = indent > 0 && strncmp(line + indent, "--", 2) == 0 && end > TEXT_AT ? line + TEXT_AT : NULL;
    return spaced && spaced[-1] == ' ' && *spaced != ' ' ? TEXT_AT : 0; /* a long term and one blank */
}
static void add_row(struct wrapped *w, const char *line, size_t text_at) {
    size_t term = text_at;
    while (line[term - 1] == ' ') term--;
    nb_strbuf_addf(w->out, "%.*s", (int)term, line);
    w->column = term;
    w->hanging = text_at;
    if (term + 1 > text_at) break_line(w);
    add_blanks(w, text_at);
    w->begun = false;
    add_words(w, line + text_at);
}
static bool begins(const char *line) {
    static const char *const words[] = {"usage:", "Example", "Exit codes:", "Without ", "Environment:", "Start with"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strncmp(line, words[i], strlen(words[i])) == 0) return true;
    return false;
}
static void end_paragraph(struct wrapped *w) {
    if (w->column > 0) nb_strbuf_add(w->out, "\n");
    w->column = 0;
    w->begun = false;
}
/* Lines from ITEM blanks on continue what stands before them; fewer begin an item; none begins or continues a paragraph. */
static void add_help(struct wrapped *w, const char *text) {
    enum { ITEM = 4, USAGE = 9 };
    bool usage = false, margin = false; /* what the line before belongs to */
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const size_t own = strspn(line, " "), row = row_text(line);
        const bool empty = line[own] == '\n' || line[own] == '\0';
        if (!empty && w->column > 0 && !usage && (own > ITEM || (own == 0 && margin && !begins(line)))) {
            add_words(w, line);
            continue;
        }
        end_paragraph(w);
        usage = !empty && (usage || strncmp(line, "usage:", 6) == 0);
        margin = own == 0;
        if (empty) {
            nb_strbuf_add(w->out, "\n");
        } else if (row && !usage && row + NARROWEST_TEXT <= w->width) {
            add_row(w, line, row);
        } else {
            w->hanging = usage ? USAGE : own > 0 ? own + 2 : 0;
            add_blanks(w, own);
            add_words(w, line);
        }
    }
    end_paragraph(w);
}
static struct nb_strbuf wrapped_help(const char *text, size_t width) {
    struct nb_strbuf out = nb_strbuf_empty();
    struct wrapped w = {.out = &out, .width = width};
    add_help(&w, text);
    return out;
}

void nb_print_help(const char *text, FILE *out) {
    struct nb_strbuf wrapped released_by(nb_strbuf_release) = wrapped_help(text, nb_screen_width(out));
    fputs(wrapped.text, out);
}

/* ---- manual pages ------------------------------------------------------------------------------------------------ */

/* As troff takes it: no command in it, hyphens that can be copied. */
static void put_text(const char *text, size_t n) {
    if (n > 0 && (text[0] == '.' || text[0] == '\'')) fputs("\\&", stdout);
    for (size_t i = 0; i < n; i++) printf(text[i] == '\\' ? "\\e" : text[i] == '-' ? "\\-" : "%c", text[i]);
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
        char *name freed = nb_textf("normbench-%s", command->name);
        put_title(name, command->summary);
        puts(".SH DESCRIPTION\n.nf");
        struct nb_strbuf help released_by(nb_strbuf_release) = wrapped_help(command->help, USUAL_WIDTH);
        for (const char *line = help.text; *line; line += strcspn(line, "\n"), line += *line != '\0') put_line(line);
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
