// SPDX-License-Identifier: Apache-2.0
/* One question and one answer at a time, each a packet. What comes from the program is data from outside: every answer is held against its
 * question, and a program that says anything else is ended. */
#include "src/programs/kernel_program.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/core/dtype.h"
#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/text.h"
#include "src/core/timer.h"
#include "src/programs/kernel_messages.h"
#include "src/programs/program_memory.h"
#include "src/programs/program_process.h"

/* ---- messages ---- */

/* Null: an answer to the question, n bytes of which body_bytes stand before the text; else what is wrong with it. */
static const char *refuse_answer(const union message *m, size_t n, const struct head *question, size_t body_bytes) {
    static char why[160];
    if (n < sizeof m->head || memcmp(m->head.magic, question->magic, sizeof m->head.magic) != 0)
        return "answered with something that is no message of the protocol";
    if (m->head.version != VERSION)
        snprintf(why, sizeof why, "speaks version %u of the protocol, and this normbench version %d: %s",
                 m->head.version, VERSION,
                 m->head.version < VERSION ? "update it to that one (cmd/guide/protocol.md)"
                                           : "use a normbench that speaks its own");
    else if (m->head.type != question->type || m->head.sequence != question->sequence)
        snprintf(why, sizeof why, "answered question %u (type %u) where question %u (type %u) was asked",
                 m->head.sequence, m->head.type, question->sequence, question->type);
    else if (m->head.bytes != n || n < body_bytes || m->answer.text_bytes != n - body_bytes)
        snprintf(why, sizeof why, "answered a question of type %u with %zu bytes that say they are %u", question->type,
                 n, m->head.bytes);
    else
        return NULL;
    return why;
}

/* Its text, owned: short, in ASCII, so that it may be cut anywhere, and no terminal takes it for a command. */
static char *text_of(const union message *m) {
    enum { LONGEST = 240 };
    struct nb_strbuf raw released_by(nb_strbuf_release) = {0}, text = {0};
    nb_strbuf_addn(&raw, m->bytes + m->head.bytes - m->answer.text_bytes, m->answer.text_bytes);
    nb_escape_terminal(&text, raw.text ? raw.text : "", false);
    if (text.len > LONGEST) text.text[LONGEST] = '\0';
    return text.text ? text.text : nb_strdup("");
}

/* ---- a program ---- */

struct program_kernel {
    struct nb_kernel kernel;
    struct nb_kernel_program *program;
    uint32_t index, flags, layouts, modes;
    struct nb_range range;
    char name[NAME_BYTES], variant[NAME_BYTES]; /* kernel.name points to it */
    char *summary;
};

/* Calls that the program has prepared, whose handles follow each other. */
struct opened {
    const struct program_kernel *kernel;
    uint32_t first, n;
    struct nb_call *calls;
    uint64_t used; /* when it last was */
};
enum { MOST_OPENED = 64 };

struct nb_kernel_program {
    struct nb_kernel_program *next;
    char *file, *language;
    struct program_kernel *kernels;
    uint32_t n_kernels;
    struct nb_program_process process;
    uint32_t sequence, next_handle;
    uint64_t clock; /* of used */
    bool is_lost;   /* it misbehaved: not to be started again */
    bool is_other_version;
    void *copies; /* where tensors are copied that do not lie in the memory, and how much room there is */
    size_t copies_bytes;
    struct opened opened[MOST_OPENED];
    int n_opened;
    char said[300];
};

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER; /* of calls */
static struct nb_kernel_program *programs; /* of this process: what it has loaded, as with shared objects */

static void forget_opened(struct nb_kernel_program *p) {
    for (int i = 0; i < p->n_opened; i++) free(p->opened[i].calls);
    p->n_opened = 0;
}

/* ---- a call as a message ---- */

