//! Marks: the first word of every object that C holds by pointer. It distinguishes a live object of a kind from other
//! objects and from destroyed ones, and an object that C owns from one that is part of another.

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Engine,
    Stream,
    Memory,
    MemoryDesc,
    Attr,
    PostOps,
    PrimitiveDesc,
    Primitive,
    KvCache,
}

impl Kind {
    pub(crate) const ALL: [Self; 9] = [
        Self::Engine,
        Self::Stream,
        Self::Memory,
        Self::MemoryDesc,
        Self::Attr,
        Self::PostOps,
        Self::PrimitiveDesc,
        Self::Primitive,
        Self::KvCache,
    ];

    /// The C type of handles.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Engine => "norm_engine_t",
            Self::Stream => "norm_stream_t",
            Self::Memory => "norm_memory_t",
            Self::MemoryDesc => "norm_memory_desc_t",
            Self::Attr => "norm_primitive_attr_t",
            Self::PostOps => "norm_post_ops_t",
            Self::PrimitiveDesc => "norm_primitive_desc_t",
            Self::Primitive => "norm_primitive_t",
            Self::KvCache => "norm_kv_cache_t",
        }
    }
}

/// The mark of an object. A copy of the object is not owned until [`own`](Mark::own).
#[derive(Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Mark(u64);

/// The bits that no other word is likely to have.
const MAGIC: u64 = 0xa7c5_6e6f_726d_0000;
/// The bit of objects that C owns.
const OWNED: u64 = 1;

impl Mark {
    /// For an object that C does not own.
    #[inline]
    pub(crate) const fn part(kind: Kind) -> Self {
        Self(MAGIC | (kind as u64) << 1)
    }

    /// For an object that C owns.
    #[inline]
    pub(crate) const fn owned(kind: Kind) -> Self {
        Self(Self::part(kind).0 | OWNED)
    }

    /// Whether it marks a live object of a kind.
    #[inline]
    pub(crate) fn is(&self, kind: Kind) -> bool {
        self.0 | OWNED == Self::owned(kind).0
    }

    /// The kind of a live object.
    pub(crate) fn kind(&self) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| self.is(*kind))
    }
}

impl Clone for Mark {
    fn clone(&self) -> Self {
        Self(self.0 & !OWNED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_tell_kinds_and_owners_apart() {
        for kind in Kind::ALL {
            let (part, owned) = (Mark::part(kind), Mark::owned(kind));
            assert!(part.is(kind) && owned.is(kind) && part != owned && owned.clone() == part);
            assert_eq!((part.kind(), owned.kind()), (Some(kind), Some(kind)));
        }
        assert_eq!(Mark(0).kind(), None);
    }
}
