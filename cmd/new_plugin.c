// SPDX-License-Identifier: Apache-2.0
/* normbench new-plugin: a kernel to begin with. The files are those of the tests (tests/plugins/example.*), with another name. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cmd/shared/options.h"
#include "examples.h" /* written by the build */
#include "src/core/files.h"
#include "src/core/log.h"
#include "src/core/text.h"

static const char help[] =
    "usage: normbench new-plugin NAME [--lang LANGUAGE]\n\n"
    "Write a kernel to begin with into this folder: NAME.c, NAME.cpp or NAME.py, a complete RMSNorm that passes every check,\n"
    "and for C and C++ kernel.h, the interface, where it is not there yet; say how to build it and what to type next.\n"
    "Nothing is overwritten.\n\n"
    "  --lang LANGUAGE      c (the default), c++ or python\n" NB_COMMON_HELP "\n"
    "Exit codes: 0 written, 2 usage, or a file that is there already or cannot be written.\n";

static const char header[] = "kernel.h";
static const char placeholder[] = "example";

static const struct language {
    const char *name, *ending, *text;
    const char *compiler, *libraries; /* null: it is not built */
} languages[] = {{"c", ".c", nb_example_c, "cc", " -lm"},
                 {"c++", ".cpp", nb_example_cpp, "c++", ""},
                 {"python", ".py", nb_example_py, NULL, NULL}};
enum { N_LANGUAGES = sizeof languages / sizeof languages[0] };

/* A file of such a name hides, from whatever it imports, the module that is meant (Python
 * 3.9 to 3.14), or its function cannot be named so. */
static const char taken_in_python[] =
    " False None True abc aifc and annotationlib antigravity argparse array as assert ast async asynchat asyncio "
    "asyncore atexit audioop await base64 bdb binascii binhex bisect break builtins bz2 cProfile calendar cgi cgitb "
    "chunk class cmath cmd code codecs codeop collections colorsys compileall compression concurrent configparser "
    "contextlib contextvars continue copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal def del "
    "difflib dis distutils doctest elif else email encodings ensurepip enum errno except faulthandler fcntl filecmp "
    "fileinput finally fnmatch for formatter fractions from ftplib functools gc genericpath getopt getpass gettext "
    "glob global graphlib grp gzip hashlib heapq hmac html http idlelib if imaplib imghdr imp import importlib in "
    "inspect io ipaddress is itertools json keyword lambda linecache locale logging lzma macpath mailbox mailcap "
    "marshal math mimetypes ml_dtypes mmap modulefinder msilib msvcrt multiprocessing netrc nis nntplib nonlocal "
    "normbench not np nt ntpath nturl2path numbers numpy opcode operator optparse or os ossaudiodev parser pass "
    "pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats "
    "pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri raise random re readline reprlib resource "
    "return rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtpd smtplib sndhdr "
    "socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep "
    "struct subprocess sunau symbol symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios "
    "textwrap this threading time timeit tkinter token tokenize tomllib torch trace traceback tracemalloc try tty "
    "turtle turtledemo types typing unicodedata unittest urllib uu uuid venv warnings wave weakref webbrowser while "
    "winreg winsound with wsgiref xdrlib xml xmlrpc yield zipapp zipfile zipimport zlib zoneinfo ";

static bool is_taken_in_python(const char *name) {
    const size_t n = strlen(name);
    for (const char *at = taken_in_python; (at = strstr(at, name)) != NULL; at += n)
        if (at[-1] == ' ' && at[n] == ' ') return true;
    return false;
}

/* It becomes the name of a file, of a plugin and of a kernel; of a function and a module in Python. */
static int check_name(const char *name, const struct language *language) {
    if (!name) return nb_error("new-plugin: NAME, of the kernel and its file");
    const size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    if (name[n] || !isalpha((unsigned char)name[0]) || n > 40)
        return nb_error("new-plugin '%s': at most 40 letters, digits and '_', a letter first", name);
    if (strncmp(name, "lib", 3) == 0)
        return nb_error("new-plugin '%s': a plugin is known by its file name without \"lib\"; leave that out", name);
    if (!language->compiler && is_taken_in_python(name))
        return nb_error(
            "new-plugin '%s': a word of Python's, or a module that %s.py would hide from what it imports; another name",
            name, name);
    return 0;
}

static int set_language(void *to, const char *name) {
    const bool is_cpp = strcmp(name, "cpp") == 0 || strcmp(name, "cxx") == 0;
    for (int i = 0; i < N_LANGUAGES; i++)
        if (strcmp(languages[i].name, is_cpp ? "c++" : name) == 0)
            return *(const struct language **)to = &languages[i], 0;
    return nb_error("--lang %s: one of c, c++, python", name);
}

/* Without the licence line, which is of the example's own file, and with the name in place of its own; owned. */
static char *text_of(const struct language *language, const char *name) {
    struct nb_strbuf text = {0};
    const char *rest = strchr(language->text, '\n') + 1, *next;
    for (; (next = strstr(rest, placeholder)) != NULL; rest = next + strlen(placeholder)) {
        nb_strbuf_addn(&text, rest, (size_t)(next - rest));
        nb_strbuf_add(&text, name);
    }
    nb_strbuf_add(&text, rest);
    return text.text;
}

/* Never in the place of a file that is there. */
static int write_new(const char *path, const char *text) {
    FILE *file = fopen(path, "wx");
    if (!file && errno == EEXIST) return nb_error("%s: is there already; nothing was written", path);
    if (!file) return nb_error("%s: cannot be written: %s", path, strerror(errno));
    const bool written = fputs(text, file) >= 0;
    if (fclose(file) == 0 && written) return 0;
    return nb_error("%s: cannot be written: %s", path, strerror(errno));
}

/* A kernel.h that is there is the user's; of another version it serves as well. */
static int write_header(void) {
    size_t n;
    if (!nb_path_exists(header)) return write_new(header, nb_example_header);
    char *there freed = nb_file_read(header, 1 << 20, &n);
    if (there && strcmp(there, nb_example_header) != 0)
        nb_note("%s: is there already, and is not this program's; it is left as it is", header);
    return there ? 0 : -1;
}

static int new_plugin_main(int argc, char **argv) {
    const struct language *language = &languages[0];
    const char *names[N_LANGUAGES + 1] = {NULL};
    const struct nb_option options[] = {{"lang", .take = set_language, .among = names, .to = &language},
                                        {.name = NULL}};
    int exit_code;
    for (size_t i = 0; i < N_LANGUAGES; i++) names[i] = languages[i].name;
    if (!nb_read_options(help, options, 1, argc, argv, &exit_code)) return exit_code;
    const char *name = argv[optind];
    if (check_name(name, language) != 0) return NB_EXIT_USAGE;
    char *text freed = text_of(language, name);
    char *path freed = nb_textf("%s%s", name, language->ending);
    const bool written = write_new(path, text) == 0 && (!language->compiler || write_header() == 0);
    if (written && language->compiler)
        printf("%s -O2 -shared -fPIC %s -o %s.so%s\nnormbench try ./%s.so\n", language->compiler, path, name,
               language->libraries, name);
    else if (written)
        printf("normbench try %s\n", path);
    return written ? NB_EXIT_OK : NB_EXIT_USAGE;
}

const struct nb_command nb_command_new_plugin = {"new-plugin", "write a kernel of your own to begin with", help,
                                                 new_plugin_main};
