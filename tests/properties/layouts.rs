//! Properties of memory descriptors and layouts, for generated shapes, orders, gaps and blocks. A failing case is
//! shrunk to a small one.

use norm as _;
use norm_sys as sys;
use proptest::prelude::*;
use std::ffi::{CString, c_void};
use std::ptr::null_mut;

fn check(status: sys::norm_status_t) {
    assert_eq!(status, sys::norm_success);
}

/// A descriptor that is destroyed with this value.
#[derive(Debug)]
struct Desc(sys::norm_memory_desc_t);

impl Drop for Desc {
    fn drop(&mut self) {
        // SAFETY: a live handle that is not used again.
        check(unsafe { sys::norm_memory_desc_destroy(self.0) });
    }
}

/// The layout of a tensor.
#[derive(Clone, Debug)]
enum Layout {
    /// The dimensions from outermost to innermost, and the number of unused elements after each.
    Strides(Vec<usize>, Vec<i64>),
    /// The letters of the dimensions from outermost to innermost, and the blocks of some of them.
    Blocks(Vec<usize>, Vec<(usize, i64)>),
}

fn layout(ndims: usize) -> impl Strategy<Value = Layout> {
    let order = Just((0..ndims).collect::<Vec<_>>()).prop_shuffle();
    let gaps = prop::collection::vec(0i64..3, ndims);
    let blocks = prop::collection::vec((0..ndims, 2i64..5), 0..3);
    prop_oneof![
        (order.clone(), gaps).prop_map(|(order, gaps)| Layout::Strides(order, gaps)),
        (order, blocks).prop_map(|(order, blocks)| Layout::Blocks(order, blocks)),
    ]
}

fn shape() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(1i64..6, 1..5)
}

impl Desc {
    // SAFETY of the blocks below: live handles, and arrays of as many elements as are passed.
    #[allow(clippy::undocumented_unsafe_blocks)]
    fn new(dims: &[i64], layout: &Layout) -> Self {
        let (mut desc, n) = (null_mut(), dims.len() as i32);
        match layout {
            Layout::Strides(order, gaps) => {
                let (mut strides, mut stride) = (vec![0; dims.len()], 1);
                for &d in order.iter().rev() {
                    strides[d] = stride;
                    stride = stride * dims[d] + gaps[d];
                }
                check(unsafe {
                    let (dims, strides) = (dims.as_ptr(), strides.as_ptr());
                    let out = &raw mut desc;
                    sys::norm_memory_desc_create_with_strides(out, n, dims, sys::norm_f32, strides)
                });
            }
            Layout::Blocks(order, blocks) => {
                let letter = |d: usize, first: u8| char::from(first + d as u8);
                let is_blocked = |d: usize| blocks.iter().any(|b| b.0 == d);
                let outer =
                    order.iter().map(|&d| letter(d, if is_blocked(d) { b'A' } else { b'a' }));
                let inner = blocks.iter().map(|&(d, size)| format!("{size}{}", letter(d, b'a')));
                let text = outer.collect::<String>() + &inner.collect::<String>();
                let text = CString::new(text).expect("letters");
                check(unsafe {
                    let (dims, text) = (dims.as_ptr(), text.as_ptr());
                    let out = &raw mut desc;
                    sys::norm_memory_desc_create_with_string_tag(out, n, dims, sys::norm_f32, text)
                });
            }
        }
        Self(desc)
    }

    #[allow(clippy::undocumented_unsafe_blocks)]
    fn numbers(&self, what: sys::norm_query_t, count: usize) -> Vec<i64> {
        let mut lent: *const i64 = std::ptr::null();
        unsafe {
            check(sys::norm_memory_desc_query(self.0, what, (&raw mut lent).cast::<c_void>()));
            std::slice::from_raw_parts(lent, count).to_vec()
        }
    }

