//! The books: who made which tensor, who may use it, and who does.
//!
//! Owns names, models, counts, pins and the time since a tensor was last used. Pure: times are handed in, and what the
//! tensors are is up to the owner.
//! Does not free anything: it says what is due, and hands out what was taken off the books.
//!
//! Always: a name is one tensor; every count went up as often as it will go down; nothing that is held or pinned is due.
//!
//! Registering is its producer's first `acquire`: nothing is freed under the hands of whoever made it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::entry::{Freed, MemoryTag, Record, TensorEntry};
use super::refusal::{LedgerError, check_name, check_tensor_name};
use super::sums::bytes_once;

/// Tensors by name, and who uses them.
#[derive(Debug, Clone)]
pub struct Ledger<T> {
    pub(super) records: BTreeMap<String, Record<T>>,
    grace: Duration,
}

/// A tensor that may be freed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    /// Its name.
    pub name: String,
    /// Its memory.
    pub memory: MemoryTag,
    /// How long nobody has held it.
    pub idle: Duration,
}

/// What a model gave up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelReleased {
    /// Tensors that it held.
    pub tensors: usize,
    /// How often altogether.
    pub holds: u64,
    /// Memory that nobody holds any longer. It is freed when it is due.
    pub idle_bytes: u64,
}

impl<T> Ledger<T> {
    /// Empty books. A tensor is due once nobody has held it for the grace period.
    pub fn new(grace: Duration) -> Ledger<T> {
        Ledger { records: BTreeMap::new(), grace }
    }

    /// Enters a tensor. Its producer holds it from now on, once.
    pub fn register(
        &mut self,
        name: &str,
        producer: &str,
        consumers: &[&str],
        entry: TensorEntry<T>,
        pinned: bool,
        now: Duration,
    ) -> Result<(), LedgerError> {
        check_tensor_name(name)?;
        for model in consumers.iter().chain([&producer]) {
            check_name("model", model)?;
        }
        if let Some(there) = self.records.get(name) {
            return Err(LedgerError::Taken { name: name.to_owned(), producer: there.producer.clone() });
        }
        self.check_memory(name, &entry)?;
        let mut record = Record {
            entry,
            producer: producer.to_owned(),
            consumers: consumers.iter().filter(|model| **model != producer).map(|model| (*model).to_owned()).collect(),
            uses: BTreeMap::new(),
            pinned,
            idle_since: now,
        };
        record.take(producer);
        self.records.insert(name.to_owned(), record);
        Ok(())
    }

    /// Puts other values under a name, by who made it. Users, holds and pin stay; the old entry is handed back.
    pub fn replace(&mut self, name: &str, model: &str, entry: TensorEntry<T>) -> Result<TensorEntry<T>, LedgerError> {
        let producer = &self.record(name)?.producer;
        if producer != model {
            let (name, model) = (name.to_owned(), model.to_owned());
            return Err(LedgerError::NotProducer { name, model, producer: producer.clone() });
        }
        self.check_memory(name, &entry)?;
        Ok(std::mem::replace(&mut self.record_mut(name)?.entry, entry))
    }

    /// Lets more models use a tensor, by one that may. Says how many are new.
    pub fn share(&mut self, name: &str, from: &str, to: &[&str]) -> Result<usize, LedgerError> {
        for model in to {
            check_name("model", model)?;
        }
        self.usable_by(name, from)?;
        let record = self.record_mut(name)?;
        let before = record.consumers.len();
        let others = to.iter().filter(|model| **model != record.producer);
        record.consumers.extend(others.map(|model| (*model).to_owned()));
        Ok(record.consumers.len() - before)
    }

    /// Takes a tensor for use, once more if the model holds it already. Says how often it does now.
    pub fn acquire(&mut self, name: &str, model: &str) -> Result<u64, LedgerError> {
        self.usable_by(name, model)?;
        Ok(self.record_mut(name)?.take(model))
    }

    /// Gives a tensor back, once. Says how often the model still holds it.
    pub fn release(&mut self, name: &str, model: &str, now: Duration) -> Result<u64, LedgerError> {
        let record = self.record_mut(name)?;
        match record.uses.get_mut(model) {
            Some(uses) if uses.held > 0 => {
                uses.held -= 1;
                let left = uses.held;
                record.idle_since = now;
                Ok(left)
            }
            uses => {
                let taken = uses.map_or(0, |uses| uses.taken);
                Err(LedgerError::NotHeld { name: name.to_owned(), model: model.to_owned(), taken })
            }
        }
    }

