"""Makes the expected values of the bootstrap tests: the generator of random.rs, and SciPy's BCa on its resamples.

Run: python3 reference_bootstrap.py     (made with SciPy 1.10.1, NumPy 1.24.2)
"""

import numpy as np
from scipy import stats
from scipy.stats._resampling import _bca_interval

MASK = (1 << 64) - 1


class Resampler:
    """xoshiro256++ seeded by SplitMix64; bounded numbers by Lemire's multiplication."""

    def __init__(self, seed):
        self.state = []
        for _ in range(4):
            seed = (seed + 0x9E3779B97F4A7C15) & MASK
            z = seed
            z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
            self.state.append(z ^ (z >> 31))

    def index(self, n):
        def turn(x, k):
            return ((x << k) | (x >> (64 - k))) & MASK

        s = self.state
        result = (turn((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = turn(s[3], 45)
        return (result * n) >> 64


def bca(data, statistic, confidence, resamples, seed):
    data, draws = np.sort(data), Resampler(seed)
    values = np.array([statistic(data[[draws.index(len(data)) for _ in data]], axis=-1) for _ in range(resamples)])
    alpha = (1 - confidence) / 2
    low, high, acceleration = _bca_interval((data,), statistic, -1, alpha, values, None)
    estimate = statistic(data, axis=-1)
    share = (np.sum(values < estimate) + np.sum(values <= estimate)) / 2 / resamples
    print("    bias %r acceleration %r" % (float(stats.norm.ppf(share)), float(acceleration)))
    return tuple(float(x) for x in np.percentile(values, [100 * low, 100 * high]))


def variation(x, axis):
    return np.std(x, axis=axis, ddof=1) / np.mean(x, axis=axis)


print("indexes", [(lambda r: [r.index(1000) for _ in range(12)])(Resampler(42))])
# Whole numbers and a power of two of them, so that means are exact in any order of adding.
SKEWED = np.array([(i * 13 % 37) ** 2 + 3.0 for i in range(32)])
OUTLIER = np.array([1015, 992, 1004, 987, 2500, 1009, 999, 1001, 1023, 978, 985, 1011, 1040, 995, 1006, 972.0])
for name, data, statistic, confidence, resamples, seed in (
    ("mean of skewed", SKEWED, np.mean, 0.95, 2000, 1),
    ("mean with an outlier", OUTLIER, np.mean, 0.9, 999, 7),
    ("variation of skewed", SKEWED, variation, 0.95, 2000, 3),
    ("median of skewed", SKEWED, np.median, 0.95, 1000, 5),
):
    print(name, bca(data, statistic, confidence, resamples, seed))
