"""Makes the expected values of two_samples/contrast.rs and of the weighted family in two_samples/family.rs.

Run: python3 reference_contrast.py     (made with SciPy 1.10.1, NumPy 1.24.2)
"""


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
    detectable = (t.isf(0.05) + t.isf(0.1)) * error
    both = 2 * t.sf(abs(difference) / error)
    if min(n1, n2) > 1:
        assert np.isclose(both, stats.ttest_ind(new, base).pvalue)
    return difference, sd, error, df, both, low, high, detectable


for name, (base, new) in CASES.items():
    print(name, ", ".join(repr(float(x)) for x in contrast(base, new)))
