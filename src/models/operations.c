// SPDX-License-Identifier: Apache-2.0
#include "src/models/operations.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/dtype.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/core/text.h"

static const char *const kind_names[NB_N_OPERATION_KINDS] = {"product", "norm", "elementwise", "softmax", "embedding"};
const char *const nb_model_part_names[] = {"forward", "backward", "update", "passes", "step", NULL};

bool nb_part_has(int asked, enum nb_model_part part) {
    return asked == NB_PART_STEP || (asked == NB_PART_PASSES ? part != NB_PART_UPDATE : asked == (int)part);
}

/* ---- one operation ---- */

enum { MOST_TENSORS = 100, MOST_DISPATCHES = 10000, MOST_BATCH = 1000000000 };

struct written { /* as it stands in the file; 0: not said */
    char *op, *shape;
    int batch;
    struct nb_operation o;
};

/* "80x30x512" as n numbers. */
static bool read_sizes(const char *text, int64_t *sizes, int n) {
    for (int i = 0; i < n; i++) {
        char *end;
        if (*text < '1' || *text > '9') return false;
        errno = 0;
        sizes[i] = strtoll(text, &end, 10);
        if (errno != 0 || sizes[i] > INT_MAX || *end != (i < n - 1 ? 'x' : '\0')) return false;
        text = end + 1;
    }
    return true;
}

static int read_shape(const struct nb_jsonc *file, const cJSON *node, const char *text, struct nb_operation *o) {
    const bool product = o->kind == NB_PRODUCT;
    int64_t sizes[3];
    if (!read_sizes(text, sizes, product ? 3 : 2))
        return nb_jsonc_error(file, nb_json_get(node, "shape"), "\"shape\": '%.60s' is not %s, each from 1 to %d", text,
                              product ? "ROWSxINNERxCOLUMNS of a product" : "ROWSxCOLUMNS", INT_MAX);
    if (o->kind == NB_NORM && sizes[1] > NB_NORM_COLUMNS)
        return nb_jsonc_error(file, nb_json_get(node, "shape"),
                              "\"shape\": a row of '%s' is more than the 32 MiB that a norm is timed on; give it at "
                              "most %d columns",
                              text, NB_NORM_COLUMNS);
    o->rows = sizes[0];
    o->inner = product ? sizes[1] : 0;
    o->cols = sizes[product ? 2 : 1];
    return 0;
}

static int kind_of(const struct nb_jsonc *file, const cJSON *node, const char *op, enum nb_operation_kind *out) {
    for (int k = 0; k < NB_N_OPERATION_KINDS; k++)
        if (strcmp(op, kind_names[k]) == 0) return *out = (enum nb_operation_kind)k, 0;
    const struct nb_hint hint = nb_did_you_mean(op, kind_names, NB_N_OPERATION_KINDS);
    return nb_jsonc_error(file, nb_json_get(node, "op"), "\"op\": the operation '%.40s' is not known%s", op,
                          *hint.text ? hint.text : ": product, norm, elementwise, softmax and embedding are");
}

/* A key that means nothing for the operation is a mistake of whoever wrote it. */
static int check_keys(const struct nb_jsonc *file, const cJSON *node, enum nb_operation_kind kind) {
    static const struct {
        const char *key;
        enum nb_operation_kind kind;
    } own[] = {{"batch", NB_PRODUCT},
               {"hot", NB_PRODUCT},
               {"reads", NB_ELEMENTWISE},
               {"writes", NB_ELEMENTWISE},
               {"dispatches", NB_ELEMENTWISE}};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        const cJSON *given = nb_json_get(node, own[i].key);
        if (given && kind != own[i].kind)
            return nb_jsonc_error(file, given, "\"%s\" is only for %s; leave it out of %s", own[i].key,
                                  kind_names[own[i].kind], kind_names[kind]);
    }
    if (kind != NB_ELEMENTWISE || (nb_json_get(node, "reads") && nb_json_get(node, "writes"))) return 0;
    return nb_jsonc_error(file, node, "elementwise needs \"reads\" and \"writes\": how many tensors of its shape");
}

