# SPDX-License-Identifier: Apache-2.0
"""How other tools decide that B is slower than A, from the same samples. Standard library only.

A and B are lists of processes, a process is the list of its samples in nanoseconds. A rule returns +1 (B slower), -1 (B faster) or 0.
They are imitations of the rules that the tools publish, not of their loops: Google Benchmark's choice of iterations and
criterion's growing ones are not imitated, since the samples are given. Which version's rule it is stands with each."""
import functools
import math
import random
import statistics


def sign(x):
    return (x > 0) - (x < 0)


# ---- distributions -----------------------------------------------------------------------------------------------------


def normal_tail(z):
    return 0.5 * math.erfc(z / math.sqrt(2))


def incomplete_beta(a, b, x):
    """Regularised, by the continued fraction of Lentz (Numerical Recipes 6.4)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    tiny, c, d = 1e-300, 1.0, 0.0
    result = 1.0
    for i in range(400):
        m = i // 2
        if i == 0:
            term = 1.0
        elif i % 2 == 0:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        else:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / (1 + term * d or tiny)
        c = 1 + term / c or tiny
        result *= c * d
        if abs(1 - c * d) < 1e-14:
            break
    return front * (result - 1)


def student_p(t, df):
    """Two-sided."""
    return incomplete_beta(df / 2, 0.5, df / (df + t * t))


def clopper_pearson(k, n, confidence=0.95):
    """Two-sided bounds of a proportion: quantiles of beta distributions, by bisection."""
    def quantile(p, a, b):
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if incomplete_beta(a, b, middle) < p else (low, middle)
        return (low + high) / 2
    tail = (1 - confidence) / 2
    return (0.0 if k == 0 else quantile(tail, k, n - k + 1)), (1.0 if k == n else quantile(1 - tail, k + 1, n - k))


# ---- rank tests --------------------------------------------------------------------------------------------------------


def ranks(values):
    """Mid-ranks, and the sizes of groups of equals."""
    order = sorted(range(len(values)), key=values.__getitem__)
    result, ties, i = [0.0] * len(values), [], 0
    while i < len(order):
        j = i
        while j < len(order) and values[order[j]] == values[order[i]]:
            j += 1
        for k in range(i, j):
            result[order[k]] = (i + j + 1) / 2
        ties.append(j - i)
        i = j
    return result, ties


@functools.lru_cache(maxsize=None)
def u_counts(n, m):
    """How many orders of n and m distinct values have each U: the Gaussian binomial coefficient's."""
    counts = [1]
    for i in range(1, n + 1):
        grown = counts + [0] * (m + i)  # times (1 - q^(m + i)), then divided by (1 - q^i)
        for k in range(len(counts)):
            grown[k + m + i] -= counts[k]
        for k in range(i, len(grown)):
            grown[k] += grown[k - i]
        counts = grown[:n * m + 1]
    return counts


def mann_whitney(x, y, exact):
    """Two-sided p. exact: of the distribution without ties; else normal with corrections for ties and continuity."""
    n, m = len(x), len(y)
    all_ranks, ties = ranks(list(x) + list(y))
    u = sum(all_ranks[:n]) - n * (n + 1) / 2
    u = max(u, n * m - u)
    if exact and max(ties) == 1:
        counts = u_counts(n, m)
        return min(1.0, 2 * sum(counts[int(u):]) / sum(counts))
    total = n + m
    variance = n * m / 12 * (total + 1 - sum(t ** 3 - t for t in ties) / (total * (total - 1)))
    return min(1.0, 2 * normal_tail((u - n * m / 2 - 0.5) / math.sqrt(variance))) if variance > 0 else 1.0


def signed_rank(differences):
    """Two-sided exact p; zeros are dropped and ties share their ranks, as the exact distribution allows for n up to 50."""
    d = [x for x in differences if x != 0]
    all_ranks, _ = ranks([abs(x) for x in d])
    counts = [1]
    for k in range(1, len(d) + 1):
        counts = [a + b for a, b in zip(counts + [0] * k, [0] * k + counts)]
    w = sum(r for r, x in zip(all_ranks, d) if x > 0)
    w = math.floor(min(w, len(d) * (len(d) + 1) / 2 - w) + 0.5)
    return min(1.0, 2 * sum(counts[:w + 1]) / 2 ** len(d))


# ---- rules -------------------------------------------------------------------------------------------------------------


def process_means(processes):
    return [statistics.fmean(p) for p in processes]


