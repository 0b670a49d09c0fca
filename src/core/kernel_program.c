// SPDX-License-Identifier: Apache-2.0
/* One question and one answer at a time, each a packet. What comes from the program is data from outside: every answer is held against its
 * question, and a program that says anything else is ended. */
#include "src/core/kernel_program.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/core/dtype.h"
#include "src/core/files.h"
#include "src/core/kernel_messages.h"
#include "src/core/log.h"
#include "src/core/program_start.h"
#include "src/core/text.h"

/* ---- messages ---- */

/* Null: an answer to the question, n bytes of which body_bytes stand before the text; else what is wrong with it. */
static const char *refuse_answer(const union message *m, size_t n, const struct head *question, size_t body_bytes) {
    static char why[100];
    if (n < sizeof m->head || memcmp(m->head.magic, question->magic, sizeof m->head.magic) != 0)
        return "answered with something that is no message of the protocol";
    if (m->head.version != VERSION) {
        snprintf(why, sizeof why, "speaks version %u of the protocol, and this program version %d", m->head.version,
                 VERSION);
        return why;
    }
    if (m->head.type != question->type || m->head.sequence != question->sequence) {
        snprintf(why, sizeof why, "answered question %u (type %u) where question %u (type %u) was asked",
                 m->head.sequence, m->head.type, question->sequence, question->type);
        return why;
    }
    if (m->head.bytes != n || n < body_bytes || m->answer.text_bytes != n - body_bytes) {
        snprintf(why, sizeof why, "answered a question of type %u with %zu bytes that say they are %u", question->type,
                 n, m->head.bytes);
        return why;
    }
    return NULL;
}

/* Its text, owned: short, in ASCII, so that it may be cut anywhere, and no terminal takes it for a command. */
static char *text_of(const union message *m) {
    enum { LONGEST = 240 };
    struct nb_strbuf raw = {0}, text = {0};
    nb_strbuf_addn(&raw, m->bytes + m->head.bytes - m->answer.text_bytes, m->answer.text_bytes);
    nb_escape_terminal(&text, raw.text ? raw.text : "", false);
    if (text.len > LONGEST) text.text[LONGEST] = '\0';
    nb_strbuf_release(&raw);
    return text.text ? text.text : nb_strdup("");
}

/* ---- a program ---- */

