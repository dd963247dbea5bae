//! Every implementation of a problem gives the same bits: the vector ones of each level that the machine has,
//! and the plain loops, for every type, layout and attribute that layer normalization takes.

mod attributes;
mod harness;
mod layouts;
mod types;
