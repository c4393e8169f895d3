"""Simulates how often the interval of `ratio_of_medians` holds the true ratio, beside the alternative MOVER.

MOVER (Donner and Zou, Statistics in Medicine 31 (2012)) of the exact order-statistic intervals on the log scale is
safe too, and 10 to 40 % wider. Both samples have a population median of 1.

Run: python3 coverage_ratio.py     (a minute; made with SciPy 1.10.1, NumPy 1.24.2)
"""

import numpy as np
from scipy import stats

PAIRS = 100_000
Z = stats.norm.ppf(0.975)
draws = np.random.default_rng(1)


def price_bonett(x):
    n = x.shape[1]
    c = max(1, round(n / 2 - np.sqrt(n)))
    z = -stats.norm.ppf(stats.binom.cdf(c - 1, n, 0.5))
    return (np.log(x[:, n - c]) - np.log(x[:, c - 1])) / (2 * z)


def exact(x):
    n = x.shape[1]
    k = max(k for k in range(1, n // 2 + 1) if 1 - 2 * stats.binom.cdf(k - 1, n, 0.5) >= 0.95)
    return np.log(x[:, k - 1]), np.log(x[:, n - k])


def coverage(draw_base, draw_new, n1, n2):
    base, new = np.sort(draw_base(n1), axis=1), np.sort(draw_new(n2), axis=1)
    m1, m2 = np.log(np.median(base, axis=1)), np.log(np.median(new, axis=1))
    reach = Z * np.hypot(price_bonett(base), price_bonett(new))
    (l1, u1), (l2, u2) = exact(base), exact(new)
    low, high = m2 - m1 - np.hypot(m2 - l2, u1 - m1), m2 - m1 + np.hypot(u2 - m2, m1 - l1)
    holds, mover = np.mean(np.abs(m2 - m1) <= reach), np.mean((low <= 0) & (0 <= high))
    return "%.1f (MOVER %.1f, %.2f times as wide)" % (100 * holds, 100 * mover, np.median(high - low) / np.median(2 * reach))


def lognormal(sd):
    return lambda n: np.exp(sd * draws.standard_normal((PAIRS, n)))


def normal(n):
    return 1 + 0.1 * draws.standard_normal((PAIRS, n))


def exponential(n):
    return draws.exponential(1 / np.log(2), (PAIRS, n))


for n1, n2 in ((6, 6), (7, 7), (8, 8), (9, 9), (10, 10), (15, 15), (20, 20), (30, 30), (50, 50), (6, 20)):
    print(n1, n2)
    print("    normal, sd 10 %          ", coverage(normal, normal, n1, n2))
    print("    lognormal, sd 0.5        ", coverage(lognormal(0.5), lognormal(0.5), n1, n2))
    print("    lognormal, sd 0.1 and 0.5", coverage(lognormal(0.1), lognormal(0.5), n1, n2))
    print("    exponential              ", coverage(exponential, exponential, n1, n2))
