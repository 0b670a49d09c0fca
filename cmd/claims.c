// SPDX-License-Identifier: Apache-2.0
/* normbench claims: what papers and tutorials say of norms, measured here. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "cmd/shared/run_plan.h"
#include "reports/claims/claims_report.h"
#include "reports/run/report.h"
#include "reports/text/grid.h"
#include "src/claims/claims.h"
#include "src/claims/claims_document.h"
#include "src/claims/training.h"
#include "src/core/files.h"
#include "src/core/json.h"
#include "src/core/log.h"
#include "src/core/peers.h"
#include "src/core/registry.h"
#include "src/core/timer.h"
#include "src/measure/process.h"
#include "src/models/study.h"
#include "src/record/record.h"

static const char help[] =
    "usage: normbench claims [ID|GLOB|FILE.json ...] [OPTIONS]\n"
    "       normbench claims --model NAME|FILE.json [--tokens N] [OPTIONS]\n\n"
    "Test published statements about norms on this machine: claims of configs/claims/, and the inputs of public bug\n"
    "reports (bug-*). Each gets REPRODUCED, PARTLY, NOT REPRODUCED, FALSE IN PART, or why it is open here, with what was\n"
    "measured, the interval, the published figure, the reason, and which choice makes or breaks it. Without names: all.\n\n"
    "  --list               print the claims, what kind of experiment they are, and what they say; run nothing; with\n"
    "                       --format variants the kernels that they need, whether these are built or not\n"
    "  --explain ID         explain a claim: sources, readings, and what it expects of which figures; with the\n"
    "                       ID \"properties\", the property experiments that claims may use: parameters and defaults\n"
    "  --model FILE         say what RMSNorm would save in a step of your own model, here, fused and unfused (half a\n"
    "                       minute): a config.json as Hugging Face has it, a list of operations, or a name in configs/models/\n"
    "  --tokens N           of that step, of a config.json: 1 is generated (the default), more are a training step\n"
    "  --quick              fewer launches and smaller shapes: some 90 s\n"
    "  --launches N         worker processes for each group (default 24, with --quick 9; of training 8, and 6 seeds,\n"
    "                       or what a claim needs)\n"
    "  --train-budget S     seconds for what PyTorch is asked; what does not fit is left out and named (default 5400;\n"
    "                       with --quick 0); models train on the bytes of $NORMBENCH_TEXT, else on a licence that\n"
    "                       every Debian has\n"
    "  --device NAME        where PyTorch's models run: cpu (the default), cuda\n"
    "  --plugin FILE        add the kernels of a .so, .py or program; bug reports are then tested on them alone; repeatable\n" NB_LOAD_TIMEOUT_HELP
    "  --max-width WIDTH    hide wider kernels: scalar, 128, 256, 256x, 512\n"
    "  --case-timeout S     end a case that makes no progress for so long (default 20), and PyTorch after six times that\n"
    "  --out DIR            the folder (default results/TIME-claims): claims.json, claims.md, claims.html, and the\n"
    "                       runs behind them in timing/, accuracy/, rates/ and training/\n"
    "  --resume DIR         resume where a run was cut off; takes no option that would change the plan\n"
    "  --format NAME        on stdout: table (the default), markdown, json\n"
    "  --no-plots           make no pictures\n"
    "  --strict             exit with 1 when a claim is NOT REPRODUCED\n" NB_TUNING_HELP NB_COMMON_HELP "\n"
    "Examples: normbench claims form-keepdim --quick; normbench claims --model llama-3-8b --tokens 4096\n"
    "Exit codes: 0 whatever the verdicts, 1 with --strict, 2 usage or configuration,\n"
    "5 --resume on another CPU, 128+n ended by signal n.\n";

struct claims_options {
    struct nb_plan_request request;
    struct nb_strings patterns;
    struct nb_output_options output;
    const char *explain, *model;
    int tokens; /* of the model; 0: its own */
    bool quick, strict;
    const char *device;    /* for PyTorch: "cpu", "cuda" */
    double train_budget_s; /* NaN: the usual one */
    int argc;
    char **argv; /* as given, or of the run that is resumed */
};
static const struct claims_options usual = {
    .request = NB_PLAN_REQUEST_INIT, .output.case_timeout_s = 20, .device = "cpu", .train_budget_s = NAN};

static bool wants_variants(const struct claims_options *o) {
    return o->output.format && strcmp(o->output.format, "variants") == 0;
}