static int read_operation(const struct nb_jsonc *file, const cJSON *node, struct nb_model_step *step) {
    static const struct nb_field fields[] = {
        {NB_FIELD(TEXT, struct written, op), .required = true},
        {NB_FIELD(TEXT, struct written, shape), .required = true},
        {"where", NB_FIELD_TEXT, .offset = offsetof(struct written, o.where)},
        {"count", NB_FIELD_COUNT, .offset = offsetof(struct written, o.count), .low = 1, .high = INT_MAX},
        {NB_FIELD(COUNT, struct written, batch), .low = 1, .high = MOST_BATCH},
        {"hot", NB_FIELD_BOOL, .offset = offsetof(struct written, o.hot)},
        {"reads", NB_FIELD_COUNT, .offset = offsetof(struct written, o.reads), .high = MOST_TENSORS},
        {"writes", NB_FIELD_COUNT, .offset = offsetof(struct written, o.writes), .low = 1, .high = MOST_TENSORS},
        {"dispatches", NB_FIELD_COUNT, .offset = offsetof(struct written, o.dispatches), .high = MOST_DISPATCHES}};
    struct written w = {.batch = 1, .o = {.count = 1, .reads = 1, .writes = 1, .dispatches = 1}};
    int result = nb_fields_read(file, node, fields, sizeof fields / sizeof fields[0], "an operation", &w);
    if (result == 0) result = kind_of(file, node, w.op, &w.o.kind);
    if (result == 0) result = check_keys(file, node, w.o.kind);
    if (result == 0) result = read_shape(file, node, w.shape, &w.o);
    w.o.batch = w.batch;
    if (result == 0) nb_model_step_add(step, &w.o);
    nb_free_all(w.o.where, w.op, w.shape);
    return result;
}

void nb_model_step_add(struct nb_model_step *step, const struct nb_operation *operation) {
    struct nb_operation *o = NB_PUSH(step->operations, step->n_operations);
    *o = *operation;
    o->where = operation->where ? nb_strdup(operation->where) : NULL;
}

/* ---- what a step consists of ---- */

static bool same_work(const struct nb_step_work *a, const struct nb_step_work *b) {
    return a->part == b->part && a->kind == b->kind && a->rows == b->rows && a->inner == b->inner &&
           a->cols == b->cols && a->batch == b->batch && a->hot == b->hot && a->reads == b->reads &&
           a->writes == b->writes && a->dispatches == b->dispatches;
}

static void add_work(struct nb_model_step *step, const struct nb_step_work *work) {
    for (size_t i = 0; i < step->n_works; i++)
        if (same_work(&step->works[i], work)) {
            step->works[i].count += work->count;
            return;
        }
    *NB_PUSH(step->works, step->n_works) = *work;
}

static void add_product(struct nb_model_step *step, enum nb_model_part part, const struct nb_operation *o, int64_t rows,
                        int64_t inner, int64_t cols) {
    add_work(step, &(struct nb_step_work){.part = part,
                                          .kind = NB_WORK_PRODUCT,
                                          .rows = rows,
                                          .inner = inner,
                                          .cols = cols,
                                          .batch = o->batch,
                                          .hot = o->hot,
                                          .count = o->count,
                                          .flops = 2.0 * (double)o->batch * (double)rows * (double)inner * (double)cols,
                                          .dispatches = 1});
}

static void add_norm(struct nb_model_step *step, enum nb_model_part part, const struct nb_operation *o) {
    add_work(step,
             &(struct nb_step_work){
                 .part = part, .kind = NB_WORK_NORM, .rows = o->rows, .cols = o->cols, .batch = 1, .count = o->count});
}

static void add_move(struct nb_model_step *step, enum nb_model_part part, const struct nb_operation *o, int reads,
                     int writes) {
    const double tensor = (double)o->rows * (double)o->cols * (double)nb_formats[step->dtype].bytes;
    add_work(step, &(struct nb_step_work){.part = part,
                                          .kind = NB_WORK_MOVE,
                                          .batch = 1,
                                          .count = o->count,
                                          .reads = reads * tensor,
                                          .writes = writes * tensor,
                                          .dispatches = o->dispatches});
}

