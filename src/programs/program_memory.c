// SPDX-License-Identifier: Apache-2.0
/* One sparse file, mapped once without access, in which a tensor's offset is its address less the start. */
#include "src/programs/program_memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/core/cpu.h"
#include "src/core/log.h"
#include "src/programs/kernel_messages.h"

static const size_t least_memory = (size_t)1 << 30;

size_t nb_buffer_distance(void) { return nb_cpu_emulator() ? (size_t)16 << 20 : (size_t)16 << 30; }

/* 32 TiB; 4 GiB in an emulator. */
static size_t most_memory(void) { return nb_buffer_distance() * (nb_cpu_emulator() ? 256 : 2048); }

static struct {
    pid_t owner; /* a fork of it makes its own */
    int fd;
    unsigned char *base; /* null: not mapped here */
    size_t bytes;
    struct area *areas; /* sorted */
    int n_areas;
} memory;

int nb_program_memory_create(size_t *bytes) {
    const int fd = memfd_create("normbench-tensors", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    *bytes = most_memory();
    while (fd >= 0 && ftruncate(fd, (off_t)*bytes) != 0 && *bytes > least_memory) *bytes /= 2;
    /* A kernel has the descriptor: were the file shorter, the harness itself would die of reading its tensors. */
    if (fd >= 0) fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    return fd;
}

/* In place of what this process, or the one that it is a fork of, had. */
static void use(int fd, size_t bytes) {
    if (memory.owner != 0) close(memory.fd);
    if (memory.base) munmap(memory.base, memory.bytes);
    memory.fd = fd;
    memory.owner = fd < 0 ? 0 : getpid();
    memory.base = NULL;
    memory.n_areas = 0;
    memory.bytes = bytes;
}

void nb_program_memory_take(int fd) {
    struct stat st;
    assert(fd >= 0);
    if (fstat(fd, &st) == 0) use(fd, (size_t)st.st_size);
}

void nb_program_memory_limit(size_t bytes) {
    if (bytes >= least_memory && bytes < memory.bytes) memory.bytes = bytes;
}

/* The file. -1: none to be had. */
static int memory_file(void) {
    size_t bytes = 0;
    if (memory.owner != getpid()) {
        const int fd = nb_program_memory_create(&bytes);
        use(fd, bytes);
    }
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

int nb_program_memory_file(size_t *bytes) {
    const bool is_mapped = map_memory();
    *bytes = memory.bytes;
    return is_mapped ? memory.fd : -1;
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
    int64_t at = find_gap(bytes, nb_buffer_distance(), &place);
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

bool nb_program_memory_find(const void *address, int64_t *offset, struct area *area) {
    const struct area *found = area_of(address);
    if (!found) return false;
    *offset = (const unsigned char *)address - memory.base;
    *area = *found;
    return true;
}

void nb_program_memory_give_back(void *address) {
    struct area *area = area_of(address);
    mprotect(memory.base + area->offset, (size_t)area->bytes, PROT_NONE);
    fallocate(memory.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, area->offset, area->bytes);
    memory.n_areas--;
    memmove(area, area + 1, (size_t)(memory.areas + memory.n_areas - area) * sizeof *area);
}
