//! Instructions are used only if they may be and compute what their manual says.

use super::*;

const RIGHT: usize = 0;
const ONE_CHAIN: usize = 1;
const UNUSABLE: usize = 2;

/// Products by scalars, in the documented order or another one.
struct Scalars<const KIND: usize>;

impl<const KIND: usize> Matrices for Scalars<KIND> {
    const ORDER: [usize; 4] = [0, 1, 2, 3];

    fn granted() -> &'static Granted {
        static ALL: [Granted; 3] = [const { Granted::new() }; 3];
        &ALL[KIND]
    }

    fn are_usable() -> bool {
        KIND != UNUSABLE
    }

    unsafe fn begin() {
        assert!(Self::are_usable());
    }

    unsafe fn end() {}

    unsafe fn multiply(product: &Product) {
        for (row, col) in (0..2 * LANES).flat_map(|row| (0..2 * LANES).map(move |col| (row, col))) {
            // SAFETY: the operands have these sizes.
            let term = |at: usize| unsafe {
                let left = product.left.wrapping_byte_add(row * product.left_step).add(at);
                let word = at / 2 * 2 * LANES + col % LANES * 2;
                let right = product.right[col / LANES].add(word + at % 2);
                [*left, *right].map(|bits| f32::from_bits(u32::from(bits) << 16))
            };
            let chain = |terms: &mut dyn Iterator<Item = usize>| {
                terms.map(term).fold(0.0f32, |sum, [a, b]| a.mul_add(b, sum))
            };
            let sum = (0..product.count).fold(0.0, |sum, tile| {
                let terms = tile * TERMS..(tile + 1) * TERMS;
                match KIND {
                    ONE_CHAIN => sum + chain(&mut terms.into_iter()),
                    _ => {
                        let (mut even, mut odd) =
                            (terms.clone().step_by(2), terms.skip(1).step_by(2));
                        sum + (chain(&mut even) + chain(&mut odd))
                    }
                }
            });
            // SAFETY: there are 32 rows of 32 results.
            unsafe { product.to.wrapping_byte_add(row * product.step).add(col).write(sum) };
        }
    }
}

#[test]
fn instructions_that_compute_something_else_are_not_used() {
    for _ in 0..2 {
        assert!(are_granted::<Scalars<RIGHT>>());
        assert!(!are_granted::<Scalars<ONE_CHAIN>>());
        assert!(!are_granted::<Scalars<UNUSABLE>>());
    }
}
