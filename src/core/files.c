// SPDX-License-Identifier: Apache-2.0
/* Paths and whole files. */
#include "src/core/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/core/log.h"

static int refuse_kind(const char *path, mode_t mode, const char *done) {
    if (S_ISDIR(mode)) return nb_error("%s: is a folder", path);
    return nb_error("%s: is a pipe or a device; only a file can be %s here", path, done);
}

FILE *nb_file_open(const char *path, size_t limit) {
    struct stat st;
    FILE *f = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* which does not wait for a pipe's writer */
    if (fd < 0 || fstat(fd, &st) != 0)
        nb_error("%s: %s", path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        refuse_kind(path, st.st_mode, "read");
    else if ((uintmax_t)st.st_size > limit)
        nb_error("%s: larger than %zu bytes", path, limit);
    else if (!(f = fdopen(fd, "r")))
        nb_error("%s: %s", path, strerror(errno));
    if (!f && fd >= 0) close(fd);
    return f;
}

void nb_file_release(FILE **file) {
    if (*file) fclose(*file);
}

char *nb_file_read(const char *path, size_t limit, size_t *len) {
    struct nb_strbuf text = {0};
    char chunk[16384];
    FILE *f released_by(nb_file_release) = nb_file_open(path, limit);
    if (!f) return NULL;
    nb_strbuf_addn(&text, "", 0);
    for (size_t n; text.len <= limit && (n = fread(chunk, 1, sizeof chunk, f)) > 0;) nb_strbuf_addn(&text, chunk, n);
    const bool failed = ferror(f);
    if (failed) nb_error("%s: %s", path, strerror(errno));
    if (text.len > limit) nb_error("%s: larger than %zu bytes", path, limit);
    if (failed || text.len > limit) nb_strbuf_release(&text);
    if (len) *len = text.len;
    return text.text;
}

bool nb_file_line(const char *path, char *text, size_t n) {
    FILE *f = fopen(path, "re");
    const bool read = f && fgets(text, (int)n, f);
    if (f) fclose(f);
    text[read ? strcspn(text, "\n") : 0] = '\0';
    return read;
}

/* What is left of the whole file when each step succeeds; errno says why one did not. */
static bool write_whole(const char *path, bool (*next)(void *context, struct nb_strbuf *part), void *context) {
    FILE *f = fopen(path, "wbe");
    if (!f) return false;
    struct nb_strbuf part = {0};
    bool written = true, more = true;
    while (written && more) {
        nb_strbuf_clear(&part);
        more = next(context, &part);
        written = part.len == 0 || fwrite(part.text, 1, part.len, f) == part.len;
    }
    nb_strbuf_release(&part);
    written = written && fflush(f) == 0 && fsync(fileno(f)) == 0;
    const int why = errno;
    if (fclose(f) == 0 && written) return true;
    if (!written) errno = why;
    return false;
}

int nb_file_check_place(const char *path) {
    struct stat st;
    if (stat(path, &st) != 0 || S_ISREG(st.st_mode)) return 0;
    return refuse_kind(path, st.st_mode, "written");
}

/* Where the links at path lead, whether or not a file is there yet: a rename would put the file in the link's place. Owned. */
static char *past_links(const char *path) {
    enum { MOST_LINKS = 40 }; /* as many as the system follows */
    char *at = nb_strdup(path), target[4096];
    for (int i = 0; i < MOST_LINKS; i++) {
        const ssize_t n = readlink(at, target, sizeof target - 1);
        if (n <= 0) break;
        target[n] = '\0';
        const char *slash = target[0] == '/' ? NULL : strrchr(at, '/');
        char *next = nb_textf("%.*s%s", slash ? (int)(slash - at) + 1 : 0, at, target);
        free(at);
        at = next;
    }
    return at;
}

int nb_file_write_parts(const char *path, bool (*next)(void *context, struct nb_strbuf *part), void *context) {
    if (nb_file_check_place(path) != 0) return -1;
    char *place freed = past_links(path);
    char *temporary freed = nb_textf("%s.%d.tmp", place, (int)getpid());
    const bool done = write_whole(temporary, next, context) && rename(temporary, place) == 0;
    if (!done) {
        nb_error("%s: %s", path, strerror(errno));
        unlink(temporary);
    }
    return done ? 0 : -1;
}

struct whole {
    const char *text;
    size_t len;
};

static bool add_whole(void *context, struct nb_strbuf *part) {
    const struct whole *whole = context;
    nb_strbuf_addn(part, whole->text, whole->len);
    return false;
}

int nb_file_write(const char *path, const char *text, size_t len) {
    return nb_file_write_parts(path, add_whole, &(struct whole){text, len});
}

int nb_dir_make(const char *dir) {
    char *path freed = nb_strdup(dir);
    int result = 0;
    for (char *p = path + 1;; p++) {
        if (*p != '/' && *p != '\0') continue;
        char end = *p;
        *p = '\0';
        if (mkdir(path, 0777) != 0 && errno != EEXIST) {
            result = nb_error("%s: %s", path, strerror(errno));
            break;
        }
        if (!end) break;
        *p = end;
    }
    struct stat st;
    if (result == 0 && (stat(dir, &st) != 0 || !S_ISDIR(st.st_mode))) result = nb_error("%s: not a folder", dir);
    return result;
}

bool nb_path_exists(const char *path) { return access(path, F_OK) == 0; }

bool nb_dir_holds(const char *dir, const char *name) {
    char *path freed = dir ? nb_path_join(dir, name) : NULL;
    return path && nb_path_exists(path);
}

char *nb_path_found(char *path) {
    if (!path || nb_path_exists(path)) return path;
    free(path);
    return NULL;
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw) { return remove(path); }

/* -1: it is another user's, or another process holds it (EWOULDBLOCK). */
static int lock_dir(const char *dir) {
    struct stat st;
    const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0) return fd;
    const int error = errno;
    if (fd >= 0) close(fd);
    errno = error;
    return -1;
}