static bool parse(struct claims_options *o, int argc, char **argv, int *exit_code) {
    struct nb_plan_request *q = &o->request;
    static const char *const formats[] = {"table", "markdown", "json", "variants", NULL};
    static const char *const devices[] = {"cpu", "cuda", NULL};
    const struct nb_option options[] = {
        NB_OUTPUT_OPTIONS(&o->output),
        {"format", .text = &o->output.format, .among = formats},
        {"explain", .text = &o->explain},
        {"model", .text = &o->model, .given = &q->changed},
        {"tokens", .count = &o->tokens, .least = 1, .most = 100000000, .given = &q->changed},
        {"quick", .flag = &o->quick, .given = &q->changed},
        {"strict", .flag = &o->strict},
        {"device", .text = &o->device, .among = devices, .given = &q->changed},
        {"train-budget", .number = &o->train_budget_s, .least = 0, .most = 1e7, .given = &q->changed},
        {"plugin", .texts = &q->plugins, .given = &q->changed},
        NB_LOAD_TIMEOUT_OPTION,
        NB_MAX_WIDTH_OPTION(q),
        NB_LAUNCHES_OPTION(q),
        NB_TUNING_OPTION,
        {.name = NULL}};
    o->argc = argc;
    o->argv = argv;
    if (!nb_read_options(help, options, NB_ANY_ARGUMENTS, argc, argv, exit_code)) return false;
    for (; optind < argc; optind++) nb_strings_add(&o->patterns, argv[optind]);
    if (q->launches == 0)
        nb_error("--launches 0: a claim about time needs launches");
    else if (wants_variants(o) && !o->output.list)
        nb_error("--format variants: with --list alone");
    else if (o->model && (o->patterns.n || o->output.list || o->explain || o->quick || o->strict))
        nb_error(
            "--model %s is a question of its own: leave out names of claims, --list, --explain, --quick and --strict",
            o->model);
    else if (o->tokens > 0 && !o->model)
        nb_error("--tokens %d: of which model? Name it with --model", o->tokens);
    else
        return true;
    return false;
}

/* The launches asked for, or the usual number. */
static int launches_of(const struct claims_options *o, int usually) {
    return o->request.launches == NB_AS_CONFIGURED ? usually : o->request.launches;
}

/* Without a plan. */
static struct nb_measuring measuring_of(const struct claims_options *o) {
    struct nb_measuring m = nb_measuring_of(&o->request, &o->output, o->argc, o->argv);
    m.config = o->model ? "model" : "claims";
    m.no_counters = true;
    return m;
}

/* ---- --list, --explain --------------------------------------------------------------------------------------------- */

static void print_list(const struct nb_claims *claims, const char *format) {
    struct nb_grid grid released_by(nb_grid_release) = nb_grid_of("claim", "kind", "statement");
    grid.ranks = (const int[]){NB_GRID_STAYS, 1, NB_GRID_STAYS};
    for (size_t i = 0; i < claims->n; i++) {
        const struct nb_claim *c = &claims->items[i];
        struct nb_strbuf kinds released_by(nb_strbuf_release) = {0};
        nb_strbuf_add(&kinds, c->n_experiments ? "" : "fact");
        for (size_t j = 0; j < c->n_experiments; j++)
            if (!kinds.len || !strstr(kinds.text, c->experiments[j].kind->name))
                nb_strbuf_addf(&kinds, "%s%s", kinds.len ? ", " : "", c->experiments[j].kind->name);
        nb_grid_row(&grid, c->id, kinds.text, c->title);
    }
    nb_grid_print(&grid, format, stdout);
}

static int explain(const char *id) {
    struct nb_claims claims released_by(nb_claims_release) = {0};
    struct nb_strbuf text released_by(nb_strbuf_release) = {0};
    if (strcmp(id, "properties") == 0)
        nb_properties_explain(&text);
    else if (nb_claims_read(&claims, &id, 1) != 0)
        return NB_EXIT_USAGE;
    for (size_t i = 0; i < claims.n; i++) {
        if (i) nb_strbuf_add(&text, "\n");
        nb_claim_explain(&claims.items[i], &text);
    }
    fputs(text.text, stdout);
    return NB_EXIT_OK;
}

/* ---- what PyTorch is asked, in DIR/training/ --------------------------------------------------------------------------- */

