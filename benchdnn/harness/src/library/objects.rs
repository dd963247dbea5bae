//! Memory descriptors and memory of the library as Rust values.

use super::connection::Connection;
use super::functions::functions;
use super::handle::Handle;
use super::tables::Library;
use super::values::{answer, data_type};
use crate::data_type::DataType;
use crate::executor::{Refusal, RefusalKind};
use crate::tensor::{Layout, Tag};
use norm_sys::*;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;

/// The tags that the library has an enumerator for, by their letters.
const TAGS: &[(&str, norm_format_tag_t)] = &[
    ("a", norm_a),
    ("ab", norm_ab),
    ("ba", norm_ba),
    ("abc", norm_abc),
    ("acb", norm_acb),
    ("bac", norm_bac),
    ("bca", norm_bca),
    ("cab", norm_cab),
    ("cba", norm_cba),
    ("abcd", norm_abcd),
    ("abdc", norm_abdc),
    ("acbd", norm_acbd),
    ("acdb", norm_acdb),
    ("adbc", norm_adbc),
    ("adcb", norm_adcb),
    ("bacd", norm_bacd),
    ("bcad", norm_bcad),
    ("bcda", norm_bcda),
    ("cabd", norm_cabd),
    ("cdab", norm_cdab),
    ("cdba", norm_cdba),
    ("dabc", norm_dabc),
    ("dcab", norm_dcab),
    ("abcde", norm_abcde),
    ("abced", norm_abced),
    ("abdec", norm_abdec),
    ("acbde", norm_acbde),
    ("acdeb", norm_acdeb),
    ("adecb", norm_adecb),
    ("bacde", norm_bacde),
    ("bcdea", norm_bcdea),
    ("cdeab", norm_cdeab),
    ("cdeba", norm_cdeba),
    ("decab", norm_decab),
];

/// Whether the library has a tag for this order of dimensions.
pub fn has_tag(order: &[usize]) -> bool {
    let letters = Tag::letters(order);
    TAGS.iter().any(|(name, _)| *name == letters)
}

/// The function that creates a descriptor from letters.
pub(crate) type CreateWithStringTag = unsafe extern "C" fn(
    *mut norm_memory_desc_t,
    c_int,
    *const norm_dim_t,
    norm_data_type_t,
    *const c_char,
) -> norm_status_t;

/// A memory descriptor, or NULL for `undef`.
#[derive(Debug)]
pub struct MemoryDesc(Option<Handle<norm_memory_desc>>);

impl MemoryDesc {
    /// A descriptor whose layout is left to the library.
    pub fn any(
        connection: &Connection,
        dims: &[usize],
        dt: DataType,
    ) -> Result<MemoryDesc, Refusal> {
        MemoryDesc::with_tag(connection, dims, dt, norm_format_tag_any)
    }

    /// The descriptor of an absent tensor.
    pub fn empty(connection: &Connection) -> Result<MemoryDesc, Refusal> {
        MemoryDesc::with_tag(connection, &[], DataType::U8, norm_format_tag_any)
    }

    /// No descriptor.
    pub fn null() -> MemoryDesc {
        MemoryDesc(None)
    }

    /// A dense descriptor with this order of dimensions. It is made by tag, so that the library's tags are tested, or
    /// by strides if the library has no tag for the order.
    pub fn ordered(
        connection: &Connection,
        dims: &[usize],
        order: &[usize],
        dt: DataType,
    ) -> Result<MemoryDesc, Refusal> {
        let letters = Tag::letters(order);
        match TAGS.iter().find(|(name, _)| *name == letters) {
            Some(&(_, tag)) => MemoryDesc::with_tag(connection, dims, dt, tag),
            None => MemoryDesc::strided(connection, &Layout::ordered(dims, order, 0, dt)),
        }
    }

    fn with_tag(
        connection: &Connection,
        dims: &[usize],
        dt: DataType,
        tag: norm_format_tag_t,
    ) -> Result<MemoryDesc, Refusal> {
        let dims = full(dims);
        let ndims = dims.1;
        let library = connection.library();
        let handle = Handle::create(library.memory_desc_destroy, |desc| {
            // SAFETY: `desc` is a valid place for a handle and the array has all entries.
            let status = unsafe {
                (library.memory_desc_create_with_tag)(
                    desc,
                    ndims,
                    dims.0.as_ptr(),
                    data_type(dt),
                    tag,
                )
            };
            connection.check("memory_desc_create_with_tag", status)
        })?;
        Ok(MemoryDesc(Some(handle)))
    }

    /// A descriptor of a dense blocked layout, by its letters.
    pub fn blocked(
        connection: &Connection,
        layout: &Layout,
        create_with_string_tag: CreateWithStringTag,
    ) -> Result<MemoryDesc, Refusal> {
        let (dims, ndims) = full(&layout.dims);
        let letters = Tag::blocked_letters(&layout.order(), &layout.blocks);
        let letters = CString::new(letters).expect("letters and digits");
        let handle = Handle::create(connection.library().memory_desc_destroy, |desc| {
            let dt = data_type(layout.data_type);
            // SAFETY: `desc` is a valid place for a handle, the array has all entries, and the
            // letters are a C string.
            let status =
                unsafe { create_with_string_tag(desc, ndims, dims.as_ptr(), dt, letters.as_ptr()) };
            connection.check("memory_desc_create_with_string_tag", status)
        })?;
        Ok(MemoryDesc(Some(handle)))
    }

