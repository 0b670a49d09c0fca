# SPDX-License-Identifier: Apache-2.0
# Reads object files, one a line; prints them in the order of a layout (-v layout=2), with gaps (files GAPS/gap_1.o .. gap_8.o, -v
# gaps=GAPS) between them. The place of an object depends on its file name, the layout and a seed (-v seed=1), which the two sides of a
# comparison have apart: with one seed every place would be off by the same distance in all layouts, and what that distance
# costs would look like the change.
BEGIN { FS = "/"; letters = "abcdefghijklmnopqrstuvwxyz0123456789_." }
{
    path[NR] = $0
    start = 1000 * seed + layout
    hash = start
    for (i = 1; i <= length($NF); i++) hash = (hash * 69069 + index(letters, substr($NF, i, 1))) % 16777213
    # Squares modulo a prime: a sum alone would turn the same circle in every layout.
    for (i = 1; i <= 4; i++) hash = (hash * hash + start + i) % 16777213
    place[NR] = hash
    gap[NR] = 1 + hash % 8
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
        print gaps "/gap_" gap[order[i]] ".o"
    }
}
function comes_before(a, b) { return place[a] != place[b] ? place[a] < place[b] : path[a] < path[b] }
