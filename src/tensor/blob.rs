//! Serialized descriptors: 8-byte numbers in the machine's byte order.

use super::{DataType, Layout, MAX_NDIMS, MemoryDesc};
use crate::error::{Error, Result};

/// The first number of a blob; its last digit is the format version.
const MARK: i64 = i64::from_ne_bytes(*b"normmd01");
/// The mark, five numbers, five arrays and a checksum.
const NUMBERS: usize = 6 + 5 * MAX_NDIMS + 1;
/// The bytes that distinguish a blob from other data.
pub(crate) const BLOB_MARK: [u8; 8] = MARK.to_ne_bytes();
/// Size of every blob in bytes.
pub(crate) const BLOB_SIZE: usize = NUMBERS * 8;

/// The numbers of layouts. Append new ones.
const LAYOUTS: [Layout; 4] = [Layout::Undef, Layout::Any, Layout::Strided, Layout::HostScalar];

/// FNV-1a over the bytes of the numbers.
fn checksum(numbers: &[i64]) -> i64 {
    let bytes = numbers.iter().flat_map(|number| number.to_ne_bytes());
    let step = |sum: u64, byte: u8| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.fold(0xcbf2_9ce4_8422_2325, step) as i64
}

fn blob_of(numbers: &[i64; NUMBERS]) -> [u8; BLOB_SIZE] {
    let mut blob = [0; BLOB_SIZE];
    for (to, number) in blob.as_chunks_mut().0.iter_mut().zip(numbers) {
        *to = number.to_ne_bytes();
    }
    blob
}

impl MemoryDesc {
    pub(crate) fn to_blob(&self) -> [u8; BLOB_SIZE] {
        blob_of(&self.numbers())
    }

    /// A blob with other numbers at some positions, and the checksum that fits them.
    #[cfg(test)]
    #[allow(dead_code, reason = "only tests/properties uses it")]
    pub(crate) fn forged_blob(&self, changes: &[(usize, i64)]) -> [u8; BLOB_SIZE] {
        let mut numbers = self.numbers();
        for (at, number) in changes {
            numbers[*at] = *number;
        }
        numbers[NUMBERS - 1] = checksum(&numbers[..NUMBERS - 1]);
        blob_of(&numbers)
    }

    fn numbers(&self) -> [i64; NUMBERS] {
        let data_type = DataType::ALL.iter().position(|t| Some(*t) == self.data_type);
        let layout = LAYOUTS.iter().position(|l| *l == self.layout).unwrap_or(0);
        let head = [
            MARK,
            self.ndims as i64,
            data_type.map_or(-1, |at| at as i64),
            layout as i64,
            self.offset,
            self.block_count as i64,
        ];
        let arrays =
            [&self.dims, &self.padded_dims, &self.strides, &self.block_sizes, &self.block_dims];
        let mut numbers = [0; NUMBERS];
        let content = head.iter().chain(arrays.into_iter().flatten());
        for (to, number) in numbers.iter_mut().zip(content) {
            *to = *number;
        }
        numbers[NUMBERS - 1] = checksum(&numbers[..NUMBERS - 1]);
        numbers
    }

