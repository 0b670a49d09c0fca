// SPDX-License-Identifier: Apache-2.0
/* The journal as a file: whole lines or nothing, one writer, and a reader that tells a torn end from damage. */
#include "src/record/journal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/record/old_names.h"

/* A line without its newline, as an object with a "type"; null when it is none. */
static cJSON *parse_line(const char *text, size_t len) {
    if (strlen(text) != len || !nb_json_is_utf8(text)) return NULL;
    cJSON *json = cJSON_ParseWithOpts(text, NULL, true);
    if (cJSON_IsObject(json) && nb_json_get_text(json, "type")) return json;
    cJSON_Delete(json);
    return NULL;
}

/* ---- writing ------------------------------------------------------------------------------------------------------ */

/* One writer at a time, for as long as the file is open. */
static int lock(const struct nb_journal *j) {
    if (flock(j->fd, LOCK_EX | LOCK_NB) == 0) return 0;
    if (errno == EWOULDBLOCK) return nb_error("%s: another process is writing this run", j->path);
    return nb_error("%s: cannot be locked: %s", j->path, strerror(errno));
}

int nb_journal_create(struct nb_journal *j, const char *dir) {
    *j = (struct nb_journal){.fd = -1};
    if (nb_dir_make(dir) != 0) return -1;
    char *results = nb_path_join(dir, "results.json");
    j->path = nb_path_join(dir, NB_JOURNAL_FILE);
    int result = -1;
    if (!nb_path_exists(results)) j->fd = open(j->path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (j->fd >= 0)
        result = lock(j);
    else if (nb_path_exists(results) || errno == EEXIST)
        nb_error("%s: holds a run already; take another --out, or go on with it by --resume %s", dir, dir);
    else
        nb_error("%s: %s", j->path, strerror(errno));
    free(results);
    if (result != 0) nb_journal_close(j);
    return result;
}

/* Ends the file behind its last whole line. A last line that lacks nothing but its newline is whole. */
static int cut_torn_line(const struct nb_journal *j) {
    FILE *f = fopen(j->path, "re");
    if (!f) return nb_error("%s: %s", j->path, strerror(errno));
    char *text = NULL;
    size_t cap = 0;
    off_t whole = 0;
    bool open_end = false;
    for (ssize_t n; (n = getline(&text, &cap, f)) > 0;) {
        open_end = text[n - 1] != '\n';
        cJSON *last = open_end ? parse_line(text, (size_t)n) : NULL;
        if (!open_end || last) whole += n;
        cJSON_Delete(last);
    }
    bool failed = ferror(f) || fclose(f) != 0;
    free(text);
    if (failed) return nb_error("%s: cannot be read", j->path);
    if (whole == 0) return nb_error("%s: holds no whole line, so there is nothing to go on with", j->path);
    struct stat st;
    if (fstat(j->fd, &st) != 0) return nb_error("%s: %s", j->path, strerror(errno));
    bool done = st.st_size > whole ? ftruncate(j->fd, whole) == 0 : !open_end || write(j->fd, "\n", 1) == 1;
    if (st.st_size > whole) nb_note("%s: its last line was torn, and is cut off", j->path);
    return done ? 0 : nb_error("%s: %s", j->path, strerror(errno));
}

int nb_journal_append_to(struct nb_journal *j, const char *dir) {
    *j = (struct nb_journal){.fd = -1};
    j->path = nb_path_join(dir, NB_JOURNAL_FILE);
    j->fd = open(j->path, O_RDWR | O_APPEND | O_CLOEXEC);
    int result = j->fd < 0 ? nb_error("%s: %s; there is no run to go on with", j->path, strerror(errno)) : lock(j);
    if (result == 0) result = cut_torn_line(j);
    if (result != 0) nb_journal_close(j);
    return result;
}

static int write_all(int fd, const char *text, size_t len) {
    while (len > 0) {
        ssize_t n = write(fd, text, len);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        text += n;
        len -= (size_t)n;
    }
    return 0;
}

int nb_journal_write(struct nb_journal *j, const cJSON *line) {
    assert(nb_json_get_text(line, "type"));
    struct nb_strbuf text = {0};
    struct stat before;
    nb_json_print(line, &text);
    nb_strbuf_add(&text, "\n");
    int result = fstat(j->fd, &before);
    if (result == 0) {
        result = write_all(j->fd, text.text, text.len);
        if (result == 0) result = fdatasync(j->fd);
        int why = errno;
        /* A half line followed by the next one would be damage that no reader can tell from any other. */
        if (result != 0 && ftruncate(j->fd, before.st_size) != 0) nb_warn("%s: ends in half a line", j->path);
        errno = why;
    }
    nb_strbuf_release(&text);
    return result == 0 ? 0 : nb_error("%s: %s", j->path, strerror(errno));
}

void nb_journal_close(struct nb_journal *j) {
    if (j->path && j->fd >= 0) close(j->fd);
    free(j->path);
    *j = (struct nb_journal){.fd = -1};
}

/* ---- reading ------------------------------------------------------------------------------------------------------ */

/* The first line says what the others mean. */
static int check_first_line(const char *path, const cJSON *line, int *schema_major) {
    const char *schema = nb_json_get_text(line, "schema");
    if (strcmp(nb_json_get_text(line, "type"), "run") != 0 || !schema)
        return nb_error("%s:1: is not the \"run\" line that a journal begins with", path);
    if (!nb_schema_readable(schema))
        return nb_error("%s:1: schema %s; this version reads 1.0 to %s", path, schema, NB_SCHEMA_VERSION);
    *schema_major = atoi(schema);
    return 0;
}

static int read_lines(FILE *f, const char *path, int (*visit)(const cJSON *line, void *arg), void *arg) {
    char *text = NULL;
    size_t cap = 0, number = 0;
    int result = 0, schema_major = 0;
    for (ssize_t n; result == 0 && (n = getline(&text, &cap, f)) > 0;) {
        number++;
        bool ended = text[n - 1] == '\n';
        if (ended) text[--n] = '\0';
        cJSON *line = parse_line(text, (size_t)n);
        if (!line && ended)
            result = nb_error("%s:%zu: is not a line of a journal (a JSON object with a \"type\")", path, number);
        else if (!line)
            nb_note("%s:%zu: this last line is torn, and is left out", path, number);
        else if (number == 1 && check_first_line(path, line, &schema_major) != 0)
            result = -1;
        else {
            nb_rename_old(line, schema_major);
            if ((result = visit(line, arg)) < 0) nb_error("%s:%zu: this line cannot be used", path, number);
        }
        cJSON_Delete(line);
    }
    if (result == 0 && ferror(f)) result = nb_error("%s: %s", path, strerror(errno));
    if (result == 0 && number == 0) result = nb_error("%s: is empty", path);
    free(text);
    return result;
}

int nb_journal_read(const char *dir, int (*visit)(const cJSON *line, void *arg), void *arg) {
    char *path = nb_path_join(dir, NB_JOURNAL_FILE);
    FILE *f = fopen(path, "re");
    int result = f ? read_lines(f, path, visit, arg) : nb_error("%s: %s", path, strerror(errno));
    if (f) fclose(f);
    free(path);
    return result < 0 ? -1 : 0;
}
