// SPDX-License-Identifier: Apache-2.0
/* What an adapter does with a call before its library sees it (kernels/peers/variant.c), with a library that is written here. */
#include <criterion/criterion.h>
#include <string.h>

#define PEER_SYMBOL peer_of_the_test
#define PEER_OP NB_OP_LAYERNORM
#define PEER_PASS NB_BACKWARD
#define PEER_DTYPE NB_BF16
#define PEER_KERNEL "layernorm_backward"
#include "kernels/peers/variant.c"

static struct nb_call seen;
static int n_calls;

const char *peer_applicable(const struct nb_kernel *k, const struct nb_call *call) {
    return k == &PEER_SYMBOL && call ? NULL : "another variant";
}
const char *peer_implementation(const struct nb_kernel *k, const struct nb_call *call) {
    return peer_applicable(k, call);
}
int peer_open(int n_threads) { return 0; }
void peer_close(void) {}
const char *peer_version(void) { return ""; }
/* Writes all of dx, whether it is wanted or not. */
int peer_run(const struct nb_kernel *k, const struct nb_call *call) {
    seen = *call;
    n_calls++;
    memset(call->dx, 1, (size_t)(call->rows * call->dx_stride) * sizeof(uint16_t));
    return k == &PEER_SYMBOL ? 7 : -1;
}

Test(peer_variant, a_library_writes_dx_somewhere_where_it_is_not_wanted) {
    uint16_t dx[3 * 40] = {0};
    struct nb_call call = {.struct_size = sizeof call, .rows = 3, .cols = 33, .dx_stride = 40};
    cr_expect_eq(PEER_SYMBOL.run(&call, 0, 0, 1), 7);
    cr_expect_not_null(seen.dx);
    cr_expect_null(call.dx);
    call.dx = dx;
    cr_expect_eq(PEER_SYMBOL.run(&call, 0, 0, 1), 7);
    cr_expect_eq(seen.dx, dx);
    cr_expect_eq(PEER_SYMBOL.run(&call, 0, 1, 1), 0, "no unit, no call");
    cr_expect_eq(n_calls, 2);
}
