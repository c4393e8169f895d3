"""Makes the expected values of src/alternatives/signed_rank.rs and of interpolated intervals of the median with SciPy.

Run: python3 reference_intervals.py     (made with SciPy 1.17.1, NumPy 2.4.6)
"""

import numpy as np
from scipy import stats

# Hollander and Wolfe, Nonparametric Statistical Methods, table 3.1.
before = np.array([1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30])
after = np.array([0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29])
d = before - after
means = np.sort([(d[i] + d[j]) / 2 for i in range(len(d)) for j in range(i, len(d))])
chances = np.array([1.0])
for rank in range(1, len(d) + 1):
    chances = np.convolve(chances, [0.5] + [0.0] * (rank - 1) + [0.5])
tails = np.cumsum(chances)
k = int(np.sum(tails <= 0.025))
print("signed ranks", stats.wilcoxon(before, after).pvalue, np.median(means), means[k - 1], means[-k], 1 - 2 * tails[k - 1])

for n in (6, 7, 9, 10, 11, 20, 25):
    x = np.arange(1, n + 1) ** 1.5
    for confidence in (0.9, 0.95, 0.99):
        if 1 - 2 * 0.5**n >= confidence:
            low, high = stats.mstats.median_cihs(x, alpha=1 - confidence)
            print(f"({n}, {confidence}, {float(low)!r}, {float(high)!r}),")


def gap(x):
    x = np.sort(np.log(x))
    return np.diff(x).max() > 0.6 * np.sqrt(6 / len(x)) * (x[-1] - x[0])


def side(x, is_split):
    """The ends of the interval of the median, exact where a sample is split; of logarithms."""
    x = np.sort(np.log(x))
    n = len(x)
    k = max(k for k in range(1, n // 2 + 1) if 1 - 2 * stats.binom.cdf(k - 1, n, 0.5) >= 0.95)
    return (x[k - 1], x[n - k]) if is_split else stats.mstats.median_cihs(x, alpha=0.05)


i = np.arange(300)
eight = [102.0, 98.5, 101.1, 97.0, 99.9, 100.4, 103.2, 96.1]
for name, base, new in (
    ("ties", [1, 2, 2, 3, 3, 3, 4, 5], [2, 3, 3, 4, 4, 5, 5, 5, 6]),
    ("thirty", 100 + (37 * i[:30] % 31) ** 1.5, 110 + 1.25 * (17 * i[:28] % 29) ** 1.5),
    ("large", 50 + (37 * i[:200] % 211) ** 0.5, 50.5 + (53 * i % 307) ** 0.5),
    ("together", eight, [81.0, 79.5, 84.4, 78.8, 80.2, 82.9, 77.7, 80.9, 83.5, 79.1]),
    ("apart", eight, [81.0, 79.5, 84.4, 78.8, 80.2, 62.9, 61.7, 60.9, 63.5, 61.1]),
):
    m1, m2 = np.log(np.median(base)), np.log(np.median(new))
    is_split = gap(base) or gap(new)
    (l1, u1), (l2, u2) = side(base, is_split), side(new, is_split)
    reach = np.add if is_split else np.hypot
    low, high = m2 - m1 - reach(m2 - l2, u1 - m1), m2 - m1 + reach(u2 - m2, m1 - l1)
    print(name, *(repr(float(np.exp(x))) for x in (m2 - m1, low, high)))
