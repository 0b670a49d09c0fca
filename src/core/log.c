// SPDX-License-Identifier: Apache-2.0
/* Messages and memory. The only mutable state is how loud and how colourful the program
 * is, whether a bar is drawn, and other names of files. */
#include "src/core/log.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/core/utf8.h"

static bool quiet, bar_drawn;
static double last_line_s; /* of progress in a log, by the clock of its stage */
static enum nb_color color_mode = NB_COLOR_AUTO;
enum { MOST_SHOWN = 64 };
static struct shown { const char *path, *name; } shown[MOST_SHOWN];
static size_t n_shown;

void nb_log_shows(const char *path, const char *name) {
    assert(!path || (*path && name && n_shown < MOST_SHOWN));
    if (path)
        shown[n_shown++] = (struct shown){path, name};
    else
        n_shown = 0;
}

bool nb_log_quiet(bool on) {
    const bool before = quiet;
    quiet = on;
    return before;
}
void nb_log_color(enum nb_color color) { color_mode = color; }

bool nb_color_on(int fd) {
    if (color_mode != NB_COLOR_AUTO) return color_mode == NB_COLOR_ALWAYS;
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    if (no_color && *no_color) return false;
    if (!term || strcmp(term, "dumb") == 0) return false;
    return isatty(fd);
}

