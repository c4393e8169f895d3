"""Makes the expected values of src/dependent.rs with SciPy.

Run: python3 reference_trimmed.py     (made with SciPy 1.10.1, NumPy 1.24.2)
"""

import numpy as np
from scipy import stats

x = np.array([0.3, -0.1, 0.2, -0.2, 0.1, -0.3, 0.25, -0.05, 0.35, -9.0])
n = len(x)
cut = n // 5
kept = n - 2 * cut
mean = stats.trim_mean(x, 0.2)
sd = np.asarray(stats.mstats.winsorize(x, limits=(0.2, 0.2))).std(ddof=1)


def acf(lag):
    d = x - x.mean()
    return (d[: n - lag] * d[lag:]).sum() / (d * d).sum()


total = 0
for lag in range(0, n, 2):
    pair = acf(lag) + acf(lag + 1)
    if pair <= 0:
        break
    total += pair
worth = min(1, 1 / max(1, 2 * total - 1))
error = sd * np.sqrt((n - 1) / (kept * (kept - 1)) / worth)
df = max(kept * worth - 1, 1)
print("worth", worth, "mean", repr(float(mean)))
print("test", repr(float(2 * stats.t.sf(abs(mean / error), df))))
