//! The ledger: which model made each tensor, which models may use the tensor, and which models hold it.
//!
//! The ledger records names, models, hold counts, pins and the time of each tensor's last use. It reads no clock:
//! callers pass in the time. The payload is generic. The ledger frees nothing: it lists the tensors that are due to be
//! freed, and returns the entries that it removes.
//!
//! Registering counts as the producer's first `acquire`, so that a tensor is not freed while its producer still works
//! on it.
//!
//! Invariants: a name refers to one tensor. No hold count drops below zero. A tensor that is held or pinned is not due.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::entry::{Freed, MemoryTag, Record, TensorEntry};
use super::refusal::{LedgerError, check_name, check_tensor_name};
use super::sums::bytes_once;

/// Tensors by name, with the models that use each tensor.
#[derive(Debug, Clone)]
pub struct Ledger<T> {
    pub(super) records: BTreeMap<String, Record<T>>,
    grace: Duration,
}

/// A tensor that may be freed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    pub name: String,
    pub memory: MemoryTag,
    /// The time since the tensor was last used.
    pub idle: Duration,
}

/// The result of [`Ledger::release_model`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelReleased {
    /// The number of tensors that the model held.
    pub tensors: usize,
    /// The number of holds that were removed.
    pub holds: u64,
    /// Bytes of memory that no model holds any more. The memory is freed when its tensors are due.
    pub idle_bytes: u64,
}

impl<T> Ledger<T> {
    /// An empty ledger. A tensor becomes due when it was neither held, pinned nor used for the grace
    /// period.
    pub fn new(grace: Duration) -> Ledger<T> {
        Ledger { records: BTreeMap::new(), grace }
    }

    /// Adds a tensor. The producer holds the tensor once from now on.
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

    /// Replaces the tensor under a name. Only the producer of the tensor may do this. Consumers, holds and the pin
    /// stay. Returns the old entry.
    pub fn replace(&mut self, name: &str, model: &str, entry: TensorEntry<T>) -> Result<TensorEntry<T>, LedgerError> {
        let producer = &self.record(name)?.producer;
        if producer != model {
            let (name, model) = (name.to_owned(), model.to_owned());
            return Err(LedgerError::NotProducer { name, model, producer: producer.clone() });
        }
        self.check_memory(name, &entry)?;
        Ok(std::mem::replace(&mut self.record_mut(name)?.entry, entry))
    }

    /// Lets more models use a tensor, on behalf of `from`, which must itself be allowed to use the tensor. Returns the
    /// number of models that were added.
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

    /// Adds a hold of a model on a tensor. Returns the model's new number of holds.
    pub fn acquire(&mut self, name: &str, model: &str) -> Result<u64, LedgerError> {
        self.usable_by(name, model)?;
        Ok(self.record_mut(name)?.take(model))
    }

    /// Removes one hold. Returns the number of holds that the model has left.
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

    /// Removes all holds of a model, and removes the model from the consumers of all tensors.
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

    /// Keeps a tensor even if no model holds it. Pins do not nest.
    pub fn pin(&mut self, name: &str) -> Result<(), LedgerError> {
        self.record_mut(name)?.pinned = true;
        Ok(())
    }

    /// Removes the pin. The pin counts as use until now, so the grace period starts now.
    pub fn unpin(&mut self, name: &str, now: Duration) -> Result<(), LedgerError> {
        let record = self.record_mut(name)?;
        if std::mem::take(&mut record.pinned) {
            record.idle_since = now;
        }
        Ok(())
    }

    /// Tensors that may be freed: not held, not pinned, and unused for the grace period. Longest idle first.
    pub fn due(&self, now: Duration) -> Vec<Due> {
        let idle = self.records.iter().filter_map(|(name, record)| Some((name, record, record.idle(now)?)));
        let due = idle.filter(|(.., idle)| *idle >= self.grace);
        let due = due.map(|(name, record, idle)| Due { name: name.clone(), memory: record.entry.memory, idle });
        let mut due: Vec<Due> = due.collect();
        due.sort_by(|one, two| two.idle.cmp(&one.idle).then_with(|| one.name.cmp(&two.name)));
        due
    }

    /// Removes and returns every tensor that is due.
    pub fn take_due(&mut self, now: Duration) -> Vec<Freed<T>> {
        let due = self.due(now);
        due.iter().filter_map(|due| self.off_the_books(&due.name)).collect()
    }

    /// Removes one tensor if it is due.
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

    /// Removes a tensor at once. Only the producer of the tensor may do this. Fails if other models hold the tensor or
    /// if it is pinned.
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

    /// Marks a tensor as used now, without a hold. The tensor's grace period starts again.
    pub fn touch(&mut self, name: &str, now: Duration) {
        if let Some(record) = self.records.get_mut(name) {
            record.idle_since = now;
        }
    }

    /// The time since a tensor was last registered, released, unpinned or touched, whether or not it is held now.
    pub fn unused(&self, name: &str, now: Duration) -> Option<Duration> {
        Some(now.saturating_sub(self.records.get(name)?.idle_since))
    }

    /// Sets the fingerprint of a tensor. `None` removes the fingerprint. Tensors with equal values share a fingerprint.
    pub fn set_fingerprint(&mut self, name: &str, fingerprint: Option<u64>) {
        if let Some(record) = self.records.get_mut(name) {
            record.entry.fingerprint = fingerprint;
        }
    }

    /// Removes all tensors, even those that are held or pinned.
    pub fn take_all(&mut self) -> Vec<Freed<T>> {
        let names: Vec<String> = self.records.keys().cloned().collect();
        names.iter().filter_map(|name| self.off_the_books(name)).collect()
    }

    /// A tensor, on behalf of a model that may use it.
    pub fn get(&self, name: &str, model: &str) -> Result<&TensorEntry<T>, LedgerError> {
        Ok(&self.usable_by(name, model)?.entry)
    }

    /// A tensor, without a check of rights.
    pub fn entry(&self, name: &str) -> Option<&TensorEntry<T>> {
        Some(&self.records.get(name)?.entry)
    }

    /// The payload of a tensor, without a check of rights.
    pub fn payload_mut(&mut self, name: &str) -> Option<&mut T> {
        Some(&mut self.records.get_mut(name)?.entry.payload)
    }

    /// The names of all tensors, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.records.keys().map(String::as_str)
    }

    pub fn producer(&self, name: &str) -> Option<&str> {
        Some(&self.records.get(name)?.producer)
    }

    /// The models, besides the producer, that may use a tensor, sorted.
    pub fn consumers(&self, name: &str) -> impl Iterator<Item = &str> {
        self.records.get(name).into_iter().flat_map(|record| record.consumers.iter().map(String::as_str))
    }

    /// The number of holds of one model.
    pub fn held(&self, name: &str, model: &str) -> u64 {
        self.records.get(name).map_or(0, |record| record.held_by(model))
    }

    /// The number of holds of all models together.
    pub fn holds(&self, name: &str) -> u64 {
        self.records.get(name).map_or(0, Record::holds)
    }

    pub fn is_pinned(&self, name: &str) -> bool {
        self.records.get(name).is_some_and(|record| record.pinned)
    }

    /// The time for which no model has held a tensor. `None` while the tensor is held or pinned.
    pub fn idle(&self, name: &str, now: Duration) -> Option<Duration> {
        self.records.get(name)?.idle(now)
    }

    /// Every producer and consumer, sorted.
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

    /// Checks that all tensors in a memory give the same size for that memory. Otherwise the totals would be wrong.
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
