// SPDX-License-Identifier: Apache-2.0
/* The line behind a call's overhead: known lines come back, what is no line is said to be none, and ladders are told apart. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "src/record/call_overhead.c"

static struct nb_overhead_point point(double bytes, double ns, double half) {
    return (struct nb_overhead_point){bytes, {ns, ns - half, ns + half}};
}

Test(call_overhead, a_line_comes_back) {
    struct nb_overhead_point points[6];
    struct nb_overhead o;
    for (int i = 0; i < 6; i++) {
        const double bytes = 512.0 * (1 << i);
        points[i] = point(bytes, 640 + 0.0125 * bytes, 1);
    }
    points[2].ns.low = points[2].ns.high = NAN;
    overhead_fit(points, 6, &o);
    cr_assert_str_empty(o.reason);
    cr_assert_float_eq(o.ns.value, 640, 1e-6);
    cr_assert_float_eq(o.ns_per_byte, 0.0125, 1e-9);
    cr_assert(o.ns.low < 640 && o.ns.high > 640 && o.ns.high - o.ns.low < 20);
    cr_assert(o.worst_residual < 1e-9);
}

Test(call_overhead, what_is_no_line_is_unknown) {
    struct nb_overhead_point points[6];
    struct nb_overhead o;
    for (int i = 0; i < 6; i++) points[i] = point(512.0 * (1 << i), i < 3 ? 100 : 1000, 1);
    overhead_fit(points, 6, &o);
    cr_assert(isnan(o.ns.value));
    cr_assert_str_not_empty(o.reason);
    overhead_fit(points, 3, &o);
    cr_assert(isnan(o.ns.value), "three points lay no line that could be doubted");
    cr_assert_str_not_empty(o.reason);
}

Test(call_overhead, calls_of_no_bytes_have_their_median) {
    struct nb_overhead_point points[5];
    struct nb_overhead o;
    for (int i = 0; i < 5; i++) points[i] = point(0, 10 + i, 1);
    overhead_fit(points, 5, &o);
    cr_assert_eq(o.ns.value, 12);
    cr_assert_eq(o.ns.low, 10);
    cr_assert_eq(o.ns.high, 14);
}

/* A timed record of 1 << i rows. */
static void make_record(struct nb_record *r, const char *variant, int cols, int i, double ns) {
    char *key = nb_textf("%s/shape:%dx%d/data:normal/threads:1/cache:hot", variant, 1 << i, cols);
    *r = (struct nb_record){.key = key, .has_timing = true, .bytes = 8.0 * cols * (1 << i)};
    r->c.op = NB_OP_RMSNORM;
    r->c.cache = NB_HOT;
    r->c.shape = (struct nb_shape){.layout = NB_ROWS, .rows = 1 << i, .cols = cols};
    r->timing.time_ns = (struct nb_interval){ns, ns - 1, ns + 1};
}

Test(call_overhead, ladders_are_by_kernel_and_row_length) {
    struct nb_record records[13];
    struct nb_kernel_overhead *found;
    for (int i = 0; i < 5; i++) {
        make_record(&records[i], "a", 64, i, 200 + 10.0 * (1 << i));
        make_record(&records[5 + i], "peer:a", 64, i, 9000 + 10.0 * (1 << i));
    }
    for (int i = 0; i < 3; i++) make_record(&records[10 + i], "a", 128, i, 100); /* too short a ladder */
    cr_assert_eq(nb_overheads(records, 13, &found), 2);
    cr_assert_float_eq(found[0].overhead.ns.value, 200, 0.01);
    cr_assert_float_eq(found[1].overhead.ns.value, 9000, 0.01);
    cr_assert_eq(found[0].record, &records[0]);
    records[0].c.cache = NB_COLD;
    records[1].has_timing = false;
    free(found);
    cr_assert_eq(nb_overheads(records, 13, &found), 1, "3 rungs are left of the first");
    free(found);
    for (int i = 0; i < 13; i++) free(records[i].key);
}
