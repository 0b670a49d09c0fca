// SPDX-License-Identifier: Apache-2.0
/* A tolerance as a program that runs as it stands: rows, the reference in f64, a kernel to be replaced, what compares (rtol and atol, the
 * mean error, and, where two orders of cast and weight are in use, which of them it is nearer to). */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "reports/lab/lab.h"

/* {name} in a template. */
struct token {
    const char *name;
    char *text; /* owned */
};

static void add_template(struct nb_strbuf *out, const char *template, const struct token *tokens) {
    for (const char *p = template; *p; p++) {
        const struct token *t = tokens;
        while (t->name && (*p != '{' || strncmp(p + 1, t->name, strlen(t->name)) != 0 || p[1 + strlen(t->name)] != '}'))
            t++;
        if (t->name) {
            nb_strbuf_add(out, t->text);
            p += strlen(t->name) + 1;
        } else {
            nb_strbuf_addn(out, p, 1);
        }
    }
}

/* {} around a name alone, so that braces of the languages stay. */
static const char python[] = "# {title}\n"
                             "# {derived}\n"
                             "{import}\n"
                             "rows, cols, eps, rtol, atol = {rows}, {cols}, {eps}, {rtol}, {atol}\n\n\n"
                             "{stored}\n\n\n"
                             "def normalized(x):\n"
                             "{centre}    v = ({seen} ** 2).{mean}(axis=-1, keepdims=True)\n"
                             "    return x / {root}\n\n\n"
                             "def kernel(x, w, b):\n"
                             "    \"\"\"Yours in the place of this one.\"\"\"\n"
                             "    return stored({mine} + {f32}(b))\n\n\n"
                             "def test_norm():\n"
                             "{draw}\n"
                             "    exact = normalized(wide(x)) * wide(w) + wide(b)\n"
                             "    got, want = wide(kernel(x, w, b)), {want}\n"
                             "    {compare}\n";
static const char python_bias[] = "    # a bias common to all errors (a truncating store) is far below any rtol\n"
                                  "    large = abs(want) > (want**2).mean(axis=-1, keepdims=True) ** 0.5 / 4\n"
                                  "    bias = float(((abs(got) - abs(want)) / abs(want))[large].mean())\n"
                                  "    assert abs(bias) <= {bias}, f\"mean relative error {bias:.3g}\"\n";
static const char python_orders[] =
    "    # two orders are in use: rounded after the weight, or before it and again after it\n"
    "    after = wide(stored(exact))\n"
    "    before = wide(stored(wide(stored(normalized(wide(x)))) * wide(stored(w)) + wide(b)))\n"
    "    nearer = float(((got - {order}) ** 2).sum()) <= float(((got - {other}) ** 2).sum())\n"
    "    assert nearer, \"closer to a cast {other} the weight than to one {order} it\"\n";
static const char python_end[] = "\n\nif __name__ == \"__main__\":\n    test_norm()\n"; /* without pytest */

