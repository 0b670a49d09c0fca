// SPDX-License-Identifier: Apache-2.0
/* Machine code of two builds: what is the same, what differs, what cannot be told; and files that are no such files. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/random.h"
#include "src/core/registry.h"
#include "src/gate/code_identity.c"
#include "tests/support/files.h"

#if defined(__x86_64__)

struct digest {
    uint64_t words[2];
};

static char *identity_path(const char *change) { return plugin_path(kept(nb_textf("identity_%s", change))); }

/* Of a kernel of identity_CHANGE.so. */
static struct digest part_of(const char *change, const char *kernel, enum nb_code_part part) {
    char reason[200] = "", id[100];
    struct digest d = {{0}};
    const char *path = identity_path(change);
    snprintf(id, sizeof id, "identity_%s:%s_f32", change, kernel);
    if (!nb_registry_find(id)) cr_assert_eq(nb_registry_load(path), 0);
    struct nb_code *code = nb_code_open(path, reason, sizeof reason);
    cr_assert(code, "%s: %s", path, reason);
    cr_assert_eq(nb_code_digest(code, nb_registry_find(id), part, d.words, reason, sizeof reason), 0, "%s: %s", id,
                 reason);
    nb_code_close(code);
    return d;
}

static struct digest digest_of(const char *change, const char *kernel) { return part_of(change, kernel, NB_CODE_ALL); }

static bool is_same(struct digest a, struct digest b) { return memcmp(&a, &b, sizeof a) == 0; }

Test(code_identity, code_that_only_lies_elsewhere_is_the_same) {
    cr_expect(is_same(digest_of("same", "first"), digest_of("moved", "first")));
    cr_expect(is_same(digest_of("same", "second"), digest_of("moved", "second")));
}

ParameterizedTestParameters(code_identity, every_change_that_the_kernel_can_reach_is_seen) {
    static char changes[][16] = {"constant", "inside",  "table", "pointers", "target", "jump",   "callee",
                                 "deep",     "library", "chain", "text",     "flags",  "chosen", "repeats"};
    return cr_make_param_array(char[16], changes, sizeof changes / sizeof changes[0]);
}
ParameterizedTest(char change[16], code_identity, every_change_that_the_kernel_can_reach_is_seen) {
    cr_expect_not(is_same(digest_of("same", "first"), digest_of(change, "first")), "%s is not seen", change);
    cr_expect(is_same(digest_of("same", "second"), digest_of(change, "second")), "%s: the other kernel", change);
}

Test(code_identity, what_a_kernel_claims_is_no_part_of_what_is_timed) {
    cr_expect(is_same(part_of("same", "first", NB_CODE_TIMED), part_of("chain", "first", NB_CODE_TIMED)));
    cr_expect_not(is_same(part_of("same", "first", NB_CODE_TIMED), part_of("text", "first", NB_CODE_TIMED)));
    cr_expect_not(is_same(part_of("same", "first", NB_CODE_TIMED), part_of("deep", "first", NB_CODE_TIMED)));
}

Test(code_identity, a_change_of_another_kernel_in_the_same_file_is_none) {
    cr_expect_not(is_same(digest_of("same", "second"), digest_of("other", "second")));
    cr_expect(is_same(digest_of("same", "first"), digest_of("other", "first")));
}

/* A constructor may set what any kernel reads, another library may have one. */
Test(code_identity, what_is_done_on_loading_is_part_of_every_kernel) {
    static const char *const changes[] = {"constructor", "libraries"};
    for (int i = 0; i < 2; i++) {
        cr_expect_not(is_same(digest_of("same", "first"), digest_of(changes[i], "first")), "%s", changes[i]);
        cr_expect_not(is_same(digest_of("same", "second"), digest_of(changes[i], "second")), "%s", changes[i]);
    }
}

