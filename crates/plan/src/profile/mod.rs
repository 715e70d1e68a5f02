//! Profiles: the performance figures of a machine, from which costs are computed.
//!
//! A profile is read from TOML and written as TOML. The profiles of the shipped device classes are files next to the
//! code. Calibration measures the figures of a machine, and `decide` computes costs from the figures.
//!
//! Invariants: every figure is finite and above zero. Every figure that ships with vramp has an origin, or a reason if
//! the figure is an estimate.

mod figure;
mod shipped;
mod variants;
mod write;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::catalog::{Class, SettingValues};

pub use figure::{Figure, FigureOrigin};
pub use variants::Variants;

/// Minimum pixels per band of rows. Waking a thread takes about as long as computing this many pixels, so smaller
/// bands gain nothing.
pub const LEAST_BAND_PIXELS: u64 = 32 * 1024;

/// The rates, latencies, bandwidths and limits of a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    #[serde(skip)]
    name: String,
    /// The machine in one line.
    pub about: String,
    pub cpu: CpuProfile,
    /// `None` for a machine without a device.
    pub gpu: Option<GpuProfile>,
}

/// Figures of the CPU, all threads together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuProfile {
    /// Threads that share the rows of a kernel.
    pub threads: Figure,
    /// The largest frame, in bytes, that stays in the cache between two passes.
    pub cache_bytes: Figure,
    /// Bandwidth of one pass within the cache, in bytes per nanosecond.
    pub cache_gb_s: Figure,
    /// Bandwidth of one pass over a frame that does not fit in the cache.
    pub memory_gb_s: Figure,
    /// Memory that pools may use.
    pub memory_bytes: Figure,
    /// Cost of one more kernel per frame: calling the kernel, preparing its parameters, and waking threads for its
    /// rows.
    pub call_us: Figure,
    /// Million units of work per second, by class.
    pub rates: Rates,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuProfile {
    /// True if host and device share their memory, so that frames can be mapped instead of copied.
    pub unified: bool,
    /// True if the device's work runs on the host's threads.
    #[serde(default)]
    pub software: bool,
    /// Latency of an upload.
    pub upload_us: Figure,
    pub upload_gb_s: Figure,
    /// Latency of a download.
    pub download_us: Figure,
    pub download_gb_s: Figure,
    /// Cost of one more dispatch in a pass.
    pub dispatch_us: Figure,
    /// Cost of one more submit.
    pub submit_us: Figure,
    /// Bandwidth of a pass over device memory.
    pub memory_gb_s: Figure,
    /// Memory that pools may use.
    pub memory_bytes: Figure,
    /// Million units of work per second, by class.
    pub rates: Rates,
    /// Limits that kernels must respect.
    pub limits: Limits,
    /// How kernels are distributed over invocations.
    #[serde(default)]
    pub variants: Variants,
}

/// Million units of work per second: one figure per [`Class`], and a figure for each handler that was measured
/// separately. On the host, the figures of [`Class::Codec`] and [`Class::Move`] are rates of one thread, because such
/// handlers run on one thread. All other figures are rates of all threads together. A handler without a kernel uses one
/// thread, so the rate of such a handler is the figure divided by the number of threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    pub pixel: Figure,
    pub draw: Figure,
    pub tap: Figure,
    pub sample: Figure,
    pub sort: Figure,
    pub reduce: Figure,
    pub codec: Figure,
    #[serde(rename = "move")]
    pub moved: Figure,
    /// Derived from `tap` if the file has none, because older profiles do not.
    #[serde(default = "absent")]
    pub network: Figure,
    /// Figures of single handlers, by kind (`blur`) or by kind and the word of a setting (`pattern.ball`).
    #[serde(default)]
    pub handlers: BTreeMap<String, Figure>,
}

/// Multiplications of a network in the time of one tap of a stencil: the lower end of what the shipped profiles have.
const NETWORK_PER_TAP: f64 = 4.0;

/// The origin of a rate of networks that is not in the file.
const DERIVED: &str =
    "four times `tap`, because the profile has no rate of networks; `vramp devices --calibrate` measures it";

/// A figure that is not in the file.
fn absent() -> Figure {
    Figure { value: f64::NAN, origin: FigureOrigin::Estimate(DERIVED.to_owned()) }
}

impl Rates {
    /// Derives the figures that are not in the file from others.
    fn complete(&mut self) {
        if self.network.value.is_nan() && self.network.origin == absent().origin {
            self.network.value = NETWORK_PER_TAP * self.tap.value;
        }
    }