static const char c_program[] =
    "// {title}\n"
    "// {derived}\n"
    "#include <math.h>\n"
    "#include <stdio.h>\n"
    "#include <stdlib.h>\n\n"
    "enum { ROWS = {rows}, COLS = {cols}, SEEN = {k} };\n"
    "static const double eps = {eps}, relative = {rtol}, absolute = {atol};\n\n"
    "/* To {name}: {bits} bits. */\n"
    "static double stored(double v) {\n"
    "    int e;\n"
    "    frexp(v, &e);\n"
    "    if (e < {emin}) e = {emin};\n"
    "    return ldexp(rint(ldexp(v, {bits} - e)), e - {bits});\n"
    "}\n\n"
    "static void normalize(const double *x, double *z) {\n"
    "    double mean = 0, v = 0;\n"
    "{centre}"
    "    for (int i = 0; i < SEEN; i++) v += (x[i] - mean) * (x[i] - mean);\n"
    "{divide}"
    "    for (int i = 0; i < COLS; i++) z[i] = (x[i] - mean) / ({root});\n"
    "}\n\n"
    "/* Yours in the place of this one. */\n"
    "static void kernel(const double *x, const double *w, const double *b, double *y) {\n"
    "    normalize(x, y);\n"
    "    for (int i = 0; i < COLS; i++) y[i] = stored({mine} + b[i]);\n"
    "}\n\n"
    "/* 0: passes, 1: an element is beyond the tolerance, 2: the errors are biased. */\n"
    "static int norm_output_differs(const double *got, const double *want, size_t rows, size_t cols) {\n"
    "    for (size_t i = 0; i < rows * cols; i++)\n"
    "        if (!(fabs(got[i] - want[i]) <= absolute + relative * fabs(want[i]))) return 1;\n"
    "{bias_test}"
    "    return 0;\n}\n\n"
    "static double uniform(void) { return (rand() + 0.5) / (RAND_MAX + 1.0); }\n"
    "static double normal(void) { return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()); }\n\n"
    "int main(void) {\n"
    "    static double x[ROWS * COLS], got[ROWS * COLS], want[ROWS * COLS], w[COLS], b[COLS], z[COLS];\n"
    "    double to_after = 0, to_before = 0;\n"
    "    srand({seed});\n"
    "    for (int i = 0; i < ROWS * COLS; i++) x[i] = stored(normal()); // rows as yours: the limits hold for {data}\n"
    "    for (int i = 0; i < COLS; i++) {\n"
    "        w[i] = {keep}({weight});\n"
    "        b[i] = {keep}({beta});\n"
    "    }\n"
    "    for (int r = 0; r < ROWS; r++) {\n"
    "        kernel(x + r * COLS, w, b, got + r * COLS);\n"
    "        normalize(x + r * COLS, z);\n"
    "        for (int i = 0; i < COLS; i++) {\n"
    "            const double exact = z[i] * w[i] + b[i], before = stored(stored(z[i]) * stored(w[i]) + b[i]);\n"
    "            want[r * COLS + i] = {want};\n"
    "            to_after += pow(got[r * COLS + i] - stored(exact), 2);\n"
    "            to_before += pow(got[r * COLS + i] - before, 2);\n"
    "        }\n"
    "    }\n"
    "    const int differs = norm_output_differs(got, want, ROWS, COLS);\n"
    "    const int nearer_other = {nearer};\n"
    "    printf(\"%s\\n\", differs == 1     ? \"an element is beyond the tolerance\"\n"
    "                   : differs == 2   ? \"the errors are biased\"\n"
    "                   : nearer_other   ? \"closer to a cast {other} the weight than to one {order} it\"\n"
    "                                    : \"passes\");\n"
    "    return differs ? differs : nearer_other ? 3 : 0;\n"
    "}\n";
static const char c_bias[] = "    double sum = 0, count = 0;\n"
                             "    for (size_t row = 0; row < rows; row++) {\n"
                             "        const double *g = got + row * cols, *u = want + row * cols;\n"
                             "        double squares = 0;\n"
                             "        for (size_t i = 0; i < cols; i++) squares += u[i] * u[i];\n"
                             "        const double least = sqrt(squares / (double)cols) / 4;\n"
                             "        for (size_t i = 0; i < cols; i++) {\n"
                             "            if (!(fabs(u[i]) > least)) continue;\n"
                             "            sum += (fabs(g[i]) - fabs(u[i])) / fabs(u[i]);\n"
                             "            count++;\n"
                             "        }\n"
                             "    }\n"
                             "    if (count > 0 && fabs(sum / count) > {bias}) return 2;\n";

