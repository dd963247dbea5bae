//! The work of a job, in two words that a slot can store.

use std::marker::PhantomData;

/// A reference to a closure that is called once per block, of a type that only [`Body::new`] knows.
#[derive(Clone, Copy)]
pub(crate) struct Body<'a> {
    closure: *const (),
    call: Call,
    borrow: PhantomData<&'a (dyn Fn(usize) + Sync)>,
}

/// Calls a closure by its address.
///
/// # Safety
/// The closure has the type that the function was made for, and lives.
type Call = unsafe fn(closure: *const (), block: usize);

impl<'a> Body<'a> {
    #[inline]
    pub(crate) fn new<F: Fn(usize) + Sync>(closure: &'a F) -> Self {
        unsafe fn call<F: Fn(usize)>(closure: *const (), block: usize) {
            // SAFETY: guaranteed by the caller.
            let closure = unsafe { &*closure.cast::<F>() };
            closure(block);
        }
        Self { closure: std::ptr::from_ref(closure).cast(), call: call::<F>, borrow: PhantomData }
    }

    #[inline]
    pub(super) fn run(self, block: usize) {
        // SAFETY: the closure is borrowed.
        unsafe { (self.call)(self.closure, block) }
    }

    /// Both words, to be stored until [`from_words`](Self::from_words).
    pub(super) fn words(self) -> [*mut (); 2] {
        [self.closure.cast_mut(), self.call as *mut ()]
    }

    /// # Safety
    /// The words are those of one body, and its closure lives.
    pub(super) unsafe fn from_words([closure, call]: [*mut (); 2]) -> Self {
        // SAFETY: guaranteed by the caller.
        let call = unsafe { std::mem::transmute::<*mut (), Call>(call) };
        Self { closure, call, borrow: PhantomData }
    }
}
