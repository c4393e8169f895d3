//! The models against published values and against each other. One program, so that it is linked once.

mod catalogue;
mod disk;
mod drives;
mod flash;
mod hostile;
mod layout;
mod models;
mod parts;