/* What differs between the Python libraries. */
static const struct library {
    const char *name, *import, *f32, *compare, *draw, *stored[3]; /* by dtype: f32, f16, bf16 */
} libraries[] = {
    {"torch",
     "import torch\n",
     "torch.Tensor.float",
     "torch.testing.assert_close(got, want, rtol=rtol, atol=atol)",
     "    torch.manual_seed({seed})\n"
     "    x = stored(torch.randn(rows, cols))  # rows as yours: the limits hold for {data}\n"
     "    w, b = {keep}({weight} * torch.ones(cols)), {keep}({beta} * torch.ones(cols))",
     {"def wide(y):\n    return y.double()\n\n\ndef stored(y):\n    return y.to(torch.float32)",
      "def wide(y):\n    return y.double()\n\n\ndef stored(y):\n    return y.to(torch.float16)",
      "def wide(y):\n    return y.double()\n\n\ndef stored(y):\n    return y.to(torch.bfloat16)"}},
    {"numpy",
     "import numpy as np\n",
     "np.float32",
     "np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)",
     "    rng = np.random.default_rng({seed})\n"
     "    x = stored(rng.standard_normal((rows, cols)))  # rows as yours: the limits hold for {data}\n"
     "    w, b = {keep}({weight} * np.ones(cols, np.float32)), {keep}({beta} * np.ones(cols, np.float32))",
     {"def wide(y):\n    return np.asarray(y, np.float64)\n\n\ndef stored(y):\n    return np.asarray(y, np.float32)",
      "def wide(y):\n    return np.asarray(y, np.float64)\n\n\ndef stored(y):\n    return np.asarray(y, np.float16)",
      "def wide(y):\n    return np.asarray(y, np.float64)\n\n\ndef stored(y):  # bf16, in f32\n"
      "    bits = np.asarray(y, np.float32).view(np.uint32)\n"
      "    return ((bits + 0x7FFF + (bits >> 16 & 1)) & np.uint32(0xFFFF0000)).astype(np.uint32).view(np.float32)"}},
};

/* How gamma and beta are drawn. */
enum language { TORCH, NUMPY, C };
static const char *const draws[][3] = {
    {"1", "(1 + 0.3 * torch.randn(cols))", "0.1 * torch.randn(cols)"},
    {"1", "(1 + 0.3 * rng.standard_normal(cols).astype(np.float32))",
     "0.1 * rng.standard_normal(cols).astype(np.float32)"},
    {"1", "1 + 0.3 * normal()", "0.1 * normal()"},
};
static const char *root_of(const struct nb_design *d, bool is_c) {
    static const char *const of_c[] = {"sqrt(v + eps)", "sqrt(v) + eps", "fmax(sqrt(v), eps)"};
    static const char *const of_python[] = {"(v + eps) ** 0.5", "(v**0.5 + eps)", "(v**0.5).clip(min=eps)"};
    return (is_c ? of_c : of_python)[d->eps_place];
}

/* Of correct kernels, by the derived tolerance. */
static char *record_of(const struct nb_tolerance *t) {
    int64_t seen = 0, n = 0;
    for (int s = 0; s < t->n_subjects; s++) {
        if (t->subjects[s].under_test) continue;
        seen += t->subjects[s].alarms[NB_DERIVED].seen;
        n += t->subjects[s].alarms[NB_DERIVED].n;
    }
    return nb_textf("Derived from the rounding-error bound: correct kernels failed in %lld of %lld tests.",
                    (long long)seen, (long long)n);
}

enum { MOST_TOKENS = 40 };
struct program {
    struct token tokens[MOST_TOKENS + 1];
    int n_tokens;
};

/* Takes the text over. */
static void define_text(struct program *p, const char *name, char *text) {
    assert(p->n_tokens < MOST_TOKENS);
    p->tokens[p->n_tokens++] = (struct token){name, text};
}
/* From a template of what is defined so far. */
static void define(struct program *p, const char *name, const char *template) {
    struct nb_strbuf text = nb_strbuf_empty();
    add_template(&text, template, p->tokens);
    define_text(p, name, text.text);
}

static void define_numbers(struct program *p, const struct nb_tolerance *t, const struct nb_tolerance_request *q) {
    const struct nb_design *d = &q->design;
    define_text(p, "derived", record_of(t));
    define_text(p, "rows", nb_textf("%lld", (long long)t->rows));
    define_text(p, "cols", nb_textf("%lld", (long long)q->cols));
    define_text(p, "k", nb_textf("%lld", (long long)nb_design_elements(d, q->cols)));
    define_text(p, "rtol", nb_textf("%.3g", t->criteria[NB_DERIVED].rtol));
    define_text(p, "atol", nb_textf("%.3g", t->criteria[NB_DERIVED].atol));
    define_text(p, "bias", nb_textf("%.3g", t->criteria[NB_MEAN_ERROR_TEST].limit));
    define_text(p, "seed", nb_textf("%llu", (unsigned long long)q->seed));
    define_text(p, "bits", nb_textf("%d", nb_numbers[d->store].precision));
    define_text(p, "emin", nb_textf("%d", nb_numbers[d->store].emin + 1));
    define_text(p, "eps", nb_strdup(d->eps_text));
    define_text(p, "data", nb_strdup(q->data));
    define(p, "name", nb_numbers[d->store].name);
}

