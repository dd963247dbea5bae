//! Every implementation of a problem gives the same bits: the reference, and the vector implementations of each level
//! that the machine supports, for every type, layout and attribute of layer normalization.

mod attributes;
mod harness;
mod layouts;
mod types;
