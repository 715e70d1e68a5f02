//! Choosing a device and opening it.
//!
//! Owns what can be asked for (which backend, which adapter, which limits), the reason for what is taken, and what is
//! said when nothing is.
//! Does not fall back to the CPU: that is its caller's decision.
//!
//! Always: hardware is preferred to software; what was named exactly is opened or refused, never replaced; an adapter
//! that does not meet a wish is passed over for the next, and the reason for what is taken says so.

use std::fmt;
use std::sync::Arc;

use super::Device;
use super::adapters::{self, Adapter, AdapterKind, Backend, DeviceLimits};
use super::reading::{AdapterReading, ReadAdapter};
use super::wish::{Prefer, Unmet, Wishes};
use crate::memory::PoolRules;
use crate::timing::StampPlaces;

/// Bytes a device may hold unless told otherwise.
const DEFAULT_BUDGET_BYTES: u64 = 1 << 30;

/// Which limits a device is opened with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LimitSet {
    /// All that the adapter has.
    #[default]
    Adapter,
    /// What every WebGPU device has: 8 storage buffers per kernel, 128 MiB each.
    WebGpu,
    /// What nearly everything has: 4 storage buffers per kernel.
    Downlevel,
}

/// Why no device was opened.
#[derive(Clone, PartialEq, thiserror::Error)]
pub enum OpenError {
    /// There is no adapter at all.
    #[error(
        "no graphics adapter answers through {backends}; install a driver (Debian's mesa-vulkan-drivers runs on the \
         CPU), name another backend, or stay on the CPU"
    )]
    NoAdapter {
        /// Where it was looked for.
        backends: String,
    },
    /// None is the one that was wanted.
    #[error("no adapter is {wanted}; there are: {found}")]
    NoSuchAdapter {
        /// What was wanted.
        wanted: String,
        /// What there is.
        found: String,
    },
    /// There are such adapters, and none meets the wishes.
    #[error("no adapter is as asked for: {}", sentence(unmet))]
    Unmet {
        /// Each with what stands against it.
        unmet: Vec<(String, Unmet)>,
    },
    /// The adapter does not have the limits that were wanted.
    #[error("{adapter} has {has} {limit}, {wanted} were asked for; open it with its own limits")]
    TooLittle {
        /// Which adapter.
        adapter: String,
        /// Which limit.
        limit: &'static str,
        /// What it has.
        has: u64,
        /// What was wanted.
        wanted: u64,
    },
    /// The driver refused.
    #[error("{adapter} could not be opened: {problem}; choose another adapter, or stay on the CPU")]
    Refused {
        /// Which adapter.
        adapter: String,
        /// What the driver says.
        problem: String,
    },
}

vramp_plan::debug_as_display!(OpenError);

/// What a choice comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The adapter that is taken.
    pub adapter: Adapter,
    /// Why, in words.
    pub why: String,
    /// What is doubtful in the readings by which it meets a wish.
    pub doubt: Option<String>,
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.adapter.name, self.why)
    }
}

/// The wishes for a device; [`Choice::open`] ends them.
#[derive(Debug, Clone)]
pub struct Choice {
    backends: Vec<Backend>,
    name: Option<String>,
    index: Option<usize>,
    wishes: Wishes,
    limits: LimitSet,
    direct_mapping: bool,
    stamps: StampPlaces,
    rules: PoolRules,
}

impl Default for Choice {
    fn default() -> Self {
        Self {
            backends: Backend::REAL.to_vec(),
            name: None,
            index: None,
            wishes: Wishes::default(),
            limits: LimitSet::default(),
            direct_mapping: true,
            stamps: StampPlaces::default(),
            rules: PoolRules::budget(DEFAULT_BUDGET_BYTES),
        }
    }
}

