"""Makes the expected values of two_samples/family.rs.  Run: python3 reference_family.py     (statsmodels 0.13.5)"""

from statsmodels.stats.multitest import multipletests

P = [0.04, 0.001, 0.3, 0.011, 0.02, 0.02, 1.0, 0.005]
print([float(p) for p in multipletests(P, method="holm")[1]])
