"""Makes the expected values of two_samples/contrast.rs and of the weighted family in two_samples/family.rs.

Run: python3 reference_contrast.py     (made with SciPy 1.10.1, NumPy 1.24.2)
"""

from itertools import combinations

import numpy as np
from scipy import stats

# Logarithms of the medians of runs.
BASE = [6.62, 6.60, 6.65, 6.61, 6.63, 6.58]
CASES = {
    "one new": (BASE, [6.51]),
    "one base": ([6.62], [6.51, 6.53, 6.50]),
    "two and two": ([6.62, 6.60], [6.51, 6.53]),
    "six and four": (BASE, [6.60, 6.64, 6.61, 6.66]),
}


def contrast(base, new):
    n1, n2 = len(base), len(new)
    df = n1 + n2 - 2
    squares = sum((x - np.mean(base)) ** 2 for x in base) + sum((x - np.mean(new)) ** 2 for x in new)
    sd = np.sqrt(squares / df)
    error = sd * np.sqrt(1 / n1 + 1 / n2)
    difference = np.mean(new) - np.mean(base)
    t = stats.t(df)
    low, high = t.interval(0.95, loc=difference, scale=error)
    within = max(t.sf((0.05 + difference) / error), t.sf((0.05 - difference) / error))
    detectable = (t.isf(0.05) + t.isf(0.1)) * error
    both = 2 * t.sf(abs(difference) / error)
    if min(n1, n2) > 1:
        assert np.isclose(both, stats.ttest_ind(new, base).pvalue)
    return difference, sd, error, df, both, t.sf(difference / error), low, high, within, detectable


def weighted_by_closure(p, weights):
    """The closed test: a hypothesis falls when every family that holds it falls by weighted Bonferroni."""
    m = len(p)
    adjusted = []
    for i in range(m):
        worst = 0.0
        for size in range(1, m + 1):
            for family in combinations(range(m), size):
                if i in family:
                    total = sum(weights[j] for j in family)
                    worst = max(worst, min(p[j] * total / weights[j] for j in family))
        adjusted.append(min(1.0, worst))
    return adjusted


for name, (base, new) in CASES.items():
    print(name, ", ".join(repr(float(x)) for x in contrast(base, new)))
P = [0.04, 0.001, 0.3, 0.011, 0.02, 0.6]
WEIGHTS = [1.0, 1.0, 1.0, 1.0, 1.0, 5.0]
print("holm_weighted", weighted_by_closure(P, WEIGHTS))
print("holm_weighted", weighted_by_closure([0.012] + P[1:5] + [0.02], WEIGHTS))
