//! Every descriptor that can be made describes memory within the address space, and its numbers are those of exact
//! arithmetic.

use crate::tensor::{DataType, Layout, MemoryDesc, Offsets, RowMap, letters_of};
use norm_sys as sys;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Sizes, strides and offsets: small numbers, powers of two, and numbers near the largest.
fn number() -> impl Strategy<Value = i64> {
    const EXTREME: &[i64] =
        &[i64::MAX, i64::MAX - 1, i64::MAX / 2, i64::MAX / 4, i64::MAX / 16, -1, i64::MIN];
    prop_oneof![
        6 => 0..6i64,
        2 => select(&[7i64, 16, 17, 31, 32, 64, 100, 1000][..]),
        1 => (0..63u32).prop_map(|bits| 1i64 << bits),
        1 => select(EXTREME),
    ]
}

fn data_type() -> impl Strategy<Value = DataType> {
    use DataType::{Bf16, F8E4m3, F8E5m2, F16, F32, F64, S8, S32, U8};
    select(&[F16, Bf16, F32, S32, S8, U8, F64, F8E5m2, F8E4m3][..])
}

/// How a descriptor is made.
#[derive(Clone, Debug)]
enum Making {
    Strides(Vec<(i64, i64)>),
    Dense(Vec<i64>),
    /// By a tag with as many dimensions as it has letters.
    Tag(Vec<i64>, u32),
    Letters(Vec<i64>, String),
    HostScalar,
}

fn making() -> impl Strategy<Value = Making> {
    prop_oneof![
        3 => vec((number(), number()), 1..13).prop_map(Making::Strides),
        1 => vec(number(), 1..13).prop_map(Making::Dense),
        2 => (vec(number(), 12), 0..900u32).prop_map(|(dims, tag)| Making::Tag(dims, tag)),
        2 => (vec(number(), 1..4), "[aA]?[bB]?[cC]?([0-9]{1,9}[abc]){0,4}")
            .prop_map(|(dims, letters)| Making::Letters(dims, letters)),
        1 => Just(Making::HostScalar),
    ]
}

impl Making {
    fn make(&self, data_type: DataType) -> Option<MemoryDesc> {
        match self {
            Self::Strides(dims) => {
                let (dims, strides): (Vec<_>, Vec<_>) = dims.iter().copied().unzip();
                MemoryDesc::with_strides(&dims, data_type, &strides).ok()
            }
            Self::Dense(dims) => MemoryDesc::dense(dims, data_type).ok(),
            Self::Tag(dims, tag) => {
                // The tag `any` has no letters.
                let letters = letters_of(*tag).unwrap_or("abc");
                let outer = letters.find(|c: char| c.is_ascii_digit()).unwrap_or(letters.len());
                MemoryDesc::with_tag(&dims[..outer.min(12)], data_type, *tag).ok()
            }
            Self::Letters(dims, letters) => MemoryDesc::with_letters(dims, data_type, letters).ok(),
            Self::HostScalar => MemoryDesc::host_scalar(data_type).ok(),
        }
    }
}

/// A way to derive a descriptor from another.
#[derive(Clone, Debug)]
enum Step {
    /// Sizes and offsets, reduced modulo those of the descriptor if they would be outside.
    Part(Vec<(i64, i64)>, bool),
    Reshape(Vec<i64>),
    /// The factors of the sizes, grouped differently.
    Regroup(Vec<bool>),
    Rotate(usize),
    Type(DataType),
    Like(Making),
    Statistics,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (vec((number(), number()), 12), any::<bool>()).prop_map(|(p, fit)| Step::Part(p, fit)),
        1 => vec(number(), 1..13).prop_map(Step::Reshape),
        2 => vec(any::<bool>(), 12).prop_map(Step::Regroup),
        1 => (0..12usize).prop_map(Step::Rotate),
        1 => data_type().prop_map(Step::Type),
        1 => making().prop_map(Step::Like),
        1 => Just(Step::Statistics),
    ]
}

/// A part of `desc`. Compares its offset with exact arithmetic.
fn part(desc: &MemoryDesc, wanted: &[(i64, i64)], fit: bool) -> Option<MemoryDesc> {
    let (mut dims, mut offsets) = (Vec::new(), Vec::new());
    for (&size, &(dim, offset)) in desc.dims().iter().zip(wanted) {
        let offset = if fit { offset.rem_euclid(size.saturating_add(1).max(1)) } else { offset };
        let left = size.saturating_sub(offset).max(0).saturating_add(1);
        dims.push(if fit { dim.rem_euclid(left.max(1)) } else { dim });
        offsets.push(offset);
    }
    let part = desc.part(&dims, &offsets).ok()?;
    assert_eq!(part.dims(), dims);
    let steps = (0..desc.ndims()).map(|d| {
        let blocks = desc.blocks().filter(|(of, _)| *of == d);
        let block: i128 = blocks.map(|(_, size)| i128::from(size)).product();
        i128::from(offsets[d]) / block * i128::from(desc.strides()[d])
    });
    assert_eq!(i128::from(part.offset()), i128::from(desc.offset()) + steps.sum::<i128>());
    Some(part)
}

