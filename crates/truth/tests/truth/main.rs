//! Every row of the truth table, performed: the right number, the right verdict, the right flags.

mod cache;
mod containers;
mod devices;
mod faults;
mod fit;
mod gates;
mod holes;
mod hostile;
mod killed;
mod lent;
mod limits;
mod ranks;
mod requests;
mod serve;
mod slo;
mod space;
mod speed;
mod stacks;
mod stage;
mod stages;
mod swaps;
mod tables;
mod verify;
mod witness;
mod witness_device;
