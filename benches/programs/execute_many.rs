//! Compares `norm_primitive_execute_many` with executing the same primitives one by one: the RMS norms of queries, keys
//! and values in bf16, for the tokens of a prompt and for one token.
//!
//! `cargo run --release -p norm-benches --bin execute_many`
//!
//! The two ways alternate in groups of calls, and the ratio is the median over neighbouring groups.

#[path = "../src/engine_calls.rs"]
mod engine_calls;

use engine_calls::{Norm, Setup, compare, must};
use norm_rs::info;
use norm_sys as sys;

/// Rows and columns of the norms that run together.
const GROUPS: &[(&str, &[[i64; 2]])] = &[
    ("one token, 32 + 8 + 8 heads of 128", &[[32, 128], [8, 128], [8, 128]]),
    ("16 tokens, 32 + 8 + 8 heads of 128", &[[512, 128], [128, 128], [128, 128]]),
    ("512 tokens, 32 + 8 + 8 heads of 128", &[[16384, 128], [4096, 128], [4096, 128]]),
    ("one token of 4096, three times", &[[1, 4096]; 3]),
    ("8 tokens of 4096, three times", &[[8, 4096]; 3]),
    ("32 tokens of 4096, three times", &[[32, 4096]; 3]),
    ("512 tokens of 4096, three times", &[[512, 4096]; 3]),
    ("512 tokens of 4096, three times one token", &[[512, 4096], [1, 4096], [1, 4096], [1, 4096]]),
];

fn main() {
    let setup = Setup::new();
    println!("us one by one, us together, together / one by one");
    for threads in [1, 2] {
        info::set_num_threads(threads).expect("the number is legal");
        println!("{threads} threads");
        for (name, shapes) in GROUPS {
            let norm = |dims: &[i64; 2]| setup.norm(dims, [&[], &[]], sys::norm_bf16);
            let norms: Vec<Norm> = shapes.iter().map(norm).collect();
            let primitives: Vec<_> = norms.iter().map(|norm| norm.primitive.cast_const()).collect();
            let args: Vec<_> = norms.iter().map(|norm| norm.args.as_ptr()).collect();
            let (count, nargs) = (norms.len() as i32, vec![3; norms.len()]);
            // SAFETY: the handles are live, and each array has an entry for each primitive.
            let together = || unsafe {
                must(sys::norm_primitive_execute_many(
                    count,
                    primitives.as_ptr(),
                    setup.stream,
                    nargs.as_ptr(),
                    args.as_ptr(),
                ));
            };
            let [apart, together, ratio] =
                compare(|| norms.iter().for_each(|norm| setup.execute(norm)), together);
            println!("{apart:9.2} {together:9.2} {ratio:6.2}  {name}");
        }
    }
}
