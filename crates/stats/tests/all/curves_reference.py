"""Makes the expected values of curves.rs with NumPy and SciPy.

Run: python3 curves_reference.py     (made with SciPy 1.10.1, NumPy 1.24.2)
"""

from itertools import combinations

import numpy as np
from scipy.optimize import minimize, nnls

SIZES = np.array([512.0 * 4**i for i in range(8)])


def latency_bandwidth(times):
    """The fit by non-negative least squares of the relative error."""
    unit = np.array([times.max(), SIZES.max() / times.max()])
    design = np.column_stack([1 / times, SIZES / times])
    scale = np.abs(design).max(axis=0)
    (t0, b), _ = nnls(design / scale, np.ones(len(times)))
    t0, b = t0 / scale[0], b / scale[1]
    error = (t0 + SIZES * b) / times - 1
    return [float(v) for v in (t0, 1 / b, t0 / b, abs(error).max(), np.sqrt((error**2).mean()))]


noisy = (80e-6 + SIZES / 500e6) * np.array([1.02, 0.97, 1.01, 1.03, 0.99, 0.96, 1.02, 1.0])
superlinear = SIZES**1.1 / 500e6
print("noisy", latency_bandwidth(noisy))
print("superlinear", latency_bandwidth(superlinear))


def rss(x, y, w, knots):
    """Weighted least squares on 1, x, (x - knot)+."""
    design = np.column_stack([np.ones_like(x), x] + [np.maximum(x - k, 0) for k in knots])
    root = np.sqrt(w)[:, None]
    beta = np.linalg.lstsq(design * root, y * root[:, 0], rcond=None)[0]
    return float((w * (y - design @ beta) ** 2).sum())


def best_knots(x, y, w, count):
    """A fine grid over all places, then Nelder and Mead."""
    if count == 0:
        return [], rss(x, y, w, [])
    grid = np.arange(x[1], x[-2] + 1e-9, 0.125)
    sets = [c for c in combinations(grid, count) if all(b - a >= 1 for a, b in zip(c, c[1:]))]
    start = min(sets, key=lambda c: rss(x, y, w, c))

    def inside(knots):
        knots = sorted(knots)
        gaps = np.diff([x[0], *knots, x[-1]])
        return rss(x, y, w, knots) if gaps.min() >= 1 else np.inf

    found = minimize(inside, start, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-15, "maxiter": 9999})
    return sorted(float(k) for k in found.x), float(found.fun)


def trials(bent):
    """Five trials at each of 14 sizes: a median on the curve, and a spread that differs."""
    return [[2 ** (bent(i) + 0.01 * (1 + i % 3) * t) for t in (-2.0, -1.0, 0.0, 1.5, 3.0)] for i in range(14)]


def bent(i):
    x = 9.0 + i
    wiggle = 0.02 * np.sin(2.7 * i)
    return min(x, 13.4) + 0.25 * max(0.0, x - 13.4) - 0.6 * max(0.0, x - 18.7) + wiggle


def weights(values):
    logs = np.log2(np.array(values))
    n = logs.shape[1]
    mad = np.median(np.abs(logs - np.median(logs, axis=1)[:, None]), axis=1)
    own = (1.4826 * mad) ** 2
    typical = np.median(own[own > 0])
    v = np.pi / 2 * (own * (n - 1) + typical * 10) / (n - 1 + 10) / n
    return (1 / v) / np.mean(1 / v), 1 / np.mean(1 / v)


x = np.array([9.0 + i for i in range(14)])
values = trials(bent)
for name, data in [("repeated", values), ("single", [[v[2]] for v in values])]:
    y = np.log2(np.median(np.array(data), axis=1))
    w, noise = weights(data) if name == "repeated" else (np.ones(14), 0.0)
    for k in range(3):
        knots, square = best_knots(x, y, w, k)
        n, p = len(x), 2 * k + 2
        bic = n * np.log(max(square / n, noise, 1e-12)) + n * p * np.log(n) / (n - p - 2)
        print(name, k, knots, "bic", float(bic))
