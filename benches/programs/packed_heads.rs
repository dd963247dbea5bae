//! Compares RMS norms of heads inside packed projections, using strides, with norms of dense heads: queries and
//! keys of 32 and 8 heads, in place and to dense outputs.
//!
//! `cargo run --release -p norm-benches --bin packed_heads`
//!
//! The two alternate in groups of calls, and the ratio is the median over neighbouring groups.

#[path = "../src/engine_calls.rs"]
mod engine_calls;

use engine_calls::{Setup, compare};
use norm_rs::info;
use norm_sys as sys;

const QUERIES: i64 = 32;
const KEYS: i64 = 8;

fn main() {
    let setup = Setup::new();
    println!("us dense, us packed, packed / dense");
    for threads in [1, 2] {
        info::set_num_threads(threads).expect("the number is legal");
        println!("{threads} threads");
        for (name, data_type) in [("bf16", sys::norm_bf16), ("f32", sys::norm_f32)] {
            for head in [64, 128] {
                for (heads, tokens) in [QUERIES, KEYS]
                    .into_iter()
                    .flat_map(|heads| [1, 32, 512, 4096].map(|tokens| (heads, tokens)))
                {
                    let dims = [tokens, heads, head];
                    let packed = [(QUERIES + 2 * KEYS) * head, head, 1];
                    let dense = setup.norm(&dims, [&[], &[]], data_type);
                    for (kind, strides) in
                        [("to packed", [&packed[..], &packed]), ("to dense", [&packed[..], &[]])]
                    {
                        let other = setup.norm(&dims, strides, data_type);
                        let [plain, strided, ratio] =
                            compare(|| setup.execute(&dense), || setup.execute(&other));
                        println!(
                            "{plain:9.2} {strided:9.2} {ratio:6.2}  {name} {tokens}x{heads}x{head} {kind}"
                        );
                    }
                }
            }
        }
    }
}
