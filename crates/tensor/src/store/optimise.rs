//! Memory that is not needed just now.
//!
//! Owns the choice of what is freed and what leaves the device, by priority, budget and last use.
//! Does not lose values: what leaves the device is on the host before its memory there is given up, and goes back up when
//! it is used.
//!
//! Always: what is leased or pinned stays where it is, and so does what shares its memory.

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

/// What `optimise` did, in numbers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Optimised {
    /// Names that nobody held any more, and that are gone.
    pub freed: usize,
    /// Bytes of memory that went with them, on both sides; memory that another name is in stays.
    pub freed_bytes: u64,
    /// Memories that were moved to the host.
    pub moved: usize,
    /// Bytes that this freed on the device.
    pub moved_bytes: u64,
    /// Bytes of copies on the host that were given up, since the device has the same values.
    pub spare_bytes: u64,
    /// Bytes that lay free on both sides and were given back to the system.
    pub trimmed_bytes: u64,
    /// Memories that stay on the device.
    pub kept: usize,
    /// Their bytes.
    pub kept_bytes: u64,
    /// Memories that stay on the device because they are leased or pinned.
    pub exempt: usize,
    /// What could not be moved, and why; it is where it was.
    pub failed: Vec<(String, TensorError)>,
}

/// Memory that named tensors are in.
#[cfg_attr(target_arch = "wasm32", expect(dead_code, reason = "without a device nothing leaves it"))]
struct NamedMemory {
    name: String,
    tensor: Tensor,
    /// Since the last use of any of its names.
    unused: Duration,
    is_exempt: bool,
}

impl Store {
    /// Frees what nobody holds any more, and moves to the host what the priority says. Values are kept: what was moved
    /// goes back up when it is used.
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
        // The least recently used goes first.
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

    /// Moves what may leave the device, the least recently used first, until so many bytes are free there. Says how many.
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
        self.say(|| format!("{bytes} bytes are missing on the device; {freed} were moved to the host for them"));
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
            let asked = match settings.priority {
                Priority::Speed => false,
                Priority::Balanced => is_idle && bytes >= settings.large_bytes,
                Priority::Memory => is_idle,
            };
            let left = match (place.is_exempt, asked || taken > settings.budget_bytes) {
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
    #[expect(clippy::unused_self, reason = "there is no device to leave")]
    fn leave_the_device(&self, _: &[NamedMemory], _: &mut Optimised) {}

    /// Moves one memory to the host, unless somebody has leased or pinned a name in it since. That is asked while the
    /// values are locked, and whoever leases waits for that lock: a lease that was given is never moved away from.
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
            "optimised: {freed} freed ({freed_bytes} bytes), {moved} moved to the host ({moved_bytes} bytes), \
             {spare_bytes} bytes of spare copies, {trimmed_bytes} bytes trimmed, {} kept ({} bytes), {} failed",
            self.kept,
            self.kept_bytes,
            self.failed.len()
        )
    }
}

/// Every memory in the books once, by the first name in it.
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

/// Whether a name in this memory is leased or pinned.
#[cfg(not(target_arch = "wasm32"))]
fn is_exempt(books: &StoreBooks, tag: u64) -> bool {
    let ledger = &books.ledger;
    let in_it = |name: &&str| ledger.entry(name).is_some_and(|entry| entry.memory.tag == tag);
    let leases = |name: &str| ledger.entry(name).map_or(0, |entry| entry.payload.leases());
    ledger.names().filter(in_it).any(|name| ledger.is_pinned(name) || leases(name) > 0)
}

/// Gives memory that lies free back to the system; says how much.
fn trim(context: &Context) -> u64 {
    let taken = || {
        #[cfg(not(target_arch = "wasm32"))]
        let device = context.device().map_or(0, |device| device.pool().statistics().held_bytes());
        #[cfg(target_arch = "wasm32")]
        let device = 0;
        device + context.host_pool().pooled_bytes
    };
    // What was given up is free once we have heard that the device is done with it. Nobody waits for that here.
    #[cfg(not(target_arch = "wasm32"))]
    if let Some(device) = context.device() {
        let _ = device.poll();
    }
    let before = taken();
    context.trim();
    before.saturating_sub(taken())
}

/// What a freed tensor's memory takes on both sides.
fn bytes_of(freed: &Freed<LeaseOwner<Tensor>>) -> u64 {
    let (device, host) = peek(&freed.payload).storage().taken();
    (device + host) as u64
}
