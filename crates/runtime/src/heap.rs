//! Heap allocations, counted where frames are made.
//!
//! Owns the allocator that counts, the scopes in which it does, `foreign`, the one scope for calls into other people's
//! code that allocates by its nature (drivers and codecs), and a reserve for small allocations that would otherwise end
//! the program.
//! Does not allocate anything else: it passes every call on to the system.
//!
//! Always: an allocation counts for the innermost scope of its thread, once, as own or as foreign; outside every scope
//! nothing is counted. The reserve is given back at most once, and only to an allocation that failed without it.

#![expect(unsafe_code, reason = "a global allocator is an unsafe trait; this one only counts and passes on")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The system's allocator, with a count and a reserve ([`hold_reserve`]). Programs that want their frames' allocations counted make it theirs:
///
/// ```
/// #[global_allocator]
/// static HEAP: vramp_runtime::CountingAllocator = vramp_runtime::CountingAllocator;
/// # fn main() {}
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct CountingAllocator;

/// Allocations of one pipeline.
#[derive(Debug, Default)]
pub struct Tally {
    own: AtomicU64,
    foreign: AtomicU64,
}

impl Tally {
    /// Allocations by vramp and its handlers while they worked on frames.
    pub fn own(&self) -> u64 {
        self.own.load(Ordering::Relaxed)
    }

    /// Allocations by drivers and codecs they called.
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

/// Counts what this thread allocates meanwhile.
pub fn counted<R>(tally: &Tally, work: impl FnOnce() -> R) -> R {
    struct Scope<'a> {
        tally: &'a Tally,
        outer: Here,
    }
    impl Drop for Scope<'_> {
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
    let _scope = Scope { tally, outer };
    work()
}

/// Counts what this thread allocates meanwhile as foreign: for calls into drivers and codecs, and nothing else. Where
/// it may stand is listed in `tests/tidy.rs`.
pub fn foreign<R>(work: impl FnOnce() -> R) -> R {
    struct Scope(bool);
    impl Drop for Scope {
        fn drop(&mut self) {
            HERE.set(Here { foreign: self.0, ..HERE.get() });
        }
    }
    let here = HERE.get();
    let _scope = Scope(here.foreign);
    HERE.set(Here { foreign: true, ..here });
    work()
}

/// Size of the reserve. It is never written to, so it takes addresses and no pages.
const RESERVE: Layout = match Layout::from_size_align(16 << 20, 16) {
    Ok(layout) => layout,
    Err(_) => panic!("16 is a power of two"),
};

/// Allocations of this size and above do not use the reserve: code that makes them checks first
/// ([`NoMemory`](crate::no_memory::NoMemory)) and can fail in order.
const LARGE_BYTES: usize = 1 << 20;

static HELD: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());

/// Sets 16 MiB of addresses aside for the time when the system gives no more memory. A small allocation that fails then
/// aborts the process, because Rust's lists and strings cannot report it; with a reserve it succeeds, and the next large
/// allocation fails with an error that can be handled. Has an effect only in programs that use [`CountingAllocator`].
/// To be called once, before any thread is started.
pub fn hold_reserve() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    share_one_heap();
    // SAFETY: the layout's size is not 0.
    let reserve = unsafe { System.alloc(RESERVE) };
    let before = HELD.swap(reserve, Ordering::AcqRel);
    if !before.is_null() {
        // SAFETY: it came from System with this layout, and the swap took it out for good.
        unsafe { System.dealloc(before, RESERVE) };
    }
}

/// Makes all threads allocate from one heap if the process may only have so many addresses (`ulimit -v`). glibc sets
/// 64 MiB of addresses aside for each thread, and where it cannot, gives every small allocation a page of its own: 16 MiB
/// would then be 4,096 allocations of any size.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn share_one_heap() {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: it writes to the place it is given, which is of its type.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) } == 0;
    if known && limit.rlim_cur != libc::RLIM_INFINITY {
        // SAFETY: it changes a number of the allocator's, under the allocator's own lock.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

/// Gives the reserve back to the system and tries once more. Null if the allocation is large or fails again.
#[cold]
fn retry(bytes: usize, allocate: impl Fn() -> *mut u8) -> *mut u8 {
    if bytes >= LARGE_BYTES {
        return std::ptr::null_mut();
    }
    let reserve = HELD.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if !reserve.is_null() {
        // SAFETY: it came from System with this layout, and the swap took it out for good.
        unsafe { System.dealloc(reserve, RESERVE) };
    }
    // Without a reserve too: another thread may have given it back just now.
    allocate()
}

/// Whether allocations are counted at all: whether the program has made [`CountingAllocator`] its own.
pub fn is_counted() -> bool {
    let tally = Tally::default();
    counted(&tally, || drop(std::hint::black_box(Box::new(0_u8))));
    tally.own() > 0
}

fn count() {
    // A thread that is ending has no count any more.
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

// SAFETY: every promise of the trait is kept by `System`, to which each call is passed on unchanged, and once more if it
// failed; counting touches a cell of this thread only, and neither it nor the reserve allocates or unwinds.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the promises of `alloc`, which are System's own.
        let allocate = || unsafe { System.alloc(layout) };
        let pointer = allocate();
        if pointer.is_null() { retry(layout.size(), allocate) } else { pointer }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above.
        let allocate = || unsafe { System.alloc_zeroed(layout) };
        let pointer = allocate();
        if pointer.is_null() { retry(layout.size(), allocate) } else { pointer }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: as above; the pointer came from System, since nothing else hands any out here.
        let allocate = || unsafe { System.realloc(pointer, layout, new_size) };
        let grown = allocate();
        if grown.is_null() { retry(new_size, allocate) } else { grown }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}
