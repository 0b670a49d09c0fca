# SPDX-License-Identifier: Apache-2.0
# The kernels of the sources, from what each file says at its end of its op, pass and structure: an entry a kernel for
# src/core/catalogue.c.
/^NB_KERNEL\(/ { reading = 1; contract = "" }
reading { contract = contract $0 }
reading && /\);$/ {
    reading = 0
    name = contract
    sub(/^NB_KERNEL\(/, "", name)
    sub(/,.*/, "", name)
    fields = ""
    while (match(contract, /\.(op|pass|style|stats|stats_dtype|variance) = [A-Z0-9_]+/)) {
        fields = fields ", " substr(contract, RSTART, RLENGTH)
        contract = substr(contract, RSTART + RLENGTH)
    }
    printf "NB_CATALOGUE_ENTRY(%s%s)\n", name, fields
}
