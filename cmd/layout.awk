# SPDX-License-Identifier: Apache-2.0
# Reads object files in the order of the build, one a line; prints them in the order of a layout (-v layout=2), with gaps (files
# GAPS/gap_1.o .. gap_8.o, -v gaps=GAPS) between them. Layout 1 is the build's own order without gaps. The place of an object hangs on
# its file name and the layout alone, so that two builds of nearly the same kernels are laid out in nearly the same way.
BEGIN { FS = "/"; letters = "abcdefghijklmnopqrstuvwxyz0123456789_." }
{
    path[NR] = $0
    hash = layout
    for (i = 1; i <= length($NF); i++) hash = (hash * 69069 + index(letters, substr($NF, i, 1))) % 16777213
    # Squares modulo a prime: a sum alone would turn the same circle in every layout.
    for (i = 1; i <= 4; i++) hash = (hash * hash + layout + i) % 16777213
    place[NR] = layout == 1 ? NR : hash
    gap[NR] = layout == 1 ? 0 : 1 + hash % 8
}
END {
    for (i = 1; i <= NR; i++) order[i] = i
    for (step = int(NR / 2); step > 0; step = int(step / 2)) # Shell's sort: not every awk has one
        for (i = step + 1; i <= NR; i++)
            for (j = i; j > step && comes_before(order[j], order[j - step]); j -= step) {
                moved = order[j]
                order[j] = order[j - step]
                order[j - step] = moved
            }
    for (i = 1; i <= NR; i++) {
        print path[order[i]]
        if (gap[order[i]]) print gaps "/gap_" gap[order[i]] ".o"
    }
}
function comes_before(a, b) { return place[a] != place[b] ? place[a] < place[b] : path[a] < path[b] }
