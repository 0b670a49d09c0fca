// SPDX-License-Identifier: Apache-2.0
/* normbench list: what there is to choose from. */
#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "reports/run/report.h"
#include "reports/text/grid.h"
#include "src/core/axes.h"
#include "src/core/cpu.h"
#include "src/core/files.h"
#include "src/core/guard.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/peers.h"
#include "src/core/registry.h"
#include "src/core/text.h"
#include "src/device/device.h"
#include "src/plan/config.h"
#include "src/plan/inputs.h"

static const char help[] =
    "usage: normbench list [WHAT] [OPTIONS]\n\n"
    "List what there is to choose from. WHAT is one of\n"
    "  kernels    what can be measured (the default): op, properties, dtypes, widths\n"
    "  configs    presets for `normbench run`\n"
    "  axes       the axes of a config's blocks and of --axis, with their values and defaults\n"
    "  data       distributions, and data sets of real rows\n"
    "  shapes     shapes of models and papers by name\n"
    "  peers      libraries to compare with (--peer): what is here, and how to get what is not\n"
    "  formats    of `normbench run --format` and `normbench report --format`\n\n"
    "  --format NAME        table (the default), markdown, csv or json\n"
    "  --wide               print a table with all columns, however long its lines; without it, it fits the terminal\n"
    "  --plugin FILE        list the kernels of a .so, .py or program too; repeatable\n" NB_LOAD_TIMEOUT_HELP
        NB_PEER_HELP NB_COMMON_HELP "\n"
    "Exit codes: 0 ok, 2 usage.\n";

/* ---- kernels ---- */

