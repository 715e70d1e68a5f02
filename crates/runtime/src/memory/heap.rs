//! Heap allocations, counted where frames are worked on: in a lane's step and in every band of rows, on whichever
//! thread the band runs.
//!
//! The counts are known if the program uses [`CountingAllocator`], and null in the report otherwise. [`foreign`] marks
//! calls into drivers and codecs, which allocate by their nature; their allocations are reported separately.
//! [`share_heap_if_limited`] configures the system's allocator when the address space is limited.
//!
//! Invariants: an allocation counts once, for the innermost scope of its thread, as own or as foreign. Outside of every
//! scope nothing is counted.

#![expect(unsafe_code, reason = "the trait of global allocators is unsafe, and so are the C functions below")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's allocator with a counter. A program that wants its allocations per frame to be counted installs this
/// allocator:
///
/// ```
/// #[global_allocator]
/// static HEAP: vramp_runtime::CountingAllocator = vramp_runtime::CountingAllocator;
/// # fn main() {}
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct CountingAllocator;

/// The allocations of one pipeline.
#[derive(Debug, Default)]
pub struct HeapTally {
    own: AtomicU64,
    foreign: AtomicU64,
}

impl HeapTally {
    /// Allocations by vramp and its handlers while they worked on frames.
    pub fn own(&self) -> u64 {
        self.own.load(Ordering::Relaxed)
    }

    /// Allocations by drivers and codecs that vramp and its handlers called.
    pub fn foreign(&self) -> u64 {
        self.foreign.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Here {
    counting: bool,
    foreign: bool,
    own_count: u64,
    foreign_count: u64,
}

thread_local! {
    static HERE: Cell<Here> = const {
        Cell::new(Here { counting: false, foreign: false, own_count: 0, foreign_count: 0 })
    };
}

/// Counts the allocations of this thread during `work`.
pub fn counted<R>(tally: &HeapTally, work: impl FnOnce() -> R) -> R {
    struct CountedScope<'a> {
        tally: &'a HeapTally,
        outer: Here,
    }
    impl Drop for CountedScope<'_> {
        fn drop(&mut self) {
            let here = HERE.replace(self.outer);
            if here.own_count > 0 {
                self.tally.own.fetch_add(here.own_count, Ordering::Relaxed);
            }
            if here.foreign_count > 0 {
                self.tally.foreign.fetch_add(here.foreign_count, Ordering::Relaxed);
            }
        }
    }
    let outer = HERE.replace(Here { counting: true, ..Here::default() });
    let _scope = CountedScope { tally, outer };
    work()
}

/// Counts the allocations of this thread during `work` as foreign. Only for calls into drivers and codecs;
/// `tests/tidy.rs` lists the allowed uses.
pub fn foreign<R>(work: impl FnOnce() -> R) -> R {
    struct ForeignScope(bool);
    impl Drop for ForeignScope {
        fn drop(&mut self) {
            HERE.set(Here { foreign: self.0, ..HERE.get() });
        }
    }
    let here = HERE.get();
    let _scope = ForeignScope(here.foreign);
    HERE.set(Here { foreign: true, ..here });
    work()
}

/// Makes all threads allocate from one heap if the address space is limited (`ulimit -v`). Call it before the first
/// thread is started.
///
/// glibc reserves 64 MiB of addresses for each thread. If glibc cannot reserve them, every small allocation of the
/// thread takes a page of its own, and the remaining addresses are used up after a few thousand such allocations. A
/// small allocation that fails aborts the process, because Rust's lists and strings cannot report the failure.
pub fn share_heap_if_limited() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: `getrlimit` writes to the pointer it receives, which points to an `rlimit`.
        let is_known = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) } == 0;
        if is_known && limit.rlim_cur != libc::RLIM_INFINITY {
            // SAFETY: `mallopt` changes one setting of the allocator under the allocator's own lock.
            unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
        }
    }
}

/// Whether allocations are counted: whether the program installed [`CountingAllocator`].
pub fn is_counted() -> bool {
    let tally = HeapTally::default();
    counted(&tally, || drop(std::hint::black_box(Box::new(0_u8))));
    tally.own() > 0
}

fn count() {
    // A thread that is ending has no counter any more.
    let _ = HERE.try_with(|cell| {
        let mut here = cell.get();
        if here.counting {
            if here.foreign {
                here.foreign_count += 1;
            } else {
                here.own_count += 1;
            }
            cell.set(here);
        }
    });
}

// SAFETY: `System` keeps every promise of the trait; each call is passed on to `System` unchanged. Counting touches
// only a cell of this thread and does not allocate or unwind.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the promises of `alloc`, and `System.alloc` requires no others.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: as above; the pointer came from System, because every allocation here comes from System.
        unsafe { System.realloc(pointer, layout, new_size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}
