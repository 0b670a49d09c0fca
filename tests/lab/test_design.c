// SPDX-License-Identifier: Apache-2.0
/* Texts of designs: read, written, refused; and what follows from a design. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>

#include "src/core/log.h"
#include "src/lab/emulate/design.h"
#include "tests/support/numerics.h"

Test(design, parts_apply_in_their_order_to_an_op_or_a_preset) {
    const struct nb_design d = parsed("rmsnorm/all:bf16/acc:f32x16/cast:before/eps:1e-6");
    cr_expect(d.store == NB_NUM_BF16 && d.weight == NB_NUM_BF16 && d.stat == NB_NUM_BF16 && d.acc == NB_NUM_F32);
    cr_expect(d.lanes == 16 && d.cast == NB_CAST_BEFORE && d.eps == 1e-6);
    const struct nb_design llama = parsed("llama/store:f16/op:layernorm/variance:welford");
    cr_expect(llama.store == NB_NUM_F16 && llama.weight == NB_NUM_BF16 && llama.cast == NB_CAST_BEFORE);
    cr_expect(llama.op == NB_OP_LAYERNORM && llama.variance == NB_VAR_WELFORD);
    const struct nb_design root = parsed("rmsnorm/root:div_sqrt/root:f16");
    cr_expect(root.root_form == NB_ROOT_DIV_SQRT && root.root == NB_NUM_F16);
    const struct nb_design share = parsed("prmsnorm/k:25%");
    cr_expect(share.k == 0.25 && nb_design_elements(&share, 5) == 2 && nb_design_elements(&share, 1) == 1);
    cr_expect_eq(parsed("naive/lanes:8").lanes, 8);
}

/* Whatever parts a text has, what is printed of it reads back to the same text. */
Test(design, printing_and_parsing_are_inverse) {
    static const char *const parts[] = {
        "/store:f16",      "/weight:bf16", "/square:tf32",     "/acc:f64x8",   "/stat:bf16",  "/sqrt:f64",
        "/rstd:e5m2",      "/scale:f16",   "/offset:e4m3",     "/order:kahan", "/leaf:32",    "/fma:1",
        "/root:rsqrt_nr",  "/eps:3e-7",    "/eps_place:clamp", "/cast:before", "/flush:1",    "/round:sr",
        "/store_round:rz", "/k:0.5",       "/weight_offset:1", "/all:bf16",    "/compute:f16"};
    uint64_t r = 21;
    for (int i = 0; i < 400; i++) {
        struct nb_strbuf text released_by(nb_strbuf_release) = {0}, once released_by(nb_strbuf_release) = {0},
                              twice released_by(nb_strbuf_release) = {0};
        nb_strbuf_add(&text, i % 2 ? "layernorm" : "prmsnorm");
        for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++)
            if (nb_random_next(&r) % 4 == 0) nb_strbuf_add(&text, parts[p]);
        const struct nb_design d = parsed(text.text);
        nb_design_print(&d, &once);
        const struct nb_design again = parsed(once.text);
        nb_design_print(&again, &twice);
        cr_expect_str_eq(once.text, twice.text);
        for (size_t k = 0; k < nb_n_design_keys; k++) {
            if (nb_design_keys[k].kind == NB_KEY_SEVERAL) continue;
            struct nb_strbuf want released_by(nb_strbuf_release) = {0}, got released_by(nb_strbuf_release) = {0};
            nb_design_key_print(&nb_design_keys[k], &d, &want);
            nb_design_key_print(&nb_design_keys[k], &again, &got);
            cr_expect_str_eq(got.text, want.text, "%s of %s, printed %s", nb_design_keys[k].name, text.text, once.text);
        }
    }
}

Test(design, bad_texts_are_refused, .init = cr_redirect_stderr) {
    char bad[] = "/ rmsnorm//store:f16 lama rmsnorm/stroe:f16 rmsnorm/store rmsnorm/store: rmsnorm/store:f17 "
                 "rmsnorm/acc:f32x rmsnorm/acc:f32x0 rmsnorm/lanes:-1 rmsnorm/lanes:1e3 "
                 "rmsnorm/leaf:9999999999999999999 rmsnorm/eps:-1e-5 rmsnorm/eps:nan rmsnorm/eps:inf "
                 "rmsnorm/eps:1e-5x rmsnorm/fma:2 rmsnorm/round:up prmsnorm/k:0 prmsnorm/k:150% "
                 "rmsnorm/variance:onepass layernorm/variance:none rmsnorm/order:pairwise/lanes:4 "
                 "rmsnorm/root:rsqrt_nr/eps_place:outside llama/folded:1 layernorm/variance:corrected/folded:1 "
                 "batchnorm rmsnorm/op:dyt";
    struct nb_design d;
    cr_expect_eq(nb_design_parse(&d, ""), -1);
    for (const char *text = strtok(bad, " "); text; text = strtok(NULL, " "))
        cr_expect_eq(nb_design_parse(&d, text), -1, "%s is taken", text);
    char long_text[2000];
    memset(long_text, 'a', sizeof long_text);
    long_text[sizeof long_text - 1] = '\0';
    cr_expect_eq(nb_design_parse(&d, long_text), -1);
    long_text[500] = '\0';
    cr_expect_eq(nb_design_parse(&d, long_text), -1);
}

Test(design, the_bound_is_only_asked_about_designs_that_it_knows) {
    static const char *const known[] = {"rmsnorm", "llama", "all_bf16", "J", "naive/acc:f64", "gemma", "kahan"};
    char unknown[] = "fp8 truncate stochastic rmsnorm/flush:1 rmsnorm/stat:tf32 rmsnorm/store:bf16/cast:before "
                     "all_f16/acc:e5m2 rmsnorm/all:f64";
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        const struct nb_design d = parsed(known[i]);
        cr_expect_null(nb_design_unbounded(&d), "%s: %s", known[i], nb_design_unbounded(&d));
    }
    for (const char *text = strtok(unknown, " "); text; text = strtok(NULL, " ")) {
        const struct nb_design d = parsed(text);
        cr_expect_not_null(nb_design_unbounded(&d), "%s", text);
    }
}