static void add_forward(struct nb_model_step *step, const struct nb_operation *o) {
    if (o->kind == NB_PRODUCT)
        add_product(step, NB_PART_FORWARD, o, o->rows, o->inner, o->cols);
    else if (o->kind == NB_NORM)
        add_norm(step, NB_PART_FORWARD, o);
    else
        add_move(step, NB_PART_FORWARD, o, o->reads, o->writes);
}

static void add_backward(struct nb_model_step *step, const struct nb_operation *o) {
    if (o->kind == NB_PRODUCT) {
        add_product(step, NB_PART_BACKWARD, o, o->rows, o->cols, o->inner);
        add_product(step, NB_PART_BACKWARD, o, o->inner, o->rows, o->cols);
    } else if (o->kind == NB_NORM) {
        add_norm(step, NB_PART_BACKWARD, o);
    } else {
        add_move(step, NB_PART_BACKWARD, o, o->reads + o->writes, o->reads);
    }
}

/* Of the transfers of AdamW four of seven are reads: the parameter, its gradient, and two moments; all but the gradient are written. */
static void add_update(struct nb_model_step *step) {
    const double bytes = step->transfers * step->parameters * sizeof(float), reads = bytes * 4 / 7;
    if (step->parameters <= 0) return;
    add_work(step, &(struct nb_step_work){.part = NB_PART_UPDATE,
                                          .kind = NB_WORK_MOVE,
                                          .batch = 1,
                                          .count = 1,
                                          .reads = reads,
                                          .writes = bytes - reads,
                                          .dispatches = step->dispatches * step->tensors});
}

static void add_works(struct nb_model_step *step) {
    for (size_t i = 0; i < step->n_operations; i++) {
        add_forward(step, &step->operations[i]);
        if (step->training) add_backward(step, &step->operations[i]);
    }
    if (step->training) add_update(step);
}

/* ---- the list ---- */

static int read_operations(const struct nb_jsonc *file, const cJSON *node, void *into) {
    int result = 0;
    if (!cJSON_IsArray(node) || !node->child)
        return nb_jsonc_error(file, node, "\"operations\" is a list of operations, of which there is at least one");
    for (const cJSON *item = node->child; item; item = item->next)
        if (read_operation(file, item, into) != 0) result = -1;
    return result;
}

static int read_among(const struct nb_jsonc *file, const cJSON *node, const char *const *names, const char *listed) {
    const int i = cJSON_IsString(node) ? nb_name_find(names, node->valuestring) : -1;
    return i >= 0 ? i : nb_jsonc_error(file, node, "\"%s\" is not one of %s", node->string, listed);
}

static int read_work(const struct nb_jsonc *file, const cJSON *node, void *into) {
    static const char *const works[] = {"inference", "training", NULL};
    struct nb_model_step *step = into;
    const int i = read_among(file, node, works, "training and inference");
    step->training = i == 1;
    return i < 0 ? -1 : 0;
}

static int read_dtype(const struct nb_jsonc *file, const cJSON *node, void *into) {
    struct nb_model_step *step = into;
    const int i = read_among(file, node, nb_dtype_names, "f32, f16 and bf16");
    if (i >= 0) step->dtype = (enum nb_dtype)i;
    return i < 0 ? -1 : 0;
}

static int read_list(struct nb_model_step *step, const struct nb_jsonc *file, int tokens) {
    static const struct nb_field fields[] = {
        {NB_FIELD(TEXT, struct nb_model_step, title), .required = true},
        {NB_FIELD(TEXT, struct nb_model_step, source), .required = true},
        {"work", NB_FIELD_READ, .required = true, .read = read_work},
        {"dtype", NB_FIELD_READ, .read = read_dtype},
        {NB_FIELD(NUMBER, struct nb_model_step, tokens), .required = true, .low = 1, .high = 1e12},
        {NB_FIELD(NUMBER, struct nb_model_step, parameters), .low = 1, .high = 1e15},
        {NB_FIELD(NUMBER, struct nb_model_step, tensors), .low = 1, .high = 1e9},
        {NB_FIELD(NUMBER, struct nb_model_step, transfers), .low = 1, .high = 100},
        {NB_FIELD(NUMBER, struct nb_model_step, dispatches), .low = 0.001, .high = 1000},
        {"operations", NB_FIELD_READ, .required = true, .read = read_operations}};
    if (nb_fields_read(file, file->root, fields, sizeof fields / sizeof fields[0], "a model", step) != 0) return -1;
    if (step->training && (step->parameters <= 0 || step->tensors <= 0))
        return nb_error("%s: training needs \"parameters\" and \"tensors\", for the update", file->path);
    if (tokens > 0 && tokens != step->tokens)
        return nb_error("%s: --tokens %d: this list is for %.0f tokens, as its shapes say; leave --tokens out",
                        file->path, tokens, step->tokens);
    return 0;
}