impl Choice {
    /// Only this backend.
    #[must_use]
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backends = vec![backend];
        self
    }

    /// Only an adapter with this in its name, whatever the case.
    #[must_use]
    pub fn named(mut self, part: &str) -> Self {
        self.name = Some(part.to_lowercase());
        self
    }

    /// Only the adapter at this place of the list.
    #[must_use]
    pub fn index(mut self, index: usize) -> Self {
        self.index = Some(index);
        self
    }

    /// Only what is made of this; hardware first and then software, unless told.
    #[must_use]
    pub fn prefer(mut self, prefer: Prefer) -> Self {
        self.wishes.prefer = prefer;
        self
    }

    /// Only an adapter with at least this much memory, by what [`Choice::readings`] says. One whose memory is unknown
    /// will not do.
    #[must_use]
    pub fn least_memory_bytes(mut self, bytes: u64) -> Self {
        self.wishes.least_memory_bytes = Some(bytes);
        self
    }

    /// Only an adapter that is at most this busy, likewise.
    #[must_use]
    pub fn most_load_percent(mut self, percent: f32) -> Self {
        self.wishes.most_load_percent = Some(percent);
        self
    }

    /// Who is asked for memory and load. Asked only where a wish needs it, for one adapter after the other, best first.
    #[must_use]
    pub fn readings(mut self, read: impl Fn(&Adapter) -> AdapterReading + Send + Sync + 'static) -> Self {
        self.wishes.reader = Some(ReadAdapter(Arc::new(read)));
        self
    }

    /// With these limits, rather than all that the adapter has.
    #[must_use]
    pub fn limits(mut self, limits: LimitSet) -> Self {
        self.limits = limits;
        self
    }

    /// Whether buffers may be mapped themselves where host and device share memory; they are, unless told.
    #[must_use]
    pub fn direct_mapping(mut self, allow: bool) -> Self {
        self.direct_mapping = allow;
        self
    }

    /// Where its clock may be stamped, as far as it can; behind every act unless told.
    #[must_use]
    pub fn stamps(mut self, places: StampPlaces) -> Self {
        self.stamps = places;
        self
    }

    /// The most bytes that its pool may hold, 1 GiB unless told.
    #[must_use]
    pub fn budget_bytes(mut self, bytes: u64) -> Self {
        self.rules = PoolRules::budget(bytes);
        self
    }

    /// All the rules of its pool.
    #[must_use]
    pub fn pool(mut self, rules: PoolRules) -> Self {
        self.rules = rules;
        self
    }

    /// Whether a backend or an adapter was named, so that another one would be wrong.
    pub fn names_one(&self) -> bool {
        self.name.is_some() || self.index.is_some() || self.backends != Backend::REAL
    }

    /// The adapters behind the chosen backends, best first.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn list(&self) -> Vec<Adapter> {
        crate::calls::now(self.list_async())
    }

    /// As `list`, for places that may not block.
    pub async fn list_async(&self) -> Vec<Adapter> {
        adapters::list(&self.backends).await.into_iter().map(|(facts, _)| facts).collect()
    }

    /// Of all adapters of a machine, as a choice without wishes lists them, the one that this choice would open. Its
    /// place is counted among those behind the chosen backends.
    pub fn of(&self, all: &[Adapter]) -> Result<Adapter, OpenError> {
        Ok(self.chosen_of(all)?.adapter)
    }

    /// As `of`, with the reason.
    pub fn chosen_of(&self, all: &[Adapter]) -> Result<Chosen, OpenError> {
        let behind = all.iter().filter(|adapter| self.backends.contains(&adapter.backend));
        let behind: Vec<Adapter> =
            behind.enumerate().map(|(index, adapter)| Adapter { index, ..adapter.clone() }).collect();
        if behind.is_empty() {
            return Err(OpenError::NoAdapter { backends: join(&self.backends) });
        }
        self.pick(&behind)
    }

    /// Opens the best adapter that fits.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn open(&self) -> Result<Device, OpenError> {
        crate::calls::now(self.open_async())
    }

    /// As `open`, for places that may not block.
    pub async fn open_async(&self) -> Result<Device, OpenError> {
        let found = adapters::list(&self.backends).await;
        if found.is_empty() {
            return Err(OpenError::NoAdapter { backends: join(&self.backends) });
        }
        let facts: Vec<Adapter> = found.iter().map(|(facts, _)| facts.clone()).collect();
        let chosen = self.pick(&facts)?;
        let (facts, adapter) = &found[chosen.adapter.index];
        let limits = self.limits_for(facts, &adapter.limits())?;
        let maps_directly = self.direct_mapping && shares_memory(facts) && facts.has_mappable_buffers;
        let mut features = self.stamps.features(adapter.features());
        features.set(wgpu::Features::MAPPABLE_PRIMARY_BUFFERS, maps_directly);
        let wanted = wgpu::DeviceDescriptor {
            label: Some("vramp"),
            required_features: features,
            required_limits: limits.clone(),
            // Few whole buffers that live long: speed of allocation does not matter, unused megabytes do.
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            ..wgpu::DeviceDescriptor::default()
        };
        let refused = |problem: wgpu::RequestDeviceError| OpenError::Refused {
            adapter: facts.to_string(),
            problem: problem.to_string(),
        };
        let (device, queue) = adapter.request_device(&wanted).await.map_err(refused)?;
        Ok(Device::opened(chosen, DeviceLimits::of(&limits), maps_directly, self.rules, device, queue))
    }

    /// The first that fits.
    fn pick(&self, found: &[Adapter]) -> Result<Chosen, OpenError> {
        let is_named = |adapter: &&Adapter| {
            self.index.is_none_or(|index| adapter.index == index)
                && self.name.as_ref().is_none_or(|part| adapter.name.to_lowercase().contains(part))
        };
        let mut unmet = Vec::new();
        for adapter in found.iter().filter(is_named) {
            match self.wishes.judge(adapter) {
                Ok(doubt) => {
                    let why = self.reason(adapter, found, &unmet);
                    return Ok(Chosen { adapter: adapter.clone(), why, doubt });
                }
                Err(against) => unmet.push((adapter.to_string(), against)),
            }
        }
        if unmet.is_empty() {
            return Err(OpenError::NoSuchAdapter { wanted: self.wanted(), found: join(found) });
        }
        Err(OpenError::Unmet { unmet })
    }

    fn wanted(&self) -> String {
        let name = self.name.as_ref().map(|part| format!("called `{part}`"));
        let index = self.index.map(|index| format!("number {index}"));
        [name, index].into_iter().flatten().collect::<Vec<_>>().join(" and ")
    }

    /// Why this one, where these came before it and will not do.
    fn reason(&self, taken: &Adapter, found: &[Adapter], passed_over: &[(String, Unmet)]) -> String {
        if !passed_over.is_empty() {
            return format!("it is the first that is as asked for: {}", sentence(passed_over));
        }
        let is_software = |adapter: &Adapter| adapter.kind == AdapterKind::Software;
        let others = || found.iter().filter(|other| other.index != taken.index);
        let reason = match taken.kind {
            _ if self.index.is_some() || self.name.is_some() => "it was asked for",
            AdapterKind::Software if others().next().is_none() => {
                "it is the only adapter, and it is software: its work runs on the cpu"
            }
            _ if others().next().is_none() => "it is the only adapter",
            AdapterKind::Software => {
                "no hardware adapter was found; this one is software, and its work runs on the cpu"
            }
            kind if others().all(is_software) || kind == AdapterKind::Other => "hardware comes before software",
            AdapterKind::Discrete if others().all(|other| other.kind != AdapterKind::Discrete) => {
                "it has its own memory, which comes before adapters that share the cpu's"
            }
            _ => "it is the first of the list, best first",
        };
        reason.to_owned()
    }

    fn limits_for(&self, adapter: &Adapter, own: &wgpu::Limits) -> Result<wgpu::Limits, OpenError> {
        let wanted = match self.limits {
            LimitSet::Adapter => return Ok(own.clone()),
            LimitSet::WebGpu => wgpu::Limits::defaults(),
            LimitSet::Downlevel => wgpu::Limits::downlevel_defaults(),
        };
        let mut missing = None;
        wanted.check_limits_with_fail_fn(own, false, |limit, wanted, has| {
            missing.get_or_insert((limit, wanted, has));
        });
        match missing {
            None => Ok(wanted),
            Some((limit, wanted, has)) => {
                Err(OpenError::TooLittle { adapter: adapter.to_string(), limit, has, wanted })
            }
        }
    }
}

