"""Makes the expected values of two_samples/ with SciPy, and with mpmath where SciPy has too few digits.

Run: python3 reference_two_samples.py     (made with SciPy 1.10.1, NumPy 1.24.2, mpmath 1.2.1)
"""

from itertools import combinations
from math import comb

import mpmath as mp
import numpy as np
from scipy import stats

mp.mp.dps = 40

PAIRS = {
    "five": ([512.3, 498.7, 505.1, 530.9, 501.2], [540.2, 533.8, 551.0, 529.4, 560.7]),
    # Hollander and Wolfe, Nonparametric Statistical Methods (1973), p. 69: the example of R's wilcox.test.
    "published": (
        [1.15, 0.88, 0.90, 0.74, 1.21],
        [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46],
    ),
    "ties": ([1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 4.0, 5.0], [2.0, 3.0, 3.0, 4.0, 4.0, 5.0, 5.0, 5.0, 6.0]),
    "far": ([1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16], [1e9 + 5, 1e9 + 8, 1e9 + 8, 1e9 + 30, 1e9 + 40]),
    "thirty": (
        [100.0 + (37 * i % 31) ** 1.5 for i in range(30)],
        [110.0 + 1.25 * (17 * i % 29) ** 1.5 for i in range(28)],
    ),
    "large": (
        [50.0 + np.sqrt(37 * i % 211) for i in range(200)],
        [50.5 + np.sqrt(53 * i % 307) for i in range(300)],
    ),
    "large ties": (
        [float(37 * i % 11) for i in range(200)],
        [float(53 * i % 13) for i in range(300)],
    ),
    "apart": ([10.0 + i / 100 for i in range(40)], [20.0 + i / 90 for i in range(45)]),
}


def t_two_sided(t, df):
    t, df = mp.mpf(float(t)), mp.mpf(float(df))
    return mp.betainc(df / 2, mp.mpf(1) / 2, 0, df / (df + t * t), regularized=True)


def t_upper(t, df):
    half = t_two_sided(t, df) / 2
    return half if t >= 0 else 1 - half


def t_critical(alpha, df):
    """P(|T| > t) = alpha, refined from SciPy's value, which has ten digits."""
    start = stats.t.isf(alpha / 2, df)
    return mp.findroot(lambda t: t_two_sided_mp(t, df) - mp.mpf(repr(alpha)), mp.mpf(start))


def t_two_sided_mp(t, df):
    df = mp.mpf(float(df))
    return mp.betainc(df / 2, mp.mpf(1) / 2, 0, df / (df + t * t), regularized=True)


def show(label, *values):
    print("   ", label, ", ".join(v if isinstance(v, str) else mp.nstr(mp.mpf(v), 16) for v in values))


def t_tests(base, new):
    for name, equal in (("welch", False), ("student", True)):
        t = stats.ttest_ind(new, base, equal_var=equal).statistic
        v1, v2 = np.var(base, ddof=1), np.var(new, ddof=1)
        n1, n2 = len(base), len(new)
        if equal:
            df = n1 + n2 - 2
        else:
            a, b = v1 / n1, v2 / n2
            df = (a + b) ** 2 / (a * a / (n1 - 1) + b * b / (n2 - 1))
        show(name, t_two_sided(t, df))


def u_of_new(base, new):
    return sum((y > x) + 0.5 * (y == x) for y in new for x in base)


def exact_p_by_permutation(base, new):
    """Every way to share the midranks out; only for small samples."""
    ranks = stats.rankdata(np.concatenate([base, new]))
    sums = [2 * sum(c) for c in combinations(ranks, len(base))]
    at = 2 * sum(ranks[: len(base)])
    lower = sum(s <= at for s in sums)
    upper = sum(s >= at for s in sums)
    return min(1.0, 2 * min(lower, upper) / len(sums))


def u_counts(m, n):
    """The number of ways to each U: coefficients of the Gaussian binomial, in whole numbers."""
    counts = [1]
    for i in range(1, m + 1):
        # times (1 - q^(n+i)), then divided by (1 - q^i)
        grown = counts + [0] * (n + i)
        for u in range(len(counts)):
            grown[u + n + i] -= counts[u]
        for u in range(i, len(grown)):
            grown[u] += grown[u - i]
        counts = grown[: i * n + 1]
    assert sum(counts) == comb(m + n, m)
    return counts


def exact_tail(m, n, u):
    return mp.mpf(sum(u_counts(m, n)[: u + 1])) / comb(m + n, m)


def mann_whitney(base, new):
    u = u_of_new(base, new)
    tied = len(set(base) | set(new)) < len(base) + len(new)
    if not tied and len(base) + len(new) < 120:
        m, n = len(base), len(new)
        p = min(mp.mpf(1), 2 * exact_tail(m, n, int(min(u, m * n - u))))
        show("mann-whitney exact", p)
        if m * n < 1000:
            assert abs(stats.mannwhitneyu(new, base, method="exact").pvalue - p) < 1e-12
    elif len(base) + len(new) < 22:
        show("mann-whitney exact with ties", exact_p_by_permutation(base, new))
    asymptotic = stats.mannwhitneyu(new, base, method="asymptotic", use_continuity=True)
    assert asymptotic.statistic == u
    show("mann-whitney asymptotic", asymptotic.pvalue)


def equivalence(base, new, margin):
    x, y = np.log(base), np.log(new)
    a, b = np.var(x, ddof=1) / len(x), np.var(y, ddof=1) / len(y)
    df = (a + b) ** 2 / (a * a / (len(x) - 1) + b * b / (len(y) - 1))
    error, d, limit = np.sqrt(a + b), y.mean() - x.mean(), np.log1p(margin)
    p = max(t_upper((d + limit) / error, df), t_upper((limit - d) / error, df))
    show("tost %g" % margin, p)


for name, (base, new) in PAIRS.items():
    print(name, len(base), len(new))
    t_tests(base, new)
    mann_whitney(base, new)
    if min(base + new) > 0:
        equivalence(base, new, 0.05)
        equivalence(base, new, 0.3)

print("exact with ties, 50 and 50: by whole numbers")
base, new = [i % 17 for i in range(50)], [(i * 3 + 4) % 19 for i in range(50)]
doubled = [int(2 * r) for r in stats.rankdata(base + new)]
ways = [{0: 1}] + [{} for _ in range(50)]
for score in doubled:
    for k in range(50, 0, -1):
        for s, count in ways[k - 1].items():
            ways[k][s + score] = ways[k].get(s + score, 0) + count
at = sum(doubled[50:])
lower = sum(c for s, c in ways[50].items() if s <= at)
upper = sum(c for s, c in ways[50].items() if s >= at)
show("p", mp.mpf(2 * min(lower, upper)) / comb(100, 50))

print("critical values of t")
for alpha, df in ((0.05, 1), (0.05, 4), (0.05, 14.37), (0.01, 99), (1e-6, 2), (0.05, 19999), (0.9, 3), (1e-12, 1e6)):
    show("%r %r" % (alpha, df), t_critical(alpha, df))

print("tails of t")
for t, df in (
    (0.0, 3.0), (1e-9, 4.0), (0.1, 1.0), (1.0, 1.0), (2.5, 3.7), (2.776, 4.0), (12.0, 8.0), (40.0, 30.0), (1e5, 9.0),
    (1e150, 2.0), (30.0, 1000.0), (37.0, 1e5), (1.0, 198.0), (0.01, 2e6), (1.5, 2e6), (1.9, 2e6), (5.0, 2e6), (3.0, 1e9),
):
    show("%r %r" % (t, df), t_two_sided(t, df))
