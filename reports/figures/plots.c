// SPDX-License-Identifier: Apache-2.0
/* DIR/plots/: a data file, a script and two pictures for each figure, all.gp that draws them all, and a README that says
 * what could not be drawn. */
#include "reports/figures/figure.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reports/figures/plot.h"
#include "reports/run/report.h"
#include "reports/text/escape.h"
#include "src/core/files.h"
#include "src/core/log.h"

static bool is_taken(const struct nb_figures *figures, const char *name) {
    for (size_t i = 0; i < figures->n; i++)
        if (strcmp(figures->list[i].name, name) == 0) return true;
    return false;
}

struct nb_figure *nb_figures_new(struct nb_figures *figures, const struct nb_results *results, char *name) {
    struct nb_strbuf footer = {0};
    struct nb_figure made;
    nb_figure_init(&made, name);
    /* Names are made safe and cut, so that two of them may become one. */
    for (int k = 2; is_taken(figures, made.name); k++) {
        nb_figure_release(&made);
        char *other freed = nb_textf("%d-%s", k, name);
        nb_figure_init(&made, other);
    }
    nb_meta_footer(results, &footer);
    nb_strbuf_addf(&footer, "%snormbench %s", footer.len ? ", " : "", nb_meta_text(results, "version"));
    made.footer = footer.text;
    free(name);
    *NB_PUSH(figures->list, figures->n) = made;
    return &figures->list[figures->n - 1];
}

void nb_figures_drop_last(struct nb_figures *figures) { nb_figure_release(&figures->list[--figures->n]); }

void nb_figures_note(struct nb_figures *figures, const char *format, ...) {
    va_list args;
    va_start(args, format);
    nb_strbuf_addv(&figures->notes, format, args);
    va_end(args);
    nb_strbuf_add(&figures->notes, "\n");
}

static nb_plot *const families[] = {
#define NB_PLOT_ENTRY(name) nb_plot_##name,
#include "plot_list.h"
#undef NB_PLOT_ENTRY
};

void nb_figures_init(struct nb_figures *figures, const struct nb_results *results) {
    *figures = (struct nb_figures){.notes = nb_strbuf_empty()};
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) families[i](results, figures);
}

void nb_figures_release(struct nb_figures *figures) {
    for (size_t i = 0; i < figures->n; i++) nb_figure_release(&figures->list[i]);
    free(figures->list);
    nb_strbuf_release(&figures->notes);
    *figures = (struct nb_figures){0};
}

static int write_file(const char *dir, const char *name, const char *ending, struct nb_strbuf *text) {
    char *file freed = nb_textf("%s/%s%s", dir, name, ending);
    int result = nb_file_write(file, text->text ? text->text : "", text->len);
    nb_strbuf_release(text);
    return result;
}

static int write_figure(const struct nb_figure *f, const char *dir) {
    struct nb_strbuf data = {0}, script = {0};
    nb_figure_data(f, &data);
    nb_figure_script(f, &script);
    int result = write_file(dir, f->name, ".dat", &data);
    return write_file(dir, f->name, ".gp", &script) != 0 ? -1 : result;
}

static int write_index(const struct nb_figures *figures, const char *dir) {
    struct nb_strbuf all = {0}, readme = {0};
    nb_strbuf_add(
        &readme,
        "# Plots\n\nNAME.svg and NAME.png are drawn by NAME.gp from NAME.dat; `gnuplot all.gp` draws all again.\n");
    for (size_t i = 0; i < figures->n; i++) {
        const struct nb_figure *f = &figures->list[i];
        nb_strbuf_addf(&all, "load '%s.gp'\n", f->name);
        nb_strbuf_addf(&readme, "\n- %s: ", f->name);
        nb_escape_markdown(&readme, f->title);
    }
    if (figures->notes.len) nb_strbuf_add(&readme, "\n\nNot drawn:\n\n    ");
    for (const char *s = figures->notes.text; *s; s += strcspn(s, "\n") + 1) {
        struct nb_strbuf line released_by(nb_strbuf_release) = {0};
        nb_strbuf_addn(&line, s, strcspn(s, "\n"));
        nb_escape_terminal(&readme, line.text, true);
        nb_strbuf_add(&readme, s[line.len + 1] ? "\n    " : "");
    }
    nb_strbuf_add(&readme, "\n");
    int result = write_file(dir, "all", ".gp", &all);
    return write_file(dir, "README", ".md", &readme) != 0 ? -1 : result;
}

/* ---- gnuplot: no shell, a fixed command, the user's start-up files left out ---- */

extern char **environ;

static int start_gnuplot(const char *dir, pid_t *child) {
    static const char *const command[] = {"gnuplot", "--default-settings", "all.gp", NULL};
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    error = posix_spawn_file_actions_addchdir_np(&actions, dir);
    if (!error) error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "gnuplot.log", O_WRONLY | O_CREAT | O_TRUNC,
                                                 0644);
    if (!error) error = posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    if (!error) error = posix_spawnp(child, command[0], &actions, NULL, (char *const *)(uintptr_t)command, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* By this exit code posix_spawn() may say that there was nothing to start, as it does where the program is emulated. */
enum { NOT_STARTED = 127 };

/* Draws all figures of the folder with one process. 0; 1: no gnuplot here; -1 after nb_error. */
static int draw_all(const char *dir) {
    pid_t child;
    int status = 0;
    char *log freed = nb_path_join(dir, "gnuplot.log");
    int error = start_gnuplot(dir, &child), result = 0;
    if (error == ENOENT || error == EACCES) {
        result = 1;
    } else if (error) {
        result = nb_error("cannot start gnuplot: %s", strerror(error));
    } else {
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        if (code == NOT_STARTED)
            result = 1;
        else if (code != 0)
            result = nb_error("gnuplot could not draw all plots; %s says why", log);
        else
            unlink(log);
    }
    if (result == 1) unlink(log);
    return result;
}

int nb_figures_write(const struct nb_figures *figures, const char *dir, const char *folder) {
    char *plots freed = nb_path_join(dir, folder);
    int result = nb_dir_make(plots);
    for (size_t i = 0; i < figures->n && result == 0; i++) result = write_figure(&figures->list[i], plots);
    if (result == 0) result = write_index(figures, plots);
    if (result == 0 && figures->n) {
        int drawn = draw_all(plots);
        if (drawn > 0) nb_note("no gnuplot here: %s has the data and the scripts, but no pictures", plots);
        result = drawn < 0 ? -1 : 0;
    }
    return result;
}
