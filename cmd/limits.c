// SPDX-License-Identifier: Apache-2.0
/* normbench limits: where the arithmetic of one configuration ends, each figure tried on the spot. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "cmd/shared/run_plan.h"
#include "reports/lab/lab.h"
#include "reports/text/output.h"
#include "src/core/log.h"
#include "src/core/names.h"
#include "src/lab/limits/limits.h"
#include "src/measure/process.h"

static const char help[] =
    "usage: normbench limits --dtype NAME [OPTIONS]\n\n"
    "Report where the arithmetic of a norm breaks down for one configuration: from which |x| squares overflow, from which\n"
    "rms their sum does, what is left of eps, where sums stop growing, where cancellation leaves no digit. Every figure is\n"
    "computed from the formats and then tried on a generated row: at the threshold, and at the number next to it. What random\n"
    "rows lose in an arithmetic is what `normbench emulate` measures.\n\n"
    "  --dtype NAME         f32, tf32, f16, bf16, e5m2 or e4m3: everything is done in it, unless --design says otherwise\n"
    "  --n N                elements of a row (default 4096)\n"
    "  --eps EPS            default 1e-5\n"
    "  --op NAME            rmsnorm (default) or layernorm\n"
    "  --design TEXT        another arithmetic, such as llama or rmsnorm/store:bf16/acc:f32x16; `normbench emulate --help`\n"
    "  --gamma MAX          the largest |gamma|: does the output stay in range?\n"
    "  --filter TEXT        only lines whose name or group has TEXT in it\n"
    "  --format NAME        table (default), markdown or json\n" NB_COMMON_HELP "\n"
    "Example: normbench limits --dtype f16 --eps 1e-6\n"
    "Exit codes: 0 all lines hold, 1 a line does not hold, 2 usage.\n";

struct limits_options {
    const char *dtype, *eps, *op, *design, *filter, *format;
    int64_t n;
    double eps_value, gamma;
};

static bool parse(struct limits_options *o, int argc, char **argv, int *exit_code) {
    const struct nb_option options[] = {{"dtype", .text = &o->dtype},
                                        {"n", .large = &o->n, .least = 1, .most = 1 << 24},
                                        {"eps", .text = &o->eps, .number = &o->eps_value, .least = 0, .most = 1e6},
                                        {"op", .text = &o->op},
                                        {"design", .text = &o->design},
                                        {"gamma", .number = &o->gamma, .least = 0, .most = 1e300},
                                        {"filter", .text = &o->filter},
                                        {"format", .text = &o->format, .among = nb_table_markdown_json},
                                        {.name = NULL}};
    if (!nb_read_options(help, options, 0, argc, argv, exit_code)) return false;
    if (o->dtype && nb_number_parse(o->dtype) < 0)
        nb_error("--dtype %s: one of f32, tf32, f16, bf16, e5m2, e4m3", o->dtype);
    else if (!o->dtype && !o->design)
        nb_error("limits: --dtype NAME, or --design TEXT, says what is looked at");
    else
        return true;
    return false;
}

/* -1 after nb_error: an op, a rounding or a format that the rules do not speak of. */
static int limits_refuse(const struct nb_limits *l) {
    const struct nb_design *d = &l->design;
    if (d->op != NB_OP_RMSNORM && d->op != NB_OP_LAYERNORM)
        return nb_error("limits: the op is rmsnorm or layernorm; the others share their thresholds");
    if (d->rounding != NB_ROUND_NEAREST)
        return nb_error("limits: the thresholds are those of rounding to nearest; `normbench emulate` has the others");
    if (d->store == NB_NUM_F64) return nb_error("limits: f64 is what rows are computed with; take f32 or narrower");
    return 0;
}

/* An option overrides the design's text. */
static int configure(struct nb_limits *l, const struct limits_options *o) {
    const int op = o->op ? nb_name_find(nb_op_names, o->op) : (int)NB_OP_RMSNORM;
    if (op < 0) return nb_error("--op %s: rmsnorm or layernorm", o->op);
    nb_limits_init(l, (enum nb_op)op, o->dtype ? (enum nb_number)nb_number_parse(o->dtype) : NB_NUM_F32, o->n, 1e-5);
    if (o->design) {
        if (nb_design_parse(&l->design, o->design) != 0) return -1;
        if (o->op) l->design.op = (enum nb_op)op;
        if (o->dtype) l->design.store = (enum nb_number)nb_number_parse(o->dtype);
    }
    if (o->eps || !o->design) {
        l->design.eps = o->eps_value;
        snprintf(l->design.eps_text, sizeof l->design.eps_text, "%s", o->eps ? o->eps : "1e-5");
    }
    l->gamma_max = o->gamma;
    return limits_refuse(l);
}

static int report(const struct nb_limits *l, const struct limits_options *o) {
    struct nb_limit lines[64];
    size_t n = 0;
    bool all_hold = true;
    for (size_t i = 0; nb_limit_rule_at(i) && n < sizeof lines / sizeof lines[0] && !nb_interrupted(); i++) {
        const struct nb_limit_rule *rule = nb_limit_rule_at(i);
        if (o->filter && !strstr(rule->id, o->filter) && !strstr(rule->group, o->filter)) continue;
        nb_progress((double)i, 13, 0, rule->what);
        nb_limit_predict(rule, l, &lines[n]);
        nb_limit_verify(rule, l, &lines[n]);
        if (lines[n++].state == NB_LIMIT_BROKEN) all_hold = false;
    }
    nb_progress_end();
    if (n == 0 && nb_interrupted()) return nb_ended_by(nb_interrupted(), "limits", NULL);
    if (n == 0)
        return nb_error("limits: no line has '%s' in its name or group; without --filter all are shown", o->filter),
               NB_EXIT_USAGE;
    struct nb_strbuf text = {0};
    nb_limits_view(l, lines, n, o->format, &text);
    if ((strcmp(o->format, "table") == 0 ? nb_output_folded : nb_output)(&text, stdout) != 0) return NB_EXIT_FAILED;
    if (nb_interrupted()) return nb_ended_by(nb_interrupted(), "limits", NULL);
    return all_hold ? NB_EXIT_OK : NB_EXIT_FAILED;
}

static int limits_main(int argc, char **argv) {
    struct limits_options o = {.format = "table", .n = 4096, .eps_value = 1e-5, .gamma = NAN};
    struct nb_limits limits;
    int exit_code;
    if (!parse(&o, argc, argv, &exit_code)) return exit_code;
    if (configure(&limits, &o) != 0) return NB_EXIT_USAGE;
    nb_watch_interrupts();
    return report(&limits, &o);
}

const struct nb_command nb_command_limits = {"limits", "report where the arithmetic breaks down, tried on rows", help,
                                             limits_main};