/// Merges neighbouring dimensions of `desc` where a flag is set.
fn regrouped(desc: &MemoryDesc, merges: &[bool]) -> Option<MemoryDesc> {
    let mut dims: Vec<i64> = Vec::new();
    for (&dim, merge) in desc.dims().iter().zip(merges) {
        match dims.last_mut() {
            Some(last) if *merge => *last = last.checked_mul(dim)?,
            _ => dims.push(dim),
        }
    }
    let made = desc.reshaped(&dims).ok()?;
    let exact = |dims: &[i64]| dims.iter().map(|d| i128::from(*d)).product::<i128>();
    assert_eq!(exact(made.dims()), exact(desc.dims()));
    // The same elements at the same offsets.
    if made.layout() == Layout::Strided && exact(&dims) <= 1000 {
        let (from, to) = (Offsets::of(desc).unwrap(), Offsets::of(&made).unwrap());
        for flat in 0..exact(&dims) as usize {
            assert_eq!(from.offset(flat), to.offset(flat), "{desc:?} {made:?}");
        }
    }
    Some(made)
}

impl Step {
    fn take(&self, desc: &MemoryDesc) -> Option<MemoryDesc> {
        match self {
            Self::Part(wanted, fit) => part(desc, wanted, *fit),
            Self::Reshape(dims) => desc.reshaped(dims).ok(),
            Self::Regroup(merges) => regrouped(desc, merges),
            Self::Rotate(by) => {
                let n = desc.ndims();
                let to: Vec<_> = (0..n).map(|d| (d + by) % n).collect();
                Some(desc.permuted(&to))
            }
            Self::Type(data_type) => desc.with_data_type(*data_type).ok(),
            Self::Like(making) => {
                let other = making.make(DataType::F32)?;
                let fits = other.ndims() == desc.ndims() && other.layout() == Layout::Strided;
                if fits { desc.resolved_like(&other).ok() } else { desc.resolved_dense().ok() }
            }
            Self::Statistics => {
                let has_rows = desc.ndims() > 1 && desc.layout() == Layout::Strided;
                has_rows.then(|| desc.statistics().ok()).flatten()
            }
        }
    }
}

/// Checks what holds for every descriptor.
fn holds(desc: &MemoryDesc) {
    assert_eq!(MemoryDesc::of_blob(&desc.to_blob()).as_ref(), Ok(desc), "{desc:?}");
    assert!(desc.same_layout(desc) && desc.offset() >= 0, "{desc:?}");
    assert!(!desc.describe().to_string().is_empty());
    let (overlaps, dense) = (desc.overlaps_itself(), desc.is_dense());
    assert!(!(overlaps && dense), "{desc:?}");
    let element = desc.data_type().map_or(0, DataType::size) as i128;
    let (mut last, mut inside) = (i128::from(desc.offset()), 1);
    let mut index = Vec::new();
    for d in 0..desc.ndims() {
        let blocks = desc.blocks().filter(|(of, _)| *of == d);
        let block: i128 = blocks.map(|(_, size)| i128::from(size)).product();
        let padded = i128::from(desc.padded_dims()[d]);
        assert!(padded >= i128::from(desc.dims()[d]), "{desc:?}");
        last += ((padded + block - 1) / block - 1) * i128::from(desc.strides()[d]);
        inside *= block;
        index.push((desc.dims()[d] - 1).max(0));
    }
    let has_elements = desc.layout() == Layout::Strided && desc.ndims() > 0 && !desc.has_zero_dim();
    let exact = match desc.layout() {
        Layout::HostScalar => element,
        _ if has_elements => (last + inside) * element,
        _ => 0,
    };
    assert_eq!(desc.size() as i128, exact, "{desc:?}");
    assert!(exact <= isize::MAX as i128, "{desc:?}");
    if desc.layout() == Layout::Strided {
        let at = Offsets::of(desc).unwrap().offset_of(&index) as i128;
        let end = (i128::from(desc.offset()) + at + 1) * element;
        assert!(!has_elements || end <= exact, "{desc:?}");
        rows_lie_inside(desc, exact, element);
    }
}

/// Checks the address of the last row, as kernels compute it.
fn rows_lie_inside(desc: &MemoryDesc, size: i128, element: i128) {
    let Some(outer) = desc.ndims().checked_sub(1).filter(|n| *n <= RowMap::MAX_LEVELS) else {
        return;
    };
    if desc.is_blocked() {
        return;
    }
    let map = RowMap::new(&desc.dims()[..outer], &desc.strides()[..outer]);
    let rows: i64 = desc.dims()[..outer].iter().product();
    if rows > 0 && size > 0 {
        let first = map.offset(rows as usize - 1) as i128;
        assert!((i128::from(desc.offset()) + first + 1) * element <= size, "{desc:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 20_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn descriptors_are_sound(
        making in making(),
        data_type in data_type(),
        steps in vec(step(), 0..4),
    ) {
        let Some(mut desc) = making.make(data_type) else { return Ok(()) };
        holds(&desc);
        for step in steps {
            let Some(next) = step.take(&desc) else { continue };
            holds(&next);
            desc = next;
        }
    }

    #[test]
    fn forged_blobs_are_refused_or_sound(
        making in making(),
        data_type in data_type(),
        changes in vec((1..66usize, number()), 1..4),
    ) {
        let Some(desc) = making.make(data_type) else { return Ok(()) };
        let forged = desc.forged_blob(&changes);
        if let Ok(found) = MemoryDesc::of_blob(&forged) {
            holds(&found);
        }
    }
}

/// A valid descriptor with a part whose offset would overflow.
#[test]
fn a_part_beyond_the_address_space_is_refused() {
    let dims = [1, 1];
    let desc = MemoryDesc::with_strides(&dims, DataType::U8, &[i64::MAX, i64::MAX]).unwrap();
    assert!(desc.part(&[0, 0], &[1, 1]).is_err());
    assert!(desc.part(&[1, 0], &[0, 1]).is_err());
    assert_eq!(desc.part(&dims, &[0, 0]).as_ref(), Ok(&desc));
}
