// SPDX-License-Identifier: Apache-2.0
/* Rows of a Latin square whose first is 0, 1, n-1, 2, n-2, ..: the steps between neighbours are all different. */
#include "src/measure/turns.h"

#include <assert.h>

static int zigzag(int i, int n) { return i % 2 ? (i + 1) / 2 : (n - i / 2) % n; }

void nb_turns(int *order, int n, int round) {
    assert(n > 0 && round >= 0);
    /* For odd n a row's steps come in one direction alone; its mirror image has the other. */
    const int rows = n % 2 ? 2 * n : n, row = round % rows;
    for (int i = 0; i < n; i++) order[row < n ? i : n - 1 - i] = (zigzag(i, n) + row) % n;
}
