//! Trials on files. One program, so that it is linked once; what needs a process of its own has a target beside this
//! one.

mod durability;
mod files;
mod groups;
mod layout;
mod open_loop;
mod requests;
mod striped;
mod trial;
mod verify;