    #[allow(clippy::undocumented_unsafe_blocks)]
    fn number<T: Default>(&self, what: sys::norm_query_t) -> T {
        let mut number = T::default();
        check(unsafe {
            sys::norm_memory_desc_query(self.0, what, (&raw mut number).cast::<c_void>())
        });
        number
    }

    fn size(&self) -> usize {
        // SAFETY: a live handle.
        unsafe { sys::norm_memory_desc_get_size(self.0) }
    }

    fn equals(&self, other: &Self) -> bool {
        // SAFETY: live handles.
        unsafe { sys::norm_memory_desc_equal(self.0, other.0) == 1 }
    }

    /// The offset of every element in the buffer, in logical order, computed from queries.
    fn places(&self) -> Vec<i64> {
        let ndims = self.number::<i32>(sys::norm_query_ndims_s32) as usize;
        let count = self.number::<i32>(sys::norm_query_inner_nblks_s32) as usize;
        let dims = self.numbers(sys::norm_query_dims, ndims);
        let strides = self.numbers(sys::norm_query_strides, ndims);
        let sizes = self.numbers(sys::norm_query_inner_blks, count);
        let of = self.numbers(sys::norm_query_inner_idxs, count);
        let offset: i64 = self.number(sys::norm_query_submemory_offset_s64);
        let place = |index: &[i64]| {
            let mut index = index.to_vec();
            let (mut place, mut step) = (offset, 1);
            for (size, d) in sizes.iter().zip(&of).rev() {
                let d = *d as usize;
                place += index[d] % size * step;
                index[d] /= size;
                step *= size;
            }
            place + index.iter().zip(&strides).map(|(i, stride)| i * stride).sum::<i64>()
        };
        indices(&dims).iter().map(|index| place(index)).collect()
    }
}

/// Every index in logical order.
fn indices(dims: &[i64]) -> Vec<Vec<i64>> {
    dims.iter().fold(vec![vec![]], |all, &dim| {
        all.iter()
            .flat_map(|index| (0..dim).map(move |i| index.iter().copied().chain([i]).collect()))
            .collect()
    })
}

/// A buffer with `values` at the offsets of the descriptor's elements.
fn scattered(desc: &Desc, values: &[f32]) -> Vec<f32> {
    let mut buffer = vec![f32::NAN; desc.size() / 4];
    for (place, value) in desc.places().iter().zip(values) {
        buffer[*place as usize] = *value;
    }
    buffer
}

fn gathered(desc: &Desc, buffer: &[f32]) -> Vec<u32> {
    desc.places().iter().map(|place| buffer[*place as usize].to_bits()).collect()
}

/// Runs a primitive over f32 buffers.
// SAFETY of the block: live handles, and buffers of their descriptors' sizes.
#[allow(clippy::undocumented_unsafe_blocks)]
fn run(
    problem: impl FnOnce(*mut sys::norm_primitive_desc_t, sys::norm_engine_t) -> u32,
    args: &mut [(i32, &Desc, &mut Vec<f32>)],
) {
    unsafe {
        let (mut engine, mut stream, mut desc, mut primitive) =
            (null_mut(), null_mut(), null_mut(), null_mut());
        check(sys::norm_engine_create(&raw mut engine, sys::norm_cpu, 0));
        check(sys::norm_stream_create(&raw mut stream, engine, sys::norm_stream_in_order));
        check(problem(&raw mut desc, engine));
        check(sys::norm_primitive_create(&raw mut primitive, desc));
        let memories: Vec<sys::norm_exec_arg_t> = args
            .iter_mut()
            .map(|(arg, desc, buffer)| {
                let mut memory = null_mut();
                let handle = buffer.as_mut_ptr().cast();
                check(sys::norm_memory_create(&raw mut memory, desc.0, engine, handle));
                sys::norm_exec_arg_t { arg: *arg, memory }
            })
            .collect();
        let count = memories.len() as i32;
        check(sys::norm_primitive_execute(primitive, stream, count, memories.as_ptr()));
        memories.iter().for_each(|m| check(sys::norm_memory_destroy(m.memory)));
        check(sys::norm_primitive_destroy(primitive));
        check(sys::norm_primitive_desc_destroy(desc));
        check(sys::norm_stream_destroy(stream));
        check(sys::norm_engine_destroy(engine));
    }
}