enum {
    MATRIX,
    PARAMS,
    F32_PARAMS,
    STATS,
    ONE
}; /* a tensor's length; MATRIX, PARAMS: of x's dtype, of that of parameters */
#define AT(field) offsetof(struct nb_call, field)
static const struct {
    size_t pointer, stride;
    int kind;
    bool is_written; /* mean, rstd: in a forward call */
} tensor_fields[N_TENSORS] = {
    {AT(x), AT(x_stride), MATRIX, false},
    {AT(residual), AT(residual_stride), MATRIX, false},
    {AT(gamma), 0, PARAMS, false},
    {AT(beta), 0, PARAMS, false},
    {AT(y), AT(y_stride), MATRIX, true},
    {AT(residual_out), AT(residual_out_stride), MATRIX, true},
    {AT(dy), AT(dy_stride), MATRIX, false},
    {AT(dresidual_out), AT(dresidual_out_stride), MATRIX, false},
    {AT(dx), AT(dx_stride), MATRIX, true},
    {AT(dresidual), AT(dresidual_stride), MATRIX, true},
    {AT(dgamma), 0, F32_PARAMS, true},
    {AT(dbeta), 0, F32_PARAMS, true},
    {AT(dalpha), 0, ONE, true},
    {AT(mean), 0, STATS, true},
    {AT(rstd), 0, STATS, true},
    {AT(running_mean_in), 0, F32_PARAMS, false},
    {AT(running_var_in), 0, F32_PARAMS, false},
    {AT(running_mean_out), 0, F32_PARAMS, true},
    {AT(running_var_out), 0, F32_PARAMS, true},
};

static const void *tensor_of(const struct nb_call *call, int i) {
    const void *p;
    memcpy(&p, (const char *)call + tensor_fields[i].pointer, sizeof p);
    return p;
}

static void shape_tensor(struct tensor *t, int i, const struct nb_kernel *k, const struct nb_call *call) {
    const bool is_batch = k->op == NB_OP_BATCHNORM;
    const int64_t n_params = is_batch ? call->c : call->cols;
    const int64_t lengths[] = {call->cols, n_params, n_params, is_batch ? call->c : call->rows, 1};
    const int kind = tensor_fields[i].kind;
    t->rows = kind == MATRIX ? call->rows : 1;
    t->cols = t->stride = lengths[kind];
    if (tensor_fields[i].stride) memcpy(&t->stride, (const char *)call + tensor_fields[i].stride, sizeof t->stride);
    t->dtype = kind == MATRIX || (kind == PARAMS && call->formula.param == NB_PARAM_X) ? k->dtype : NB_F32;
    t->is_written = tensor_fields[i].is_written && (kind != STATS || k->pass == NB_FORWARD);
}

static void add_area(struct opening *o, const struct area *area) {
    for (uint32_t i = 0; i < o->n_areas; i++)
        if (o->areas[i].offset == area->offset) return;
    o->areas[o->n_areas++] = *area;
}

/* From rows to momentum, and from root to round_sum, a message has a call's members as the call has them. */
enum {
    SIZES_BYTES = offsetof(struct nb_call, formula) - offsetof(struct nb_call, rows),
    FORMULA_BYTES = sizeof(struct nb_formula) - offsetof(struct nb_formula, root)
};
_Static_assert(SIZES_BYTES == offsetof(struct opening, root) - offsetof(struct opening, rows) &&
                   FORMULA_BYTES == offsetof(struct opening, reserved) - offsetof(struct opening, root),
               "as kernels/kernel.h has it");

/* False: a tensor is not in the memory that the program maps. */
static bool write_case(struct opening *o, const struct program_kernel *k, const struct nb_call *call) {
    *o = (struct opening){.kernel = k->index,
                          .mode = call->mode,
                          .layout = call->layout,
                          .n_threads = k->flags & FLAG_THREADS && call->n_threads > 1 ? (uint32_t)call->n_threads : 1};
    memcpy(&o->rows, &call->rows, SIZES_BYTES);
    memcpy(&o->root, &call->formula.root, FORMULA_BYTES);
    for (int i = 0; i < N_TENSORS; i++) {
        const unsigned char *data = tensor_of(call, i);
        struct area area;
        o->tensors[i].offset = -1;
        if (!data) continue;
        shape_tensor(&o->tensors[i], i, &k->kernel, call);
        if (!nb_program_memory_find(data, &o->tensors[i].offset, &area)) return false;
        add_area(o, &area);
    }
    return true;
}

