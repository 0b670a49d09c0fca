// SPDX-License-Identifier: Apache-2.0
/* Which commands, and their words. */
#include "reports/run/report.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/core/files.h"
#include "src/core/log.h"
#include "src/record/fingerprint.h"

enum { MOST_COMMANDS = 3, MOST_LINES = 3, PURPOSE = 54 };

/* ---- words -------------------------------------------------------------------------------------------------------- */

/* What a terminal would take for a command of its own cannot be printed as it stands. */
static bool is_printable(const char *word) {
    struct nb_strbuf shown released_by(nb_strbuf_release) = nb_strbuf_empty();
    nb_escape_terminal(&shown, word, true);
    return strcmp(shown.text, word) == 0;
}

static size_t column_of(const struct nb_strbuf *out) {
    const char *line = strrchr(out->text, '\n');
    return strlen(line ? line + 1 : out->text);
}

void nb_add_shell_word(struct nb_strbuf *out, size_t width, const char *word) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
    const bool quoted = !*word || word[strspn(word, plain)];
    nb_strbuf_add(out, "");
    size_t column = column_of(out);
    if (column > 0) {
        nb_strbuf_add(out, " ");
        column++;
    }
    if (column > 2 && column + strlen(word) + 2 * quoted > width) {
        nb_strbuf_add(out, "\\\n");
        column = 0;
    }
    nb_strbuf_add(out, quoted ? "'" : "");
    column += quoted;
    for (; *word; word++) {
        if (column + 3 > width) {
            nb_strbuf_add(out, quoted ? "'\\\n'" : "\\\n");
            column = quoted;
        }
        nb_strbuf_addf(out, *word == '\'' ? "'\\''" : "%c", *word);
        column += *word == '\'' ? 4 : 1;
    }
    nb_strbuf_add(out, quoted ? "'" : "");
}

/* How this program is called: as what started it says (the wheel's command), by its name where PATH finds it, else by its file, which is
 * shorter from here than from anywhere. */
static char *program_name(bool from_here) {
    char own[PATH_MAX], found[PATH_MAX], here[PATH_MAX], *by_path freed = nb_program_find("normbench");
    const char *command = getenv("NORMBENCH_COMMAND");
    if (command && *command) return nb_strdup(command);
    if (!realpath("/proc/self/exe", own) || (by_path && realpath(by_path, found) && strcmp(found, own) == 0))
        return nb_strdup("normbench");
    const size_t n = from_here && getcwd(here, sizeof here) ? strlen(here) : 0;
    return nb_strdup(n > 1 && strncmp(own, here, n) == 0 && own[n] == '/' ? own + n + 1 : own);
}

/* ---- commands ----------------------------------------------------------------------------------------------------- */

struct commands {
    const struct nb_next *next;
    struct nb_strbuf *out;
    char *program;
    size_t begin; /* of the command that is being written */
    int n, n_lines;
};

/* A command that fills the summary with its folder's name is none. */
static void end_command(struct commands *c, const char *purpose) {
    const int n_lines = nb_text_line(c->out->text + c->begin, c->out->text + c->out->len);
    if (n_lines > MOST_LINES) {
        c->out->text[c->out->len = c->begin] = '\0';
        return;
    }
    const size_t column = column_of(c->out);
    if (column + 4 + strlen(purpose) <= c->next->width)
        nb_strbuf_addf(c->out, "%*s# %s", column < PURPOSE ? (int)(PURPOSE - column) : 2, "", purpose);
    nb_strbuf_add(c->out, "\n");
    c->begin = c->out->len;
    c->n_lines += n_lines;
    c->n++;
}

/* Four words, of which the last may be null; none, and false, where a terminal would take one for a command of its own. */
static bool add_words(struct nb_strbuf *out, size_t width, const char *const words[4]) {
    for (size_t i = 0; i < 4; i++)
        if (words[i] && !is_printable(words[i])) return false;
    for (size_t i = 0; i < 4 && words[i]; i++) nb_add_shell_word(out, width, words[i]);
    return true;
}

static void add_command(struct commands *c, const char *verb, const char *option, const char *word,
                        const char *purpose) {
    const char *const words[] = {c->program, verb, option, word};
    if (c->n < MOST_COMMANDS && add_words(c->out, c->next->width, words)) end_command(c, purpose);
}

static size_t count_matches(const struct nb_results *results, const char *pattern) {
    size_t n = 0;
    for (size_t i = 0; i < results->n; i++) {
        const char *key = results->records[i].key;
        n += key && (strstr(key, pattern) || fnmatch(pattern, key, 0) == 0);
    }
    return n;
}