/* An initialiser without a symbol: nothing says what it is. */
Test(code_identity, an_initialiser_that_is_not_known_leaves_nothing_to_compare) {
    char reason[200] = "";
    uint64_t digest[2];
    cr_assert_eq(nb_registry_load(identity_path("same")), 0);
    const struct nb_entry *entry = nb_registry_find("identity_same:second_f32");
    struct nb_code *code = nb_code_open(identity_path("same"), reason, sizeof reason);
    cr_assert(code && entry);
    for (size_t i = 0; i < code->n_symbols; i++)
        if (strcmp(name_of(code, &code->symbols[i]), "frame_dummy") == 0) code->symbols[i].st_size = 1;
    cr_expect_eq(nb_code_digest(code, entry, NB_CODE_ALL, digest, reason, sizeof reason), -1);
    cr_expect_str_eq(reason, "what it does on loading is not known");
    for (size_t i = 0; i < code->n_sections; i++) /* alone in its table, too */
        if (code->sections[i].sh_type == SHT_INIT_ARRAY) code->sections[i].sh_size = 8;
    cr_expect_eq(nb_code_digest(code, entry, NB_CODE_ALL, digest, reason, sizeof reason), -1);
    nb_code_close(code);
}

/* The kernels of the build, linked again in another order with gaps; not instrumented ones, whose code refers to tables of its own. */
Test(code_identity, kernels_of_the_build_are_the_same_in_another_layout) {
    const char *paths[] = {getenv("NORMBENCH_KERNELS"), getenv("NORMBENCH_TEST_LAYOUT")};
    struct nb_code *codes[2];
    char reason[200] = "";
    size_t n = 0, same = 0, unknown = 0;
    cr_assert_eq(nb_registry_load_builtin(), 0);
    cr_assert_eq(nb_registry_load(paths[1]), 0);
    for (int i = 0; i < 2; i++) cr_assert((codes[i] = nb_code_open(paths[i], reason, sizeof reason)), "%s", reason);
    for (size_t i = 0; i < nb_registry_size(); i++) {
        const struct nb_entry *entry = nb_registry_at(i);
        char id[200];
        struct digest a, b;
        if (entry->plugin) continue;
        snprintf(id, sizeof id, "layout_2:%s", entry->id);
        cr_assert(nb_registry_find(id), "%s", id);
        n++;
        if (nb_code_digest(codes[0], entry, NB_CODE_ALL, a.words, reason, sizeof reason) != 0 ||
            nb_code_digest(codes[1], nb_registry_find(id), NB_CODE_ALL, b.words, reason, sizeof reason) != 0) {
            unknown++;
            continue;
        }
        same += is_same(a, b);
        cr_expect(is_same(a, b), "%s", id);
    }
    cr_log_info("%zu of %zu kernels are the same in both layouts, of %zu it cannot be told (%s)", same, n, unknown,
                reason);
    cr_expect_leq(20 * unknown, n, "%zu of %zu kernels cannot be compared: %s", unknown, n, reason);
    nb_code_close(codes[0]);
    nb_code_close(codes[1]);
}

static void refuses(const char *path, const char *words) {
    char reason[200] = "";
    struct nb_code *code = nb_code_open(path, reason, sizeof reason);
    cr_expect_null(code, "%s was taken", path);
    cr_expect(strstr(reason, words), "%s: wanted \"%s\" in: %s", path, words, reason);
    nb_code_close(code);
}

Test(code_identity, a_file_that_tells_too_little_is_refused_with_the_reason) {
    refuses(identity_path("unmarked"), "a section for each function");
    refuses(identity_path("bare"), "--emit-relocs");
    refuses(identity_path("stripped"), "no symbol table");
    refuses("/dev/null", "no x86-64 ELF file");
    refuses("/nonexistent.so", "no x86-64 ELF file");
}

/* ---- instructions ------------------------------------------------------------------------------------------------------ */

struct encoded {
    const char *text;
    unsigned char bytes[16];
    int length, distance, width; /* width: of the operand at a distance */
};