struct measured {                  /* what each plan left */
    struct nb_claims_measured all; /* what of the rest is there */
    struct nb_results results[NB_N_CLAIMS_PLANS];
    struct nb_sample_table samples;
    struct nb_rates rates;
    struct nb_torch torch;
    struct nb_torch_results training;
    const char *no_eager; /* why PyTorch was not timed */
    int ended;            /* as nb_measuring_run() */
};

/* PyTorch says that it is alive every 5 s; its import takes longer than a case may. */
enum { USUAL_BUDGET_S = 5400, SILENT_CASES = 6 };

static void plan(const struct nb_claims *claims, const char *device, struct nb_torch_plan *p) {
    for (size_t i = 0; i < claims->n; i++)
        for (size_t j = 0; j < claims->items[i].n_experiments; j++) {
            const struct nb_experiment *e = &claims->items[i].experiments[j];
            if (e->kind->torch && !e->kind->refuses(e)) e->kind->torch(e, p, device);
        }
}

/* 0, -1 after nb_error, or the number of the signal that ended it. */
static int ask(const struct claims_options *o, const struct nb_torch_plan *p, const struct nb_torch *torch,
               const char *dir, struct nb_torch_results *out) {
    struct nb_journal journal = {0};
    char *folder freed = nb_path_join(dir, NB_CLAIMS_TRAINING_FOLDER);
    const int launches = launches_of(o, NB_TORCH_LAUNCHES), seeds = launches_of(o, NB_TORCH_SEEDS);
    const struct nb_torch_study study = {.plan = p,
                                         .torch = torch,
                                         .dir = folder,
                                         .journal = &journal,
                                         .device = o->device,
                                         .budget_s = isnan(o->train_budget_s) ? USUAL_BUDGET_S : o->train_budget_s,
                                         .launch_s = nb_torch_launch_s(o->device),
                                         .silence_s = SILENT_CASES * o->output.case_timeout_s,
                                         .rounds = {[NB_TORCH_STEPS] = launches,
                                                    [NB_TORCH_INFERENCE] = launches,
                                                    [NB_TORCH_MEMORY] = seeds,
                                                    [NB_TORCH_COURSE] = seeds}};
    nb_note("PyTorch %s, %s (%s)", torch->version,
            torch->gpu && strcmp(o->device, "cuda") == 0 ? torch->gpu : "on the CPU", torch->python);
    const struct nb_measuring m = measuring_of(o);
    int result = nb_measuring_begin(&m, dir, NB_CLAIMS_TRAINING_FOLDER, &journal);
    if (result == 0) result = nb_torch_study_run(&study, out);
    nb_journal_close(&journal);
    return result;
}

/* Asks PyTorch what the claims need, if it is there: it is looked for once. As ask() returns. */
static int claims_train(const struct claims_options *o, const struct nb_claims *claims, const char *dir,
                        struct measured *m) {
    struct nb_torch_plan p released_by(nb_torch_plan_release) = {0};
    int result = 0;
    plan(claims, o->quick && isnan(o->train_budget_s) ? NULL : o->device, &p);
    if (o->request.launches != NB_AS_CONFIGURED) nb_torch_plan_usual_seeds(&p); /* the user's number counts */
    if (o->train_budget_s <= 0)
        m->all.no_training = "PyTorch, which --train-budget 0 leaves out";
    else if (p.n > 0)
        nb_torch_find(&m->torch, o->device);
    if (m->torch.lacks) {
        m->all.no_training = m->torch.lacks;
        nb_warn("claims about training are left out: needed: %s", m->torch.lacks);
    } else if (m->torch.python) {
        m->all.training = &m->training;
        result = ask(o, &p, &m->torch, dir, &m->training);
    }
    return result;
}

/* ---- what this machine takes for the operations of steps, in DIR/rates/ ---- */

/* 0, -1 after nb_error, or the number of the signal that ended it. */
static int claims_rates(const struct claims_options *o, const struct nb_claims *claims, const char *dir,
                        struct nb_rates *rates) {
    struct nb_journal journal = {0};
    for (size_t i = 0; i < claims->n; i++)
        for (size_t j = 0; j < claims->items[i].n_experiments; j++) {
            const struct nb_experiment *e = &claims->items[i].experiments[j];
            if (e->kind->rates) e->kind->rates(e, rates);
        }
    if (rates->n == 0) return 0;
    char *folder freed = nb_path_join(dir, NB_CLAIMS_RATES_FOLDER);
    const struct nb_measuring m = measuring_of(o);
    int result = nb_measuring_begin(&m, dir, NB_CLAIMS_RATES_FOLDER, &journal);
    if (result == 0) result = nb_rates_measure(rates, folder, &journal, launches_of(o, NB_MIN_LAUNCHES));
    nb_journal_close(&journal);
    return result;
}