    /// Million units per second of this class.
    pub fn of(&self, class: Class) -> f64 {
        self.figure(class).value
    }

    /// Million units per second of a handler under these settings: its own figure if the profile has one, otherwise the
    /// figure of its class.
    pub fn of_handler(&self, kind: &str, settings: &SettingValues, class: Class) -> f64 {
        if self.handlers.is_empty() {
            return self.of(class);
        }
        let worded = settings.iter().find_map(|(key, _)| self.handlers.get(&format!("{kind}.{}", settings.word(key)?)));
        worded.or_else(|| self.handlers.get(kind)).map_or_else(|| self.of(class), |figure| figure.value)
    }

    fn figure(&self, class: Class) -> &Figure {
        match class {
            Class::Pixel => &self.pixel,
            Class::Draw => &self.draw,
            Class::Tap => &self.tap,
            Class::Sample => &self.sample,
            Class::Sort => &self.sort,
            Class::Reduce => &self.reduce,
            Class::Codec => &self.codec,
            Class::Move => &self.moved,
            Class::Network => &self.network,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Storage buffers that a kernel may bind.
    pub storage_buffers_per_stage: Figure,
    /// Bytes that one binding may cover.
    pub binding_bytes: Figure,
    /// Bytes of one buffer.
    pub buffer_bytes: Figure,
    /// Workgroups along one dimension of a dispatch.
    pub workgroups_per_dimension: Figure,
}

#[derive(Clone, PartialEq, thiserror::Error)]
pub enum ProfileError {
    #[error("profile {name}: {problem}")]
    Shape {
        name: String,
        /// The parser's message with the position in the text, or the message about a variant that is out of range.
        problem: String,
    },
    #[error("profile {name}: {key} is {value}; expected a finite number above 0")]
    Figure { name: String, key: String, value: f64 },
}

crate::debug_as_display!(ProfileError);

impl Profile {
    /// The device classes that ship with vramp.
    pub const SHIPPED: [&'static str; 5] = ["discrete", "integrated", "phone", "software", "cpu"];

    pub fn shipped(class: &str) -> Option<Profile> {
        let text = shipped::text(class)?;
        Some(Profile::read(&format!("shipped:{class}"), text).expect("a test reads every shipped profile"))
    }

    /// Reads a profile from TOML. Plans show `name` as the profile's name.
    pub fn read(name: &str, text: &str) -> Result<Profile, ProfileError> {
        let mut profile: Profile = toml::from_str(text).map_err(|error| ProfileError::Shape {
            name: name.to_owned(),
            problem: error.to_string().trim_end().to_owned(),
        })?;
        name.clone_into(&mut profile.name);
        profile.cpu.rates.complete();
        if let Some(gpu) = &mut profile.gpu {
            gpu.rates.complete();
        }
        for (key, figure) in profile.figures() {
            if !figure.value.is_finite() || figure.value <= 0.0 {
                return Err(ProfileError::Figure { name: name.to_owned(), key, value: figure.value });
            }
        }
        let variants = profile.gpu.as_ref().map(|gpu| gpu.variants).unwrap_or_default();
        if let Err(problem) = variants.check() {
            return Err(ProfileError::Shape { name: name.to_owned(), problem });
        }
        Ok(profile)
    }

    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Profile {
        self.name = name.into();
        self
    }

    /// The name that plans show.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn figures(&self) -> Vec<(String, &Figure)> {
        let cpu = &self.cpu;
        let mut all = vec![
            ("cpu.threads".to_owned(), &cpu.threads),
            ("cpu.cache_bytes".to_owned(), &cpu.cache_bytes),
            ("cpu.cache_gb_s".to_owned(), &cpu.cache_gb_s),
            ("cpu.memory_gb_s".to_owned(), &cpu.memory_gb_s),
            ("cpu.memory_bytes".to_owned(), &cpu.memory_bytes),
            ("cpu.call_us".to_owned(), &cpu.call_us),
        ];
        all.extend(Class::ALL.map(|c| (format!("cpu.rates.{}", c.name()), cpu.rates.figure(c))));
        all.extend(cpu.rates.handlers.iter().map(|(kind, f)| (format!("cpu.rates.handlers.\"{kind}\""), f)));
        if let Some(gpu) = &self.gpu {
            all.extend([
                ("gpu.upload_us".to_owned(), &gpu.upload_us),
                ("gpu.upload_gb_s".to_owned(), &gpu.upload_gb_s),
                ("gpu.download_us".to_owned(), &gpu.download_us),
                ("gpu.download_gb_s".to_owned(), &gpu.download_gb_s),
                ("gpu.dispatch_us".to_owned(), &gpu.dispatch_us),
                ("gpu.submit_us".to_owned(), &gpu.submit_us),
                ("gpu.memory_gb_s".to_owned(), &gpu.memory_gb_s),
                ("gpu.memory_bytes".to_owned(), &gpu.memory_bytes),
                ("gpu.limits.storage_buffers_per_stage".to_owned(), &gpu.limits.storage_buffers_per_stage),
                ("gpu.limits.binding_bytes".to_owned(), &gpu.limits.binding_bytes),
                ("gpu.limits.buffer_bytes".to_owned(), &gpu.limits.buffer_bytes),
                ("gpu.limits.workgroups_per_dimension".to_owned(), &gpu.limits.workgroups_per_dimension),
            ]);
            all.extend(Class::ALL.map(|c| (format!("gpu.rates.{}", c.name()), gpu.rates.figure(c))));
            all.extend(gpu.rates.handlers.iter().map(|(kind, f)| (format!("gpu.rates.handlers.\"{kind}\""), f)));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_figure_says_where_it_comes_from_or_that_it_is_an_estimate() {
        for class in Profile::SHIPPED {
            let profile = Profile::shipped(class).unwrap();
            assert_eq!(profile.name(), format!("shipped:{class}"));
            assert!(!profile.about.is_empty());
            for (key, figure) in profile.figures() {
                let said = match &figure.origin {
                    FigureOrigin::Unsaid => "",
                    FigureOrigin::From(text) | FigureOrigin::Estimate(text) => text,
                };
                assert!(said.len() >= 8, "{class}: {key} does not say where it comes from");
            }
        }
    }

    #[test]
    fn only_the_plain_cpu_class_has_no_device() {
        for class in Profile::SHIPPED {
            assert_eq!(Profile::shipped(class).unwrap().gpu.is_none(), class == "cpu");
        }
        assert_eq!(Profile::shipped("quantum"), None);
    }

    #[test]
    fn a_figure_that_makes_no_sense_is_refused_with_its_key() {
        let text = shipped::text("cpu").unwrap();
        for bad in ["0", "-1", "nan", "inf"] {
            let doctored = text.replacen("threads = { value = 8", &format!("threads = {{ value = {bad}"), 1);
            assert_ne!(doctored, text);
            let error = Profile::read("mine.toml", &doctored).unwrap_err().to_string();
            assert!(error.contains("mine.toml") && error.contains("cpu.threads"), "{error}");
        }
    }

    #[test]
    fn a_profile_without_a_rate_of_networks_gets_one_from_its_rate_of_taps() {
        let text = shipped::text("discrete").unwrap();
        let older: String =
            text.lines().filter(|line| !line.starts_with("network")).flat_map(|line| [line, "\n"]).collect();
        assert_ne!(older, text);
        let profile = Profile::read("older.toml", &older).unwrap();
        let gpu = profile.gpu.as_ref().unwrap();
        for rates in [&profile.cpu.rates, &gpu.rates] {
            assert!((rates.of(Class::Network) - 4.0 * rates.of(Class::Tap)).abs() < 1e-6);
            assert!(
                matches!(&rates.network.origin, FigureOrigin::Estimate(text) if text.contains("vramp devices --calibrate"))
            );
        }
        // The derived figure is written and read like any other.
        assert_eq!(Profile::read("older.toml", &profile.write()), Ok(profile));
        let nan = text.replacen("network = { value = 400000", "network = { value = nan", 1);
        let error = Profile::read("mine.toml", &nan).unwrap_err().to_string();
        assert!(error.contains("cpu.rates.network"), "{error}");
    }

    #[test]
    fn an_unknown_or_missing_key_is_refused_with_its_place() {
        let text = shipped::text("cpu").unwrap();
        let error = Profile::read("p", &format!("colour = 1\n{text}")).unwrap_err().to_string();
        assert!(error.contains("colour") && error.contains("line 1"), "{error}");
        let error = Profile::read("p", "about = \"x\"").unwrap_err().to_string();
        assert!(error.contains("cpu"), "{error}");
    }
}
