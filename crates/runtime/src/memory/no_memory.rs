//! Host memory that the system refuses.
//!
//! Memory whose size depends on an image or a file is requested through this module, because a failed allocation
//! elsewhere aborts the program. Here a failed allocation is an error of the frame that needed the memory. Before a
//! call into a library that aborts when it gets no memory, the amount that the library needs is requested and released.
//! Both kinds of request leave 32 MiB for small allocations, which abort the program when they fail. Under `ulimit -v`
//! all threads share one heap, so that 32 MiB are enough ([`super::heap`]). Budgets are enforced by the pools.
//!
//! A frame whose memory is refused waits as long as held frames may still be returned; otherwise the refusal is an
//! error. A decoder or a kernel that gets no memory to work in fails on its frame at once.

/// The system refused an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{needed_bytes} bytes of host memory are needed, and the system refuses them; reduce the frame size or --threads, \
     end other programs, or raise the limit (`ulimit -v`)"
)]
pub struct NoMemory {
    pub needed_bytes: u64,
}

/// Bytes that every large allocation leaves free, so that small allocations, which cannot report a failure, still find
/// memory.
const SPARE_BYTES: usize = 32 << 20;

/// Smaller allocations are not probed.
const LARGE_BYTES: u64 = 1 << 20;

impl NoMemory {
    /// Resizes a list, filling new elements with `value`.
    pub fn resize<T: Clone>(list: &mut Vec<T>, length: usize, value: T) -> Result<(), NoMemory> {
        NoMemory::reserve(list, length.saturating_sub(list.len()))?;
        list.resize(length, value);
        Ok(())
    }

    /// Reserves room for `more` further elements.
    pub fn reserve<T>(list: &mut Vec<T>, more: usize) -> Result<(), NoMemory> {
        let whole = list.len().saturating_add(more).saturating_mul(size_of::<T>());
        let no_memory = NoMemory { needed_bytes: whole as u64 };
        let bytes = more.saturating_mul(size_of::<T>()) as u64;
        if list.capacity() - list.len() < more {
            NoMemory::probe(bytes).map_err(|_| no_memory)?;
        }
        list.try_reserve_exact(more).map_err(|_| no_memory)
    }

    /// Checks whether this many bytes and some spare bytes can be allocated in one piece, and releases them. Called
    /// before calls into libraries that abort when they get no memory. Allocating memory without touching it takes
    /// microseconds.
    pub fn probe(bytes: u64) -> Result<(), NoMemory> {
        // Small allocations use the spare bytes. On the web, memory once requested is never returned.
        if bytes < LARGE_BYTES || cfg!(target_arch = "wasm32") {
            return Ok(());
        }
        let no_memory = NoMemory { needed_bytes: bytes };
        let bytes = usize::try_from(bytes).map_err(|_| no_memory)?;
        let mut room: Vec<u8> = Vec::new();
        room.try_reserve_exact(bytes.saturating_add(SPARE_BYTES)).map_err(|_| no_memory)?;
        // Otherwise the compiler could remove the allocation.
        std::hint::black_box(&mut room);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_an_error_with_its_bytes() {
        let huge = 1_u64 << 60;
        assert_eq!(NoMemory::probe(huge), Err(NoMemory { needed_bytes: huge }));
        let mut list = vec![7_u32; 3];
        assert_eq!(NoMemory::resize(&mut list, 1 << 58, 0), Err(NoMemory { needed_bytes: 1 << 60 }));
        assert_eq!(NoMemory::reserve(&mut list, usize::MAX), Err(NoMemory { needed_bytes: u64::MAX }));
        assert_eq!(list, [7; 3]);
    }

    #[test]
    fn what_can_be_had_is_there() {
        NoMemory::probe(1 << 20).unwrap();
        let mut list = vec![7_u8; 3];
        NoMemory::resize(&mut list, 5, 1).unwrap();
        assert_eq!(list, [7, 7, 7, 1, 1]);
        NoMemory::resize(&mut list, 2, 1).unwrap();
        assert_eq!(list, [7, 7]);
    }
}
