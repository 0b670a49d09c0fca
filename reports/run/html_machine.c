// SPDX-License-Identifier: Apache-2.0
/* The page's account of the machine and the build, and the lines that measure the same again. */
#include <ctype.h>
#include <string.h>

#include "reports/run/html.h"
#include "reports/text/format.h"

enum { DEEPEST = 8 };

static void value_of(const cJSON *item, struct nb_strbuf *out) {
    if (cJSON_IsString(item))
        nb_strbuf_add(out, item->valuestring);
    else if (cJSON_IsNumber(item))
        nb_format_exact(out, item->valuedouble);
    else if (cJSON_IsBool(item))
        nb_strbuf_add(out, cJSON_IsTrue(item) ? "yes" : "no");
    else
        nb_strbuf_add(out, "");
}

static bool is_plain(const cJSON *item) { return !cJSON_IsObject(item) && !cJSON_IsArray(item); }

/* One row a value; "cpu.model" is its path. Plain lists stand in one cell. */
static void add_tree(const cJSON *item, const char *path, int depth, struct nb_strbuf *out) {
    struct nb_strbuf value = {0}, inner = {0};
    const cJSON *child;
    bool list = cJSON_IsArray(item) && (!item->child || is_plain(item->child));
    cJSON_ArrayForEach(child, item) {
        if (depth >= DEEPEST) break;
        if (list) {
            nb_strbuf_add(&value, value.len ? ", " : "");
            value_of(child, &value);
            continue;
        }
        nb_strbuf_clear(&inner);
        nb_strbuf_addf(&inner, "%s%s%s", path, *path ? "." : "", child->string ? child->string : "");
        add_tree(child, inner.text, depth + 1, out);
    }
    if (is_plain(item)) value_of(item, &value);
    if (value.len) {
        nb_html_text(out, "<tr><td>", *path ? path : "-", "</td>");
        nb_html_text(out, "<td class=\"w\">", value.text, "</td></tr>\n");
    }
    nb_strbuf_release(&value);
    nb_strbuf_release(&inner);
}

static void add_fingerprint(const cJSON *fingerprint, struct nb_strbuf *out) {
    nb_strbuf_add(out, "<div class=\"wrap\"><table>\n");
    add_tree(fingerprint, "", 0, out);
    nb_strbuf_add(out, "</table></div>\n");
}

void nb_html_machine(const struct nb_results *results, struct nb_strbuf *out) {
    const cJSON *machines = cJSON_GetObjectItemCaseSensitive(results->meta, "machines"), *machine;
    const cJSON *own = cJSON_GetObjectItemCaseSensitive(results->meta, "fingerprint");
    int i = 0;
    nb_strbuf_add(out, "<h2 id=\"machine\">Machine and build</h2>\n");
    if (cJSON_GetArraySize(machines) > 1) {
        cJSON_ArrayForEach(machine, machines) {
            nb_strbuf_addf(out, "<details><summary>machine %d</summary>\n", i++);
            add_fingerprint(cJSON_GetObjectItemCaseSensitive(machine, "fingerprint"), out);
            nb_strbuf_add(out, "</details>\n");
        }
    } else if (own) {
        add_fingerprint(own, out);
    } else {
        nb_strbuf_add(out, "<p>These results say nothing about their machine.</p>\n");
    }
}

/* One word of a shell's command line. */
static void add_word(struct nb_strbuf *out, const char *word) {
    bool plain = *word != '\0';
    for (const char *s = word; *s && plain; s++) plain = isalnum((unsigned char)*s) || strchr("_-./:=,+@%", *s);
    if (!plain) nb_strbuf_add(out, "'");
    for (const char *s = word; *s; s++) nb_strbuf_addn(out, *s == '\'' ? "'\\''" : s, *s == '\'' ? 4 : 1);
    if (!plain) nb_strbuf_add(out, "'");
}

void nb_html_reproduce(const struct nb_results *results, struct nb_strbuf *out) {
    struct nb_strbuf command = {0};
    const cJSON *word;
    cJSON_ArrayForEach(word, cJSON_GetObjectItemCaseSensitive(results->meta, "argv")) {
        if (!cJSON_IsString(word)) continue;
        nb_strbuf_add(&command, command.len ? " " : "");
        add_word(&command, word->valuestring);
    }
    nb_strbuf_add(out, "<h2 id=\"reproduce\">How to reproduce</h2>\n");
    nb_html_text(out, "<p>These results came from</p>\n<pre>", command.text, "</pre>\n");
    nb_html_text(out, "<p>plan ", nb_meta_text(results, "plan.hash"), ", ");
    nb_html_text(out, "order seed ", nb_meta_text(results, "plan.order_seed"), ".</p>\n");
    nb_strbuf_add(out, "<p>One case alone, checked and timed again:</p>\n<pre>normbench replay DIR CASE-KEY</pre>\n"
                       "<p>This page, the plots and the table again:</p>\n<pre>normbench report DIR</pre>\n"
                       "<p>The files beside this page: <a href=\"results.json\">results.json</a>, <a "
                       "href=\"plots/\">plots/</a>.</p>\n");
    nb_strbuf_release(&command);
}
