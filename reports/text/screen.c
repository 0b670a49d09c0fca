// SPDX-License-Identifier: Apache-2.0
/* Width, colour and line breaks. */
#include "reports/text/screen.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "reports/text/escape.h"
#include "src/core/log.h"

enum { USUAL_WIDTH = 110 };

size_t nb_screen_width(FILE *out) {
    const char *wish = getenv("COLUMNS");
    long columns = wish ? strtol(wish, NULL, 10) : 0;
    if (columns >= 20 && columns <= 10000) return (size_t)columns;
    struct winsize size;
    int fd = fileno(out);
    if (fd < 0 || !isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) != 0) return 0;
    return size.ws_col;
}

bool nb_screen_color(FILE *out) {
    int fd = fileno(out);
    return fd >= 0 && nb_color_on(fd);
}

void nb_screen_wrap(struct nb_strbuf *out, const char *text, size_t screen, bool utf8) {
    struct nb_strbuf safe = {0};
    size_t limit = screen ? screen : USUAL_WIDTH, column = 0;
    nb_strbuf_add(&safe, "");
    nb_escape_terminal(&safe, text, utf8);
    for (char *rest = NULL, *word = strtok_r(safe.text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        size_t cells = nb_utf8_cells(word);
        bool breaks = column && column + 1 + cells > limit;
        nb_strbuf_add(out, breaks ? "\n  " : column ? " " : "");
        nb_strbuf_add(out, word);
        column = breaks ? 2 + cells : column + (column > 0) + cells;
    }
    nb_strbuf_add(out, "\n");
    nb_strbuf_release(&safe);
}