static void add_word(struct nb_strbuf *list, const char *word) {
    size_t n = strlen(word);
    for (const char *p = list->text; p && (p = strstr(p, word)); p += n)
        if ((p == list->text || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\0')) return;
    nb_strbuf_addf(list, "%s%s", list->len ? " " : "", word);
}

/* The widths of a kernel that are not built. */
static void add_absent(struct nb_strbuf *list, const char *kernel_id) {
    size_t n;
    const struct nb_entry *catalogue = nb_catalogue(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(catalogue[i].kernel_id, kernel_id) == 0 && !nb_registry_find(catalogue[i].id))
            add_word(list, nb_width_names[catalogue[i].kernel->width]);
}

/* Of kernels for a GPU, what is known of them there. */
static const char *where(const struct nb_kernel *k) {
    return k->backend == NB_BACKEND_CUDA            ? "cuda: " NB_CUDA_HAS_RUN
           : k->backend == NB_BACKEND_CUDA_EMULATED ? "cuda-emulated on the CPU"
                                                    : "cpu";
}

static void add_properties(struct nb_grid *grid, const char *kernel_id, const struct nb_kernel *k) {
    nb_grid_row(grid, kernel_id, where(k), nb_op_names[k->op], nb_pass_names[k->pass], nb_style_names[k->style],
                nb_stats_names[k->stats], nb_stats_dtype_names[k->stats_dtype], nb_variance_names[k->variance]);
}

/* A row for each kernel of which no width is built. */
static void add_absent_kernels(struct nb_grid *grid) {
    const char *last = "";
    size_t n;
    const struct nb_entry *catalogue = nb_catalogue(&n);
    for (size_t i = 0; i < n; i++) {
        const struct nb_entry *e = &catalogue[i];
        struct nb_strbuf absent released_by(nb_strbuf_release) = {0};
        if (strcmp(e->kernel_id, last) == 0 || nb_registry_has_kernel(e->kernel_id)) continue;
        last = e->kernel_id;
        add_absent(&absent, last);
        add_properties(grid, last, e->kernel);
        nb_grid_row(grid, "", "", "", absent.text, "not built");
    }
}

/* One row for the variants [first, end) of a kernel. */
static void add_kernel(struct nb_grid *grid, size_t first, size_t end) {
    const struct nb_entry *entry = nb_registry_at(first);
    const struct nb_kernel *k = entry->kernel;
    released_by(nb_strbuf_release) struct nb_strbuf dtypes = {0}, widths = {0}, refused = nb_strbuf_empty(),
                                                    absent = nb_strbuf_empty();
    for (size_t i = first; i < end; i++) {
        const struct nb_kernel *variant = nb_registry_at(i)->kernel;
        add_word(&dtypes, nb_dtype_names[variant->dtype]);
        add_word(&widths, nb_width_names[variant->width]);
        if (nb_cpu_refuses(variant->cpu_features, variant->width)) add_word(&refused, nb_width_names[variant->width]);
    }
    add_absent(&absent, entry->kernel_id);
    add_properties(grid, entry->kernel_id, k);
    nb_grid_row(grid, dtypes.text, widths.text, refused.text, absent.text, k->summary);
}

static int list_kernels(struct nb_grid *grid) {
    for (int b = NB_BACKEND_CUDA; b < NB_N_BACKENDS; b++) {
        char *file freed = nb_backend_library((enum nb_backend)b);
        if (file && nb_registry_describe(file) != 0) nb_warn("%s: its kernels are not listed", file);
    }
    for (size_t i = 0, end; i < nb_registry_size(); i = end) {
        for (end = i + 1; end < nb_registry_size(); end++)
            if (strcmp(nb_registry_at(end)->kernel_id, nb_registry_at(i)->kernel_id) != 0 ||
                nb_registry_at(end)->kernel->backend != nb_registry_at(i)->kernel->backend)
                break;
        add_kernel(grid, i, end);
    }
    add_absent_kernels(grid);
    const struct nb_entry *absent = NULL;
    size_t n;
    const struct nb_entry *catalogue = nb_catalogue(&n);
    for (size_t i = 0; i < n; i++)
        if ((!absent || catalogue[i].kernel->width == NB_SCALAR) && !nb_registry_find(catalogue[i].id))
            absent = &catalogue[i];
    if (absent) nb_note("some are not built: %s", nb_catalogue_remedy(absent));
    return 0;
}

/* ---- configs, shapes ---- */

static int list_configs(struct nb_grid *grid) {
    struct nb_strings names released_by(nb_strings_release);
    nb_config_list(&names);
    for (size_t i = 0; i < names.n; i++) {
        struct nb_config config;
        nb_grid_add(grid, names.items[i]);
        if (nb_config_read(&config, names.items[i]) != 0) {
            nb_grid_row(grid, "", "", "cannot be read");
            continue;
        }
        const bool is_adaptive = config.most_launches > config.launches;
        nb_grid_addf(grid, is_adaptive ? "%d:%d" : "%d", config.launches, config.most_launches);
        nb_grid_addf(grid, "%zu", config.n_blocks);
        nb_grid_add(grid, config.description ? config.description : "");
        nb_config_release(&config);
    }
    return names.n > 0 ? 0 : nb_error("no configs are found; NORMBENCH_CONFIGS names their folder");
}

static int list_shapes(struct nb_grid *grid) {
    struct nb_jsonc file released_by(nb_jsonc_release) = {0};
    char *path freed = nb_jsonc_find("shapes.json");
    if (!path) return nb_error("no shapes.json is found; NORMBENCH_CONFIGS names its folder");
    if (nb_jsonc_read(&file, path) != 0) return -1;
    const cJSON *preset, *shape;
    cJSON_ArrayForEach(preset, file.root) {
        struct nb_strbuf shapes released_by(nb_strbuf_release) = nb_strbuf_empty();
        cJSON_ArrayForEach(shape, nb_json_get(preset, "shapes")) {
            if (cJSON_IsString(shape)) nb_strbuf_addf(&shapes, "%s%s", shapes.len ? " " : "", shape->valuestring);
        }
        nb_grid_row(grid, preset->string ? preset->string : "", shapes.text, nb_json_get_string(preset, "source"));
    }
    return 0;
}

/* ---- axes, data, formats ---- */

static int list_axes(struct nb_grid *grid) {
    for (size_t a = 0; a < nb_n_axes; a++) {
        const struct nb_axis *axis = &nb_axes[a];
        struct nb_strbuf values released_by(nb_strbuf_release) = nb_strbuf_empty();
        for (size_t i = 0; axis->choices && axis->choices[i]; i++)
            nb_strbuf_addf(&values, "%s%s", i ? " " : "", axis->choices[i]);
        nb_grid_row(grid, axis->name, axis->kind == NB_AXIS_SELECT ? "selects kernels" : "sets the case",
                    axis->fallback ? axis->fallback : "all", values.text, axis->help);
    }
    return 0;
}

/* "64 x 384 real rows" */
static void add_rows(struct nb_grid *grid, const char *dir, const char *name) {
    char *path freed = nb_textf("%s/%s_x.npy", dir, name);
    struct nb_array x;
    char reason[1024];
    if (nb_array_read(&x, path, true, reason, sizeof reason) != 0) {
        nb_grid_addf(grid, "cannot be read: %s", reason);
        return;
    }
    nb_grid_addf(grid, "%lld x %lld real rows, from the data folder", (long long)x.rows, (long long)x.cols);
    nb_array_release(&x);
}

static int list_data(struct nb_grid *grid) {
    char *dir freed = nb_data_dir();
    struct nb_strings sets released_by(nb_strings_release) = nb_inputs_list();
    for (size_t i = 0; i < nb_n_distributions; i++)
        nb_grid_row(grid, nb_distributions[i].name, "distribution", nb_distributions[i].help);
    for (size_t i = 0; i < sets.n; i++) {
        nb_grid_row(grid, sets.items[i], "data set");
        add_rows(grid, dir, sets.items[i]);
    }
    return 0;
}

static int list_formats(struct nb_grid *grid) {
    for (size_t i = 0; nb_renderer_at(i); i++) nb_grid_row(grid, nb_renderer_at(i)->name, nb_renderer_at(i)->summary);
    return 0;
}

/* ---- peers ---- */

struct answer {
    char adapter[PATH_MAX];
    bool loads;
    char library[512], version[128]; /* version: or why it does not load */
};

static void ask(void *arg) {
    struct answer *a = arg;
    void *handle = dlopen(a->adapter, RTLD_NOW | RTLD_LOCAL);
    void *symbol = handle ? nb_object_symbol(handle, a->adapter, "normbench_peer") : NULL;
    if (!symbol) {
        snprintf(a->version, sizeof a->version, "%s", handle ? "an adapter of another version" : dlerror());
        return;
    }
    const struct nb_peer *peer = ((const struct nb_peer *(*)(void))(uintptr_t)symbol)();
    snprintf(a->library, sizeof a->library, "%s", peer->library);
    a->loads = peer->use(NULL, a->version, sizeof a->version) == 0;
    if (a->loads) snprintf(a->version, sizeof a->version, "%s", peer->version());
}

static void ask_apart(const char *adapter, struct answer *a) {
    enum { LIMIT_S = 120 };
    snprintf(a->adapter, sizeof a->adapter, "%s", adapter);
    const char *why = nb_guarded(ask, a, sizeof *a, LIMIT_S);
    if (why) snprintf(a->version, sizeof a->version, "its library %s", why);
    nb_guard_end();
}

static void add_peer(struct nb_grid *grid, const struct nb_peer_info *info) {
    struct nb_strbuf command released_by(nb_strbuf_release) = nb_strbuf_empty();
    struct answer a = {0};
    char *adapter freed = nb_peer_adapter(info->name);
    const bool is_built = nb_path_exists(adapter);
    if (is_built) ask_apart(adapter, &a);
    if (!a.loads) nb_strbuf_addf(&command, "normbench peers %s   # %s", info->name, info->size);
    nb_grid_row(grid, info->name, is_built ? "built" : "not built",
                a.loads    ? "found"
                : is_built ? "missing"
                           : "",
                a.version, a.library, command.text, info->what);
}

/* Each library is loaded in a process of its own, where it can meet no other, and only to be asked for its version. */
static int list_peers(struct nb_grid *grid) {
    for (size_t i = 0; i < nb_n_peers; i++) add_peer(grid, &nb_peers[i]);
    return 0;
}

/* ---- the command ---- */

enum { STAYS = NB_GRID_STAYS, MOST_COLUMNS = 14 };
static const struct topic {
    const char *name;
    int (*list)(struct nb_grid *grid);
    const char *titles[MOST_COLUMNS];
    int ranks[MOST_COLUMNS];
} topics[] = {
    {"kernels",
     list_kernels,
     {"kernel", "backend", "op", "pass", "style", "stats", "stats_dtype", "variance", "dtypes", "widths", "not_here",
      "not_built", "summary"},
     {STAYS, 8, 6, 7, 5, 4, 1, 2, STAYS, 11, 9, 10, 3}},
    {"configs", list_configs, {"config", "launches", "blocks", "description"}, {STAYS, 2, 1, STAYS}},
    {"axes", list_axes, {"axis", "does", "default", "values", "meaning"}, {STAYS, 1, 3, 2, STAYS}},
    {"data", list_data, {"data", "kind", "meaning"}, {STAYS, 1, STAYS}},
    {"shapes", list_shapes, {"shape", "stands_for", "source"}, {STAYS, STAYS, 1}},
    {"formats", list_formats, {"format", "meaning"}, {STAYS, STAYS}},
    {"peers", list_peers, {"peer", "adapter", "library", "version", "file", "get", "what"}, {STAYS, 5, 4, 6, 1, 3, 2}}};
enum { N_TOPICS = sizeof topics / sizeof topics[0] };

static const struct topic *find_topic(const char *name) {
    const char *names[N_TOPICS];
    for (size_t i = 0; i < N_TOPICS; i++) {
        if (strcmp(topics[i].name, name) == 0) return &topics[i];
        names[i] = topics[i].name;
    }
    nb_error("list: there is no '%s'%s; `normbench list --help` says what there is", name,
             nb_did_you_mean(name, names, N_TOPICS).text);
    return NULL;
}

static int run_topic(const struct topic *topic, const char *format, bool wide, const struct nb_strings *plugins) {
    struct nb_grid grid released_by(nb_grid_release) = {.titles = topic->titles, .ranks = topic->ranks, .wide = wide};
    if ((topic->list == list_kernels || plugins->n > 0) && nb_load_kernels(plugins, NULL) != 0) return NB_EXIT_USAGE;
    while (topic->titles[grid.n_columns]) grid.n_columns++;
    int result = topic->list(&grid);
    if (result == 0) result = nb_grid_print(&grid, format, stdout);
    return result == 0 ? NB_EXIT_OK : NB_EXIT_USAGE;
}

static int list_main(int argc, char **argv) {
    struct nb_strings plugins released_by(nb_strings_release) = {0};
    const char *format = "table";
    bool wide = false;
    const char *names[N_TOPICS + 1] = {NULL};
    const struct nb_option options[] = {{"format", .text = &format, .among = nb_table_markdown_csv_json},
                                        {"wide", .flag = &wide},
                                        NB_PLUGIN_OPTIONS(&plugins),
                                        {.name = NULL, .among = names}};
    int exit_code;
    for (size_t i = 0; i < N_TOPICS; i++) names[i] = topics[i].name;
    if (nb_read_options(help, options, 1, argc, argv, &exit_code)) {
        const struct topic *topic = optind < argc ? find_topic(argv[optind]) : &topics[0];
        if (topic) exit_code = run_topic(topic, format, wide, &plugins);
    }
    return exit_code;
}

const struct nb_command nb_command_list = {"list", "list kernels, configs, axes, data, shapes, peers, formats", help,
                                           list_main};