/* ---- the process ---- */

/* From then on none runs. Returns false, for whoever asked it. why: null where it may have ended of itself. */
static bool lose(struct nb_kernel_program *p, const char *why) {
    if (!nb_program_end(&p->process, !why, p->said, sizeof p->said) && why != p->said)
        snprintf(p->said, sizeof p->said, "%s", why ? why : "closed its socket");
    forget_opened(p);
    p->is_lost = true;
    return false;
}

static bool runs_here(const struct nb_kernel_program *p) { return p->process.pid != 0 && p->process.owner == getpid(); }

/* False: it is gone, and p->said says how. m: the answer. */
static bool ask(struct nb_kernel_program *p, uint16_t type, void *question, size_t bytes, union message *m,
                size_t answer_bytes) {
    struct head *head = question;
    if (!runs_here(p)) return false;
    *head = (struct head){{'N', 'B', 'W', 'P'}, VERSION, type, ++p->sequence, (uint32_t)bytes};
    ssize_t n = send(p->process.socket, question, bytes, MSG_NOSIGNAL);
    if (n != (ssize_t)bytes) return lose(p, NULL);
    do {
        nb_program_wait(&p->process, -1);
        n = recv(p->process.socket, m, sizeof *m, MSG_TRUNC);
    } while (n < 0 && errno == EINTR);
    if (n <= 0) return lose(p, NULL);
    const char *why = (size_t)n > sizeof *m ? "answered with more bytes than the protocol allows"
                                            : refuse_answer(m, (size_t)n, head, answer_bytes);
    p->is_other_version = why && (size_t)n >= sizeof m->head && m->head.version != VERSION;
    return why ? lose(p, why) : true;
}

/* 0 of an answer without a status, else that, with its text in p->said. */
static int status_of(struct nb_kernel_program *p, const union message *m) {
    if (m->answer.status == 0) return 0;
    char *text freed = text_of(m);
    snprintf(p->said, sizeof p->said, "%s", text);
    return m->answer.status == NB_PROGRAM_GONE ? -1 : m->answer.status;
}

/* One that was greeted by another process goes on, with the answer that it gave there: as far as that is one still, since foreign code ran
 * where the page is mapped. */
static bool go_on(struct nb_kernel_program *p, union message *m) {
    const struct nb_program_page *page = p->process.page;
    const size_t bytes = page->hello_bytes;
    if (bytes > sizeof page->hello || bytes > sizeof *m) return lose(p, "was harmed by a kernel");
    p->sequence = page->sequence;
    p->next_handle = page->next_handle;
    memcpy(m, page->hello, bytes);
    const struct head question = {{'N', 'B', 'W', 'P'}, VERSION, HELLO, m->head.sequence, 0};
    if (refuse_answer(m, bytes, &question, sizeof m->hello)) return lose(p, "was harmed by a kernel");
    nb_program_memory_limit(page->memory_bytes);
    return true;
}

