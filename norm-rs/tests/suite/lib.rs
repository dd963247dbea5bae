//! All of norm-rs, compared with plain f64 loops. A package of its own, so that it is compiled without optimization.
#![cfg(test)]

mod arguments;
mod around;
mod attention;
mod attributes;
mod backward;
mod concurrency;
mod data;
mod descriptors;
mod elementwise;
mod forward;
mod gated;
mod group_steps;
mod implementations;
mod in_place;
mod kv_cache;
mod layouts;
mod oracle;
mod raw;
mod reorder;
mod rope;
mod sdpa;
mod sdpa_quantized;
mod sdpa_slices;
mod shapes;
mod slices;
mod softmax;
mod together;
mod transformers;
mod windows;
