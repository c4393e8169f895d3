"""Makes the expected values of reference.rs with NumPy and SciPy, and quantiles of t with mpmath.

SciPy's quantiles of t have ten digits. Run: python3 reference.py     (made with SciPy 1.10.1, NumPy 1.24.2, mpmath 1.2.1)
"""

import mpmath as mp
import numpy as np
from scipy import stats

SAMPLES = {
    "five": [512.3, 498.7, 505.1, 530.9, 501.2],
    "six": [3.0, 1.0, 2.0, 6.0, 5.0, 4.0],
    "ten": [101.5, 99.2, 100.4, 98.7, 250.0, 100.9, 99.9, 100.1, 102.3, 97.8],
    "far": [1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16],
    "twenty-three": [float((7 * i) % 23) ** 1.5 for i in range(23)],
    "hundred": [np.sqrt(i) for i in range(100)],
}


mp.mp.dps = 30


def critical(df):
    def excess(t):
        return mp.betainc(mp.mpf(df) / 2, 0.5, 0, df / (df + t * t), regularized=True) - mp.mpf("0.05")

    return float(mp.findroot(excess, mp.mpf(stats.t.isf(0.025, df))))


def ranks(n, confidence):
    best = None
    for k in range(1, n // 2 + 1):
        coverage = 1 - 2 * stats.binom.cdf(k - 1, n, 0.5)
        if coverage >= confidence:
            best = (k, n + 1 - k, coverage)
    return best


for name, values in SAMPLES.items():
    x = np.array(values)
    n = len(x)
    q1, q3 = np.percentile(x, [25, 75])
    mean, sd = x.mean(), x.std(ddof=1)
    reach = critical(n - 1) * sd / np.sqrt(n)
    low, high = mean - reach, mean + reach
    print(name, n)
    print("  median %r q1 %r q3 %r" % (float(np.median(x)), float(q1), float(q3)))
    print("  mean %r sd %r t %r %r" % (float(mean), float(sd), float(low), float(high)))
    print("  mad %r cv %r" % (float(stats.median_abs_deviation(x)), float(stats.variation(x, ddof=1))))
    print("  ranks", ranks(n, 0.95))

for n in (6, 9, 17, 50, 1000, 20000):
    print("ranks", n, ranks(n, 0.95), ranks(n, 0.99))

print("coverage of ranks 499020 and 500981 of a million", 1 - 2 * stats.binom.cdf(499019, 1000000, 0.5))

for n in (2, 3, 5, 100, 20000):
    print("t", n, repr(critical(n - 1)))