/* Those that begin so and nobody holds: their processes were killed. */
static void sweep(const char *tmp, const char *begin) {
    struct nb_strings names released_by(nb_strings_release) = nb_dir_list(tmp, "");
    for (size_t i = 0; i < names.n; i++) {
        if (strncmp(names.items[i], begin, strlen(begin)) != 0) continue;
        char *dir = nb_path_join(tmp, names.items[i]);
        const int lock = lock_dir(dir);
        if (lock >= 0)
            nb_temporary_dir_remove(dir, lock);
        else
            free(dir);
    }
}

char *nb_temporary_dir(const char *name, int *lock) {
    const char *named = getenv("TMPDIR"), *tmp = named && *named ? named : "/tmp";
    char *begin freed = nb_textf("normbench-%s-", name), *pattern freed = nb_textf("%s/%sXXXXXX", tmp, begin),
                *dir = NULL;
    sweep(tmp, begin);
    for (bool is_mine = false; !is_mine;) { /* until another's sweep does not come between */
        free(dir);
        dir = mkdtemp(nb_strdup(pattern));
        if (!dir) break;
        *lock = lock_dir(dir);
        is_mine = (*lock >= 0 || errno != EWOULDBLOCK) && nb_path_exists(dir);
        if (!is_mine && *lock >= 0) close(*lock);
    }
    if (!dir) nb_error("%s: no folder can be made there: %s", tmp, strerror(errno));
    return dir;
}

void nb_temporary_dir_remove(char *dir, int lock) {
    if (!dir) return;
    nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    if (lock >= 0) close(lock);
    free(dir);
}

int nb_fd_out_of_reach(int fd, bool alone) {
    uint16_t at = 0;
    while (getrandom(&at, sizeof at, 0) < 0 && errno == EINTR) continue;
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, 300 + at % 600), kept = moved < 0 ? fd : moved;
    if (moved >= 0) close(fd);
    if (alone && kept > 3) close_range(3, (unsigned)kept - 1, 0);
    if (alone) close_range((unsigned)kept + 1, ~0u, 0);
    return kept;
}

void nb_fd_release(const int *fd) {
    if (*fd >= 0) close(*fd);
}

bool nb_fds_send(int socket, const void *data, size_t bytes, const int *fds, size_t n) {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(NB_MOST_FDS * sizeof *fds)] = {0};
    struct iovec io = {(void *)(uintptr_t)data, bytes};
    const struct msghdr message = {
        .msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(n * sizeof *fds)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(n * sizeof *fds);
    memcpy(CMSG_DATA(c), fds, n * sizeof *fds);
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)bytes;
}

int nb_fds_receive(int socket, void *data, size_t bytes, int fds[NB_MOST_FDS]) {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(NB_MOST_FDS * sizeof *fds)];
    struct iovec io = {data, bytes};
    struct msghdr message = {.msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t got;
    while ((got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) continue;
    const struct cmsghdr *c = got == (ssize_t)bytes ? CMSG_FIRSTHDR(&message) : NULL;
    if (!c || c->cmsg_type != SCM_RIGHTS) return -1;
    const size_t held = c->cmsg_len - CMSG_LEN(0);
    memcpy(fds, CMSG_DATA(c), held);
    return (int)(held / sizeof *fds);
}

static int compare_texts(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

struct nb_strings nb_dir_list(const char *dir, const char *end) {
    struct nb_strings names = {0};
    DIR *folder = dir ? opendir(dir) : NULL;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, end) == 0 || !nb_text_ends(entry->d_name, end)) continue;
        *NB_PUSH(names.items, names.n) = nb_base_name(entry->d_name, end);
    }
    if (folder) closedir(folder);
    if (names.n > 1) qsort(names.items, names.n, sizeof *names.items, compare_texts);
    return names;
}

char *nb_path_absolute(const char *path) {
    char *absolute = realpath(path, NULL);
    return absolute ? absolute : nb_strdup(path);
}

char *nb_path_join(const char *dir, const char *name) {
    size_t n = strlen(dir);
    return nb_textf("%s%s%s", dir, n > 0 && dir[n - 1] == '/' ? "" : "/", name);
}

char *nb_program_dir(void) {
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0) return nb_strdup(".");
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    if (slash) *slash = '\0';
    return nb_strdup(path);
}

char *nb_share_dir(const char *environment, const char *folder) {
    const char *named = environment ? getenv(environment) : NULL;
    if (named && *named) return nb_strdup(named);
    static const char *const places[] = {"", "../", "../share/normbench/"};
    char *program freed = nb_program_dir();
    char *found = NULL;
    for (size_t i = 0; i < sizeof places / sizeof places[0] && !found; i++) {
        char *path freed = nb_textf("%s/%s%s", program, places[i], folder);
        found = realpath(path, NULL); /* without the "..", for people read it in messages */
    }
    return found;
}

static const char *absolute(const char *name) {
    const char *value = getenv(name);
    return value && value[0] == '/' ? value : NULL;
}

char *nb_user_dir(const char *variable, const char *below) {
    const char *named = absolute(variable), *home = absolute("HOME");
    if (named) return nb_textf("%s/normbench", named);
    return home ? nb_textf("%s/%s/normbench", home, below) : NULL;
}
