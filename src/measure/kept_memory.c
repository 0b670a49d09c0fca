// SPDX-License-Identifier: Apache-2.0
/* A sparse file in memory. MADV_COLLAPSE (Linux 6.1) gives it huge pages whatever the system's setting for such files is. */
#include "src/measure/kept_memory.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static const size_t most_bytes = (size_t)4 << 30;
static const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL; /* by which it is known */

/* ---- the parent --------------------------------------------------------------------------------------------------- */

static atomic_flag is_lent = ATOMIC_FLAG_INIT;

static int new_file(void) {
    const int fd = memfd_create("normbench-kept", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || (ftruncate(fd, (off_t)most_bytes) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0)) return fd;
    close(fd);
    return -1;
}

int nb_kept_memory_lend(void) {
    static int file = -1;
    if (atomic_flag_test_and_set(&is_lent)) return -1;
    if (file < 0) file = new_file();
    if (file < 0) atomic_flag_clear(&is_lent);
    return file;
}

void nb_kept_memory_return(int fd) {
    if (fd >= 0) atomic_flag_clear(&is_lent);
}

/* ---- a worker ----------------------------------------------------------------------------------------------------- */

static void *memory = MAP_FAILED; /* all of it, not yet in its place */

void nb_kept_memory_take(int fd) {
    if (fcntl(fd, F_GET_SEALS) != seals) return;
    char *reserved = mmap(NULL, most_bytes + NB_HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (reserved == MAP_FAILED) return;
    char *aligned = reserved + (NB_HUGE_PAGE - (uintptr_t)reserved % NB_HUGE_PAGE) % NB_HUGE_PAGE;
    memory = mmap(aligned, most_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0);
}

/* Pages that the file has already cost nothing. One small page in each huge one is enough to make it of; all of them first took eight times as
 * long. */
static bool get_pages(unsigned char *start, size_t bytes) {
    for (unsigned char *p = start; p < start + bytes; p += NB_HUGE_PAGE) {
        if (madvise(p, (size_t)sysconf(_SC_PAGESIZE), MADV_POPULATE_WRITE) != 0) return false;
        if (madvise(p, NB_HUGE_PAGE, MADV_COLLAPSE) != 0 && errno == EINVAL) return false; /* there are none here */
    }
    return madvise(start, bytes, MADV_POPULATE_WRITE) == 0;
}

bool nb_kept_memory_map(void *start, size_t bytes) {
    assert((uintptr_t)start % NB_HUGE_PAGE == 0 && bytes % NB_HUGE_PAGE == 0 && bytes > 0);
    if (memory == MAP_FAILED) return false;
    const bool is_had = bytes <= most_bytes && get_pages(memory, bytes) &&
                        mremap(memory, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, start) == start;
    munmap(is_had ? (char *)memory + bytes : memory, is_had ? most_bytes - bytes : most_bytes);
    memory = MAP_FAILED;
    return is_had;
}
