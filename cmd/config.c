// SPDX-License-Identifier: Apache-2.0
/* normbench config: is a config right? Reads it as `run` does, and runs nothing. */
#include <stdio.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "src/core/log.h"
#include "src/plan/cells.h"
#include "src/plan/config.h"

extern const struct nb_command nb_command_config;

static const char help[] =
    "usage: normbench config check FILE... [OPTIONS]\n\n"
    "Reads configs as `normbench run` would and says every mistake with its file, line and key and what would be right:\n"
    "JSON, keys, values, names of kernels and data, a config that selects nothing. Runs nothing. FILE is a preset's name\n"
    "(`normbench list configs`) or a file, with a slash or .json in its name.\n\n"
    "  --plugin FILE.so     knows the kernels of a shared object too; repeatable\n" NB_LOAD_TIMEOUT_HELP NB_PEER_HELP
        NB_COMMON_HELP "\nExit codes: 0 every file is right, 2 one is not.\n";

static int check_blocks(const struct nb_config *config) {
    const struct nb_filters all = {0};
    struct nb_skips skips = {0};
    int result = 0;
    struct nb_cells cells = {0};
    if (nb_cells_expand(&cells, config, &all, &skips) != 0)
        result = -1;
    else if (cells.n == 0)
        result = nb_error("%s: selects no case%s%s", config->path, skips.n ? ": " : "",
                          skips.n ? skips.items[0].reason : "");
    else
        printf("%s: right; %zu case%s\n", config->path, cells.n, cells.n == 1 ? "" : "s");
    nb_cells_release(&cells);
    nb_skips_release(&skips);
    return result;
}

static int check_file(const char *name) {
    struct nb_config config = {0};
    if (nb_config_read(&config, name) != 0) return -1;
    const int result = check_blocks(&config);
    nb_config_release(&config);
    return result;
}

static int config_main(int argc, char **argv) {
    struct nb_texts plugins = {0};
    static const char *const actions[] = {"check", NULL};
    const struct nb_option options[] = {NB_PLUGIN_OPTIONS(&plugins), {.name = NULL, .among = actions}};
    int exit_code;
    if (!nb_read_options(&nb_command_config, options, NB_ANY_ARGUMENTS, argc, argv, &exit_code)) goto out;
    if (optind >= argc || strcmp(argv[optind], "check") != 0 || optind + 1 == argc) {
        nb_error("config: `normbench config check FILE...`; see `normbench config --help`");
        goto out;
    }
    if (nb_load_kernels(&plugins, NULL) != 0) goto out;
    exit_code = NB_EXIT_OK;
    for (int i = optind + 1; i < argc; i++)
        if (check_file(argv[i]) != 0) exit_code = NB_EXIT_USAGE;
out:
    nb_texts_release(&plugins);
    return exit_code;
}

const struct nb_command nb_command_config = {"config", "says every mistake in a config", help, config_main};