    /// Gives back all that a model holds, and takes it from those that may use tensors of others.
    pub fn release_model(&mut self, model: &str, now: Duration) -> ModelReleased {
        let mut released = ModelReleased::default();
        let held_before = bytes_once(self.records.values().filter(|record| record.holds() > 0));
        for record in self.records.values_mut() {
            record.consumers.remove(model);
            let held = record.uses.get_mut(model).map_or(0, |uses| std::mem::take(&mut uses.held));
            if held > 0 {
                released.tensors += 1;
                released.holds += held;
                record.idle_since = now;
            }
        }
        let held = bytes_once(self.records.values().filter(|record| record.holds() > 0));
        released.idle_bytes = held_before - held;
        released
    }

    /// Keeps a tensor even when nobody holds it. Pinning twice is pinning.
    pub fn pin(&mut self, name: &str) -> Result<(), LedgerError> {
        self.record_mut(name)?.pinned = true;
        Ok(())
    }

    /// Lets a tensor go once it is due; the pin counts as use until now.
    pub fn unpin(&mut self, name: &str, now: Duration) -> Result<(), LedgerError> {
        let record = self.record_mut(name)?;
        if std::mem::take(&mut record.pinned) {
            record.idle_since = now;
        }
        Ok(())
    }

    /// What may be freed: held by nobody, not pinned, and left alone for the grace period. Longest idle first.
    pub fn due(&self, now: Duration) -> Vec<Due> {
        let idle = self.records.iter().filter_map(|(name, record)| Some((name, record, record.idle(now)?)));
        let due = idle.filter(|(.., idle)| *idle >= self.grace);
        let due = due.map(|(name, record, idle)| Due { name: name.clone(), memory: record.entry.memory, idle });
        let mut due: Vec<Due> = due.collect();
        due.sort_by(|one, two| two.idle.cmp(&one.idle).then_with(|| one.name.cmp(&two.name)));
        due
    }

    /// Takes everything that is due off the books and hands it out.
    pub fn take_due(&mut self, now: Duration) -> Vec<Freed<T>> {
        let due = self.due(now);
        due.iter().filter_map(|due| self.off_the_books(&due.name)).collect()
    }

    /// Takes one tensor that is due off the books.
    pub fn take(&mut self, name: &str, now: Duration) -> Result<Freed<T>, LedgerError> {
        let record = self.record(name)?;
        let (models, holds) = (record.holders().count(), record.holds());
        let name = name.to_owned();
        match record.idle(now) {
            None if holds > 0 => Err(LedgerError::InUse { name, models, holds }),
            None => Err(LedgerError::Pinned { name }),
            Some(idle) if idle < self.grace => Err(LedgerError::TooSoon { name, idle, grace: self.grace }),
            Some(_) => self.off_the_books(&name).ok_or(LedgerError::Unknown { name, has: self.records.len() }),
        }
    }

    /// Takes one tensor off the books for who made it, at once; not while others hold it, nor while it is pinned.
    pub fn unregister(&mut self, name: &str, model: &str) -> Result<Freed<T>, LedgerError> {
        let record = self.record(name)?;
        let others = record.holders().filter(|other| *other != model);
        let (models, holds) = (others.count(), record.holds() - record.held_by(model));
        let (owned, producer) = (name.to_owned(), record.producer.clone());
        if producer != model {
            return Err(LedgerError::NotProducer { name: owned, model: model.to_owned(), producer });
        }
        if holds > 0 {
            return Err(LedgerError::InUse { name: owned, models, holds });
        }
        if record.pinned {
            return Err(LedgerError::Pinned { name: owned });
        }
        self.off_the_books(name).ok_or(LedgerError::Unknown { name: owned, has: self.records.len() })
    }

    /// Notes that a tensor was used just now, without holding it: its grace period begins anew.
    pub fn touch(&mut self, name: &str, now: Duration) {
        if let Some(record) = self.records.get_mut(name) {
            record.idle_since = now;
        }
    }

    /// How long ago a tensor was last registered, given back or touched, whoever holds it.
    pub fn unused(&self, name: &str, now: Duration) -> Option<Duration> {
        Some(now.saturating_sub(self.records.get(name)?.idle_since))
    }

    /// Notes what a tensor has in common with its equals; none where it has none.
    pub fn set_fingerprint(&mut self, name: &str, fingerprint: Option<u64>) {
        if let Some(record) = self.records.get_mut(name) {
            record.entry.fingerprint = fingerprint;
        }
    }