struct program_kernel {
    struct nb_kernel kernel;
    struct nb_kernel_program *program;
    uint32_t index, flags, layouts, modes;
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
    pid_t pid, owner; /* 0: none runs; owner: the process that it is a child of */
    int socket;
    uint32_t sequence, next_handle;
    uint64_t clock; /* of used */
    bool is_lost;   /* it misbehaved: not to be started again */
    void *copies;   /* where tensors are copied that do not lie in the memory, and how much room there is */
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

/* ---- memory ---- */

/* One sparse file, mapped once without access, in which a tensor's offset is its address less the start. Addresses cost nothing: what is
 * allocated lies so far apart that an index of 32 bits, wrapped or not, finds nothing of anyone else's. */
static const size_t most_memory = (size_t)32 << 40, least_memory = (size_t)1 << 30, far = (size_t)16 << 30;

static struct {
    pid_t owner; /* a fork of it makes its own */
    int fd;
    unsigned char *base; /* null: not mapped here */
    size_t bytes;
    struct area *areas; /* sorted */
    int n_areas;
} memory;

/* The file. -1: none to be had. */
static int memory_file(void) {
    if (memory.owner == getpid()) return memory.fd;
    if (memory.owner != 0) close(memory.fd);
    if (memory.base) munmap(memory.base, memory.bytes);
    memory.fd = memfd_create("normbench-tensors", MFD_CLOEXEC);
    memory.owner = memory.fd < 0 ? 0 : getpid();
    memory.base = NULL;
    memory.n_areas = 0;
    memory.bytes = most_memory;
    while (memory.fd >= 0 && ftruncate(memory.fd, (off_t)memory.bytes) != 0 && memory.bytes > least_memory)
        memory.bytes /= 2;
    return memory.fd;
}

/* Where addresses are rationed (ulimit -v) it is smaller: before any program has been told its size. */
static bool map_memory(void) {
    void *base;
    if (memory_file() < 0) return false;
    if (memory.base) return true;
    while ((base = mmap(NULL, memory.bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, memory.fd, 0)) == MAP_FAILED) {
        if (memory.bytes <= least_memory) return false;
        memory.bytes /= 2;
    }
    madvise(base, memory.bytes, MADV_DONTDUMP);
    memory.base = base;
    return true;
}

/* The first gap of so many bytes with so much distance on either side. -1: there is none. */
static int64_t find_gap(size_t bytes, size_t distance, int *place) {
    int64_t at = (int64_t)distance;
    for (*place = 0; *place < memory.n_areas; ++*place) {
        const struct area *a = &memory.areas[*place];
        if (at + (int64_t)(bytes + distance) <= a->offset) return at;
        at = a->offset + a->bytes + (int64_t)distance;
    }
    return at + (int64_t)(bytes + distance) <= (int64_t)memory.bytes ? at : -1;
}

void *nb_program_memory_new(size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int place;
    errno = 0;
    if (memory.owner != getpid() || !memory.base) return NULL;
    assert(bytes % page == 0);
    int64_t at = find_gap(bytes, far, &place);
    if (at < 0) at = find_gap(bytes, page, &place);
    if (at < 0) return errno = ENOMEM, NULL;
    if (mprotect(memory.base + at, bytes, PROT_READ | PROT_WRITE) != 0) return NULL;
    memory.areas = nb_realloc(memory.areas, (unsigned)memory.n_areas + 1, sizeof *memory.areas);
    memmove(memory.areas + place + 1, memory.areas + place, (size_t)(memory.n_areas++ - place) * sizeof *memory.areas);
    memory.areas[place] = (struct area){at, (int64_t)bytes};
    return memory.base + at;
}

/* Null: the address is in none. */
static struct area *area_of(const void *address) {
    const int64_t at = (const unsigned char *)address - memory.base;
    if (memory.owner != getpid() || !memory.base || at < 0) return NULL;
    for (int i = 0; i < memory.n_areas; i++)
        if (at >= memory.areas[i].offset && at < memory.areas[i].offset + memory.areas[i].bytes)
            return &memory.areas[i];
    return NULL;
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

/* False: a tensor is not in the memory that the program maps. */
static bool write_case(struct opening *o, const struct program_kernel *k, const struct nb_call *call) {
    const struct nb_formula *f = &call->formula;
    *o = (struct opening){.kernel = k->index,
                          .mode = call->mode,
                          .layout = call->layout,
                          .n_threads = k->flags & FLAG_THREADS && call->n_threads > 1 ? (uint32_t)call->n_threads : 1,
                          .rows = call->rows,
                          .cols = call->cols,
                          .n = call->n,
                          .c = call->c,
                          .hw = call->hw,
                          .k = call->k,
                          .eps = call->eps,
                          .alpha = call->alpha,
                          .momentum = call->momentum,
                          .root = f->root,
                          .eps_place = f->eps_place,
                          .cast = f->cast,
                          .weight_offset = f->weight_offset,
                          .affine = f->affine,
                          .param = f->param,
                          .round_sum = f->round_sum};
    for (int i = 0; i < N_TENSORS; i++) {
        const unsigned char *data = tensor_of(call, i);
        const struct area *area = data ? area_of(data) : NULL;
        o->tensors[i].offset = -1;
        if (!data) continue;
        if (!area) return false;
        shape_tensor(&o->tensors[i], i, &k->kernel, call);
        o->tensors[i].offset = data - memory.base;
        add_area(o, area);
    }
    return true;
}

/* ---- the process ---- */

/* How it ended, for people. */
static void say_ended(struct nb_kernel_program *p, int status) {
    if (WIFSIGNALED(status))
        snprintf(p->said, sizeof p->said, "was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(p->said, sizeof p->said, "ended with exit code %d", WEXITSTATUS(status));
}

/* From then on none runs. Returns false, for whoever asked it. */
static bool lose(struct nb_kernel_program *p, const char *why) {
    int status = 0;
    pid_t ended = 0;
    for (int i = 0; i < 100 && !why && (ended = waitpid(p->pid, &status, WNOHANG)) == 0; i++) poll(NULL, 0, 10);
    if (ended == p->pid)
        say_ended(p, status);
    else if (why != p->said)
        snprintf(p->said, sizeof p->said, "%s", why ? why : "closed its socket");
    if (ended != p->pid) {
        kill(p->pid, SIGKILL);
        while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
    close(p->socket);
    forget_opened(p);
    p->pid = 0;
    p->is_lost = true;
    return false;
}

static bool runs_here(const struct nb_kernel_program *p) { return p->pid != 0 && p->owner == getpid(); }

/* False: it is gone, and p->said says how. m: the answer. */
static bool ask(struct nb_kernel_program *p, uint16_t type, void *question, size_t bytes, union message *m,
                size_t answer_bytes) {
    struct head *head = question;
    if (!runs_here(p)) return false;
    *head = (struct head){{'N', 'B', 'W', 'P'}, VERSION, type, ++p->sequence, (uint32_t)bytes};
    ssize_t n = send(p->socket, question, bytes, MSG_NOSIGNAL);
    if (n != (ssize_t)bytes) return lose(p, NULL);
    do n = recv(p->socket, m, sizeof *m, MSG_TRUNC);
    while (n < 0 && errno == EINTR);
    if (n <= 0) return lose(p, NULL);
    const char *why = (size_t)n > sizeof *m ? "answered with more bytes than the protocol allows"
                                            : refuse_answer(m, (size_t)n, head, answer_bytes);
    return why ? lose(p, why) : true;
}

/* 0 of an answer without a status, else that, with its text in p->said. */
static int status_of(struct nb_kernel_program *p, const union message *m) {
    if (m->answer.status == 0) return 0;
    char *text = text_of(m);
    snprintf(p->said, sizeof p->said, "%s", text);
    free(text);
    return m->answer.status == NB_PROGRAM_GONE ? -1 : m->answer.status;
}

/* False: there is no answer, and p->said says why. What another process had of it is left behind. */
static bool say_hello(struct nb_kernel_program *p, union message *m) {
    if (p->pid != 0) close(p->socket);
    p->pid = 0;
    p->is_lost = false;
    p->copies = NULL;
    p->copies_bytes = 0;
    forget_opened(p);
    const pid_t pid = map_memory() ? nb_program_start(p->file, memory.fd, &p->socket) : -1;
    if (pid < 0) {
        snprintf(p->said, sizeof p->said, "cannot be started: %s", strerror(errno));
        return false;
    }
    p->pid = pid;
    p->owner = getpid();
    p->sequence = p->next_handle = 0;
    struct hello hello = {.memory_bytes = memory.bytes};
    return ask(p, HELLO, &hello, sizeof hello, m, sizeof m->hello);
}

static bool restart(struct nb_kernel_program *p) {
    static union message m;
    return say_hello(p, &m) && (status_of(p, &m) == 0 || lose(p, p->said));
}

/* ---- its table ---- */

static int yes(const struct nb_call *call) {
    (void)call;
    return 1;
}
static int64_t one_unit(const struct nb_call *call, int phase) {
    (void)call, (void)phase;
    return 1;
}
int nb_kernel_of_program(const struct nb_call *call, int phase, int64_t begin, int64_t end) {
    (void)call, (void)phase, (void)begin, (void)end;
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
    (void)n_threads;
    for (struct nb_kernel_program *p = programs; p; p = p->next) {
        if (!runs_here(p) && !restart(p)) return nb_error("%s: its program %s", p->file, p->said);
        pin(p->pid);
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
    if (d->flags > 2 * FLAG_FLUSHES - 1) return "has flags that this program does not know";
    if (d->layouts >= 1u << NB_N_LAYOUTS || d->modes >= 1u << NB_N_MODES) return "has a layout or a mode too many";
    if (d->dtype >= NB_N_DTYPES) return "has a dtype that this program does not know";
    if (!is_padded(d->name) || !is_padded(d->variant)) return "has a name that is too long or not padded";
    memcpy(k->name, d->name, NAME_BYTES);
    memcpy(k->variant, d->variant, NAME_BYTES);
    if (!k->variant[0] && snprintf(k->variant, NAME_BYTES, "%.80s_%s", k->name, nb_formats[d->dtype].name) < 0)
        return "has no name";
    k->flags = d->flags;
    k->layouts = d->layouts;
    k->modes = d->modes ? d->modes : 1u << NB_TRAINING;
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
        .flags = NB_FLAG_ALLOCATES | NB_FLAG_OWN_THREADS | (d->flags & FLAG_FLUSHES ? (uint32_t)NB_FLAG_FLUSHES : 0),
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

struct nb_kernel_program *nb_kernel_program_start(const char *file, size_t *n) {
    static union message m;
    assert(file && n);
    struct nb_kernel_program *p = nb_alloc(1, sizeof *p);
    p->file = nb_strdup(file);
    p->next = programs;
    programs = p;
    if (!nb_path_exists(file)) {
        nb_error("%s: %s", file, strerror(ENOENT));
    } else if (!say_hello(p, &m)) {
        nb_error("%s: its program %s before it said which kernels it has", file, p->said);
    } else if (status_of(p, &m) != 0) {
        nb_error("%s: %s", file, p->said);
    } else if (m.hello.n_kernels == 0 || m.hello.n_kernels > MOST_KERNELS) {
        nb_error("%s: its table says %u kernels", file, m.hello.n_kernels);
    } else {
        p->n_kernels = m.hello.n_kernels;
        p->language = text_of(&m);
        if (read_table(p) == 0) return *n = p->n_kernels, p;
    }
    nb_kernel_program_free(p);
    return NULL;
}

const struct nb_kernel *nb_kernel_program_table(const struct nb_kernel_program *p, size_t i) {
    assert(p && i < p->n_kernels);
    return &p->kernels[i].kernel;
}

/* A copy of the kernel, as the registry has it, keeps the pointer to its name. */
static const struct program_kernel *own(const struct nb_kernel *k) {
    assert(nb_kernel_is_of_program(k));
    return (const struct program_kernel *)(const void *)(k->name - offsetof(struct program_kernel, name));
}

const char *nb_kernel_program_language(const struct nb_kernel *k) { return own(k)->program->language; }
const char *nb_kernel_program_said(const struct nb_kernel *k) { return own(k)->program->said; }

void nb_kernel_program_rest(struct nb_kernel_program *p) {
    assert(p);
    struct head bye = {{'N', 'B', 'W', 'P'}, VERSION, BYE, ++p->sequence, sizeof bye};
    if (p->pid == 0) return;
    if (runs_here(p)) {
        struct pollfd answer = {.fd = p->socket, .events = POLLIN};
        if (send(p->socket, &bye, sizeof bye, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof bye) poll(&answer, 1, 1000);
        lose(p, "was ended");
        p->is_lost = false;
        return;
    }
    close(p->socket);
    forget_opened(p);
    p->pid = 0;
}

void nb_kernel_program_free(struct nb_kernel_program *p) {
    if (!p) return;
    nb_kernel_program_rest(p);
    for (struct nb_kernel_program **at = &programs; *at; at = &(*at)->next)
        if (*at == p) {
            *at = p->next;
            break;
        }
    for (uint32_t i = 0; i < p->n_kernels && p->kernels; i++) free(p->kernels[i].summary);
    free(p->kernels);
    free(p->file);
    free(p->language);
    free(p);
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

const char *nb_kernel_program_applicable(const struct nb_kernel *kernel, const struct nb_call *call) {
    assert(call);
    const struct program_kernel *k = own(kernel);
    const bool is_batch = kernel->op == NB_OP_BATCHNORM;
    if (is_batch && !(k->layouts >> call->layout & 1)) return "the program's kernel does not take this layout";
    if (is_batch && !(k->modes >> call->mode & 1)) return "the program's kernel does not take this mode";
    if (!(k->flags & FLAG_STRIDES) && has_gaps(call)) return "the program's kernel takes rows next to each other alone";
    if (!(k->flags & FLAG_THREADS) && call->n_threads > 1) return "the program's kernel does not use several threads";
    return NULL;
}

/* ---- calls ---- */

static bool close_opened(struct nb_kernel_program *p, int i) {
    static union message m;
    struct closing question = {.first = p->opened[i].first, .n = p->opened[i].n};
    free(p->opened[i].calls);
    p->opened[i] = p->opened[--p->n_opened];
    return ask(p, CLOSE, &question, sizeof question, &m, sizeof m.answer);
}

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
        if (!write_case(&question, k, &c->calls[i])) {
            snprintf(p->said, sizeof p->said, "its tensors do not lie in memory that can be shared");
            return -1;
        }
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

static uint64_t monotonic_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
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
    const uint64_t begin_ns = monotonic_ns();
    if (!ask(p, CALL, &question, sizeof question, &m, sizeof m.call)) return NB_PROGRAM_GONE;
    const uint64_t took_ns = monotonic_ns() - begin_ns;
    code = status_of(p, &m);
    if (code == 0 && m.call.n_done != (uint64_t)c->amount)
        code = refuse_calls(p, "says that it made another number of calls than it was asked for");
    else if (m.call.ns > took_ns)
        code = refuse_calls(p, "says that its calls took longer than all of its answer");
    return code;
}

/* ---- calls on memory that the program does not map ---- */

/* Where nothing is timed: its tensors are copied to memory that it does, and back. */

static bool is_mapped(const struct nb_call *call) {
    for (int i = 0; i < N_TENSORS; i++)
        if (tensor_of(call, i) && !area_of(tensor_of(call, i))) return false;
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
    for (uint32_t i = 0; i < o->n; i++)
        for (int t = 0; t < N_TENSORS; t++) {
            const unsigned char *data = tensor_of(&o->calls[i], t);
            if (data && data - memory.base >= area->offset && data - memory.base < area->offset + area->bytes)
                return true;
        }
    return false;
}

bool nb_program_memory_free(void *address) {
    struct area *area = area_of(address);
    if (!area) return false;
    for (struct nb_kernel_program *p = programs; p; p = p->next)
        for (int i = p->n_opened; runs_here(p) && i-- > 0;)
            if (i < p->n_opened && lies_in(&p->opened[i], area)) close_opened(p, i);
    mprotect(memory.base + area->offset, (size_t)area->bytes, PROT_NONE);
    fallocate(memory.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, area->offset, area->bytes);
    memory.n_areas--;
    memmove(area, area + 1, (size_t)(memory.areas + memory.n_areas - area) * sizeof *area);
    return true;
}
