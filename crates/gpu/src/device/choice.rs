//! Choosing an adapter and opening it.
//!
//! A [`Choice`] may name an adapter (by backend, index, or part of its name) and may have requirements (kind, minimum
//! memory, maximum load). If an adapter is named, no other adapter is opened instead. An adapter that does not meet a
//! requirement is passed over, and the next adapter is tried. Hardware is preferred to software. The result comes
//! with the reason for the choice, in words ([`Chosen`], [`Device::why`]).
//!
//! If no adapter is left, the error lists what each adapter lacks. Falling back to the CPU is the caller's decision: a
//! pipeline falls back with a warning, unless a device was required.

use std::fmt;
use std::sync::Arc;

use super::Device;
use super::adapters::{self, Adapter, AdapterKind, Backend, DeviceLimits};
use super::reading::{AdapterReading, ReadAdapter};
use super::requirements::{Prefer, Requirements, Unmet};
use crate::memory::PoolRules;
use crate::timing::StampPlaces;

/// The default byte budget of a device's pool.
const DEFAULT_BUDGET_BYTES: u64 = 1 << 30;

/// The limits that a device is opened with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LimitSet {
    /// The adapter's own limits.
    #[default]
    Adapter,
    /// The guaranteed limits of WebGPU: 8 storage buffers per kernel, 128 MiB each.
    WebGpu,
    /// Limits of old or small devices: 4 storage buffers per kernel.
    Downlevel,
}

/// Why no device was opened.
#[derive(Clone, PartialEq, thiserror::Error)]
pub enum OpenError {
    #[error(
        "no graphics adapter answers through {backends}; install a driver (Debian's mesa-vulkan-drivers runs on the \
         CPU), name another backend, or run on the CPU"
    )]
    NoAdapter { backends: String },
    /// No adapter has the requested name or index.
    #[error("no adapter is {wanted}; there are: {found}")]
    NoSuchAdapter { wanted: String, found: String },
    #[error("no adapter meets the requirements: {}", sentence(unmet))]
    Unmet {
        /// Each adapter with the first requirement that the adapter does not meet.
        unmet: Vec<(String, Unmet)>,
    },
    /// The adapter has lower limits than the requested [`LimitSet`].
    #[error("{adapter}: {limit} is {has}, but {wanted} is required; open the adapter with its own limits")]
    TooLittle { adapter: String, limit: &'static str, has: u64, wanted: u64 },
    #[error("{adapter} could not be opened: {problem}; choose another adapter, or run on the CPU")]
    Refused { adapter: String, problem: String },
}

vramp_plan::debug_as_display!(OpenError);

/// The result of a choice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    pub adapter: Adapter,
    /// The reason, in words.
    pub why: String,
    /// Why a reading that met a requirement may be wrong; none if no such reading is in doubt.
    pub doubt: Option<String>,
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.adapter.name, self.why)
    }
}

/// Criteria for a device. [`Choice::open`] opens a device that meets the criteria.
#[derive(Debug, Clone)]
pub struct Choice {
    backends: Vec<Backend>,
    name: Option<String>,
    index: Option<usize>,
    requirements: Requirements,
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
            requirements: Requirements::default(),
            limits: LimitSet::default(),
            direct_mapping: true,
            stamps: StampPlaces::default(),
            rules: PoolRules::budget(DEFAULT_BUDGET_BYTES),
        }
    }
}