static void define_formula(struct program *p, const struct nb_tolerance_request *q, enum language language) {
    const struct nb_design *d = &q->design;
    const bool is_c = language == C, before = d->cast == NB_CAST_BEFORE, sums = d->op == NB_OP_L2NORM;
    const bool gamma = q->affine != NB_AFFINE_NONE, beta = q->affine == NB_AFFINE_GAMMA_BETA;
    const char *centre = is_c ? "    for (int i = 0; i < COLS; i++) mean += x[i] / COLS;\n"
                              : "    x = x - x.mean(axis=-1, keepdims=True)\n";
    define(p, "centre", d->op == NB_OP_LAYERNORM ? centre : "");
    define(p, "seen", d->op == NB_OP_PRMSNORM ? "x[..., :{k}]" : "x");
    define(p, "mean", sums ? "sum" : "mean");
    define(p, "divide", sums ? "" : "    v /= SEEN;\n");
    define(p, "root", root_of(d, is_c));
    define(p, "keep", nb_numbers[d->weight].precision < nb_numbers[NB_NUM_F32].precision ? "stored" : "");
    define(p, "weight", draws[language][gamma]);
    define(p, "beta", beta ? draws[language][2] : "0");
    define(p, "order", before ? "before" : "after");
    define(p, "other", before ? "after" : "before");
    static const char *const mine[2][2] = {
        {"normalized({f32}(x)) * {f32}(w)", "wide(stored(normalized({f32}(x)))) * wide(stored(w))"},
        {"y[i] * w[i]", "stored(y[i]) * stored(w[i])"}};
    define(p, "mine", mine[is_c][before]);
    const bool exact = q->reference == NB_REFERENCE_EXACT;
    define(p, "want", exact ? "exact" : is_c ? "stored(exact)" : "wide(stored(exact))");
}

void nb_tolerance_code(const struct nb_tolerance *t, const struct nb_tolerance_request *q, const char *title,
                       const char *name, struct nb_strbuf *out) {
    const enum language language = strcmp(name, "c") == 0 ? C : strcmp(name, "numpy") == 0 ? NUMPY : TORCH;
    const enum nb_number store = q->design.store;
    const bool two_orders = q->affine != NB_AFFINE_NONE && store != NB_NUM_F32;
    const bool has_bias = t->criteria[NB_MEAN_ERROR_TEST].limit > 0;
    struct program p = {.n_tokens = 0};
    define_text(&p, "title", nb_strdup(title));
    define_numbers(&p, t, q);
    if (language != C) {
        const struct library *lib = &libraries[language];
        define(&p, "import", lib->import);
        define(&p, "f32", lib->f32);
        define(&p, "compare", lib->compare);
        define(&p, "stored", lib->stored[store == NB_NUM_F32 ? 0 : store == NB_NUM_F16 ? 1 : 2]);
    }
    define_formula(&p, q, language);
    define(&p, "draw", language == C ? "" : libraries[language].draw);
    define(&p, "bias_test", !has_bias ? "" : language == C ? c_bias : python_bias);
    define(&p, "nearer", two_orders ? "to_{other} < to_{order}" : "0");
    add_template(out, language == C ? c_program : python, p.tokens);
    if (language != C) add_template(out, "{bias_test}", p.tokens);
    if (language != C && two_orders) add_template(out, python_orders, p.tokens);
    if (language != C) nb_strbuf_add(out, python_end);
    for (int i = 0; i < p.n_tokens; i++) free(p.tokens[i].text);
}