/* False: there is no answer, and p->said says why. What another process had of it is left behind. */
static bool say_hello(struct nb_kernel_program *p, union message *m) {
    if (p->process.pid != 0) nb_program_forget(&p->process);
    p->is_lost = false;
    forget_opened(p);
    if (p->process.owner != getpid()) p->copies = NULL, p->copies_bytes = 0;
    p->sequence = p->next_handle = 0;
    size_t bytes;
    const int fd = nb_program_memory_file(&bytes);
    if (fd < 0) snprintf(p->said, sizeof p->said, "cannot be started: no memory to share with it: %s", strerror(errno));
    if (fd < 0) return false;
    const bool is_lent = nb_program_take(&p->process, p->file);
    if (!is_lent && !nb_program_start(&p->process, p->file, fd, NULL, p->said, sizeof p->said)) return false;
    struct nb_program_page *page = p->process.page;
    if (page->hello_bytes) return go_on(p, m);
    struct hello hello = {.memory_bytes = page->memory_bytes = bytes};
    if (!ask(p, HELLO, &hello, sizeof hello, m, sizeof m->hello)) return false;
    memcpy(page->hello, m, page->hello_bytes = m->head.bytes);
    return true;
}

static bool restart(struct nb_kernel_program *p) {
    static union message m;
    return say_hello(p, &m) && (status_of(p, &m) == 0 || lose(p, p->said));
}

/* ---- its table ---- */

static int yes(const struct nb_call *call) { return 1; }
static int64_t one_unit(const struct nb_call *call, int phase) { return 1; }
int nb_kernel_of_program(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    assert(!"a kernel of another process is called here");
    return -1;
}

/* The programs of this process, on the CPUs that its thread may use now. */
static void pin(pid_t pid) {
    char path[64];
    cpu_set_t set;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *threads = sched_getaffinity(0, sizeof set, &set) == 0 ? opendir(path) : NULL;
    for (struct dirent *e; threads && (e = readdir(threads)) != NULL;)
        if (atoi(e->d_name) > 0) sched_setaffinity(atoi(e->d_name), sizeof set, &set);
    if (threads) closedir(threads);
}
static int open_programs(int n_threads) {
    for (struct nb_kernel_program *p = programs; p; p = p->next) {
        if (!runs_here(p) && !restart(p)) return nb_error("%s: its program %s", p->file, p->said);
        pin(p->process.pid);
    }
    return 0;
}

static bool is_padded(const char *text) {
    const size_t n = strnlen(text, NAME_BYTES);
    for (size_t i = n; i < NAME_BYTES; i++)
        if (text[i]) return false;
    return n < NAME_BYTES;
}

/* Its numbers are looked at like those of any other table (nb_kernel_validate). Null, or what is wrong. */
static const char *read_kernel(struct program_kernel *k, const union message *m) {
    const struct described *d = &m->described;
    if (d->flags > ALL_FLAGS) return "has flags that this program does not know";
    if (d->layouts >= 1u << NB_N_LAYOUTS || d->modes >= 1u << NB_N_MODES) return "has a layout or a mode too many";
    if (d->dtype >= NB_N_DTYPES) return "has a dtype that this program does not know";
    if (!is_padded(d->name) || !is_padded(d->variant)) return "has a name that is too long or not padded";
    memcpy(k->name, d->name, NAME_BYTES);
    memcpy(k->variant, d->variant, NAME_BYTES);
    if (!k->variant[0] && snprintf(k->variant, NAME_BYTES, "%.80s_%s", k->name, nb_formats[d->dtype].name) < 0)
        return "has no name";
    k->range = (struct nb_range){0, INFINITY, INFINITY};
    k->flags = d->flags;
    k->layouts = d->layouts;
    k->modes = d->modes ? d->modes : 1u << NB_TRAINING;
    const float limits[] = {d->min_rms, d->max_abs, d->max_rho};
    for (int i = 0; i < 3; i++)
        if (!isfinite(limits[i]) || limits[i] < 0) return "has a range whose limits are no numbers from 0";
    k->range.min_rms = d->min_rms;
    if (d->max_abs > 0) k->range.max_abs = d->max_abs;
    if (d->max_rho > 0) k->range.max_rho = d->max_rho;
    k->summary = text_of(m);
    k->kernel = (struct nb_kernel){
        .struct_size = sizeof k->kernel,
        .op = d->op,
        .pass = d->pass,
        .dtype = d->dtype,
        .width = NB_NATIVE,
        .name = k->name,
        .variant = k->variant,
        .summary = k->summary,
        .style = d->style,
        .stats = d->stats,
        .stats_dtype = d->stats_dtype,
        .variance = d->variance,
        .flags = NB_FLAG_ALLOCATES | NB_FLAG_OWN_THREADS | (d->flags & FLAG_FLUSHES ? (uint32_t)NB_FLAG_FLUSHES : 0) |
                 (d->flags & FLAG_RECOMPUTES ? (uint32_t)NB_FLAG_RECOMPUTES : 0),
        .formulas = {d->roots, d->eps_places, d->casts, d->weight_offsets, d->affines, d->params, d->round_sums},
        .loads = d->loads,
        .stores = d->stores,
        .flops = d->flops,
        .run = nb_kernel_of_program,
        .row_local = d->flags & FLAG_ROW_LOCAL ? yes : NULL,
        .n_units = one_unit,
        .open = open_programs};
    return NULL;
}