    /// Takes everything off the books, whoever holds it, and leaves them empty.
    pub fn take_all(&mut self) -> Vec<Freed<T>> {
        let names: Vec<String> = self.records.keys().cloned().collect();
        names.iter().filter_map(|name| self.off_the_books(name)).collect()
    }

    /// A tensor, for one of those that may use it.
    pub fn get(&self, name: &str, model: &str) -> Result<&TensorEntry<T>, LedgerError> {
        Ok(&self.usable_by(name, model)?.entry)
    }

    /// A tensor, for the owner of the books.
    pub fn entry(&self, name: &str) -> Option<&TensorEntry<T>> {
        Some(&self.records.get(name)?.entry)
    }

    /// The payload, for the owner of the books: a tensor may move, say to the host.
    pub fn payload_mut(&mut self, name: &str) -> Option<&mut T> {
        Some(&mut self.records.get_mut(name)?.entry.payload)
    }

    /// Names of all tensors, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.records.keys().map(String::as_str)
    }

    /// Who made a tensor.
    pub fn producer(&self, name: &str) -> Option<&str> {
        Some(&self.records.get(name)?.producer)
    }

    /// Who else may use it, in order.
    pub fn consumers(&self, name: &str) -> impl Iterator<Item = &str> {
        self.records.get(name).into_iter().flat_map(|record| record.consumers.iter().map(String::as_str))
    }

    /// How often a model holds a tensor.
    pub fn held(&self, name: &str, model: &str) -> u64 {
        self.records.get(name).map_or(0, |record| record.held_by(model))
    }

    /// How often a tensor is held, by all models together.
    pub fn holds(&self, name: &str) -> u64 {
        self.records.get(name).map_or(0, Record::holds)
    }

    /// Whether a tensor is pinned.
    pub fn is_pinned(&self, name: &str) -> bool {
        self.records.get(name).is_some_and(|record| record.pinned)
    }

    /// How long nobody has held a tensor; none while it is held or pinned.
    pub fn idle(&self, name: &str, now: Duration) -> Option<Duration> {
        self.records.get(name)?.idle(now)
    }

    /// Every model that made a tensor, may use one or holds one, in order.
    pub fn models(&self) -> BTreeSet<&str> {
        let mut models = BTreeSet::new();
        for record in self.records.values() {
            models.insert(record.producer.as_str());
            models.extend(record.consumers.iter().map(String::as_str));
        }
        models
    }

    fn record(&self, name: &str) -> Result<&Record<T>, LedgerError> {
        let has = self.records.len();
        self.records.get(name).ok_or_else(|| LedgerError::Unknown { name: name.to_owned(), has })
    }

    fn record_mut(&mut self, name: &str) -> Result<&mut Record<T>, LedgerError> {
        let has = self.records.len();
        self.records.get_mut(name).ok_or_else(|| LedgerError::Unknown { name: name.to_owned(), has })
    }

    fn usable_by(&self, name: &str, model: &str) -> Result<&Record<T>, LedgerError> {
        let record = self.record(name)?;
        if record.may_use(model) {
            return Ok(record);
        }
        Err(LedgerError::NotShared {
            name: name.to_owned(),
            model: model.to_owned(),
            producer: record.producer.clone(),
            consumers: record.consumers.len(),
        })
    }

    /// Sums are exact only if everybody says the same of one memory.
    fn check_memory(&self, name: &str, entry: &TensorEntry<T>) -> Result<(), LedgerError> {
        let MemoryTag { tag, bytes } = entry.memory;
        if entry.bytes > bytes {
            return Err(LedgerError::Overhangs { name: name.to_owned(), bytes: entry.bytes, has: bytes });
        }
        let others = self.records.iter().filter(|(other, _)| *other != name);
        let mut same = others.map(|(_, record)| record.entry.memory).filter(|memory| memory.tag == tag);
        match same.next() {
            Some(memory) if memory.bytes != bytes => {
                Err(LedgerError::OtherSize { name: name.to_owned(), tag, has: memory.bytes, given: bytes })
            }
            _ => Ok(()),
        }
    }

    fn off_the_books(&mut self, name: &str) -> Option<Freed<T>> {
        let (name, record) = self.records.remove_entry(name)?;
        let memory = record.entry.memory;
        let last_of_its_memory = self.records.values().all(|other| other.entry.memory.tag != memory.tag);
        Some(Freed { name, payload: record.entry.payload, memory, last_of_its_memory })
    }
}