/* ---- all of a run ---- */

static void measured_release(struct measured *m) {
    for (int i = 0; i < NB_N_CLAIMS_PLANS; i++) nb_results_release(&m->results[i]);
    nb_sample_table_release(&m->samples);
    nb_rates_release(&m->rates);
    nb_torch_results_release(&m->training);
    nb_torch_release(&m->torch);
}

/* One plan into its own folder below DIR. */
static int run_plan(const struct claims_options *o, struct nb_config *config, const char *dir, int which,
                    struct measured *m) {
    const struct nb_measuring all = measuring_of(o);
    struct nb_plan plan released_by(nb_plan_release) = {0};
    char *folder freed = nb_path_join(dir, nb_claims_plan_names[which]);
    int result = nb_plan_make(&plan, config, &o->request.options);
    if (result == 0 && plan.n_cases > 0) {
        bool began;
        m->ended = nb_measuring_beside(&all, &plan, config->name, dir, nb_claims_plan_names[which], &began);
        const bool there = began && nb_results_fold(&m->results[which], folder) == 0 &&
                           (which != NB_PLAN_TIMING || nb_sample_table_read(&m->samples, folder) == 0);
        if (there) m->all.results[which] = &m->results[which];
        if (there && which == NB_PLAN_TIMING) m->all.samples = &m->samples;
        result = there && m->ended >= 0 ? nb_results_write(&m->results[which], folder) : -1;
        if (result == 0 && !o->output.no_plots) result = nb_html_write(&m->results[which], folder);
    }
    return result;
}

/* ---- what an operation costs PyTorch here: its RMSNorm runs one operator after another, and on a row of 16 numbers their work is next to nothing.
 * Last of all, since its library stays in every process that is begun behind it ---- */

static const char eager_config[] = "{ \"blocks\": [ { \"op\": \"rmsnorm\", \"backend\": \"peer:pytorch\", \"dtype\": "
                                   "\"f32\", \"shape\": \"1x16\", \"affine\": \"gamma\" } ], \"launches\": 6 }";

/* Null, or why PyTorch is not there. */
static const char *load_pytorch(struct nb_strings *plugins) {
    char *adapter freed = nb_peer_adapter("pytorch");
    if (!nb_path_exists(adapter)) return "its adapter is not built (normbench peers pytorch)";
    char *spec freed = nb_peer_spec("pytorch", NULL);
    if (!spec || nb_registry_describe(spec) != 0) return "it does not start here (stderr says why)";
    nb_strings_add(plugins, spec);
    return NULL;
}

static int run_eager(struct claims_options *o, const char *dir, struct measured *m) {
    struct nb_config config released_by(nb_config_release) = {0};
    m->no_eager = load_pytorch(&o->request.plugins);
    if (m->no_eager) return 0;
    m->no_eager = "its RMSNorm was not timed (eager/ says why)";
    if (nb_config_parse(&config, nb_claims_plan_names[NB_PLAN_EAGER], eager_config, sizeof eager_config - 1) != 0)
        return -1;
    return run_plan(o, &config, dir, NB_PLAN_EAGER, m);
}

static struct nb_interval eager_us(const struct measured *m) {
    enum { OPERATORS = 6 }; /* power, mean, addition of eps, root, two products */
    const struct nb_results *r = m->all.results[NB_PLAN_EAGER];
    for (size_t i = 0; r && i < r->n; i++) {
        if (r->records[i].c.is_peer && r->records[i].has_timing)
            return nb_interval_times(r->records[i].timing.time_ns, 1e-3 / OPERATORS);
    }
    return NB_NO_INTERVAL;
}

/* ---- everything that is measured ---- */

