//! Choosing a device and opening it.
//!
//! Owns the wishes (which backend, which adapter, which limits) and what is said when they cannot be met.
//! Does not fall back to the CPU: that is its caller's decision.
//!
//! Always: hardware is preferred to software; what was named exactly is opened or refused, never replaced.

use super::Device;
use super::adapters::{self, Adapter, AdapterKind, Backend, DeviceLimits};
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
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
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

/// The wishes for a device; [`Choice::open`] ends them.
#[derive(Debug, Clone)]
pub struct Choice {
    backends: Vec<Backend>,
    name: Option<String>,
    index: Option<usize>,
    allow_software: bool,
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
            allow_software: true,
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

    /// Whether an adapter that is the CPU in disguise will do where there is no other; it will, unless told.
    #[must_use]
    pub fn allow_software(mut self, allow: bool) -> Self {
        self.allow_software = allow;
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
        let behind = all.iter().filter(|adapter| self.backends.contains(&adapter.backend));
        let behind: Vec<Adapter> =
            behind.enumerate().map(|(index, adapter)| Adapter { index, ..adapter.clone() }).collect();
        if behind.is_empty() {
            return Err(OpenError::NoAdapter { backends: join(&self.backends) });
        }
        Ok(behind[self.pick(&behind)?].clone())
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
        let at = self.pick(&facts)?;
        let (facts, adapter) = &found[at];
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
        Ok(Device::opened(facts.clone(), DeviceLimits::of(&limits), maps_directly, self.rules, device, queue))
    }

    fn pick(&self, found: &[Adapter]) -> Result<usize, OpenError> {
        let fits = |adapter: &&Adapter| {
            self.index.is_none_or(|index| adapter.index == index)
                && self.name.as_ref().is_none_or(|part| adapter.name.to_lowercase().contains(part))
                && (self.allow_software || adapter.kind != AdapterKind::Software)
        };
        let chosen = found.iter().find(fits).map(|adapter| adapter.index);
        chosen.ok_or_else(|| OpenError::NoSuchAdapter { wanted: self.wanted(), found: join(found) })
    }

    fn wanted(&self) -> String {
        let name = self.name.as_ref().map(|part| format!("called `{part}`"));
        let index = self.index.map(|index| format!("number {index}"));
        let hardware = (!self.allow_software).then(|| "hardware".to_owned());
        [name, index, hardware].into_iter().flatten().collect::<Vec<_>>().join(" and ")
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

fn join(things: &[impl ToString]) -> String {
    things.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
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
            has_timestamps: false,
            has_mappable_buffers: false,
            limits: DeviceLimits::of(&wgpu::Limits::defaults()),
        }
    }

    #[test]
    fn the_first_that_fits_is_picked_and_a_miss_lists_what_there_is() {
        let found = [adapter(0, "Big Card", AdapterKind::Discrete), adapter(1, "llvmpipe", AdapterKind::Software)];
        assert_eq!(Choice::default().pick(&found), Ok(0));
        assert_eq!(Choice::default().named("LLVM").pick(&found), Ok(1));
        assert_eq!(Choice::default().index(1).pick(&found), Ok(1));
        let error = Choice::default().named("llvm").allow_software(false).pick(&found).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no adapter is called `llvm` and hardware; there are: 0: Big Card (vulkan, discrete, 1), \
             1: llvmpipe (vulkan, software, 1)"
        );
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
