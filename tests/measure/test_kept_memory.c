// SPDX-License-Identifier: Apache-2.0
/* Memory that one worker leaves to the next. */
#include "src/measure/kept_memory.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 4 << 20 };

/* Two huge pages of its own, full of 7. */
static unsigned char *own_mapping(void) {
    unsigned char *p = mmap(NULL, BYTES + NB_HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(p, MAP_FAILED);
    p += (NB_HUGE_PAGE - (uintptr_t)p % NB_HUGE_PAGE) % NB_HUGE_PAGE;
    memset(p, 7, BYTES);
    return p;
}

/* What a worker finds at its end, in place of which it writes leaves; 7: its own mapping. */
static int found_by_worker(int fd, unsigned char leaves) {
    int status;
    const pid_t pid = fork();
    if (pid == 0) {
        unsigned char *p = own_mapping();
        nb_kept_memory_take(fd);
        const bool has = nb_kept_memory_map(p, BYTES);
        const int found = p[BYTES - 1];
        p[BYTES - 1] = leaves;
        _exit(has == (found != 7) && !nb_kept_memory_map(p, BYTES) ? found : 99);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

Test(kept_memory, is_left_by_one_worker_to_the_next) {
    const int fd = nb_kept_memory_lend();
    cr_assert_geq(fd, 0);
    if (found_by_worker(fd, 3) == 7) cr_skip_test("no huge pages for files here");
    cr_expect_eq(found_by_worker(fd, 4), 3);
    cr_expect_eq(found_by_worker(fd, 5), 4);
}

Test(kept_memory, is_lent_to_one_at_a_time) {
    const int fd = nb_kept_memory_lend();
    cr_assert_geq(fd, 0);
    cr_expect_eq(nb_kept_memory_lend(), -1);
    nb_kept_memory_return(-1);
    cr_expect_eq(nb_kept_memory_lend(), -1);
    nb_kept_memory_return(fd);
    cr_expect_eq(nb_kept_memory_lend(), fd);
}

Test(kept_memory, is_no_other_file) {
    cr_expect_eq(found_by_worker(-1, 3), 7);
    const int fd = memfd_create("another", MFD_CLOEXEC);
    cr_assert_eq(ftruncate(fd, BYTES), 0);
    cr_expect_eq(found_by_worker(fd, 3), 7);
}
