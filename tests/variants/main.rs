//! Every implementation of a problem gives the same bits: the vector implementations of each level
//! that the machine supports, and the reference, for every type, layout and attribute of layer
//! normalization.

mod attributes;
mod harness;
mod layouts;
mod types;