/// On a card with its own memory, mapping a kernel's buffer would move the buffer across the bus.
fn shares_memory(adapter: &Adapter) -> bool {
    matches!(adapter.kind, AdapterKind::Integrated | AdapterKind::Software) || adapter.backend == Backend::Noop
}

/// Each adapter with what stands against it.
fn sentence(unmet: &[(String, Unmet)]) -> String {
    unmet.iter().map(|(adapter, against)| format!("{adapter} {against}")).collect::<Vec<_>>().join("; ")
}

fn join(things: &[impl ToString]) -> String {
    things.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::reading::Readout;
    use super::*;

    fn adapter(index: usize, name: &str, kind: AdapterKind) -> Adapter {
        Adapter {
            index,
            name: name.into(),
            backend: Backend::Vulkan,
            kind,
            driver: String::new(),
            driver_version: "1".into(),
            vendor: 0,
            model: 0,
            pci: None,
            has_timestamps: false,
            has_mappable_buffers: false,
            limits: DeviceLimits::of(&wgpu::Limits::defaults()),
        }
    }

    fn gb(of: u64) -> u64 {
        of * 1_000_000_000
    }

    /// What a big and busy card, a small one and the CPU behind a driver tell.
    fn read(adapter: &Adapter) -> AdapterReading {
        let (memory, load) = match adapter.kind {
            AdapterKind::Discrete => (Readout::is(gb(8), "a file"), Readout::is(90.0, "a file")),
            AdapterKind::Integrated => (Readout::is(gb(2), "a file"), Readout::is(10.0, "a file")),
            _ => (Readout::unavailable("nobody tells"), Readout::unavailable("it is the cpu")),
        };
        AdapterReading { memory_bytes: memory, used_bytes: Readout::unavailable("not asked"), load_percent: load }
    }

    fn three() -> [Adapter; 3] {
        [
            adapter(0, "Big Card", AdapterKind::Discrete),
            adapter(1, "Small", AdapterKind::Integrated),
            adapter(2, "llvmpipe", AdapterKind::Software),
        ]
    }

    #[test]
    fn the_first_that_fits_is_picked_and_a_miss_lists_what_there_is() {
        let found = [adapter(0, "Big Card", AdapterKind::Discrete), adapter(1, "llvmpipe", AdapterKind::Software)];
        let at = |choice: Choice| choice.pick(&found).map(|chosen| chosen.adapter.index);
        assert_eq!(at(Choice::default()), Ok(0));
        assert_eq!(at(Choice::default().named("LLVM")), Ok(1));
        assert_eq!(at(Choice::default().index(1)), Ok(1));
        assert_eq!(at(Choice::default().prefer(Prefer::Software)), Ok(1));
        let error = at(Choice::default().named("no such")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no adapter is called `no such`; there are: 0: Big Card (vulkan, discrete, 1), \
             1: llvmpipe (vulkan, software, 1)"
        );
    }

    #[test]
    fn an_adapter_that_does_not_meet_a_wish_is_passed_over_and_the_reason_says_so() {
        let choice = || Choice::default().readings(read);
        let chosen = choice().most_load_percent(50.0).chosen_of(&three()).unwrap();
        assert_eq!(chosen.adapter.index, 1);
        assert_eq!(
            chosen.why,
            "it is the first that is as asked for: 0: Big Card (vulkan, discrete, 1) is 90 % busy, 50 % at most were \
             asked for"
        );
        assert_eq!(choice().least_memory_bytes(gb(8)).of(&three()).unwrap().index, 0);
    }

    #[test]
    fn where_no_adapter_meets_a_wish_each_says_why_with_numbers() {
        let choice = || Choice::default().readings(read);
        let error = choice().least_memory_bytes(gb(4)).most_load_percent(50.0).of(&three()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no adapter is as asked for: 0: Big Card (vulkan, discrete, 1) is 90 % busy, 50 % at most were asked for; \
             1: Small (vulkan, integrated, 1) has 2.0 GB, 4.0 GB were asked for; 2: llvmpipe (vulkan, software, 1) \
             should have 4.0 GB, and its memory is unknown: nobody tells"
        );
        let error = Choice::default().prefer(Prefer::Hardware).of(&three()[2..]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no adapter is as asked for: 0: llvmpipe (vulkan, software, 1) is software, hardware was asked for"
        );
    }

    #[test]
    fn what_cannot_be_read_meets_no_wish() {
        let software = || Choice::default().prefer(Prefer::Software);
        let unmet = |choice: Choice| match choice.of(&three()).unwrap_err() {
            OpenError::Unmet { unmet } => unmet.into_iter().last().expect("the last one was asked").1,
            other => panic!("{other}"),
        };
        let why = "it is the cpu".to_owned();
        let load = unmet(software().readings(read).most_load_percent(100.0));
        assert_eq!(load, Unmet::LoadUnknown { why, most_percent: 100.0 });
        assert!(matches!(unmet(software().least_memory_bytes(0)), Unmet::MemoryUnknown { .. }), "nobody can be asked");
    }

    #[test]
    fn a_doubtful_number_meets_a_wish_and_the_doubt_is_handed_on() {
        let doubtful = |_: &Adapter| AdapterReading {
            memory_bytes: Readout::is(gb(2), "a file"),
            used_bytes: Readout::unavailable("not asked"),
            load_percent: Readout::Is { value: 5.0, from: "a file".into(), doubt: Some("it may be more".into()) },
        };
        let choice = || Choice::default().readings(doubtful);
        let chosen = choice().most_load_percent(50.0).chosen_of(&three()).unwrap();
        assert_eq!(chosen.doubt.as_deref(), Some("its load is doubtful: it may be more"));
        assert_eq!(choice().least_memory_bytes(gb(1)).chosen_of(&three()).unwrap().doubt, None, "nobody asked for it");
    }

    #[test]
    fn what_was_named_is_never_replaced_whatever_else_is_wished() {
        let choice = || Choice::default().readings(read);
        let error = choice().index(0).most_load_percent(50.0).of(&three()).unwrap_err();
        let OpenError::Unmet { unmet } = error else { panic!("{error}") };
        assert_eq!(unmet.len(), 1, "the others were not even looked at");
        assert_eq!(choice().named("small").least_memory_bytes(gb(2)).of(&three()).unwrap().index, 1);
        assert!(choice().index(0).names_one() && choice().named("a").names_one());
        assert!(choice().backend(Backend::Vulkan).names_one());
        assert!(!choice().most_load_percent(1.0).prefer(Prefer::Hardware).names_one());
    }

    #[test]
    fn nothing_is_read_unless_a_wish_needs_it() {
        let choice = Choice::default().readings(|_| panic!("nobody asked"));
        assert_eq!(choice.clone().of(&three()).unwrap().index, 0);
        assert_eq!(choice.prefer(Prefer::Software).of(&three()).unwrap().index, 2);
    }

    #[test]
    fn the_reason_fits_what_there_is() {
        let why = |choice: Choice, all: &[Adapter]| choice.chosen_of(all).unwrap().why;
        let [big, small, cpu] = three();
        let any = Choice::default;
        for (choice, all, words) in [
            (any(), vec![big.clone(), small.clone()], "has its own memory"),
            (any(), vec![big.clone(), cpu.clone()], "hardware comes before software"),
            (any(), vec![small.clone(), small.clone()], "first of the list"),
            (any(), vec![small.clone()], "it is the only adapter"),
            (any(), vec![cpu.clone()], "only adapter, and it is software"),
            (any(), vec![cpu.clone(), cpu], "no hardware adapter was found"),
            (any().named("small"), vec![big, small], "it was asked for"),
        ] {
            let why = why(choice, &all);
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn a_choice_counts_behind_its_backends_only() {
        let gl = Adapter { backend: Backend::Gles, ..adapter(0, "first", AdapterKind::Discrete) };
        let all = [gl, adapter(1, "second", AdapterKind::Software)];
        let vulkan = Choice::default().backend(Backend::Vulkan);
        assert_eq!(vulkan.clone().index(0).of(&all).unwrap().name, "second");
        assert!(matches!(vulkan.index(1).of(&all), Err(OpenError::NoSuchAdapter { .. })));
        assert!(matches!(Choice::default().backend(Backend::Metal).of(&all), Err(OpenError::NoAdapter { .. })));
    }

    #[test]
    fn missing_limits_are_named_with_numbers() {
        let own = wgpu::Limits { max_storage_buffers_per_shader_stage: 2, ..wgpu::Limits::defaults() };
        let poor = adapter(0, "poor", AdapterKind::Other);
        let error = Choice::default().limits(LimitSet::Downlevel).limits_for(&poor, &own).unwrap_err();
        assert_eq!(
            error.to_string(),
            "0: poor (vulkan, other, 1) has 2 max_storage_buffers_per_shader_stage, 4 were asked for; open it with its \
             own limits"
        );
        assert!(Choice::default().limits_for(&poor, &own).is_ok());
    }
}
