//! The statistics against references, on simulated data, and by their properties. One program, so that it is
//! linked once.

mod changepoints;
mod curves;
mod diagnostics;
mod diagnostics_properties;
mod intervals;
mod lasting;
mod modality;
mod properties;
mod reference;
mod simulated;
mod two_samples;
