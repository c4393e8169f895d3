"""Makes the expected values of two_samples/power.rs with SciPy, statsmodels and mpmath.

Run: python3 reference_power.py     (two minutes; made with SciPy 1.10.1, statsmodels 0.13.5, mpmath 1.2.1)
"""

import mpmath as mp
import numpy as np
from scipy import integrate, special, stats
from statsmodels.stats.power import TTestIndPower

mp.mp.dps = 30


def critical(alpha, df):
    def excess(t):
        return mp.betainc(mp.mpf(df) / 2, 0.5, 0, df / (df + t * t), regularized=True) - mp.mpf(repr(alpha))

    return mp.findroot(excess, mp.mpf(stats.t.isf(alpha / 2, df)))


def mean_over_spread(df, f, most=None):
    """The mean of f(s) over s = sqrt(chi^2_df / df)."""
    a = mp.mpf(df) / 2

    def integrand(s):
        return f(s) * mp.exp(a * mp.log(a) - mp.loggamma(a) + (df - 1) * mp.log(s) - a * s * s) * 2

    width = 12 / mp.sqrt(2 * df)
    low, high = max(mp.mpf("1e-30"), 1 - width), 1 + width + mp.mpf(14) / df
    if most is not None:
        high = min(high, most)
    return mp.quad(integrand, mp.linspace(low, high, 12)) if high > low else mp.mpf(0)


def power(n, effect, alpha):
    df = 2 * n - 2
    t, d = critical(alpha, df), mp.mpf(repr(effect)) * mp.sqrt(mp.mpf(n) / 2)
    return mean_over_spread(df, lambda s: mp.ncdf(d - t * s) + mp.ncdf(-d - t * s))


def power_of_tost(n, margin, truth, sd, alpha):
    """By Owen's Q, in double precision."""
    df = 2 * n - 2
    t = stats.t.isf(alpha, df)
    error = sd * np.sqrt(2 / n)
    above, below = (margin - truth) / error, (margin + truth) / error
    most = (above + below) / 2 / t

    def integrand(s):
        log_density = np.log(2) + df / 2 * np.log(df / 2) - special.gammaln(df / 2) + (df - 1) * np.log(s) - df / 2 * s * s
        return (stats.norm.cdf(above - t * s) - stats.norm.cdf(t * s - below)) * np.exp(log_density)

    points = [p for p in (0.25, 0.5, 0.75, 1.0, 1.25, 1.5) if p < most]
    edges = [0.0] + points + [min(most, 10.0)]
    return sum(integrate.quad(integrand, a, b, epsabs=1e-13, epsrel=1e-12)[0] for a, b in zip(edges, edges[1:]))


def least(f, wanted):
    n = 2
    while f(n) < wanted:
        n += 1
    return n


print("power of the t test")
for n, effect, alpha in (
    (2, 0.5, 0.05), (2, 30.0, 0.001), (3, 2.0, 0.05), (10, 0.0, 0.05), (10, 1.0, 0.05), (20, 0.5, 0.01), (64, 0.5, 0.05),
    (64, -0.5, 0.05), (1000, 0.1, 0.001), (50000, 0.02, 0.05), (30, 3.0, 0.05), (5, 0.01, 1e-6),
):
    exact = power(n, abs(effect), alpha)
    df, d, t = 2 * n - 2, abs(effect) * np.sqrt(n / 2), float(critical(alpha, 2 * n - 2))
    scipy = stats.nct.sf(t, df, d) + stats.nct.cdf(-t, df, d)
    models = TTestIndPower().power(abs(effect), n, alpha)
    print("    (%d, %r, %r, %s), // scipy %.12g statsmodels %.12g" % (n, effect, alpha, mp.nstr(exact, 16), scipy, models))

print("trials for a difference")
for effect, alpha, wanted in ((0.2, 0.05, 0.8), (0.5, 0.05, 0.8), (0.8, 0.05, 0.8), (1.5, 0.01, 0.95), (10.0, 0.05, 0.9)):
    n = least(lambda n: TTestIndPower().power(effect, n, alpha), wanted)
    print("    (%r, %r, %r, %d)," % (effect, alpha, wanted, n))

print("power of tost")
crossover = np.sqrt(np.log(1.04)) / np.sqrt(2), np.sqrt(np.log(1.09)) / np.sqrt(2)
for n, margin, truth, sd, alpha in (
    (10, np.log(1.25), np.log(0.95), crossover[0], 0.05),
    (20, np.log(1.25), np.log(0.95), crossover[1], 0.05),
    (5, np.log(1.05), 0.0, 0.02, 0.05),
    (5, np.log(1.05), 0.0, 0.05, 0.05),
    (30, np.log(1.05), 0.02, 0.05, 0.01),
    (400, np.log(1.01), -0.002, 0.05, 0.05),
    (2, np.log(1.05), 0.01, 0.01, 0.05),
):
    print("    (%d, %r, %r, %r, %r, %.15g)," % (n, margin, truth, sd, alpha, power_of_tost(n, margin, truth, sd, alpha)))

print("trials for equivalence")
for margin, truth, sd, alpha, wanted in (
    (np.log(1.25), np.log(0.95), crossover[0], 0.05, 0.8),
    (np.log(1.25), np.log(0.95), crossover[1], 0.05, 0.8),
    (np.log(1.05), 0.0, 0.02, 0.05, 0.8),
    (np.log(1.05), 0.0, 0.05, 0.05, 0.9),
    (np.log(1.05), 0.03, 0.05, 0.05, 0.8),
    (np.log(1.01), 0.0, 0.1, 0.05, 0.8),
):
    n = least(lambda n: power_of_tost(n, margin, truth, sd, alpha), wanted)
    print("    (%r, %r, %r, %r, %r, %d)," % (margin, truth, sd, alpha, wanted, n))
