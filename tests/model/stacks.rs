//! The stacks of the models' threads.
//!
//! The checker maps a stack for every thread of every interleaving and unmaps it again. This takes half of a model's
//! time, and twice as long if two models run at once. In this program, these functions take the place of those of the C
//! library, and keep stacks for the next thread, until the process ends.

use std::cell::RefCell;
use std::ffi::{c_int, c_long, c_void};

struct Stack {
    start: usize,
    size: usize,
    is_used: bool,
}

thread_local! {
    static STACKS: RefCell<Vec<Stack>> = const { RefCell::new(Vec::new()) };
}

/// mmap(2)
///
/// # Safety
/// As mmap(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn mmap(
    start: *mut c_void,
    size: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: c_long,
) -> *mut c_void {
    let is_stack = flags & libc::MAP_STACK != 0;
    let kept = || {
        STACKS.try_with(|stacks| {
            let mut stacks = stacks.borrow_mut();
            let kept = stacks.iter_mut().find(|stack| !stack.is_used && stack.size == size)?;
            kept.is_used = true;
            Some(kept.start)
        })
    };
    if is_stack && let Ok(Some(start)) = kept() {
        return start as *mut c_void;
    }
    // SAFETY: the caller's arguments.
    let mapped =
        unsafe { libc::syscall(libc::SYS_mmap, start, size, protection, flags, file, offset) };
    if is_stack && mapped != -1 {
        let stack = Stack { start: mapped as usize, size, is_used: true };
        // Without the list it is unmapped, as usual.
        _ = STACKS.try_with(|stacks| stacks.borrow_mut().push(stack));
    }
    mapped as *mut c_void
}

/// munmap(2)
///
/// # Safety
/// As munmap(2).
#[unsafe(no_mangle)]
unsafe extern "C" fn munmap(start: *mut c_void, size: usize) -> c_int {
    let is_kept = STACKS.try_with(|stacks| {
        let mut stacks = stacks.borrow_mut();
        let stack =
            stacks.iter_mut().find(|stack| (stack.start, stack.size) == (start as usize, size));
        stack.map(|stack| stack.is_used = false).is_some()
    });
    if is_kept == Ok(true) {
        return 0;
    }
    // SAFETY: the caller's arguments.
    unsafe { libc::syscall(libc::SYS_munmap, start, size) as c_int }
}