/* As much of the key as no other case has: its variant, and of the rest what the others that are left do not have. */
static char *short_key(const struct nb_results *results, const char *key) {
    struct nb_strbuf pattern = {0}, longer released_by(nb_strbuf_release) = {0};
    const char *rest = key + strcspn(key, "/");
    if (strpbrk(key, "*?[\\")) return nb_strdup(key);
    nb_strbuf_addn(&pattern, key, (size_t)(rest - key));
    size_t n = count_matches(results, pattern.text);
    if (n > 1) nb_strbuf_add(&pattern, "/");
    if (n > 1) n = count_matches(results, pattern.text);
    while (n > 1 && *rest == '/') {
        const size_t part = 1 + strcspn(rest + 1, "/");
        nb_strbuf_clear(&longer);
        nb_strbuf_add(&longer, pattern.text);
        while (strchr("/*", longer.text[longer.len - 1])) longer.text[--longer.len] = '\0';
        nb_strbuf_addf(&longer, "*%.*s%s", (int)part, rest,
                       rest[part] ? "/*" : ""); /* "massive", not "massive(1,2)" too */
        rest += part;
        const size_t fewer = count_matches(results, longer.text);
        if (fewer >= n) continue;
        n = fewer;
        nb_strbuf_clear(&pattern);
        nb_strbuf_add(&pattern, longer.text);
    }
    if (n == 1) return pattern.text;
    nb_strbuf_release(&pattern);
    return nb_strdup(key);
}

void nb_add_replay(const struct nb_results *results, const struct nb_record *r, size_t width, struct nb_strbuf *out) {
    char *key freed = short_key(results, r->key), *program freed = program_name(false),
              *dir freed = nb_path_absolute(results->dir);
    add_words(out, width, (const char *const[]){program, "replay", dir, key});
}

static void add_replay(struct commands *c, const struct nb_record *r, const char *purpose) {
    if (!r || !r->key || !c->next->results->dir || c->n >= MOST_COMMANDS) return;
    nb_add_replay(c->next->results, r, c->next->width, c->out);
    if (c->out->len > c->begin) end_command(c, purpose);
}

/* Twice as many launches, and as many as an interval needs; where time ended them, twice the time. Returns the option that it replaces. */
static const char *longer_option(const struct nb_results *results, struct nb_strbuf *out) {
    const cJSON *plan = nb_meta(results, "plan"), *elapsed_s = nb_meta(results, "elapsed_s");
    const double least = nb_json_get_number(plan, "launches"), most = nb_json_get_number(plan, "most_launches");
    bool out_of_time = false;
    for (size_t i = 0; i < results->n; i++) out_of_time |= nb_record_is_over_budget(&results->records[i]);
    if (out_of_time && cJSON_IsNumber(elapsed_s)) {
        nb_strbuf_addf(out, "--budget=%.0f", 10 * ceil(elapsed_s->valuedouble / 5));
        return "--budget";
    }
    if (most > least)
        nb_strbuf_addf(out, "--launches=%.0f:%.0f", least, fmax(2 * most, NB_MIN_LAUNCHES));
    else
        nb_strbuf_addf(out, "--launches=%.0f", fmax(2 * least, NB_MIN_LAUNCHES));
    return "--launches";
}

/* The same run, longer, into a folder of its own. */
static void add_longer_run(struct commands *c) {
    const cJSON *argv = nb_meta(c->next->results, "argv"), *word;
    const double launches = nb_json_get_number(nb_meta(c->next->results, "plan"), "launches");
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    bool skips = false;
    const char *const left_out[] = {"--out", "--resume", "--format", longer_option(c->next->results, &text)};
    const cJSON *first = cJSON_GetArrayItem(argv, 0);
    bool can_be_shown =
        c->n < MOST_COMMANDS && cJSON_IsString(first) && strcmp(first->valuestring, "run") == 0 && launches >= 1;
    cJSON_ArrayForEach(word, argv) can_be_shown &= cJSON_IsString(word) && is_printable(word->valuestring);
    if (!can_be_shown) return;
    nb_add_shell_word(c->out, c->next->width, c->program);
    cJSON_ArrayForEach(word, argv) {
        bool skipped = skips;
        skips = false;
        for (size_t i = 0; i < sizeof left_out / sizeof *left_out && !skipped; i++) {
            const size_t n = strlen(left_out[i]);
            if (strncmp(word->valuestring, left_out[i], n) != 0) continue;
            skipped = word->valuestring[n] == '\0' || word->valuestring[n] == '=';
            skips = word->valuestring[n] == '\0';
        }
        if (!skipped) nb_add_shell_word(c->out, c->next->width, word->valuestring);
    }
    nb_add_shell_word(c->out, c->next->width, text.text);
    end_command(c, "narrower intervals");
}

int nb_next_commands(const struct nb_next *next, struct nb_strbuf *out) {
    struct commands c = {.next = next, .out = out, .program = program_name(true), .begin = out->len};
    const struct nb_results *results = next->results;
    const bool going_on = nb_dir_holds(results->dir, NB_JOURNAL_FILE) && cJSON_IsFalse(nb_meta(results, "complete"));
    nb_strbuf_add(out, "");
    if (going_on) add_command(&c, "run", "--resume", results->dir, "resumes it");
    add_replay(&c, next->failed, "what failed");
    if (results->dir) add_command(&c, "report", results->dir, NULL, "every case, plots");
    if (next->noisy) add_longer_run(&c);
    if (next->nearest != next->failed) add_replay(&c, next->nearest, "least accurate");
    add_command(&c, "claims", "--quick", NULL, "papers' claims here");
    free(c.program);
    return c.n_lines;
}
