# SPDX-License-Identifier: Apache-2.0
# Tables of gpu.sh, from `normbench report --format csv`. mode: digests (of the emulation, then of the GPU: a line for each case, and one that counts
# them), checks (what each kernel came out with), times.

# RFC 4180; a field with a line break in it is none of ours.
function fields_of(line, out,    n, at, field) {
    n = 0
    while (length(line) > 0 || at == ",") {
        if (substr(line, 1, 1) == "\"") {
            field = ""
            line = substr(line, 2)
            while ((at = index(line, "\"")) > 0 && substr(line, at + 1, 1) == "\"") {
                field = field substr(line, 1, at)
                line = substr(line, at + 2)
            }
            field = field substr(line, 1, at - 1)
            line = substr(line, at + 1)
        } else {
            at = index(line, ",")
            field = at ? substr(line, 1, at - 1) : line
            line = at ? substr(line, at) : ""
        }
        out[++n] = field
        at = substr(line, 1, 1)
        line = substr(line, 2)
    }
    return n
}
function of(name) { return value[column[name]] }
function percent(x) { return x == "" ? "" : sprintf("%.1f %%", 100 * x) }
function add(list, what) { return list == "" ? what : list ", " what }

{ sub(/\r$/, "") }
FNR == 1 {
    file++
    delete column
    n = fields_of($0, value)
    for (i = 1; i <= n; i++) column[value[i]] = i
    next
}
{ fields_of($0, value) }

mode == "digests" {
    key = of("key")
    gsub(/_emulated/, "", key)
    if (!(key in known)) order[++keys] = key
    known[key] = 1
    digest[file, key] = of("digest")
}
mode == "checks" {
    kernel = of("variant")
    sub(/_cuda_[a-z0-9]*$/, "", kernel)
    status = of("status")
    total[status]++
    if (!(kernel in kernels)) names[++n_names] = kernel
    kernels[kernel] = kernels[kernel] status " "
}
mode == "times" && of("time_ns") == "" && of("status") == "not_run" {
    unrun++
    next
}
mode == "times" {
    timed = of("time_ns") != ""
    note = of("copy")
    gsub(/^[^:]*:|_cuda_[a-z0-9]*$/, "", note)
    if (of("throttled_launches") > 0) note = add(note, "throttled in " of("throttled_launches") " launches")
    if (of("status") != "ok") note = add(note, of("status") ": " of("reason"))
    else if (!timed) note = add(note, "not timed")
    else if (of("noise") != "") note = add(note, of("noise"))
    shown[++n_times] = sprintf("  %-34s %-12s %9s %8s %8s %8s %8s  %s", substr(of("variant"), index(of("variant"), ":") + 1), of("shape"),
        timed ? sprintf("%.2f", of("time_ns") / 1000) : "", timed ? sprintf("%.1f", of("gbytes_per_s")) : "", percent(of("vs_copy_ratio")),
        percent(of("of_datasheet_ratio")), of("floor_ns") == "" ? "" : sprintf("%.2f", of("floor_ns") / 1000), note)
}

END {
    if (mode == "digests") {
        print "key,gpu,emulated,verdict"
        for (i = 1; i <= keys; i++) {
            emulated = digest[1, order[i]]
            gpu = digest[2, order[i]]
            verdict = gpu == "" || emulated == "" ? "one alone" : gpu == emulated ? "same" : order[i] ~ /rsqrt_raw/ ? "approximate" : "different"
            count[verdict]++
            print order[i] "," gpu "," emulated "," verdict
        }
        printf "%d same, %d different, %d differ by an approximate root, %d of one side alone\n", count["same"], count["different"], count["approximate"],
            count["one alone"] >"/dev/stderr"
    }
    if (mode == "checks") {
        print "\nchecks, by kernel:"
        for (i = 1; i <= n_names; i++) {
            line = ""
            n = split(kernels[names[i]], each, " ")
            delete seen
            for (j = 1; j <= n; j++) seen[each[j]]++
            for (status in seen) line = add(line, seen[status] " " status)
            printf "  %-36s %s\n", substr(names[i], index(names[i], ":") + 1), line
        }
    }
    if (mode == "times") {
        printf "\n  %-34s %-12s %9s %8s %8s %8s %8s  %s\n", "times", "shape", "us", "GB/s", "of copy", "of sheet", "floor us", "copy"
        for (i = 1; i <= n_times; i++) print shown[i]
        if (unrun) print "  " unrun " cases were not timed: the time was up"
    }
}
