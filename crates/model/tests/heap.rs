//! The memory that a test's own thread holds, counted by the allocator of the test binary.

#![allow(unsafe_code, reason = "an allocator that counts is an allocator, whose trait is unsafe")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

fn taken(bytes: usize) {
    CALLS.set(CALLS.get() + 1);
    LIVE.set(LIVE.get() + bytes.cast_signed());
    PEAK.set(PEAK.get().max(LIVE.get()));
}

// SAFETY: every call is passed to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        taken(layout.size());
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - layout.size().cast_signed());
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // As if the memory were always moved: the old and the new bytes exist together.
        taken(size);
        LIVE.set(LIVE.get() - layout.size().cast_signed());
        // SAFETY: the caller upholds the contract of `realloc`.
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The result of `f`, and the most bytes that it held at any time beside those that were held before.
pub fn peak<T>(f: impl FnOnce() -> T) -> (T, usize) {
    let before = LIVE.get();
    PEAK.set(before);
    let result = f();
    (result, usize::try_from(PEAK.get() - before).expect("the peak is not below its start"))
}

/// The result of `f`, and how often it allocated memory.
pub fn allocations<T>(f: impl FnOnce() -> T) -> (T, usize) {
    let before = CALLS.get();
    let result = f();
    (result, CALLS.get() - before)
}
