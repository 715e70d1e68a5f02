//! Engine times and memory use, which DRM drivers report for every open file of a card (`/proc/*/fdinfo`).
//!
//! The drivers do not report there how much memory a card has.
//!
//! If several processes share an open file, the file counts once. Without special rights, the processes of other users
//! cannot be inspected, and only the number of these hidden processes is known. If there are hidden processes, every
//! value is a lower bound and comes with a doubt. If, in addition, no visible process has the card open, the value is
//! unavailable.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use vramp_gpu::Readout;

use super::card::Card;
use super::files;

/// The open files of all cards at one moment.
pub(super) struct Usage {
    clients: BTreeMap<String, Client>,
    /// Number of processes that cannot be inspected.
    hidden: usize,
    /// Number of open files of cards for which the driver reports nothing.
    silent: usize,
    place: PathBuf,
    problem: Option<String>,
}

/// An open file of a card, as the card's driver reports it.
#[derive(Debug, Default, Clone, PartialEq)]
struct Client {
    driver: String,
    pci: Option<String>,
    id: Option<String>,
    engines: BTreeMap<String, EngineUsage>,
    own_memory_bytes: BTreeMap<String, u64>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
struct EngineUsage {
    busy_ns: Option<u64>,
    cycles: Option<u64>,
    all_cycles: Option<u64>,
    capacity: Option<u64>,
}

impl Usage {
    /// Inspects all visible processes and counts the hidden processes.
    pub(super) fn now(root: &Path) -> Usage {
        let place = root.join("proc");
        let mut usage = Usage { clients: BTreeMap::new(), hidden: 0, silent: 0, place, problem: None };
        match fs::read_dir(&usage.place) {
            Err(error) => usage.problem = Some(format!("{}: {error}", usage.place.display())),
            Ok(processes) => {
                let is_process = |path: &PathBuf| {
                    let name = path.file_name().and_then(|name| name.to_str());
                    name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
                };
                processes.flatten().map(|entry| entry.path()).filter(is_process).for_each(|path| usage.inspect(&path));
            }
        }
        usage
    }

    /// The load of a card's busiest kind of engine since `before`.
    pub(super) fn load(&self, before: &Usage, card: &Card, took: Duration) -> Readout<f32> {
        if let Some(why) = self.unseen(card, "the card's load") {
            return Readout::Unavailable(why);
        }
        let mut shares: BTreeMap<&str, f64> = BTreeMap::new();
        for (key, client) in self.clients.iter().filter(|(_, client)| client.is_on(card)) {
            let earlier = before.clients.get(key);
            for (name, engine) in &client.engines {
                let then = earlier.and_then(|client| client.engines.get(name)).copied().unwrap_or_default();
                if let Some(share) = engine.share_since(then, took, earlier.is_none()) {
                    *shares.entry(name).or_default() += share;
                }
            }
        }
        let is_open = self.clients.values().any(|client| client.is_on(card));
        let busiest = shares.iter().max_by(|a, b| a.1.total_cmp(b.1));
        let from = |what: &str| format!("{what}, measured for {:.1} s in {}", took.as_secs_f32(), self.files());
        match busiest {
            Some((engine, share)) => {
                let percent = (100.0 * share).clamp(0.0, 100.0) as f32;
                Readout::Is { value: percent, from: from(&format!("engine `{engine}`")), doubt: self.doubt() }
            }
            None if is_open => {
                Readout::unavailable(format!("{}: {} reports no engine times", self.files(), card.driver))
            }
            None => Readout::is(0.0, from("no process has the card open")),
        }
    }

    /// How much of the card's own memory all processes together use.
    pub(super) fn own_memory(&self, card: &Card) -> Readout<u64> {
        if let Some(why) = self.unseen(card, "how much of the card's memory is in use") {
            return Readout::Unavailable(why);
        }
        let on_card: Vec<&Client> = self.clients.values().filter(|client| client.is_on(card)).collect();
        if !on_card.is_empty() && on_card.iter().all(|client| client.own_memory_bytes.is_empty()) {
            return Readout::unavailable(format!(
                "{}: {} does not report the use of the card's own memory",
                self.files(),
                card.driver
            ));
        }
        let value = on_card.iter().flat_map(|client| client.own_memory_bytes.values()).sum();
        Readout::Is { value, from: self.files(), doubt: self.doubt() }
    }