static int read_table(struct nb_kernel_program *p) {
    static union message m;
    p->kernels = nb_alloc(p->n_kernels, sizeof *p->kernels);
    for (uint32_t i = 0; i < p->n_kernels; i++) {
        struct describe question = {.kernel = i};
        if (!ask(p, DESCRIBE, &question, sizeof question, &m, sizeof m.described))
            return nb_error("%s: its program %s while its kernels were listed", p->file, p->said);
        if (status_of(p, &m) != 0) return nb_error("%s: kernel %u: %s", p->file, i, p->said);
        const char *why = read_kernel(&p->kernels[i], &m);
        if (why) return nb_error("%s: kernel %u of its program %s", p->file, i, why);
        p->kernels[i].program = p;
        p->kernels[i].index = i;
    }
    return 0;
}

static const struct nb_kernel *kernel_at(const struct nb_kernel_program *p, size_t i) {
    assert(p && i < p->n_kernels);
    return &p->kernels[i].kernel;
}

/* A copy of the kernel, as the registry has it, keeps the pointer to its name. */
static const struct program_kernel *own(const struct nb_kernel *k) {
    assert(nb_kernel_is_of_program(k));
    return (const struct program_kernel *)(const void *)(k->name - offsetof(struct program_kernel, name));
}

const char *nb_kernel_program_language(const struct nb_kernel *k) { return own(k)->program->language; }
static const struct nb_range *range_of(const struct nb_kernel *k) { return &own(k)->range; }
const char *nb_kernel_program_said(const struct nb_kernel *k) { return own(k)->program->said; }

/* ---- its end ---- */

static bool close_opened(struct nb_kernel_program *p, int i) {
    static union message m;
    struct closing question = {.first = p->opened[i].first, .n = p->opened[i].n};
    free(p->opened[i].calls);
    p->opened[i] = p->opened[--p->n_opened];
    return ask(p, CLOSE, &question, sizeof question, &m, sizeof m.answer);
}

