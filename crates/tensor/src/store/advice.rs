//! Advice on sharing: tensors of different models that seem to have equal values.
//!
//! Candidates have equal fingerprints; values are not compared here. A store assigns equal fingerprints only after it
//! has compared the values (`alike`); other users of a ledger must compare the values before they share tensors.
//! `saves_bytes` is the amount by which the ledger's total would drop.

use std::collections::{BTreeMap, BTreeSet};

use super::ledger::Ledger;

/// Tensors of different models with equal fingerprints in different memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opportunity {
    pub fingerprint: u64,
    /// The tensor to keep.
    pub keep: String,
    /// The tensors that `keep` would replace.
    pub instead_of: Vec<String>,
    /// The models that need to be allowed to use `keep`.
    pub share_with: Vec<String>,
    /// Bytes that would be freed.
    pub saves_bytes: u64,
}

impl<T> Ledger<T> {
    /// Sharing opportunities, largest saving first.
    pub fn opportunities(&self) -> Vec<Opportunity> {
        let mut alike: BTreeMap<(u64, u64), Vec<&str>> = BTreeMap::new();
        for (name, record) in &self.records {
            if let Some(fingerprint) = record.entry.fingerprint {
                alike.entry((fingerprint, record.entry.bytes)).or_default().push(name);
            }
        }
        let found = alike.into_iter().filter_map(|((fingerprint, _), names)| self.opportunity(fingerprint, &names));
        let mut found: Vec<Opportunity> = found.filter(|it| it.saves_bytes > 0).collect();
        found.sort_by(|one, two| two.saves_bytes.cmp(&one.saves_bytes).then_with(|| one.keep.cmp(&two.keep)));
        found
    }

    /// Advice on memory as text, largest saving first.
    pub fn recommendations(&self) -> Vec<String> {
        let mut advice: Vec<(u64, String)> = Vec::new();
        for it in self.opportunities() {
            let others = it.instead_of.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            let verb = if it.share_with.is_empty() {
                format!("use `{}` alone", it.keep)
            } else {
                format!("share `{}` with {}", it.keep, it.share_with.join(", "))
            };
            let text = format!(
                "{others} and `{}` seem to hold the same values: {verb} and save {} bytes",
                it.keep, it.saves_bytes
            );
            advice.push((it.saves_bytes, text));
        }
        for (name, record) in &self.records {
            let bytes = record.entry.memory.bytes;
            if record.pinned && record.holds() == 0 {
                advice.push((
                    bytes,
                    format!("`{name}` is pinned but no model holds it: unpin it and free {bytes} bytes"),
                ));
            }
            let never = record.consumers.iter().filter(|model| !record.uses.contains_key(*model));
            let never: Vec<&str> = never.map(String::as_str).collect();
            if !never.is_empty() {
                let models = never.join(", ");
                advice
                    .push((0, format!("`{name}` is shared with {models} but was never acquired there: is it needed?")));
            }
        }
        advice.sort_by(|one, two| two.0.cmp(&one.0).then_with(|| one.1.cmp(&two.1)));
        advice.into_iter().map(|(_, text)| text).collect()
    }

    fn opportunity(&self, fingerprint: u64, names: &[&str]) -> Option<Opportunity> {
        let records: Vec<_> = names.iter().map(|name| (*name, &self.records[*name])).collect();
        let producers: BTreeSet<&str> = records.iter().map(|(_, record)| record.producer.as_str()).collect();
        if producers.len() < 2 {
            return None;
        }
        // Prefer to keep a memory that other tensors use too, because that memory stays anyway. Otherwise keep the
        // smallest memory, since a view keeps more than its own bytes alive.
        let stays = |tag: u64| {
            let outside = |(name, _): &(&String, _)| !names.contains(&name.as_str());
            self.records.iter().filter(outside).any(|(_, record)| record.entry.memory.tag == tag)
        };
        let (keep, kept) = *records.iter().min_by_key(|(_, record)| {
            let memory = record.entry.memory;
            (!stays(memory.tag), memory.bytes)
        })?;
        let mut freed = BTreeMap::new();
        let mut instead_of = Vec::new();
        let mut share_with = BTreeSet::new();
        for (name, record) in records {
            let memory = record.entry.memory;
            if memory.tag == kept.entry.memory.tag {
                continue;
            }
            instead_of.push(name.to_owned());
            share_with.extend([&record.producer].into_iter().chain(&record.consumers).cloned());
            if !stays(memory.tag) {
                freed.insert(memory.tag, memory.bytes);
            }
        }
        share_with.retain(|model| !kept.may_use(model));
        Some(Opportunity {
            fingerprint,
            keep: keep.to_owned(),
            instead_of,
            share_with: share_with.into_iter().collect(),
            saves_bytes: freed.values().sum(),
        })
    }
}
