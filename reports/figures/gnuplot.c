// SPDX-License-Identifier: Apache-2.0
/* gnuplot, run once for all figures: no shell, a fixed command, the user's start-up files left out. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reports/figures/plots.h"
#include "src/core/files.h"
#include "src/core/log.h"

extern char **environ;

static int start(const char *dir, pid_t *child) {
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

int nb_gnuplot_run(const char *dir) {
    pid_t child;
    int status = 0;
    char *log = nb_path_join(dir, "gnuplot.log");
    int error = start(dir, &child), result = 0;
    if (error == ENOENT || error == EACCES) {
        result = 1;
    } else if (error) {
        result = nb_error("cannot start gnuplot: %s", strerror(error));
    } else {
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
        }
        bool drawn = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        if (!drawn)
            result = nb_error("gnuplot could not draw all plots; %s says why", log);
        else
            unlink(log);
    }
    if (result == 1) unlink(log);
    free(log);
    return result;
}