    /// A descriptor with the strides of a layout.
    pub fn strided(connection: &Connection, layout: &Layout) -> Result<MemoryDesc, Refusal> {
        let (dims, ndims) = full(&layout.dims);
        let (strides, _) = full(&layout.strides);
        let library = connection.library();
        let handle = Handle::create(library.memory_desc_destroy, |desc| {
            // SAFETY: `desc` is a valid place for a handle and the arrays have all entries.
            let status = unsafe {
                (library.memory_desc_create_with_strides)(
                    desc,
                    ndims,
                    dims.as_ptr(),
                    data_type(layout.data_type),
                    strides.as_ptr(),
                )
            };
            connection.check("memory_desc_create_with_strides", status)
        })?;
        Ok(MemoryDesc(Some(handle)))
    }

    /// The handle; NULL for `undef`.
    pub fn raw(&self) -> const_norm_memory_desc_t {
        self.0.as_ref().map_or(ptr::null(), |handle| handle.raw().cast_const())
    }
}

/// Dimensions or strides as an array for the C functions, and their number.
fn full(values: &[usize]) -> ([norm_dim_t; NORM_MAX_NDIMS as usize], c_int) {
    let mut all = [0; NORM_MAX_NDIMS as usize];
    for (place, &value) in all.iter_mut().zip(values) {
        *place = norm_dim_t::try_from(value).unwrap_or(norm_dim_t::MAX);
    }
    (all, values.len() as c_int)
}

/// The layout that a descriptor of the library describes; `None` for NULL and an empty one.
pub(super) fn layout(library: &Library, desc: const_norm_memory_desc_t) -> Option<Layout> {
    if desc.is_null() {
        return None;
    }
    // SAFETY: the descriptor is alive, and `result` is of the type that each query writes.
    let query = |what| move |result| unsafe { (library.memory_desc_query)(desc, what, result) };
    let ndims: c_int = answer(0, query(norm_query_ndims_s32))?;
    let ndims = usize::try_from(ndims).ok().filter(|&ndims| ndims > 0)?;
    let dt: norm_data_type_t = answer(norm_data_type_undef, query(norm_query_data_type))?;
    let entries_of = |what, count: usize| -> Option<Vec<usize>> {
        let array: *const norm_dims_t = answer(ptr::null(), query(what))?;
        // SAFETY: the library writes a pointer to an array that the descriptor owns.
        let array = unsafe { array.as_ref()? };
        array.get(..count)?.iter().map(|&entry| usize::try_from(entry).ok()).collect()
    };
    let entries = |what| entries_of(what, ndims);
    let dt = DataType::ALL.into_iter().find(|&known| data_type(known) == dt)?;
    let mut layout = Layout::strided(&entries(norm_query_dims)?, &entries(norm_query_strides)?, dt);
    let count: c_int = answer(0, query(norm_query_inner_nblks_s32)).unwrap_or(0);
    if let Ok(count @ 1..) = usize::try_from(count) {
        let blocks = |what| entries_of(what, count);
        let (dimensions, sizes) = (blocks(norm_query_inner_idxs)?, blocks(norm_query_inner_blks)?);
        layout.blocks = dimensions.into_iter().zip(sizes).collect();
    }
    Some(layout)
}

functions! {
    /// Memory that contains one number, in oneDNN 3.8 and later.
    Scalars {
        memory_create_host_scalar = norm_memory_create_host_scalar:
        fn(*mut norm_memory_t, const_norm_memory_desc_t, *mut c_void) -> norm_status_t;
    }
}

/// Whether a descriptor is that of a host scalar.
pub(super) fn is_host_scalar(library: &Library, desc: const_norm_memory_desc_t) -> bool {
    let kind = answer(norm_format_kind_undef, |result| {
        // SAFETY: the descriptor is NULL or alive, and this query writes a format kind.
        unsafe { (library.memory_desc_query)(desc, norm_query_format_kind, result) }
    });
    !desc.is_null() && kind == Some(norm_format_kind_host_scalar)
}

/// A memory object with the number of a buffer.
pub(super) fn host_scalar(
    connection: &Connection,
    desc: const_norm_memory_desc_t,
    buffer: &crate::tensor::Buffer,
) -> Result<Handle<norm_memory>, Refusal> {
    let create = Scalars::of(connection.source())?.memory_create_host_scalar;
    Handle::create(connection.library().memory_destroy, |memory| {
        // SAFETY: the descriptor is alive, and the buffer has a number of its type.
        let status = unsafe { create(memory, desc, buffer.pointer().cast()) };
        connection.check("memory_create_host_scalar", status)
    })
}

/// A memory object over a buffer that outlives it.
pub(super) fn memory(
    connection: &Connection,
    desc: const_norm_memory_desc_t,
    buffer: &crate::tensor::Buffer,
) -> Result<Handle<norm_memory>, Refusal> {
    let library = connection.library();
    // SAFETY: the descriptor is alive.
    let size = unsafe { (library.memory_desc_get_size)(desc) };
    if size > buffer.span() {
        let message = format!("a memory of {size} bytes is required, not {}", buffer.span());
        return Err(Refusal { kind: RefusalKind::InvalidArguments, message });
    }
    Handle::create(library.memory_destroy, |memory| {
        // SAFETY: all handles are alive, and the buffer has the bytes that the descriptor needs.
        let status = unsafe {
            (library.memory_create)(memory, desc, connection.engine(), buffer.pointer().cast())
        };
        connection.check("memory_create", status)
    })
}