def repetitions(samples, n=9):
    """A process's samples as n repetitions: means of n stretches of equal length."""
    return [statistics.fmean(samples[i * len(samples) // n:(i + 1) * len(samples) // n]) for i in range(n)]


def compare_py_p(a, b):
    """scipy's mannwhitneyu(method="auto"), which is exact where one side has 8 values or fewer."""
    x, y = repetitions(a[0]), repetitions(b[0])
    return mann_whitney(x, y, exact=min(len(x), len(y)) <= 8)


def compare_py(a, b):
    """compare.py of Google Benchmark 1.7.1: U test on the repetitions of one process each, 0.05; 9 are recommended."""
    x, y = repetitions(a[0]), repetitions(b[0])
    return sign(statistics.median(y) - statistics.median(x)) if compare_py_p(a, b) < 0.05 else 0


def benchstat(a, b):
    """benchstat of golang.org/x/perf (2023 on): exact U test on the means of processes, alpha 0.05."""
    x, y = process_means(a), process_means(b)
    return sign(statistics.median(y) - statistics.median(x)) if mann_whitney(x, y, exact=True) < 0.05 else 0


def welch_t(x, y):
    vx, vy = statistics.variance(x) / len(x), statistics.variance(y) / len(y)
    if vx + vy == 0:
        return 0.0, 1.0
    df = (vx + vy) ** 2 / (vx ** 2 / (len(x) - 1) + vy ** 2 / (len(y) - 1))
    return (statistics.fmean(y) - statistics.fmean(x)) / math.sqrt(vx + vy), df


def hyperfine_welch(a, b):
    """scripts/welch_ttest.py of hyperfine 1.x: Welch's t on the runs, 0.05."""
    t, df = welch_t(process_means(a), process_means(b))
    return sign(t) if student_p(t, df) < 0.05 else 0


def hyperfine_ratio(a, b):
    """hyperfine 1.x's last lines, read as people read them: 1 is outside of ratio +- its propagated SD."""
    x, y = process_means(a), process_means(b)
    ratio = statistics.fmean(y) / statistics.fmean(x)
    sd = ratio * math.hypot(statistics.stdev(x) / statistics.fmean(x), statistics.stdev(y) / statistics.fmean(y))
    return sign(ratio - 1) if abs(ratio - 1) > sd else 0


def fast_t(x, y):
    """Welch's t without the checks of the statistics module."""
    n, m = len(x), len(y)
    mx, my = sum(x) / n, sum(y) / m
    vx = sum((v - mx) * (v - mx) for v in x) / (n - 1) / n
    vy = sum((v - my) * (v - my) for v in y) / (m - 1) / m
    return (my - mx) / math.sqrt(vx + vy) if vx + vy > 0 else 0.0


def criterion(a, b, resamples=400, noise=0.01, seed=1):
    """criterion.rs 0.5: t of the samples against a bootstrap of the pooled ones, 0.05; and the 95 % interval of the relative
    change of the mean wholly beyond the noise threshold. 100 000 resamples there; fewer here leave p as uncertain as 0.05 +- 0.011."""
    x, y, rng = a[0], b[0], random.Random(seed)
    t, pool, below = fast_t(x, y), x + y, 0
    for _ in range(resamples):
        drawn = rng.choices(pool, k=len(pool))
        below += fast_t(drawn[:len(x)], drawn[len(x):]) < t
    if 2 * min(below, resamples - below) / resamples >= 0.05:
        return 0
    changes = sorted((sum(rng.choices(y, k=len(y))) / len(y)) / (sum(rng.choices(x, k=len(x))) / len(x)) - 1
                     for _ in range(resamples))
    low, high = changes[int(0.025 * resamples)], changes[int(0.975 * resamples)]
    return 1 if low > noise else -1 if high < -noise else 0


def threshold(statistic, percent):
    """A plain threshold on the ratio of one number a side."""
    def number(processes):
        return statistic([statistic(p) for p in processes])

    def rule(a, b):
        ratio = number(b) / number(a)
        return 1 if ratio > 1 + percent / 100 else -1 if ratio < 1 - percent / 100 else 0
    return rule


def paired_medians(a, b):
    """Not a tool's: what pairing alone does. Median over blocks of ln(B / A) in each process, signed-rank test over processes, 0.05."""
    medians = [statistics.median(math.log(y / x) for x, y in zip(p, q)) for p, q in zip(a, b)]
    return sign(statistics.median(medians)) if signed_rank(medians) < 0.05 else 0


TOOLS = [  # name, processes a side, rule
    ("compare.py, 9 repetitions", 1, compare_py),
    ("criterion.rs, 1 % noise threshold", 1, criterion),
    ("benchstat, 10 processes", 10, benchstat),
    ("hyperfine, Welch, 10 runs", 10, hyperfine_welch),
    ("hyperfine, ratio +- SD, 10 runs", 10, hyperfine_ratio),
]
THRESHOLDS = [(f"{percent} % on {name}, 10 processes", 10, threshold(statistic, percent))
              for name, statistic in (("means", statistics.fmean), ("medians", statistics.median), ("minima", min))
              for percent in (2, 5, 10)]
PAIRED = [("paired launch medians, signed rank, 10 launches", 10, paired_medians)]