/* -1 after nb_error: something could not be measured or kept; what could be is there. */
static int measure(struct claims_options *o, struct nb_claims *claims, const char *dir, struct measured *m) {
    struct nb_config configs[NB_N_CLAIMS_PLANS];
    const struct nb_claims_effort effort = {.quick = o->quick, .launches = launches_of(o, 0)};
    int result = 0;
    nb_claims_configs(claims, &effort, configs);
    if (o->request.plugins.n > 0) nb_claims_bugs_on_plugins(&configs[NB_PLAN_ACCURACY]);
    for (int i = 0; i < NB_N_CLAIMS_PLANS; i++) {
        if (result == 0 && m->ended == 0 && configs[i].n_blocks > 0) result = run_plan(o, &configs[i], dir, i, m);
        nb_config_release(&configs[i]);
    }
    if (result != 0 || m->ended != 0) {
        m->all.no_training = "PyTorch, before which the run was ended";
        return result;
    }
    m->ended = claims_rates(o, claims, dir, &m->rates);
    if (m->rates.n > 0) m->all.rates = &m->rates;
    if (m->ended == 0) m->ended = claims_train(o, claims, dir, m);
    if (m->ended == 0 && m->rates.n > 0) result = run_eager(o, dir, m);
    return m->ended < 0 ? -1 : result;
}

/* Experiments in this process are few seconds in all; each is named as it goes. */
static struct nb_claim_result *judge(const struct nb_claims *claims, const struct nb_claims_measured *measured) {
    struct nb_claim_result *results = nb_alloc(claims->n + 1, sizeof *results);
    for (size_t i = 0; i < claims->n; i++) {
        nb_progress((double)i, (double)claims->n, 0, claims->items[i].id);
        nb_claim_try(&results[i], &claims->items[i], measured);
    }
    nb_progress_end();
    return results;
}

/* DIR/readings.json: what RMSNorm saves of PyTorch's models here, where steps were timed. */
static int write_readings(const cJSON *document, const char *dir) {
    const cJSON *cpu = nb_json_get(nb_json_get(document, "fingerprint"), "cpu");
    char date[16];
    nb_utc_now("%Y-%m-%d", date, sizeof date);
    cJSON *readings released_by(nb_json_release) =
        nb_training_readings(nb_json_get(document, "training"), nb_json_get_string(cpu, "model"), date);
    char *path freed = nb_path_join(dir, "readings.json");
    return readings ? nb_json_write(readings, path) : 0;
}

static int report(const struct claims_options *o, const struct nb_claim_result *results, size_t n,
                  const struct measured *m, bool is_complete, const char *dir, double elapsed_s) {
    char started[32];
    nb_utc_now("%Y-%m-%dT%H:%M:%SZ", started, sizeof started);
    struct nb_claims_about about = {.started = started,
                                    .argc = o->argc,
                                    .argv = o->argv,
                                    .quick = o->quick,
                                    .complete = is_complete,
                                    .elapsed_s = elapsed_s,
                                    .measured = &m->all,
                                    .eager_us = eager_us(m),
                                    .no_eager = m->no_eager};
    for (int i = 0; i < NB_N_CLAIMS_PLANS; i++) about.folders[i] = m->all.results[i] ? nb_claims_plan_names[i] : NULL;
    cJSON *document released_by(nb_json_release) = nb_claims_document(results, n, &about);
    int result = nb_claims_print(document, o->output.format ? o->output.format : "table", stdout);
    fflush(stdout);
    if (nb_claims_document_write(document, dir) != 0 || write_readings(document, dir) != 0 ||
        nb_claims_pages(dir, document, !o->output.no_plots) != 0)
        result = -1;
    else
        nb_note("verdicts: %s/" NB_CLAIMS_FILE "; page: %s/" NB_CLAIMS_PAGE, dir, dir);
    return result;
}

/* Tries the claims, whose blocks move to the plans, into dir. Returns the exit code. */
static int try_claims(struct claims_options *o, struct nb_claims *claims, const char *dir) {
    struct measured m released_by(measured_release) = {0};
    const double started = nb_now_s();
    size_t n_denied = 0;
    nb_watch_interrupts(); /* experiments with a known answer run in the guard, behind all that watches */
    bool is_whole = measure(o, claims, dir, &m) == 0, any = is_whole;
    for (int i = 0; i < NB_N_CLAIMS_PLANS; i++) any |= m.all.results[i] != NULL;
    if (!any) return NB_EXIT_USAGE;
    struct nb_claim_result *results freed = judge(claims, &m.all);
    if (m.ended == 0) m.ended = nb_interrupted();
    for (size_t i = 0; i < claims->n; i++)
        n_denied += results[i].verdict == NB_NOT_REPRODUCED && !nb_claim_is_bug(results[i].claim->id);
    is_whole &= report(o, results, claims->n, &m, is_whole && m.ended == 0, dir, nb_now_s() - started) == 0;
    for (size_t i = 0; i < claims->n; i++) nb_claim_result_release(&results[i]);
    return m.ended > 0                 ? nb_ended_by(m.ended, "claims", dir)
           : o->strict && n_denied > 0 ? NB_EXIT_FAILED
           : is_whole                  ? NB_EXIT_OK
                                       : NB_EXIT_USAGE;
}