impl Choice {
    /// Restricts the choice to one backend.
    #[must_use]
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backends = vec![backend];
        self
    }

    /// Restricts the choice to adapters whose name contains `part`, ignoring case.
    #[must_use]
    pub fn named(mut self, part: &str) -> Self {
        self.name = Some(part.to_lowercase());
        self
    }

    /// Restricts the choice to the adapter at this index of the list.
    #[must_use]
    pub fn index(mut self, index: usize) -> Self {
        self.index = Some(index);
        self
    }

    /// Restricts the kind of adapter. Defaults to hardware, then software.
    #[must_use]
    pub fn prefer(mut self, prefer: Prefer) -> Self {
        self.requirements.prefer = prefer;
        self
    }

    /// Requires at least this much memory, according to [`Choice::readings`]. An adapter whose memory is unknown does
    /// not qualify.
    #[must_use]
    pub fn least_memory_bytes(mut self, bytes: u64) -> Self {
        self.requirements.least_memory_bytes = Some(bytes);
        self
    }

    /// Requires a load of at most this percentage, according to [`Choice::readings`]. An adapter whose load is unknown
    /// does not qualify.
    #[must_use]
    pub fn most_load_percent(mut self, percent: f32) -> Self {
        self.requirements.most_load_percent = Some(percent);
        self
    }

    /// Sets the function that reads memory and load of an adapter. The function is called only if a requirement needs a
    /// reading, and then once per adapter, best first, until an adapter qualifies.
    #[must_use]
    pub fn readings(mut self, read: impl Fn(&Adapter) -> AdapterReading + Send + Sync + 'static) -> Self {
        self.requirements.reader = Some(ReadAdapter(Arc::new(read)));
        self
    }

    /// Opens the device with these limits. Defaults to the adapter's own limits.
    #[must_use]
    pub fn limits(mut self, limits: LimitSet) -> Self {
        self.limits = limits;
        self
    }

    /// Whether downloads may map storage buffers directly if host and device share memory. Defaults to true.
    #[must_use]
    pub fn direct_mapping(mut self, allow: bool) -> Self {
        self.direct_mapping = allow;
        self
    }

    /// Where to write timestamps, as far as the device supports that. Defaults to after every command.
    #[must_use]
    pub fn stamps(mut self, places: StampPlaces) -> Self {
        self.stamps = places;
        self
    }

    /// Byte budget of the device's pool. Defaults to 1 GiB.
    #[must_use]
    pub fn budget_bytes(mut self, bytes: u64) -> Self {
        self.rules = PoolRules::budget(bytes);
        self
    }

    /// Sets all rules of the device's pool.
    #[must_use]
    pub fn pool(mut self, rules: PoolRules) -> Self {
        self.rules = rules;
        self
    }

    /// Whether a backend or an adapter was named, so that no other adapter may be opened instead.
    pub fn names_one(&self) -> bool {
        self.name.is_some() || self.index.is_some() || self.backends != Backend::REAL
    }

    /// The adapters of the chosen backends, best first.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn list(&self) -> Vec<Adapter> {
        crate::calls::now(self.list_async())
    }

    /// Like `list`, for callers that must not block.
    pub async fn list_async(&self) -> Vec<Adapter> {
        let found = adapters::list(&self.backends).await;
        found.iter().flat_map(|found| &found.adapters).map(|(facts, _)| facts.clone()).collect()
    }

    /// The adapter that this choice would open. `all` are the adapters of a machine as [`Choice::default`] lists them.
    /// The index of the returned adapter counts only the adapters of the chosen backends.
    pub fn of(&self, all: &[Adapter]) -> Result<Adapter, OpenError> {
        Ok(self.chosen_of(all)?.adapter)
    }

    /// Like `of`, with the reason for the choice.
    pub fn chosen_of(&self, all: &[Adapter]) -> Result<Chosen, OpenError> {
        let behind = all.iter().filter(|adapter| self.backends.contains(&adapter.backend));
        let behind: Vec<Adapter> =
            behind.enumerate().map(|(index, adapter)| Adapter { index, ..adapter.clone() }).collect();
        if behind.is_empty() {
            return Err(OpenError::NoAdapter { backends: join(&self.backends) });
        }
        self.pick(&behind)
    }

    /// Opens the best adapter that qualifies.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn open(&self) -> Result<Device, OpenError> {
        crate::calls::now(self.open_async())
    }

    /// Like `open`, for callers that must not block.
    pub async fn open_async(&self) -> Result<Device, OpenError> {
        let none = || OpenError::NoAdapter { backends: join(&self.backends) };
        let found = adapters::list(&self.backends).await.ok_or_else(none)?;
        if found.adapters.is_empty() {
            return Err(none());
        }
        let facts: Vec<Adapter> = found.adapters.iter().map(|(facts, _)| facts.clone()).collect();
        let chosen = self.pick(&facts)?;
        let facts = &facts[chosen.adapter.index];
        let (instance, adapter) = adapters::to_open(&found, facts.index).await.ok_or_else(none)?;
        let limits = self.limits_for(facts, &adapter.limits())?;
        let maps_directly = self.direct_mapping && shares_memory(facts) && facts.has_mappable_buffers;
        let mut features = self.stamps.features(adapter.features());
        features.set(wgpu::Features::MAPPABLE_PRIMARY_BUFFERS, maps_directly);
        let wanted = wgpu::DeviceDescriptor {
            label: Some("vramp"),
            required_features: features,
            required_limits: limits.clone(),
            // vramp allocates few buffers, which live long, so little unused memory matters more than fast allocation.
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            ..wgpu::DeviceDescriptor::default()
        };
        let refused = |problem: wgpu::RequestDeviceError| OpenError::Refused {
            adapter: facts.to_string(),
            problem: problem.to_string(),
        };
        let (device, queue) = adapter.request_device(&wanted).await.map_err(refused)?;
        let origin = (instance, adapter);
        Ok(Device::opened(chosen, DeviceLimits::of(&limits), maps_directly, self.rules, origin, device, queue))
    }

    /// The first adapter that qualifies.
    fn pick(&self, found: &[Adapter]) -> Result<Chosen, OpenError> {
        let is_named = |adapter: &&Adapter| {
            self.index.is_none_or(|index| adapter.index == index)
                && self.name.as_ref().is_none_or(|part| adapter.name.to_lowercase().contains(part))
        };
        let mut unmet = Vec::new();
        for adapter in found.iter().filter(is_named) {
            match self.requirements.check(adapter) {
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

    /// Why `taken` was chosen, after the adapters in `passed_over` failed a requirement.
    fn reason(&self, taken: &Adapter, found: &[Adapter], passed_over: &[(String, Unmet)]) -> String {
        if !passed_over.is_empty() {
            let passed_over = sentence(passed_over);
            return format!("it is the first adapter that meets the requirements; passed over: {passed_over}");
        }
        let is_software = |adapter: &Adapter| adapter.kind == AdapterKind::Software;
        let others = || found.iter().filter(|other| other.index != taken.index);
        let reason = match taken.kind {
            _ if self.index.is_some() || self.name.is_some() => "it was requested",
            AdapterKind::Software if others().next().is_none() => {
                "it is the only adapter: a software driver that runs on the CPU"
            }
            _ if others().next().is_none() => "it is the only adapter",
            AdapterKind::Software => "no hardware adapter was found; this is a software driver that runs on the CPU",
            kind if others().all(is_software) || kind == AdapterKind::Other => "hardware is preferred to software",
            AdapterKind::Discrete if others().all(|other| other.kind != AdapterKind::Discrete) => {
                "it has its own memory, which is preferred to sharing the CPU's memory"
            }
            _ => "it is first in the list of adapters, which is sorted by preference",
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

/// Whether host and device share memory. With separate memory, mapping a kernel's buffer would move the buffer across
/// the bus.
fn shares_memory(adapter: &Adapter) -> bool {
    matches!(adapter.kind, AdapterKind::Integrated | AdapterKind::Software) || adapter.backend == Backend::Noop
}

/// Each adapter with the requirement that the adapter does not meet.
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

    /// Readings of a card with much memory and a high load, of a card with little memory and a low load, and of a
    /// software driver without readings.
    fn read(adapter: &Adapter) -> AdapterReading {
        let (memory, load) = match adapter.kind {
            AdapterKind::Discrete => (Readout::is(gb(8), "a file"), Readout::is(90.0, "a file")),
            AdapterKind::Integrated => (Readout::is(gb(2), "a file"), Readout::is(10.0, "a file")),
            _ => (Readout::unavailable("no counter"), Readout::unavailable("it is the cpu")),
        };
        AdapterReading { memory_bytes: memory, used_bytes: Readout::unavailable("not read"), load_percent: load }
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
            "it is the first adapter that meets the requirements; passed over: 0: Big Card (vulkan, discrete, 1) is 90 \
             % busy, but at most 50 % is allowed"
        );
        assert_eq!(choice().least_memory_bytes(gb(8)).of(&three()).unwrap().index, 0);
    }

    #[test]
    fn where_no_adapter_meets_a_wish_each_says_why_with_numbers() {
        let choice = || Choice::default().readings(read);
        let error = choice().least_memory_bytes(gb(4)).most_load_percent(50.0).of(&three()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no adapter meets the requirements: 0: Big Card (vulkan, discrete, 1) is 90 % busy, but at most 50 % is \
             allowed; 1: Small (vulkan, integrated, 1) has 2.0 GB of memory, but 4.0 GB are required; 2: \
             llvmpipe (vulkan, software, 1) must have 4.0 GB of memory, but the size of its memory is unknown: no \
             counter"
        );
        let error = Choice::default().prefer(Prefer::Hardware).of(&three()[2..]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no adapter meets the requirements: 0: llvmpipe (vulkan, software, 1) is software, but hardware is required"
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
        assert!(matches!(unmet(software().least_memory_bytes(0)), Unmet::MemoryUnknown { .. }), "no source is set");
    }

    #[test]
    fn a_doubtful_number_meets_a_wish_and_the_doubt_is_handed_on() {
        let doubtful = |_: &Adapter| AdapterReading {
            memory_bytes: Readout::is(gb(2), "a file"),
            used_bytes: Readout::unavailable("not read"),
            load_percent: Readout::Is { value: 5.0, from: "a file".into(), doubt: Some("it may be more".into()) },
        };
        let choice = || Choice::default().readings(doubtful);
        let chosen = choice().most_load_percent(50.0).chosen_of(&three()).unwrap();
        assert_eq!(chosen.doubt.as_deref(), Some("its load is doubtful: it may be more"));
        assert_eq!(choice().least_memory_bytes(gb(1)).chosen_of(&three()).unwrap().doubt, None, "no limit on the load");
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
        let choice = Choice::default().readings(|_| panic!("no requirement needs a reading"));
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
            (any(), vec![big.clone(), cpu.clone()], "hardware is preferred to software"),
            (any(), vec![small.clone(), small.clone()], "first in the list of adapters"),
            (any(), vec![small.clone()], "it is the only adapter"),
            (any(), vec![cpu.clone()], "the only adapter: a software driver"),
            (any(), vec![cpu.clone(), cpu], "no hardware adapter"),
            (any().named("small"), vec![big, small], "it was requested"),
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
            "0: poor (vulkan, other, 1): max_storage_buffers_per_shader_stage is 2, but 4 is required; open the \
             adapter with its own limits"
        );
        assert!(Choice::default().limits_for(&poor, &own).is_ok());
    }
}