/* ---- files ---- */

/* Of a config.json the folder's. */
static char *name_of(const char *path) {
    char *text freed = nb_strdup(path), *slash = strrchr(text, '/');
    if (slash && slash != text && strcmp(slash, "/config.json") == 0) {
        *slash = '\0';
        slash = strrchr(text, '/');
    }
    char *name = nb_strdup(slash ? slash + 1 : text);
    char *end = strrchr(name, '.');
    if (end && strcmp(end, ".json") == 0) *end = '\0';
    return name;
}

static int read_file(struct nb_model_step *step, const struct nb_jsonc *file, int tokens) {
    step->name = name_of(file->path);
    step->path = nb_strdup(file->path);
    step->dtype = NB_F32;
    step->transfers = 7;
    step->dispatches = 1;
    if (!cJSON_IsObject(file->root)) return nb_error("%s: a model is an object", file->path);
    const bool foreign = nb_json_get(file->root, "model_type") && !nb_json_get(file->root, "operations");
    if (!foreign && !nb_json_get(file->root, "operations"))
        return nb_error(
            "%s: needs \"operations\", the list of a step, or \"model_type\", as in a config.json of Hugging Face",
            file->path);
    const int result = foreign ? nb_huggingface_read(step, file, tokens) : read_list(step, file, tokens);
    if (result == 0) add_works(step);
    return result;
}

int nb_model_step_parse(struct nb_model_step *step, const char *path, const char *text, size_t len, int tokens) {
    struct nb_jsonc file released_by(nb_jsonc_release);
    *step = (struct nb_model_step){0};
    return nb_jsonc_parse(&file, path, text, len) == 0 ? read_file(step, &file, tokens) : -1;
}

static int unknown_model(const char *name) {
    char *dir freed = nb_share_dir("NORMBENCH_CONFIGS", "configs");
    char *folder freed = dir ? nb_path_join(dir, "models") : NULL;
    struct nb_strings known released_by(nb_strings_release) = nb_dir_list(folder, ".json");
    struct nb_strbuf names released_by(nb_strbuf_release) = {0};
    const struct nb_hint hint = nb_did_you_mean(name, (const char *const *)known.items, known.n);
    for (size_t i = 0; i < known.n; i++) nb_strbuf_addf(&names, "%s %s", i ? "," : "; there are", known.items[i]);
    return nb_error("model '%s': no such model in configs/models%s (a file is named with a slash or .json)", name,
                    *hint.text || !names.text ? hint.text : names.text);
}

/* The path of what the user named; owned, null after nb_error. */
static char *find(const char *name) {
    const size_t n = strlen(name);
    if (strchr(name, '/') && nb_dir_holds(name, "config.json")) return nb_path_join(name, "config.json");
    if (strchr(name, '/') || (n > 5 && strcmp(name + n - 5, ".json") == 0)) return nb_strdup(name);
    char *file freed = nb_textf("models/%s.json", name), *path = nb_jsonc_find(file);
    if (!path) unknown_model(name);
    return path;
}

int nb_model_step_read(struct nb_model_step *step, const char *name, int tokens) {
    struct nb_jsonc file released_by(nb_jsonc_release) = {0};
    *step = (struct nb_model_step){0};
    char *path freed = find(name);
    return path && nb_jsonc_read(&file, path) == 0 ? read_file(step, &file, tokens) : -1;
}

void nb_model_step_release(struct nb_model_step *step) {
    for (size_t i = 0; i < step->n_operations; i++) free(step->operations[i].where);
    nb_free_all(step->operations, step->works, step->name, step->path, step->title, step->source);
    *step = (struct nb_model_step){0};
}
