//! Freeing and moving memory that is not in use, by priority, budget and last use.
//!
//! No values are lost: values are copied to the host before their device memory is released, and are uploaded again on
//! use.
//!
//! Invariant: leased or pinned tensors stay in place, and so do all tensors in the same memory.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::builder::Priority;
use super::entry::Freed;
use super::error::StoreError;
use super::held::LeaseOwner;
use super::names::take_due;
use super::shared::{Store, StoreBooks, peek};
use crate::ops::context::Context;
use crate::ops::error::TensorError;
use crate::ops::tensor::Tensor;

/// The result of [`Store::optimise`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Optimised {
    /// Names that were removed because no model held them.
    pub freed: usize,
    /// Bytes of the freed memory, on both sides together. Memory that another registered tensor uses stays and is not
    /// counted.
    pub freed_bytes: u64,
    /// The number of memories moved to the host.
    pub moved: usize,
    /// Device bytes freed by moving.
    pub moved_bytes: u64,
    /// Bytes of host copies that were freed because the device has the same values.
    pub spare_bytes: u64,
    /// Bytes of pooled memory that were returned to the system, on both sides together.
    pub trimmed_bytes: u64,
    /// The number of memories that stay on the device.
    pub kept: usize,
    pub kept_bytes: u64,
    /// Memories that stay on the device because they are leased or pinned. Part of `kept`.
    pub exempt: usize,
    /// Memories that could not be moved, each with the error and the name of a tensor in that memory. These memories
    /// are unchanged.
    pub failed: Vec<(String, TensorError)>,
}

/// A memory with registered tensors in it.
#[cfg_attr(target_arch = "wasm32", expect(dead_code, reason = "without a device, no memory moves"))]
struct NamedMemory {
    name: String,
    tensor: Tensor,
    /// The time since the last use of any tensor in this memory.
    unused: Duration,
    is_exempt: bool,
}

impl Store {
    /// Frees tensors that no model holds, and moves tensors to the host according to the priority. Moved values are
    /// uploaded again on use.
    pub fn optimise(&self) -> Result<Optimised, StoreError> {
        let now = self.now();
        let (freed, mut places) = {
            let mut books = self.books()?;
            (take_due(&mut books.ledger, now), places(&books, now))
        };
        let mut done = Optimised { freed: freed.len(), ..Optimised::default() };
        done.freed_bytes = freed.iter().filter(|freed| freed.last_of_its_memory).map(bytes_of).sum();
        self.say_freed(&freed);
        drop(freed);
        // Least recently used first.
        places.sort_by(|one, two| two.unused.cmp(&one.unused).then_with(|| one.name.cmp(&two.name)));
        self.leave_the_device(&places, &mut done);
        if self.settings().priority == Priority::Memory {
            #[cfg(not(target_arch = "wasm32"))]
            for place in &places {
                done.spare_bytes += place.tensor.storage().leave_host() as u64;
            }
            drop(places);
            done.trimmed_bytes = trim(&self.context()?);
        }
        self.say(|| done.to_string());
        Ok(done)
    }