    /// The descriptor of a blob, if it was not modified.
    pub(crate) fn of_blob(blob: &[u8; BLOB_SIZE]) -> Result<Self> {
        let refused = || Error::invalid("blob: not a valid memory descriptor");
        let mut numbers = [0i64; NUMBERS];
        for (number, bytes) in numbers.iter_mut().zip(blob.as_chunks::<8>().0) {
            *number = i64::from_ne_bytes(*bytes);
        }
        let (content, sum) = numbers.split_at(NUMBERS - 1);
        if numbers[0] != MARK || sum[0] != checksum(content) {
            return Err(refused());
        }
        let array = |at: usize| {
            let mut array = [0; MAX_NDIMS];
            array.copy_from_slice(&content[6 + at * MAX_NDIMS..][..MAX_NDIMS]);
            array
        };
        let count = |number: i64| {
            usize::try_from(number).ok().filter(|n| *n <= MAX_NDIMS).ok_or_else(refused)
        };
        let layout = LAYOUTS.get(numbers[3] as usize).ok_or_else(refused)?;
        let desc = Self {
            mark: Self::EMPTY.mark,
            ndims: count(numbers[1])?,
            data_type: DataType::ALL.get(numbers[2] as usize).copied(),
            layout: *layout,
            offset: numbers[4],
            block_count: count(numbers[5])?,
            dims: array(0),
            padded_dims: array(1),
            strides: array(2),
            block_sizes: array(3),
            block_dims: array(4),
        };
        // The checksum detects damage; these checks detect forged blobs.
        let block = |(d, size): (usize, i64)| d < desc.ndims && size > 0;
        let padded = |d: usize| desc.padded_dims[d] >= desc.dims[d];
        let described = match desc.layout {
            Layout::Undef => desc.ndims == 0,
            Layout::HostScalar => desc.dims() == [1] && desc.data_type.is_some(),
            _ => desc.ndims > 0 && desc.data_type.is_some(),
        };
        // Without a layout, nothing else is set.
        let plain = desc.layout == Layout::Strided
            || (desc.offset == 0
                && desc.block_count == 0
                && desc.strides == [0; MAX_NDIMS]
                && desc.padded_dims == desc.dims);
        let sizes = desc.blocks().try_fold(1i64, |n, (_, size)| n.checked_mul(size));
        let sound = described
            && plain
            && desc.offset >= 0
            && desc.blocks().all(block)
            && sizes.is_some()
            && (0..desc.ndims).all(padded);
        if !sound {
            return Err(refused());
        }
        desc.checked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use norm_sys as sys;

    #[test]
    fn forged_blobs_are_rejected() {
        let sound = MemoryDesc::with_tag(&[4, 8], DataType::F32, sys::norm_ab).unwrap();
        let mut undef = sound.clone();
        undef.layout = Layout::Undef;
        let mut nothing = sound.clone();
        nothing.ndims = 0;
        let mut untyped = sound.clone();
        untyped.data_type = None;
        for made_up in [undef, nothing, untyped] {
            assert!(MemoryDesc::of_blob(&made_up.to_blob()).is_err());
        }
        assert!(MemoryDesc::of_blob(&sound.to_blob()).is_ok());
        // No such layout, then a layout to be chosen that has strides.
        assert!(MemoryDesc::of_blob(&sound.forged_blob(&[(3, 7)])).is_err());
        assert!(MemoryDesc::of_blob(&sound.forged_blob(&[(3, 1)])).is_err());
        // A host scalar with two numbers.
        let scalar = MemoryDesc::host_scalar(DataType::F32).unwrap();
        assert!(MemoryDesc::of_blob(&scalar.forged_blob(&[(6, 2), (18, 2)])).is_err());
    }

    #[test]
    fn blobs_round_trip() {
        let blocked = MemoryDesc::with_tag(&[20, 30], DataType::S8, sys::norm_AB16b16a).unwrap();
        let part = blocked.part(&[4, 14], &[16, 16]).unwrap();
        let any = MemoryDesc::with_tag(&[2], DataType::F64, sys::norm_format_tag_any).unwrap();
        let scalar = MemoryDesc::host_scalar(DataType::S64).unwrap();
        for desc in [MemoryDesc::EMPTY, blocked, part, any, scalar] {
            let blob = desc.to_blob();
            assert_eq!(MemoryDesc::of_blob(&blob).unwrap(), desc);
            for at in (0..BLOB_SIZE).step_by(7) {
                let mut damaged = blob;
                damaged[at] ^= 1 << (at % 8);
                assert!(MemoryDesc::of_blob(&damaged).is_err(), "byte {at}");
            }
        }
    }
}