/* Encoded by GNU as, lengths and widths as its disassembler names them. */
Test(code_identity, an_instruction_is_as_long_and_its_operand_as_wide_as_the_manual_says) {
    static const struct encoded list[] = {
        {"vbroadcastss ymm0, [rip]", {0xc4, 0xe2, 0x7d, 0x18, 0x05}, 9, 5, 4},
        {"vpmovzxbd ymm0, [rip]", {0xc4, 0xe2, 0x7d, 0x31, 0x05}, 9, 5, 8},
        {"vaddps zmm0, zmm0, [rip]{1to16}", {0x62, 0xf1, 0x7c, 0x58, 0x58, 0x05}, 10, 6, 4},
        {"vcmpps ymm0, ymm0, [rip], 1", {0xc5, 0xfc, 0xc2, 0x05, 0, 0, 0, 0, 1}, 9, 4, 32},
        {"mov eax, [rip]", {0x8b, 0x05}, 6, 2, 4},
        {"mov ax, [rip]", {0x66, 0x8b, 0x05}, 7, 3, 2},
        {"movzx eax, byte [rip]", {0x0f, 0xb6, 0x05}, 7, 3, 1},
        {"lea rax, [rip]", {0x48, 0x8d, 0x05}, 7, 3, 64},
        {"mov word [rip], 5", {0x66, 0xc7, 0x05, 0, 0, 0, 0, 5, 0}, 9, 3, 2},
        {"mov eax, [rbp * 4 + 256]", {0x8b, 0x04, 0xad, 0, 1, 0, 0}, 7, 0, 0},
        {"mov rax, 2^40", {0x48, 0xb8, 0, 0, 0, 0, 0, 1, 0, 0}, 10, 0, 0},
        {"call", {0xe8}, 5, 0, 0},
        {"jne", {0x0f, 0x85}, 6, 0, 0},
        {"vzeroupper", {0xc5, 0xf8, 0x77}, 3, 0, 0},
        {"vfmadd231ps zmm1{k1}, zmm2, [rax + 64]", {0x62, 0xf2, 0x6d, 0x49, 0xb8, 0x48, 0x01}, 7, 0, 0},
    };
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
        const struct encoded *e = &list[i];
        struct nb_instruction o;
        cr_assert_eq(instruction_read(e->bytes, (uint64_t)e->length, &o), 0, "%s", e->text);
        cr_expect_eq(o.bytes, e->length, "%s: %d bytes", e->text, o.bytes);
        cr_expect_eq(o.distance, e->distance, "%s: at %d", e->text, o.distance);
        if (e->distance > 0) cr_expect_eq(o.operand_bytes, e->width, "%s: reads %d", e->text, o.operand_bytes);
        cr_expect_eq(o.takes_address, strncmp(e->text, "lea", 3) == 0, "%s", e->text);
        cr_expect_eq(instruction_read(e->bytes, (uint64_t)e->length - 1, &o), -1, "%s: cut off", e->text);
    }
}

/* Whatever stands there is read or refused, and never beyond its end. */
Test(code_identity, any_bytes_are_read_or_refused) {
    uint64_t state = 7;
    size_t known = 0;
    for (int trial = 0; trial < 100000; trial++) {
        unsigned char bytes[16];
        const uint64_t n = nb_random_next(&state) % sizeof bytes;
        for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)nb_random_next(&state);
        struct nb_instruction o;
        if (instruction_read(bytes, n, &o) != 0) continue;
        known++;
        cr_assert(o.bytes >= 1 && (uint64_t)o.bytes <= n && o.bytes <= 15);
        cr_assert(o.distance >= 0 && (o.distance == 0 || o.distance + 4 <= o.bytes));
        cr_assert(o.operand_bytes >= 1 && o.operand_bytes <= NB_WIDEST_OPERAND);
    }
    cr_expect_geq(known, 30000);
}

#endif
