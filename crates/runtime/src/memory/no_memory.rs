//! Host memory that the system does not give.
//!
//! Asking for memory in proportion to a picture or a file goes through here, because a failed allocation elsewhere ends
//! the whole program. Here it is an error of the frame that needed it.
//! Does not limit anything: budgets do.
//!
//! Always: an error names the bytes; memory that already has room is not asked for again.

/// The system has no host memory for this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{needed_bytes} bytes of host memory are needed, and the system does not give them; make pictures or --threads \
     smaller, end other programs, or raise the limit (`ulimit -v`)"
)]
pub struct NoMemory {
    /// Bytes that are needed.
    pub needed_bytes: u64,
}

/// What a picture leaves over, so that small things which cannot fail one by one still find memory.
const SPARE_BYTES: usize = 32 << 20;

/// Less than this is not looked for first.
const LARGE_BYTES: u64 = 1 << 20;

impl NoMemory {
    /// Makes a list this long, with copies of `value` for what is new.
    pub fn resize<T: Clone>(list: &mut Vec<T>, length: usize, value: T) -> Result<(), NoMemory> {
        NoMemory::reserve(list, length.saturating_sub(list.len()))?;
        list.resize(length, value);
        Ok(())
    }

    /// Makes room for so many more.
    pub fn reserve<T>(list: &mut Vec<T>, more: usize) -> Result<(), NoMemory> {
        let whole = list.len().saturating_add(more).saturating_mul(size_of::<T>());
        let no_memory = NoMemory { needed_bytes: whole as u64 };
        let bytes = more.saturating_mul(size_of::<T>()) as u64;
        if list.capacity() - list.len() < more {
            NoMemory::probe(bytes).map_err(|_| no_memory)?;
        }
        list.try_reserve_exact(more).map_err(|_| no_memory)
    }

    /// Looks whether this much could be had in one piece with something to spare, and gives it back: for libraries that end
    /// the program if they get none. Memory that is only asked for and not touched takes microseconds.
    pub fn probe(bytes: u64) -> Result<(), NoMemory> {
        // What is small is what the rest is spared for. On the web, memory that was asked for once is kept for good.
        if bytes < LARGE_BYTES || cfg!(target_arch = "wasm32") {
            return Ok(());
        }
        let no_memory = NoMemory { needed_bytes: bytes };
        let bytes = usize::try_from(bytes).map_err(|_| no_memory)?;
        let mut room: Vec<u8> = Vec::new();
        room.try_reserve_exact(bytes.saturating_add(SPARE_BYTES)).map_err(|_| no_memory)?;
        // Asked for and given back in one function, it could be left out by the compiler.
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
