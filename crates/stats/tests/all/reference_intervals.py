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

# MOVER of the exact intervals of two medians, by ranks: 1 and 8 of eight, 2 and 9 of ten.
base = np.array([102.0, 98.5, 101.1, 97.0, 99.9, 100.4, 103.2, 96.1])
new = np.array([81.0, 79.5, 84.4, 78.8, 80.2, 82.9, 77.7, 80.9, 83.5, 79.1])
m1, m2 = np.log(np.median(base)), np.log(np.median(new))
(l1, u1), (l2, u2) = np.log(np.sort(base)[[0, 7]]), np.log(np.sort(new)[[1, 8]])
low = m2 - m1 - np.hypot(m2 - l2, u1 - m1)
high = m2 - m1 + np.hypot(u2 - m2, m1 - l1)
print("MOVER", repr(float(np.exp(m2 - m1))), repr(float(np.exp(low))), repr(float(np.exp(high))))