/* ---- the command ------------------------------------------------------------------------------------------------------ */

/* A folder that holds a run already would be written over. */
static int folder_of(const struct claims_options *o, char **dir) {
    const struct nb_measuring where = measuring_of(o);
    *dir = nb_measuring_folder(&where);
    if (!*dir) return -1;
    const bool taken = !o->output.resume && nb_dir_holds(*dir, NB_CLAIMS_FILE);
    return taken ? nb_error("--out %s holds claims already; name another folder, or --resume it", *dir) : 0;
}

static void release(struct claims_options *o) {
    nb_strings_release(&o->patterns);
    nb_plan_request_release(&o->request);
}

/* The claims and options of the run that is resumed, from the first journal that there is; what this command line says besides counts more. */
static bool take_resumed(struct claims_options *o, struct nb_strings *saved, int argc, char **argv, int *exit_code) {
    const char *dir = o->output.resume;
    bool taken = false;
    if (o->request.changed || o->output.out || o->output.list || o->explain || o->patterns.n)
        return nb_error("--resume %s continues that run: leave out names, --out and options of the plan", dir), false;
    for (int i = 0; i <= NB_N_CLAIMS_PLANS && !taken; i++) {
        char *folder freed =
            nb_path_join(dir, i < NB_N_CLAIMS_PLANS ? nb_claims_plan_names[i] : NB_CLAIMS_TRAINING_FOLDER);
        const bool there = nb_dir_holds(folder, NB_JOURNAL_FILE);
        if (there) taken = nb_journaled_argv_read(saved, folder, "claims", &o->output, &o->request, exit_code);
        if (there && !taken) return false;
    }
    if (!taken) return nb_error("--resume %s: no run of claims began there", dir), false;
    release(o);
    *o = usual;
    if (!parse(o, (int)saved->n, saved->items, exit_code) || !parse(o, argc, argv, exit_code)) return false;
    o->argc = (int)saved->n;
    o->argv = saved->items;
    return true;
}

/* --list --format variants: before anything is built. */
static void print_variants(struct nb_claims *claims, bool quick) {
    struct nb_config configs[NB_N_CLAIMS_PLANS] = {0};
    nb_claims_configs(claims, &(struct nb_claims_effort){.quick = quick}, configs);
    for (int i = 0; i < NB_N_CLAIMS_PLANS; i++) {
        nb_config_print_variants(&configs[i], stdout);
        nb_config_release(&configs[i]);
    }
}

static int claims_main(int argc, char **argv) {
    struct claims_options o released_by(release) = usual;
    struct nb_strings saved released_by(nb_strings_release) = {0};
    struct nb_claims claims released_by(nb_claims_release) = {0};
    char *dir freed = NULL;
    int exit_code;
    if (!parse(&o, argc, argv, &exit_code)) return exit_code;
    if (o.output.resume && !take_resumed(&o, &saved, argc, argv, &exit_code)) return exit_code;
    if (!wants_variants(&o) && nb_load_kernels(&o.request.plugins, o.request.max_width) != 0) return NB_EXIT_USAGE;
    if (o.explain) return explain(o.explain);
    const struct nb_measuring measuring = measuring_of(&o);
    if (o.model) return nb_model_question_run(&measuring, o.model, o.tokens, o.output.format);
    if (nb_claims_read(&claims, (const char *const *)o.patterns.items, o.patterns.n) != 0) return NB_EXIT_USAGE;
    if (wants_variants(&o))
        print_variants(&claims, o.quick);
    else if (o.output.list)
        print_list(&claims, o.output.format ? o.output.format : "table");
    else
        return folder_of(&o, &dir) == 0 ? try_claims(&o, &claims, dir) : NB_EXIT_USAGE;
    return NB_EXIT_OK;
}

const struct nb_command nb_command_claims = {"claims", "test what papers and tutorials say", help, claims_main};