    /// The reason why `what` is unknown for a card; none if the visible processes are enough to know it. For example,
    /// no visible process has the card open, but a hidden process may have the card open.
    fn unseen(&self, card: &Card, what: &str) -> Option<String> {
        if let Some(problem) = &self.problem {
            return Some(problem.clone());
        }
        let files = self.files();
        if self.clients.values().any(|client| client.is_on(card)) {
            None
        } else if self.silent > 0 {
            Some(format!("{files}: {} does not report {what}", card.driver))
        } else if self.hidden > 0 {
            let hidden = self.hidden;
            Some(format!(
                "no visible process has the card open, and {hidden} processes of other users cannot \
                 be inspected ({files})"
            ))
        } else {
            None
        }
    }

    fn doubt(&self) -> Option<String> {
        let hidden = self.hidden;
        (hidden > 0)
            .then(|| format!("{hidden} processes of other users cannot be inspected, so the real value may be higher"))
    }

    fn files(&self) -> String {
        format!("{}/*/fdinfo", self.place.display())
    }

    fn inspect(&mut self, process: &Path) {
        let open = match fs::read_dir(process.join("fd")) {
            Ok(open) => open,
            Err(error) => {
                // Any other error means that the process has ended in the meantime and has no file open.
                self.hidden += usize::from(error.kind() == ErrorKind::PermissionDenied);
                return;
            }
        };
        for file in open.flatten() {
            // Thousands of files are open on a desktop, but only a few are cards.
            if !fs::read_link(file.path()).is_ok_and(|target| target.starts_with("/dev/dri")) {
                continue;
            }
            let Ok(text) = files::text(&process.join("fdinfo").join(file.file_name())) else { continue };
            let client = Client::read(&text);
            if client.driver.is_empty() {
                self.silent += 1;
                continue;
            }
            let whose = client.id.clone().unwrap_or_else(|| file.path().display().to_string());
            let key = format!("{} {} {whose}", client.driver, client.pci.as_deref().unwrap_or_default());
            self.clients.insert(key, client);
        }
    }
}

impl Client {
    /// Reads lines of `drm-key: value`; unknown lines are ignored.
    fn read(text: &str) -> Client {
        let mut client = Client::default();
        // `drm-resident-*` takes precedence over the older `drm-memory-*`.
        let mut older = BTreeMap::new();
        for line in text.lines() {
            let Some((key, value)) = line.strip_prefix("drm-").and_then(|line| line.split_once(':')) else { continue };
            let value = value.trim();
            let number = || value.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
            let engine =
                |engines: &mut BTreeMap<String, EngineUsage>, name: &str, set: fn(&mut EngineUsage, Option<u64>)| {
                    set(engines.entry(name.to_owned()).or_default(), number());
                };
            if key == "driver" {
                value.clone_into(&mut client.driver);
            } else if key == "pdev" {
                client.pci = Some(value.to_lowercase());
            } else if key == "client-id" {
                client.id = Some(value.to_owned());
            } else if let Some(name) = key.strip_prefix("engine-capacity-") {
                engine(&mut client.engines, name, |engine, number| engine.capacity = number);
            } else if let Some(name) = key.strip_prefix("engine-") {
                engine(&mut client.engines, name, |engine, number| engine.busy_ns = number);
            } else if let Some(name) = key.strip_prefix("total-cycles-") {
                engine(&mut client.engines, name, |engine, number| engine.all_cycles = number);
            } else if let Some(name) = key.strip_prefix("cycles-") {
                engine(&mut client.engines, name, |engine, number| engine.cycles = number);
            } else if let Some(region) = key.strip_prefix("resident-").filter(|region| is_own(region)) {
                client.own_memory_bytes.extend(bytes(value).map(|bytes| (region.to_owned(), bytes)));
            } else if let Some(region) = key.strip_prefix("memory-").filter(|region| is_own(region)) {
                older.extend(bytes(value).map(|bytes| (region.to_owned(), bytes)));
            }
        }
        if client.own_memory_bytes.is_empty() {
            client.own_memory_bytes = older;
        }
        client
    }