size_t nb_screen_width(FILE *out) {
    const char *wish = getenv("COLUMNS");
    long columns = wish ? strtol(wish, NULL, 10) : 0;
    if (columns >= 20 && columns <= 10000) return (size_t)columns;
    struct winsize size;
    int fd = fileno(out);
    if (fd < 0 || !isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return NB_USUAL_WIDTH;
    return size.ws_col;
}

/* How many bytes of text may be shown as they are. */
static size_t plain_length(const char *text, size_t n) {
    size_t len = 0, next;
    uint32_t code;
    while (len < n && text[len] && (next = nb_utf8_decode(text + len, &code)) > 0 && !nb_utf8_is_command(code))
        len += next;
    return len;
}

/* Names in a message come from files and plugins: no terminal takes one for a command. Shows about n bytes at most. */
static void put(FILE *out, const char *text, size_t n) {
    for (size_t at = 0; at < n && text[at];) {
        const size_t len = plain_length(text + at, n - at);
        if (len > 0)
            fwrite(text + at, 1, len, out);
        else
            fprintf(out, "\\x%02X", (unsigned char)text[at]);
        at += len ? len : 1;
    }
}

static void put_named(FILE *out, const char *text) {
    for (const char *at; *text; text = at) {
        const struct shown *first = NULL;
        at = NULL;
        for (const struct shown *s = shown; s < shown + n_shown; s++) {
            const char *found = strstr(text, s->path);
            if (found && (!at || found < at)) at = found, first = s;
        }
        put(out, text, at ? (size_t)(at - text) : SIZE_MAX);
        if (!first) return;
        put(out, first->name, SIZE_MAX);
        at += strlen(first->path);
    }
}

/* Words in lines of the screen. */
static void put_words(const char *text, size_t column) {
    const size_t width = nb_screen_width(stderr);
    const char *before = "";
    for (size_t n; *text; text += n + (text[n] == ' '), column += n + 1, before = " ") {
        n = strcspn(text, " ");
        const bool breaks = *before && column + n > width;
        fprintf(stderr, "%s%.*s", breaks ? "\n  " : before, (int)n, text);
        if (breaks) column = 2;
    }
}

/* An error is one line, since programs read it; of the others the lines fit the screen. */
static void say(const char *color, const char *label, const char *format, va_list args) {
    nb_progress_end();
    bool on = nb_color_on(STDERR_FILENO);
    char *message freed = NULL, *shown_text freed = NULL;
    size_t n;
    if (vasprintf(&message, format, args) < 0) message = NULL;
    FILE *text = open_memstream(&shown_text, &n);
    if (text) {
        put_named(text, message ? message : format);
        fclose(text);
    }
    fprintf(stderr, "normbench: %s%s%s", on ? color : "", label, on && *color ? "\033[0m" : "");
    if (strcmp(label, "error: ") == 0)
        fputs(shown_text ? shown_text : format, stderr);
    else
        put_words(shown_text ? shown_text : format, sizeof "normbench: " - 1 + strlen(label));
    fputc('\n', stderr);
}

int nb_error(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say("\033[31m", "error: ", format, args);
    va_end(args);
    return -1;
}

void nb_warn(const char *format, ...) {
    va_list args;
    va_start(args, format);
    say("\033[33m", "warning: ", format, args);
    va_end(args);
}

void nb_note(const char *format, ...) {
    if (quiet) return;
    va_list args;
    va_start(args, format);
    say("", "", format, args);
    va_end(args);
}

struct left {
    char text[48]; /* "33 s left", "33 to 60 s left"; "": too early to tell */
};

static struct left time_left(double done, double least, double most, double elapsed_s) {
    struct left left = {""};
    if (!(elapsed_s > 0) || done < 0.1 * least) return left;
    const double low = elapsed_s * (least / done - 1), high = elapsed_s * (most / done - 1);
    if (isinf(high))
        snprintf(left.text, sizeof left.text, "at least %.0f s left", low);
    else if (high < 1.1 * low + 1)
        snprintf(left.text, sizeof left.text, "%.0f s left", high);
    else
        snprintf(left.text, sizeof left.text, "%.0f to %.0f s left", low, high);
    return left;
}

/* A log that says nothing for minutes looks like one of a program that hangs; one with a line for each step hides the rest. */
static void progress_line(double share, double elapsed_s, const char *left, const char *what) {
    if (elapsed_s < last_line_s) last_line_s = 0; /* another stage has begun */
    if (elapsed_s - last_line_s < NB_PROGRESS_LINE_S) return;
    last_line_s = elapsed_s;
    nb_note("%.0f%% after %.0f s%s%s: %.60s", 100 * share, elapsed_s, *left ? ", " : "", left, what);
}

void nb_progress(double done, double total, double elapsed_s, const char *what) {
    nb_progress_between(done, total, total, elapsed_s, what);
}

void nb_progress_between(double done, double least, double most, double elapsed_s, const char *what) {
    if (quiet || least <= 0) return;
    const double total = isinf(most) ? least : most, share = done / total < 1 ? done / total : 1;
    const struct left left = time_left(done, least, most, elapsed_s);
    if (!isatty(STDERR_FILENO)) {
        progress_line(share, elapsed_s, left.text, what);
        return;
    }
    enum { CELLS = 30 };
    char cells[CELLS + 1];
    int filled = (int)(share * CELLS);
    memset(cells, '#', (size_t)filled);
    memset(cells + filled, '.', (size_t)(CELLS - filled));
    cells[CELLS] = '\0';
    fprintf(stderr, "\r[%s] %3.0f %%  %s%s", cells, 100 * share, left.text, *left.text ? "  " : "");
    put(stderr, what, 60);
    fputs("\033[K", stderr);
    bar_drawn = true;
}

void nb_progress_end(void) {
    if (!bar_drawn) return;
    fputs("\r\033[K", stderr);
    bar_drawn = false;
}

static _Noreturn void out_of_memory(unsigned long long n, unsigned long long size) {
    fprintf(stderr, "normbench: error: no memory for %llu x %llu bytes\n", n, size);
    exit(2); /* NB_EXIT_USAGE: the environment's fault */
}

void *nb_alloc(unsigned long long n, unsigned long long size) {
    void *p = calloc(n ? n : 1, size ? size : 1);
    if (!p) out_of_memory(n, size);
    return p;
}

void *nb_realloc(void *old, unsigned long long n, unsigned long long size) {
    if (size && n > SIZE_MAX / size) out_of_memory(n, size);
    unsigned long long bytes = n * size;
    void *p = realloc(old, bytes ? bytes : 1);
    if (!p) out_of_memory(n, size);
    return p;
}

char *nb_strdup(const char *s) {
    char *copy = strdup(s);
    if (!copy) out_of_memory(1, strlen(s) + 1);
    return copy;
}
