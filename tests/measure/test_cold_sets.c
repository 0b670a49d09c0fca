// SPDX-License-Identifier: Apache-2.0
/* Which tensors an arm is timed on. Cold: between two calls on the same set every kernel touches twice the last cache, whatever else is in
 * a set. Hot: one set or two of each layout. */
#include <criterion/criterion.h>

#include "src/core/case.h"
#include "src/core/shape.h"
#define load_kernels load_kernels_of_job /* the tests have one too */
#include "src/measure/worker.c"
#undef load_kernels
#include "tests/support/plans.h"

enum { N_ARMS = 3 };

static void make_arm(struct nb_arm *arm, struct nb_case *c, const char *variant, const char *shape) {
    const struct nb_entry *entry = nb_registry_find(variant);
    char reason[160];
    cr_assert(entry, "%s", variant);
    nb_case_init(c);
    cr_assert_eq(nb_shape_parse(&c->shape, shape, reason, sizeof reason), 0);
    nb_case_set_entry(c, entry);
    nb_case_normalize(c);
    *arm = (struct nb_arm){.entry = entry, .c = c};
}

static int sets_of(const char *const variants[N_ARMS], double set_bytes, double cold_bytes, double *least_bytes) {
    struct nb_case cases[N_ARMS];
    struct nb_arm arms[N_ARMS] = {0};
    *least_bytes = INFINITY;
    for (int i = 0; i < N_ARMS; i++) {
        make_arm(&arms[i], &cases[i], variants[i], "1024x1024");
        if (nb_case_bytes(&cases[i]) < *least_bytes) *least_bytes = nb_case_bytes(&cases[i]);
    }
    return n_cold_sets(set_bytes, cold_bytes, arms, N_ARMS);
}

Test(cold_sets, the_leanest_arm_goes_round_through_all_that_is_asked_for, .init = load_kernels) {
    static const char *const variants[N_ARMS] = {"layernorm_twopass_v256_f32", "layernorm_composed_v256_f32",
                                                 "copy_v256_f32"};
    const double tensor = 4.0 * (1 << 20), cold_bytes = 64.0 * (1 << 20);
    double least;
    /* x, y, and residual and residual_out, which a copy's pattern may have. */
    const int n = sets_of(variants, 4 * tensor, cold_bytes, &least);
    cr_expect_geq(n * least, cold_bytes, "%d sets of %.0f bytes", n, least);
    cr_expect_lt((n - 1) * least, cold_bytes);
    cr_expect_eq(sets_of(variants, 4 * tensor, 0, &least), 1, "hot");
    cr_expect_eq(sets_of(variants, 4 * tensor, tensor, &least), 1, "larger than the cache");
}

enum { N_HOT = 4 };

/* Returns how many sets there are; home: of each arm. */
static int homes_of(const char *shape, int64_t stream_bytes, bool one_home, int home[N_HOT]) {
    static const char *const variants[N_HOT] = {"layernorm_twopass_v256_f32", "layernorm_fast_v256_f32",
                                                "copy_v256_f32", "copy_stream_v256_f32"};
    const struct nb_tuning tuning = {.struct_size = sizeof tuning, .stream_bytes = stream_bytes};
    struct nb_case cases[N_HOT];
    struct nb_arm arms[N_HOT] = {0};
    for (int i = 0; i < N_HOT; i++) {
        make_arm(&arms[i], &cases[i], variants[i], shape);
        cases[i].tuning = &tuning;
    }
    const int n = settle_arms(arms, N_HOT, one_home);
    for (int i = 0; i < N_HOT; i++) home[i] = arms[i].home;
    return n;
}

Test(cold_sets, arms_that_store_past_the_caches_have_tensors_of_their_own, .init = load_kernels) {
    const char *const large = "65536x1024", *const small = "16x64"; /* no second cache holds the one, each the other */
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *e = nb_registry_at(i);
        if (strstr(e->kernel->name, "_fast"))
            cr_expect(e->kernel->flags & NB_FLAG_STREAMS_BEYOND, "%s does not say so", e->kernel->variant);
    }
    int home[N_HOT];
    cr_expect_eq(homes_of(large, 1 << 20, false, home), 2);
    cr_expect(home[0] == 0 && home[1] == 1 && home[2] == 0 && home[3] == 1);
    cr_expect_eq(homes_of(large, 0, false, home), 2, "0: no call of a kernel that is asked does");
    cr_expect(home[0] == 0 && home[1] == 0 && home[2] == 0 && home[3] == 1);
    cr_expect_eq(homes_of(small, 1, false, home), 1, "what the second cache holds it holds after one call");
    cr_expect(home[0] + home[1] + home[2] + home[3] == 0);
    cr_expect_eq(homes_of(large, 1 << 20, true, home), 1, "arms that must differ in nothing but their code");
    cr_expect(home[0] + home[1] + home[2] + home[3] == 0);
}

Test(cold_sets, there_are_as_many_layouts_as_a_shared_cache_may_hold) {
    const double few = fmin(LAYOUTS_BYTES, (double)nb_cpu_light()->l3_bytes / 4);
    cr_expect_eq(n_layouts(1), few > 0 ? MOST_LAYOUTS : 1);
    cr_expect_eq(n_layouts(few / 3), few > 0 ? 3 : 1);
    cr_expect_eq(n_layouts(1e12), 1);
    cr_expect_eq(MOST_LAYOUTS % 2, 1, "each meets both an order of the arms and its reverse");
}

Test(cold_sets, a_copy_wants_the_tensors_that_it_moves, .init = load_kernels) {
    static const struct {
        const char *variant;
        uint32_t pass, wants;
    } copies[] = {
        {"copy_v256_f32", NB_FORWARD, 1u << NB_T_X | 1u << NB_T_Y},
        {"copy_triad_v256_f32", NB_FORWARD, 1u << NB_T_X | 1u << NB_T_RESIDUAL | 1u << NB_T_Y},
        {"copy_add_v256_f32", NB_FORWARD, 1u << NB_T_X | 1u << NB_T_RESIDUAL | 1u << NB_T_Y | 1u << NB_T_RESIDUAL_OUT},
        {"copy_backward_v256_f32", NB_BACKWARD, 1u << NB_T_X | 1u << NB_T_DY | 1u << NB_T_DX},
        {"copy_add_backward_v256_f32", NB_BACKWARD,
         1u << NB_T_X | 1u << NB_T_DY | 1u << NB_T_DRESIDUAL_OUT | 1u << NB_T_DX}};
    for (size_t i = 0; i < sizeof copies / sizeof copies[0]; i++) {
        struct nb_case c;
        struct nb_arm arm;
        make_arm(&arm, &c, copies[i].variant, "16x64");
        c.pass = copies[i].pass;
        cr_expect_eq(wants_of(&arm), copies[i].wants, "%s", copies[i].variant);
    }
}
