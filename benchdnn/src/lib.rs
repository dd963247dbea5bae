//! The harness, linked with this library. `benchdnn-harness` has the code: it compiles while the kernels do, because it
//! only declares the C functions that it calls.

pub use benchdnn_harness::*;
use norm as _;