fn reorder(from: &Desc, src: &mut Vec<f32>, to: &Desc, dst: &mut Vec<f32>) {
    let create = |out, engine| {
        // SAFETY: live handles.
        unsafe {
            let attr = std::ptr::null();
            sys::norm_reorder_primitive_desc_create(out, from.0, engine, to.0, engine, attr)
        }
    };
    run(create, &mut [(sys::NORM_ARG_FROM, from, src), (sys::NORM_ARG_TO, to, dst)]);
}

/// A shape, and layouts for it.
fn tensor<const N: usize>() -> impl Strategy<Value = (Vec<i64>, [Layout; N])> {
    shape().prop_flat_map(|dims| {
        let layouts: [_; N] = std::array::from_fn(|_| layout(dims.len()));
        (Just(dims), layouts)
    })
}

proptest! {
    #[test]
    fn elements_have_places_of_their_own((dims, [layout]) in tensor::<1>()) {
        let desc = Desc::new(&dims, &layout);
        let mut places = desc.places();
        prop_assert!(places.iter().all(|p| (*p as usize) < desc.size() / 4));
        places.sort_unstable();
        places.dedup();
        prop_assert_eq!(places.len() as i64, dims.iter().product::<i64>());
    }

    #[test]
    fn a_part_is_the_parents_elements((dims, [layout]) in tensor::<1>(), picks in prop::collection::vec((0i64..6, 1i64..6), 4)) {
        let desc = Desc::new(&dims, &layout);
        let part: Vec<(i64, i64)> = dims.iter().zip(picks).map(|(dim, (at, len))| (at % dim, len.min(dim - at % dim))).collect();
        let (offsets, sizes): (Vec<i64>, Vec<i64>) = part.iter().copied().unzip();
        let mut made = null_mut();
        // SAFETY: a live handle, and arrays of its dimensions.
        let status = unsafe { sys::norm_memory_desc_create_submemory(&raw mut made, desc.0, sizes.as_ptr(), offsets.as_ptr()) };
        // Blocks cannot be split.
        prop_assume!(status == sys::norm_success);
        let made = Desc(made);
        let inside = |index: &Vec<i64>| index.iter().zip(&part).all(|(i, (at, len))| (*at..at + len).contains(i));
        let expected: Vec<i64> = indices(&dims).iter().zip(desc.places()).filter(|(index, _)| inside(index)).map(|(_, place)| place).collect();
        prop_assert_eq!(made.places(), expected);
        prop_assert!(made.size() <= desc.size());
    }

    #[test]
    fn permuting_back_restores((dims, [layout]) in tensor::<1>(), seed in 0usize..24) {
        let desc = Desc::new(&dims, &layout);
        let n = dims.len();
        let to: Vec<i32> = (0..n).map(|d| ((d + seed) % n) as i32).collect();
        let mut back = vec![0i32; n];
        (0..n).for_each(|d| back[to[d] as usize] = d as i32);
        let (mut there, mut again) = (null_mut(), null_mut());
        // SAFETY: live handles, and as many axes as dimensions.
        unsafe {
            check(sys::norm_memory_desc_permute_axes(&raw mut there, desc.0, to.as_ptr()));
            check(sys::norm_memory_desc_permute_axes(&raw mut again, there, back.as_ptr()));
        }
        let (there, again) = (Desc(there), Desc(again));
        prop_assert!(again.equals(&desc));
        prop_assert_eq!(there.size(), desc.size());
        let told = there.numbers(sys::norm_query_dims, n);
        prop_assert!((0..n).all(|d| told[to[d] as usize] == dims[d]));
    }

    #[test]
    fn a_reshape_keeps_places((dims, [layout]) in tensor::<1>(), at in 0usize..4) {
        let desc = Desc::new(&dims, &layout);
        let mut joined = dims.clone();
        let at = at % dims.len();
        if at + 1 < joined.len() {
            joined[at] *= joined.remove(at + 1);
        }
        joined.insert(at, 1);
        let mut made = null_mut();
        // SAFETY: a live handle, and as many dimensions as are passed.
        let status = unsafe { sys::norm_memory_desc_reshape(&raw mut made, desc.0, joined.len() as i32, joined.as_ptr()) };
        // Only dense dimensions can be joined.
        prop_assume!(status == sys::norm_success);
        prop_assert_eq!(Desc(made).places(), desc.places());
    }

    #[test]
    fn a_blob_restores((dims, [layout]) in tensor::<1>()) {
        let desc = Desc::new(&dims, &layout);
        let (mut size, mut made) = (0, null_mut());
        // SAFETY: the blob has the size that the library returned.
        unsafe {
            check(sys::norm_memory_desc_get_blob(null_mut(), &raw mut size, desc.0));
            let mut blob = vec![0u8; size];
            check(sys::norm_memory_desc_get_blob(blob.as_mut_ptr(), &raw mut size, desc.0));
            check(sys::norm_memory_desc_create_with_blob(&raw mut made, blob.as_ptr()));
        }
        let made = Desc(made);
        prop_assert!(made.equals(&desc));
        prop_assert_eq!(made.places(), desc.places());
    }

    #[test]
    fn a_reorder_there_and_back_restores((dims, [first, second]) in tensor::<2>()) {
        let (a, b) = (Desc::new(&dims, &first), Desc::new(&dims, &second));
        let values: Vec<f32> = (0..dims.iter().product::<i64>()).map(|i| i as f32 - 7.5).collect();
        let bits: Vec<u32> = values.iter().map(|x| x.to_bits()).collect();
        let (mut src, mut dst) = (scattered(&a, &values), vec![f32::NAN; b.size() / 4]);
        reorder(&a, &mut src, &b, &mut dst);
        prop_assert_eq!(&gathered(&b, &dst), &bits);
        let mut again = vec![f32::NAN; a.size() / 4];
        reorder(&b, &mut dst, &a, &mut again);
        prop_assert_eq!(&gathered(&a, &again), &bits);
    }

    #[test]
    fn normalization_does_not_depend_on_the_layout((dims, [first, second]) in tensor::<2>(), rms in any::<bool>()) {
        let plain = |layout: &Layout| !matches!(layout, Layout::Blocks(_, blocks) if !blocks.is_empty());
        prop_assume!(dims.len() >= 2 && plain(&first) && plain(&second));
        let dense = Layout::Strides((0..dims.len()).collect(), vec![0; dims.len()]);
        let values: Vec<f32> = (0..dims.iter().product::<i64>()).map(|i| ((i * 37 % 101) as f32).sin()).collect();
        let normalized = |from: &Layout, to: &Layout| {
            let (src_desc, dst_desc) = (Desc::new(&dims, from), Desc::new(&dims, to));
            let (mut src, mut dst) = (scattered(&src_desc, &values), vec![f32::NAN; dst_desc.size() / 4]);
            let create = |out, engine| {
                let flags = if rms { sys::norm_rms_norm } else { 0 };
                let kind = sys::norm_forward_inference;
                // SAFETY: live handles.
                unsafe {
                    let (none, attr) = (std::ptr::null(), std::ptr::null());
                    sys::norm_layer_normalization_forward_primitive_desc_create(out, engine, kind, src_desc.0, dst_desc.0, none, 1e-5, flags, attr)
                }
            };
            run(create, &mut [(sys::NORM_ARG_SRC, &src_desc, &mut src), (sys::NORM_ARG_DST, &dst_desc, &mut dst)]);
            gathered(&dst_desc, &dst)
        };
        prop_assert_eq!(normalized(&first, &second), normalized(&dense, &dense));
    }
}