void nb_kernel_program_dismiss(struct nb_program_process *process) {
    assert(process && process->pid != 0);
    struct head bye = {{'N', 'B', 'W', 'P'}, VERSION, BYE, process->page->sequence + 1, sizeof bye};
    char how[100];
    const bool is_told =
        process->page->is_clean && send(process->socket, &bye, sizeof bye, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof bye;
    if (is_told) nb_program_wait(process, 1000);
    nb_program_end(process, false, how, sizeof how);
}

/* For the next to speak to it; where that fails, it is lost. */
static void close_all(struct nb_kernel_program *p) {
    while (p->n_opened > 0 && close_opened(p, 0)) continue;
    if (!runs_here(p)) return;
    p->process.page->sequence = p->sequence;
    p->process.page->next_handle = p->next_handle;
    p->process.page->is_clean = true;
}

static void rest_program(struct nb_kernel_program *p) {
    if (p->process.pid == 0) return;
    if (runs_here(p)) close_all(p);
    if (runs_here(p) && p->process.minder)
        nb_kernel_program_dismiss(&p->process);
    else if (p->process.pid != 0)
        nb_program_forget(&p->process);
    forget_opened(p);
}

static void free_program(struct nb_kernel_program *p) {
    if (!p) return;
    rest_program(p);
    for (struct nb_kernel_program **at = &programs; *at; at = &(*at)->next)
        if (*at == p) {
            *at = p->next;
            break;
        }
    for (uint32_t i = 0; i < p->n_kernels && p->kernels; i++) free(p->kernels[i].summary);
    nb_free_all(p->kernels, p->file, p->language, p);
}

/* ---- its start ---- */

static struct nb_kernel_program *start_program(const char *file, size_t *n) {
    static union message m;
    struct nb_kernel_program *p = nb_alloc(1, sizeof *p);
    p->file = nb_strdup(file);
    p->next = programs;
    programs = p;
    if (!nb_path_exists(file)) {
        nb_error("%s: %s", file, strerror(ENOENT));
    } else if (!say_hello(p, &m) && !p->is_lost) {
        nb_error("%s: its program %s", file, p->said);
    } else if (p->is_lost) {
        nb_error("%s: its program %s%s", file, p->said,
                 p->is_other_version ? "" : " before it said which kernels it has");
    } else if (status_of(p, &m) != 0) {
        nb_error("%s: %s", file, p->said);
    } else if (m.hello.n_kernels == 0 || m.hello.n_kernels > MOST_KERNELS) {
        nb_error("%s: its table says %u kernels", file, m.hello.n_kernels);
    } else {
        p->n_kernels = m.hello.n_kernels;
        p->language = text_of(&m);
        if (read_table(p) == 0) return *n = p->n_kernels, p;
    }
    free_program(p);
    return NULL;
}

/* ---- questions about a call ---- */

static bool has_gaps(const struct nb_call *call) {
    for (int i = 0; i < N_TENSORS; i++) {
        int64_t stride = 0;
        if (tensor_fields[i].stride) memcpy(&stride, (const char *)call + tensor_fields[i].stride, sizeof stride);
        if (stride != 0 && stride != call->cols) return true;
    }
    return false;
}

static const char *refuse_call(const struct nb_kernel *kernel, const struct nb_call *call) {
    const struct program_kernel *k = own(kernel);
    const bool is_batch = kernel->op == NB_OP_BATCHNORM;
    if (is_batch && !(k->layouts >> call->layout & 1)) return "the program's kernel does not take this layout";
    if (is_batch && !(k->modes >> call->mode & 1)) return "the program's kernel does not take this mode";
    if (!(k->flags & FLAG_STRIDES) && has_gaps(call)) return "the program's kernel takes packed rows only";
    if (!(k->flags & FLAG_THREADS) && call->n_threads > 1) return "the program's kernel does not use several threads";
    return NULL;
}

/* ---- calls ---- */

/* The calls, or the first of others, that are open already. This is done within the time of a sample: of many calls, those of a case whose
 * data are to be cold, some are looked at, since they change together. */
static struct opened *find_opened(struct nb_kernel_program *p, const struct program_kernel *k,
                                  const struct nb_program_calls *c) {
    for (int i = 0; i < p->n_opened; i++) {
        struct opened *o = &p->opened[i];
        if (o->kernel != k || o->n < (uint32_t)c->n) continue;
        const int looked_at[] = {0, c->start, c->n - 1};
        bool same = true;
        for (size_t j = 0; j < sizeof looked_at / sizeof looked_at[0]; j++)
            same &= memcmp(&o->calls[looked_at[j]], &c->calls[looked_at[j]], sizeof *c->calls) == 0;
        if (same) return o;
    }
    return NULL;
}

static bool make_place(struct nb_kernel_program *p) {
    int oldest = 0;
    for (int i = 1; i < p->n_opened; i++)
        if (p->opened[i].used < p->opened[oldest].used) oldest = i;
    return p->n_opened < MOST_OPENED || close_opened(p, oldest);
}

/* Those that were opened before one that is refused are closed with the program. */
static int open_calls(struct nb_kernel_program *p, const struct program_kernel *k, const struct nb_program_calls *c,
                      struct opened **out) {
    static union message m;
    static struct opening question;
    int code = 0;
    if (!make_place(p)) return NB_PROGRAM_GONE;
    struct opened o = {.kernel = k, .first = p->next_handle, .n = (uint32_t)c->n};
    for (int i = 0; i < c->n && code == 0; i++) {
        if (!write_case(&question, k, &c->calls[i]))
            return nb_reason(p->said, sizeof p->said, "its tensors do not lie in memory that can be shared");
        question.handle = p->next_handle++;
        const size_t bytes = offsetof(struct opening, areas) + question.n_areas * sizeof question.areas[0];
        if (!ask(p, OPEN, &question, bytes, &m, sizeof m.answer)) return NB_PROGRAM_GONE;
        code = status_of(p, &m);
    }
    if (code != 0) return code;
    o.calls = nb_alloc((unsigned)c->n, sizeof *o.calls);
    memcpy(o.calls, c->calls, (size_t)c->n * sizeof *o.calls);
    p->opened[p->n_opened++] = o;
    *out = &p->opened[p->n_opened - 1];
    return 0;
}

static int find_or_open(struct nb_kernel_program *p, const struct program_kernel *k, const struct nb_program_calls *c,
                        struct opened **out) {
    if (!runs_here(p) && (p->is_lost || !restart(p))) return NB_PROGRAM_GONE;
    *out = find_opened(p, k, c);
    const int code = *out ? 0 : open_calls(p, k, c, out);
    if (code == 0) (*out)->used = ++p->clock;
    return code;
}

int nb_kernel_program_prepare(const struct nb_kernel *kernel, const struct nb_program_calls *c) {
    assert(c && c->calls && c->n > 0);
    const struct program_kernel *k = own(kernel);
    struct opened *o;
    pthread_mutex_lock(&one_at_a_time);
    const int code = find_or_open(k->program, k, c, &o);
    pthread_mutex_unlock(&one_at_a_time);
    return code;
}

static int refuse_calls(struct nb_kernel_program *p, const char *why) {
    lose(p, why);
    return NB_PROGRAM_GONE;
}

static int run(struct nb_kernel_program *p, const struct program_kernel *k, const struct nb_program_calls *c) {
    static union message m;
    struct opened *o;
    int code = find_or_open(p, k, c, &o);
    if (code != 0) return code;
    struct call question = {.first = o->first,
                            .n = (uint32_t)c->n,
                            .start = (uint32_t)c->start,
                            .flags = c->empty,
                            .amount = (uint64_t)c->amount};
    const double begin_s = nb_clock_s(CLOCK_MONOTONIC);
    if (!ask(p, CALL, &question, sizeof question, &m, sizeof m.call)) return NB_PROGRAM_GONE;
    const double took_s = nb_clock_s(CLOCK_MONOTONIC) - begin_s;
    code = status_of(p, &m);
    if (code == 0 && m.call.n_done != (uint64_t)c->amount)
        code = refuse_calls(p, "made another number of calls than it was asked for");
    else if (1e-9 * (double)m.call.ns > took_s)
        code = refuse_calls(p, "says that its calls took longer than its whole answer");
    return code;
}

/* ---- calls on memory that the program does not map ---- */

/* Where nothing is timed: its tensors are copied to memory that it does, and back. */

static bool is_mapped(const struct nb_call *call) {
    int64_t offset;
    struct area area;
    for (int i = 0; i < N_TENSORS; i++)
        if (tensor_of(call, i) && !nb_program_memory_find(tensor_of(call, i), &offset, &area)) return false;
    return true;
}

static size_t extent_of(const struct tensor *t) {
    const size_t item = nb_formats[t->dtype].bytes;
    return (size_t)((t->rows - 1) * t->stride + t->cols) * item;
}

/* Copies the call's tensors there, one behind the other, or (back) those that it writes from there; there null: only adds up their bytes. */
static size_t copy_tensors(const struct program_kernel *k, struct nb_call *call, unsigned char *there, bool back) {
    enum { LINE = 64 };
    size_t at = 0;
    for (int i = 0; i < N_TENSORS; i++) {
        struct tensor t;
        void *here = (void *)(uintptr_t)tensor_of(call, i), *copy = there ? there + at : NULL;
        if (!here) continue;
        shape_tensor(&t, i, &k->kernel, call);
        if (there && back && t.is_written) memcpy(here, copy, extent_of(&t));
        if (there && !back) {
            memcpy(copy, here, extent_of(&t));
            memcpy((char *)call + tensor_fields[i].pointer, &copy, sizeof copy);
        }
        at += (extent_of(&t) + LINE - 1) / LINE * LINE;
    }
    return at;
}

static int run_copied(struct nb_kernel_program *p, const struct program_kernel *k, const struct nb_call *call) {
    struct nb_call original = *call, copied = *call;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = copy_tensors(k, &original, NULL, false);
    if (!runs_here(p) && (p->is_lost || !restart(p))) return NB_PROGRAM_GONE;
    if (bytes > p->copies_bytes) {
        if (p->copies) nb_program_memory_free(p->copies);
        p->copies_bytes = (bytes + page - 1) / page * page;
        p->copies = nb_program_memory_new(p->copies_bytes);
        if (!p->copies) {
            p->copies_bytes = 0;
            snprintf(p->said, sizeof p->said, "no memory for its tensors");
            return -1;
        }
    }
    copy_tensors(k, &copied, p->copies, false);
    const int code = run(p, k, &(struct nb_program_calls){.calls = &copied, .n = 1, .amount = 1});
    if (code != NB_PROGRAM_GONE) copy_tensors(k, &original, p->copies, true);
    return code;
}

int nb_kernel_program_run(const struct nb_kernel *kernel, const struct nb_program_calls *c) {
    assert(c && c->calls && c->n > 0 && c->start < c->n && c->amount > 0);
    const struct program_kernel *k = own(kernel);
    pthread_mutex_lock(&one_at_a_time);
    const bool is_single = c->n == 1 && c->amount == 1 && !c->empty;
    const int code = is_single && !is_mapped(c->calls) ? run_copied(k->program, k, c->calls) : run(k->program, k, c);
    pthread_mutex_unlock(&one_at_a_time);
    return code;
}

/* ---- memory that goes ---- */

static bool lies_in(const struct opened *o, const struct area *area) {
    int64_t offset;
    struct area other;
    for (uint32_t i = 0; i < o->n; i++)
        for (int t = 0; t < N_TENSORS; t++) {
            const void *data = tensor_of(&o->calls[i], t);
            if (data && nb_program_memory_find(data, &offset, &other) && other.offset == area->offset) return true;
        }
    return false;
}

bool nb_program_memory_free(void *address) {
    int64_t offset;
    struct area area;
    if (!address || !nb_program_memory_find(address, &offset, &area)) return false;
    for (struct nb_kernel_program *p = programs; p; p = p->next)
        for (int i = p->n_opened; runs_here(p) && i-- > 0;)
            if (i < p->n_opened && lies_in(&p->opened[i], &area)) close_opened(p, i);
    nb_program_memory_give_back(address);
    return true;
}

const struct nb_program_api nb_kernel_programs = {.is = nb_kernel_program_is,
                                                  .load_s = NB_PROGRAM_LOAD_S,
                                                  .start = start_program,
                                                  .table = kernel_at,
                                                  .rest = rest_program,
                                                  .free = free_program,
                                                  .run = nb_kernel_of_program,
                                                  .applicable = refuse_call,
                                                  .range = range_of};
