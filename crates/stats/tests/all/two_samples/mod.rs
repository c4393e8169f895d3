//! Two samples, families and planning against SciPy, statsmodels, mpmath and published values.
//!
//! `reference_two_samples.py` and `reference_contrast.py` in the folder above made the numbers.

mod contrast;
mod data;
mod degenerate;
mod equivalence;
mod family;
mod power;
mod properties;
mod rank;
mod ratio;
mod t_test;
