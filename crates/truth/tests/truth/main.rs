//! Every row of the truth table, performed: the right number, the right verdict, the right flags.

mod arm64;
mod bare;
mod cache;
mod causes;
mod containers;
mod devices;
mod faults;
mod fio_examples;
#[path = "../../../../instruments/fit/tests/truth.rs"]
mod fit;
mod gates;
mod holes;
mod hostile;
mod killed;
mod limits;
mod oldest;
#[path = "../../../../instruments/cluster/tests/truth.rs"]
mod ranks;
mod rows;
#[path = "../../../../instruments/models/tests/truth.rs"]
mod serve;
mod settings;
mod silence;
mod slo;
mod space;
mod speed;
mod stacks;
mod stage;
mod stages;
mod swaps;
mod tables;
mod traces;
mod verify;
mod vm;
mod witness;
mod witness_rows;
