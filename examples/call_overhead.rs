//! What a call costs over the work: times executions of one row of 64 and of no rows at all, which is the
//! whole call but the row, in turns. `cargo run --release --example call_overhead`

mod timing;

use norm as _;
use norm_sys as sys;
use timing::{Library, Problem, median};

const ROUNDS: usize = 2001;
const TIMES: usize = 500;

fn main() {
    let library = Library::linked();
    library.set_num_threads(1);
    println!("median ns of a call on 1x64, on 0x64, and of their difference");
    let scale_shift = sys::norm_use_scale | sys::norm_use_shift;
    let rms = sys::norm_use_scale | sys::norm_rms_norm;
    for (name, flags) in [("LayerNorm CH", scale_shift), ("RMSNorm CM", rms)] {
        let (row, none) =
            (Problem::new(library, 1, 64, flags), Problem::new(library, 0, 64, flags));
        let (mut rows, mut nones, mut differences) = (vec![], vec![], vec![]);
        for _ in 0..ROUNDS {
            let (row, none) = (row.time(TIMES), none.time(TIMES));
            rows.push(row);
            nones.push(none);
            differences.push(row - none);
        }
        let [row, none, difference] = [rows, nones, differences].map(median);
        println!("{name:13} {row:7.1} {none:7.1} {difference:7.1}");
    }
}
