// SPDX-License-Identifier: Apache-2.0
/* Tests to paste. The reference is computed or widened to f64 before it is compared, so that the comparison itself rounds nothing that
 * matters. */
#include <math.h>
#include <string.h>

#include "reports/lab/tolerance_view.h"

static void add_head(const struct nb_tolerance *t, const struct nb_tolerance_request *q, const char *comment,
                     struct nb_strbuf *out) {
    const struct nb_rate *alarm = &t->subjects[0].alarms[NB_DERIVED];
    nb_strbuf_addf(out, "%s ", comment);
    nb_tolerance_title(t, q, out);
    nb_strbuf_addf(out, "\n%s Derived from the rounding-error bound: a correct kernel failed in %lld of %lld tests.\n",
                   comment, (long long)alarm->seen, (long long)alarm->n);
}

static bool has_mean_error(const struct nb_tolerance *t) { return !isnan(t->criteria[NB_MEAN_ERROR_TEST].limit); }

static void add_torch(const struct nb_tolerance *t, const struct nb_tolerance_request *q, struct nb_strbuf *out) {
    const struct nb_criterion *c = &t->criteria[NB_DERIVED];
    add_head(t, q, "#", out);
    nb_strbuf_addf(
        out,
        "# got: the kernel's output; want: the reference, rows last dimension, computed from got's inputs in float64\n"
        "got, want = got.double(), want.double()\n"
        "torch.testing.assert_close(got, want, rtol=%.3g, atol=%.3g)\n",
        c->rtol, c->atol);
    if (has_mean_error(t))
        nb_strbuf_addf(out,
                       "# a side that all errors take (a truncating store) is far below any rtol\n"
                       "large = want.abs() > want.square().mean(-1, keepdim=True).sqrt() / 4\n"
                       "bias = ((got.abs() - want.abs()) / want.abs())[large].mean().item()\n"
                       "assert abs(bias) <= %.3g, f\"mean relative error {bias:.3g}\"\n",
                       t->criteria[NB_MEAN_ERROR_TEST].limit);
}

static void add_numpy(const struct nb_tolerance *t, const struct nb_tolerance_request *q, struct nb_strbuf *out) {
    const struct nb_criterion *c = &t->criteria[NB_DERIVED];
    add_head(t, q, "#", out);
    nb_strbuf_addf(
        out,
        "# got: the kernel's output; want: the reference, rows last axis, computed from got's inputs in float64\n"
        "got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)\n"
        "np.testing.assert_allclose(got, want, rtol=%.3g, atol=%.3g)\n",
        c->rtol, c->atol);
    if (has_mean_error(t))
        nb_strbuf_addf(out,
                       "# a side that all errors take (a truncating store) is far below any rtol\n"
                       "large = np.abs(want) > np.sqrt(np.mean(want**2, axis=-1, keepdims=True)) / 4\n"
                       "bias = np.mean(((np.abs(got) - np.abs(want)) / np.where(large, np.abs(want), 1))[large])\n"
                       "assert abs(bias) <= %.3g, f\"mean relative error {bias:.3g}\"\n",
                       t->criteria[NB_MEAN_ERROR_TEST].limit);
}

static void add_c(const struct nb_tolerance *t, const struct nb_tolerance_request *q, struct nb_strbuf *out) {
    const struct nb_criterion *c = &t->criteria[NB_DERIVED];
    add_head(t, q, "//", out);
    nb_strbuf_addf(out,
                   "#include <math.h>\n"
                   "#include <stddef.h>\n\n"
                   "// got: the kernel's output, want: the reference computed in double; both rows x cols. 0: passes, "
                   "1: an element is\n"
                   "// beyond the tolerance, 2: the errors take a side.\n"
                   "static int norm_output_differs(const double *got, const double *want, size_t rows, size_t cols) {\n"
                   "    const double rtol = %.3g, atol = %.3g;\n"
                   "    for (size_t i = 0; i < rows * cols; i++)\n"
                   "        if (!(fabs(got[i] - want[i]) <= atol + rtol * fabs(want[i]))) return 1;\n",
                   c->rtol, c->atol);
    if (has_mean_error(t))
        nb_strbuf_addf(out,
                       "    double sum = 0, count = 0;\n"
                       "    for (size_t row = 0; row < rows; row++) {\n"
                       "        const double *g = got + row * cols, *w = want + row * cols;\n"
                       "        double squares = 0;\n"
                       "        for (size_t i = 0; i < cols; i++) squares += w[i] * w[i];\n"
                       "        const double least = sqrt(squares / (double)cols) / 4;\n"
                       "        for (size_t i = 0; i < cols; i++) {\n"
                       "            if (!(fabs(w[i]) > least)) continue;\n"
                       "            sum += (fabs(g[i]) - fabs(w[i])) / fabs(w[i]);\n"
                       "            count++;\n"
                       "        }\n"
                       "    }\n"
                       "    if (count > 0 && fabs(sum / count) > %.3g) return 2;\n",
                       t->criteria[NB_MEAN_ERROR_TEST].limit);
    nb_strbuf_add(out, "    return 0;\n}\n");
}

void nb_tolerance_snippet(const struct nb_tolerance *t, const struct nb_tolerance_request *q, const char *language,
                          struct nb_strbuf *out) {
    if (strcmp(language, "torch") == 0)
        add_torch(t, q, out);
    else if (strcmp(language, "numpy") == 0)
        add_numpy(t, q, out);
    else
        add_c(t, q, out);
}