    /// Moves memory to the host, least recently used first, until `bytes` are freed on the device. Returns the freed
    /// bytes.
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn make_room(&self, bytes: u64) -> Result<u64, StoreError> {
        let now = self.now();
        let books = self.books()?;
        let mut places = places(&books, now);
        drop(books);
        places.sort_by(|one, two| two.unused.cmp(&one.unused).then_with(|| one.name.cmp(&two.name)));
        let mut freed = 0;
        for place in places.iter().filter(|place| !place.is_exempt) {
            if freed >= bytes {
                break;
            }
            freed += self.leave(place).unwrap_or(0);
        }
        self.say(|| format!("the device is short of {bytes} bytes; moved {freed} bytes to the host"));
        Ok(freed)
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn leave_the_device(&self, places: &[NamedMemory], done: &mut Optimised) {
        let settings = self.settings();
        let on_device = |place: &NamedMemory| place.tensor.storage().taken().0 as u64;
        let mut taken: u64 = places.iter().map(on_device).sum();
        for place in places {
            let bytes = on_device(place);
            if bytes == 0 {
                continue;
            }
            let is_idle = place.unused >= settings.idle_after;
            let by_priority = match settings.priority {
                Priority::Speed => false,
                Priority::Balanced => is_idle && bytes >= settings.large_bytes,
                Priority::Memory => is_idle,
            };
            let left = match (place.is_exempt, by_priority || taken > settings.budget_bytes) {
                (false, true) => self.leave(place),
                _ => Ok(0),
            };
            match left {
                Ok(0) => {
                    done.kept += 1;
                    done.kept_bytes += bytes;
                    done.exempt += usize::from(place.is_exempt);
                }
                Ok(moved) => {
                    taken = taken.saturating_sub(moved);
                    done.moved += 1;
                    done.moved_bytes += moved;
                }
                Err(problem) => done.failed.push((place.name.clone(), problem)),
            }
        }
    }

    #[cfg(target_arch = "wasm32")]
    #[expect(clippy::unused_self, reason = "without a device, no memory moves")]
    fn leave_the_device(&self, _: &[NamedMemory], _: &mut Optimised) {}

    /// Moves one memory to the host, unless a tensor in that memory was leased or pinned in the meantime. Leases and
    /// pins are checked while the values are locked, and taking a lease waits for that lock. Therefore no memory moves
    /// while it is leased.
    #[cfg(not(target_arch = "wasm32"))]
    fn leave(&self, place: &NamedMemory) -> Result<u64, TensorError> {
        let tag = place.tensor.memory_id();
        let may = || self.books().is_ok_and(|books| !is_exempt(&books, tag));
        Ok(place.tensor.storage().leave_device_if(place.tensor.asking("optimise"), may)? as u64)
    }
}

impl fmt::Display for Optimised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Optimised { freed, freed_bytes, moved, moved_bytes, spare_bytes, trimmed_bytes, .. } = self;
        write!(
            f,
            "optimised: freed {freed} tensors ({freed_bytes} bytes), {spare_bytes} bytes of spare copies and \
             {trimmed_bytes} bytes of pooled memory; moved {moved} memories to the host ({moved_bytes} bytes), kept {} \
             on the device ({} bytes), failed to move {}",
            self.kept,
            self.kept_bytes,
            self.failed.len()
        )
    }
}

/// Lists every registered memory once, under the first name of a tensor in it.
fn places(books: &StoreBooks, now: Duration) -> Vec<NamedMemory> {
    let ledger = &books.ledger;
    let mut places: BTreeMap<u64, NamedMemory> = BTreeMap::new();
    for name in ledger.names() {
        let Some((entry, unused)) = ledger.entry(name).zip(ledger.unused(name, now)) else { continue };
        let leases = entry.payload.leases();
        let place = places.entry(entry.memory.tag).or_insert_with(|| {
            let tensor = peek(&entry.payload);
            NamedMemory { name: name.to_owned(), tensor, unused, is_exempt: false }
        });
        place.unused = place.unused.min(unused);
        place.is_exempt |= leases > 0 || ledger.is_pinned(name);
    }
    places.into_values().collect()
}

/// True if a tensor in this memory is leased or pinned.
#[cfg(not(target_arch = "wasm32"))]
fn is_exempt(books: &StoreBooks, tag: u64) -> bool {
    let ledger = &books.ledger;
    let in_it = |name: &&str| ledger.entry(name).is_some_and(|entry| entry.memory.tag == tag);
    let leases = |name: &str| ledger.entry(name).map_or(0, |entry| entry.payload.leases());
    ledger.names().filter(in_it).any(|name| ledger.is_pinned(name) || leases(name) > 0)
}

/// Gives pooled memory back to the system. Returns the number of returned bytes.
fn trim(context: &Context) -> u64 {
    let taken = || {
        #[cfg(not(target_arch = "wasm32"))]
        let device = context.device().map_or(0, |device| device.pool().statistics().held_bytes());
        #[cfg(target_arch = "wasm32")]
        let device = 0;
        device + context.host_pool().pooled_bytes
    };
    // Released buffers become free when the device reports that it has finished with them. `poll` collects such reports
    // and does not wait for more.
    #[cfg(not(target_arch = "wasm32"))]
    if let Some(device) = context.device() {
        let _ = device.poll();
    }
    let before = taken();
    context.trim();
    before.saturating_sub(taken())
}

/// Bytes that a freed tensor's memory uses on both sides.
fn bytes_of(freed: &Freed<LeaseOwner<Tensor>>) -> u64 {
    let (device, host) = peek(&freed.payload).storage().taken();
    (device + host) as u64
}
