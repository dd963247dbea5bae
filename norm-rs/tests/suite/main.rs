//! All of norm-rs, compared with plain f64 loops.

mod arguments;
mod attributes;
mod backward;
mod concurrency;
mod data;
mod descriptors;
mod forward;
mod implementations;
mod layouts;
mod oracle;
mod reorder;
mod slices;
mod softmax;
