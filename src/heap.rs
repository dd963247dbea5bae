//! Allocations that can fail. Everything behind the C boundary allocates with these functions, so that a lack of memory
//! becomes a status; the standard library's own functions would abort the process.

use crate::error::{Error, Result};
use std::alloc::Layout;
use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

/// The bytes of a cache line and of the widest vector: the alignment of buffers and of the parts of a scratchpad.
pub(crate) const LINE: usize = 64;

/// A box with a value.
pub(crate) fn boxed<T>(value: T) -> Result<Box<T>> {
    let layout = Layout::new::<T>();
    let place = if layout.size() == 0 {
        NonNull::dangling().as_ptr()
    } else {
        // SAFETY: the size is not 0.
        unsafe { std::alloc::alloc(layout) }.cast::<T>()
    };
    if place.is_null() {
        return Err(Error::out_of_memory("an object", layout.size()));
    }
    // SAFETY: allocated with the layout of `T`, or of a type without a size.
    unsafe {
        place.write(value);
        Ok(Box::from_raw(place))
    }
}

/// Appends an item.
pub(crate) fn push<T>(list: &mut Vec<T>, item: T) -> Result<()> {
    if list.len() == list.capacity() {
        let bytes = size_of::<T>().saturating_mul(list.len() + 1);
        list.try_reserve(1).map_err(|_| Error::out_of_memory("a list", bytes))?;
    }
    list.push(item);
    Ok(())
}

/// Appends items.
pub(crate) fn extend<T>(list: &mut Vec<T>, items: impl IntoIterator<Item = T>) -> Result<()> {
    items.into_iter().try_for_each(|item| push(list, item))
}

/// A list of items.
pub(crate) fn list<T>(items: impl IntoIterator<Item = T>) -> Result<Vec<T>> {
    let items = items.into_iter();
    let (mut list, (least, _)) = (Vec::new(), items.size_hint());
    let refused = |_| Error::out_of_memory("a list", size_of::<T>().saturating_mul(least));
    list.try_reserve_exact(least).map_err(refused)?;
    extend(&mut list, items)?;
    Ok(list)
}

/// A value with the number of its owners.
pub(crate) struct Counted<T: ?Sized> {
    owners: AtomicUsize,
    value: T,
}

/// A value with several owners, freed with the last one: an `Arc` without weak references, whose allocation can fail.
pub(crate) struct Shared<T: ?Sized>(NonNull<Counted<T>>);

/// A value with one owner, to be shared. The box may become one of a trait object first.
pub(crate) fn counted<T>(value: T) -> Result<Box<Counted<T>>> {
    boxed(Counted { owners: AtomicUsize::new(1), value })
}

impl<T: ?Sized> From<Box<Counted<T>>> for Shared<T> {
    fn from(counted: Box<Counted<T>>) -> Self {
        Self(NonNull::from(Box::leak(counted)))
    }
}

impl<T: ?Sized> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: it lives as long as it has an owner.
        unsafe { &self.0.as_ref().value }
    }
}

impl<T: ?Sized> Clone for Shared<T> {
    fn clone(&self) -> Self {
        // SAFETY: as above. The count does not overflow, because each owner needs memory.
        unsafe { self.0.as_ref() }.owners.fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized> Drop for Shared<T> {
    fn drop(&mut self) {
        // SAFETY: as above.
        if unsafe { self.0.as_ref() }.owners.fetch_sub(1, Ordering::Release) == 1 {
            // Orders everything that the other owners did before the drop.
            fence(Ordering::Acquire);
            // SAFETY: it came from a box, and this was the last owner.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

// SAFETY: as `Arc`, whose owners may be on several threads.
unsafe impl<T: ?Sized + Send + Sync> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for Shared<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Status;
    use std::cell::Cell;

    #[test]
    fn what_cannot_be_had_is_out_of_memory() {
        let error = list((0..usize::MAX / 8).map(|i| i as u64)).unwrap_err();
        assert_eq!(error.status, Status::OutOfMemory);
        assert!(error.to_string().contains("a list"), "{error}");
    }

    #[test]
    fn a_shared_value_is_dropped_with_its_last_owner() {
        struct Counts<'a>(&'a Cell<usize>);
        impl Drop for Counts<'_> {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        trait Any {}
        impl Any for Counts<'_> {}
        let dropped = Cell::new(0);
        let first: Box<Counted<dyn Any>> = counted(Counts(&dropped)).unwrap();
        let first: Shared<dyn Any> = first.into();
        let second = first.clone();
        drop(first);
        assert_eq!(dropped.get(), 0);
        drop(second);
        assert_eq!(dropped.get(), 1);
    }
}