    fn is_on(&self, card: &Card) -> bool {
        match (&self.pci, &card.pci) {
            (Some(own), Some(cards)) => own == cards,
            _ => self.driver == card.driver,
        }
    }
}

impl EngineUsage {
    /// The share of the time since `then` in which the engine worked for this client; none if the driver does not
    /// report engine times.
    fn share_since(self, then: EngineUsage, took: Duration, is_new: bool) -> Option<f64> {
        let capacity = self.capacity.unwrap_or(1).max(1) as f64;
        let share = match (self.busy_ns, self.cycles, self.all_cycles) {
            (Some(busy), _, _) => busy.saturating_sub(then.busy_ns.unwrap_or(0)) as f64 / took.as_nanos().max(1) as f64,
            // The share is the growth of one counter divided by the growth of the other counter between two readings.
            // For a new client there is only one reading.
            (None, Some(_), Some(_)) if is_new => 0.0,
            (None, Some(cycles), Some(all)) => {
                let all = all.saturating_sub(then.all_cycles.unwrap_or(0));
                cycles.saturating_sub(then.cycles.unwrap_or(0)) as f64 / all.max(1) as f64
            }
            _ => return None,
        };
        Some(share / capacity)
    }
}

/// Whether a region with this name is the card's own memory.
fn is_own(region: &str) -> bool {
    ["vram", "local", "lmem"].iter().any(|name| region.starts_with(name))
}

/// Parses `12 KiB`, `3 MiB` or a plain number of bytes.
fn bytes(value: &str) -> Option<u64> {
    let mut words = value.split_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    let unit = match words.next() {
        None => 1,
        Some("KiB") => 1 << 10,
        Some("MiB") => 1 << 20,
        Some("GiB") => 1 << 30,
        Some(_) => return None,
    };
    number.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PCI: &str = "0000:03:00.0";

    fn usage(hidden: usize, busy_ns: Option<u64>) -> Usage {
        let about = |busy_ns| format!("drm-driver: i915\ndrm-pdev: {PCI}\ndrm-engine-render: {busy_ns} ns\n");
        let clients = busy_ns.map(|busy_ns| ("a".to_owned(), Client::read(&about(busy_ns))));
        let (clients, place) = (clients.into_iter().collect(), PathBuf::from("/proc"));
        Usage { clients, hidden, silent: 0, place, problem: None }
    }

    fn load(before: &Usage, after: &Usage) -> Readout<f32> {
        after.load(before, &Card::of_driver("i915", PCI), Duration::from_millis(100))
    }

    #[test]
    fn processes_that_cannot_be_inspected_make_a_number_doubtful() {
        let load = load(&usage(3, Some(0)), &usage(3, Some(50_000_000)));
        assert_eq!(load.value(), Some(50.0));
        let doubt = "3 processes of other users cannot be inspected, so the real value may be higher";
        assert_eq!(load.why(), Some(doubt));
    }

    #[test]
    fn if_no_process_is_visible_and_some_are_hidden_there_is_no_number() {
        let load = load(&usage(3, None), &usage(3, None));
        assert_eq!(load.value(), None);
        assert!(load.why().unwrap().contains("3 processes of other users cannot be inspected"), "{load:?}");
    }

    #[test]
    fn times_that_run_backwards_are_no_load() {
        assert_eq!(load(&usage(0, Some(50)), &usage(0, Some(40))).value(), Some(0.0));
    }

    #[test]
    fn memory_has_units_and_what_is_resident_comes_first() {
        assert_eq!([bytes("3"), bytes("3 KiB"), bytes("3 MiB")], [Some(3), Some(3 << 10), Some(3 << 20)]);
        assert_eq!([bytes(""), bytes("x"), bytes("3 parsecs"), bytes("99999999999999 GiB")], [None; 4]);
        let both = Client::read("drm-driver: amdgpu\ndrm-memory-vram: 9 KiB\ndrm-resident-vram: 8 KiB\n");
        assert_eq!(both.own_memory_bytes.values().sum::<u64>(), 8 << 10);
        let older = Client::read("drm-memory-vram: 9 KiB\ndrm-memory-gtt: 5 KiB\n");
        assert_eq!(older.own_memory_bytes.values().sum::<u64>(), 9 << 10);
    }
}
