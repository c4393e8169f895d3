//! Two samples, families and planning against SciPy, statsmodels, mpmath and published values.
//!
//! `reference_two_samples.py` and `reference_contrast.py` in the folder above made the numbers.

mod contrast;
mod data;
mod degenerate;
mod family;
mod p_values;
mod power;
mod properties;
