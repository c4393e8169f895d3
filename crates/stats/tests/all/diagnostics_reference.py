"""Makes the expected values of diagnostics.rs with NumPy, SciPy, statsmodels and mpmath.

Run: python3 diagnostics_reference.py
(made with SciPy 1.10.1, NumPy 1.24.2, statsmodels 0.13.5, mpmath 1.2.1)
"""

import mpmath as mp
import numpy as np
from scipy import stats
from statsmodels.stats.diagnostic import acorr_ljungbox
from statsmodels.tsa.stattools import acf

SERIES = {
    "ten": [101.5, 99.2, 100.4, 98.7, 250.0, 100.9, 99.9, 100.1, 102.3, 97.8],
    "drift": [1.0, 2.5, 2.0, 4.0, 3.5, 5.5, 5.0, 7.5, 6.5, 9.0, 8.5, 8.0],
    "ties": [3.0, 1.0, 3.0, 2.0, 2.0, 4.0, 4.0, 4.0, 5.0, 3.0, 5.0, 6.0, 5.0, 5.0],
    "forty": [float((17 * i) % 41) ** 0.5 + 0.02 * i for i in range(40)],
    "wave": [float((7 * i) % 23) + 0.25 * i for i in range(60)],
    "long": [float((37 * i) % 101) ** 0.5 + 0.01 * i for i in range(300)],
}


def geyer(x):
    n = len(x)
    rho = np.append(acf(x, nlags=n - 1, adjusted=False, fft=False), 0.0)
    total = 0.0
    for m in range(0, n, 2):
        pair = rho[m] + rho[m + 1]
        if pair <= 0:
            break
        total += pair
    return float(max(1.0, n / max(2 * total - 1, 1.0)))


def kendall(x):
    n = len(x)
    tau = stats.kendalltau(range(n), x)[0]
    s = sum(np.sign(x[j] - x[i]) for i in range(n) for j in range(i + 1, n))
    ties = [x.count(v) for v in set(x)]
    if max(ties) == 1 and n <= 50:
        return float(tau), float(stats.kendalltau(range(n), x, method="exact")[1])
    var = (n * (n - 1) * (2 * n + 5) - sum(t * (t - 1) * (2 * t + 5) for t in ties)) / 18
    return float(tau), float(2 * stats.norm.sf((abs(s) - 1) / np.sqrt(var)))


mp.mp.dps = 40

for name, x in SERIES.items():
    print(name, len(x))
    rho = acf(x, nlags=5, adjusted=False, fft=False)
    print("  acf", [float(r) for r in rho[1:]])
    table = acorr_ljungbox(x, lags=[1, 5, 8])
    print("  ljung-box", [(int(k), float(q), float(p)) for k, (q, p) in zip(table.index, table.values)])
    print("  effective", geyer(x))
    print("  kendall", kendall(x))
    print("  slope", float(stats.theilslopes(x, np.arange(len(x)))[0]))


def upper_tail(n, q, k):
    """P(B >= k); above a million draws SciPy keeps six digits only, so that mpmath integrates."""
    if n < 10**6:
        return float(stats.binom.sf(k - 1, n, q))
    q = mp.mpf(q)
    a, b = mp.mpf(k), mp.mpf(n - k + 1)
    scale = mp.loggamma(a + b) - mp.loggamma(a) - mp.loggamma(b)
    step = mp.sqrt(q * (1 - q) / n)
    return float(
        mp.quad(
            lambda t: mp.exp((a - 1) * mp.log(t) + (b - 1) * mp.log(1 - t) + scale),
            [q - i * step for i in range(12, -1, -1)],
        )
    )


def lower_tail(n, q, k):
    """P(B <= k), as the upper tail of the mirror image."""
    if n < 10**6:
        return float(stats.binom.cdf(k, n, q))
    return upper_tail(n, 1 - mp.mpf(q), n - k)


def quantile_ranks(n, q, confidence):
    allowed = (1 - confidence) / 2
    low = int(stats.binom.ppf(allowed, n, q))
    # The greatest l with P(B <= l - 1) <= allowed; ppf is close to it.
    while lower_tail(n, q, low) <= allowed:
        low += 1
    while low >= 1 and lower_tail(n, q, low - 1) > allowed:
        low -= 1
    high = int(stats.binom.isf(allowed, n, q))
    while upper_tail(n, q, high - 1) <= allowed:
        high -= 1
    while upper_tail(n, q, high) > allowed:
        high += 1
    if low < 1 or high > n:
        return None
    return low, high, 1 - lower_tail(n, q, low - 1) - upper_tail(n, q, high)


for n, q, confidence in [
    (20, 0.5, 0.95),
    (40, 0.9, 0.95),
    (400, 0.99, 0.95),
    (1000, 0.25, 0.99),
    (5000, 0.999, 0.95),
    (100_000, 0.999, 0.95),
    (1_000_000, 0.5, 0.95),
    (3_000_000, 0.99, 0.9),
    (10**9, 0.9999, 0.95),
    (10**9, 0.5, 0.99),
    (10**12, 0.99, 0.95),
    (10**12, 0.5, 0.95),
]:
    print("ranks", n, q, confidence, quantile_ranks(n, q, confidence))
