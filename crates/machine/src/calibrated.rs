//! Calibrations that are kept between runs.
//!
//! Each calibration is a file in the folder of the kept list of adapters. The file's first lines name what the figures
//! depend on: vramp's version, whether vramp was a debug build, the processor, the number of threads, the adapter and
//! the adapter's driver. A file that does not match this machine or is incomplete is ignored without an error. A kept
//! file is also a profile that `--profile` accepts.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use vramp_files::read_regular_text;
use vramp_gpu::Adapter;
use vramp_plan::Profile;

use super::{cache_folder, kept};

/// The first line. A file with another first line is ignored.
const FORM: &str = "# a calibration by vramp, form 1";
/// The last line. If this line is missing, the file is not complete.
const END: &str = "# end of the calibration";

/// Maximum size of a file that is read.
const MAX_BYTES: u64 = 8 << 20;

/// A calibration that matches this machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibrated {
    /// The figures, under the name `calibrated:` followed by the adapter's name.
    pub profile: Profile,
    /// When the figures were measured.
    pub at: SystemTime,
}

/// The kept calibration of this machine's CPU and an adapter, or of the CPU alone if `adapter` is none. Returns none if
/// no kept calibration matches.
pub fn known(adapter: Option<&Adapter>) -> Option<Calibrated> {
    let facts = identity(adapter);
    read(&read_regular_text(&kept_at(&facts)?, MAX_BYTES).ok()?, &facts, &name_for(adapter))
}

/// The figures for an adapter: the measured figures if a calibration exists, otherwise the figures of the adapter's
/// class.
pub fn figures_of(adapter: Option<&Adapter>) -> Profile {
    known(adapter).map_or_else(|| super::figures_of(adapter), |known| known.profile)
}

/// Keeps a calibration for later runs. The CPU's part is also kept in a second file, for runs without a device. Returns
/// the path of the first file, or none if the cache cannot be written.
pub fn keep(profile: &Profile, adapter: Option<&Adapter>) -> Option<PathBuf> {
    if adapter.is_some() {
        let mut host = profile.clone();
        host.gpu = None;
        put(&host, &identity(None));
    }
    put(profile, &identity(adapter))
}

/// The name of an adapter's measured figures in plans.
pub fn name_for(adapter: Option<&Adapter>) -> String {
    format!("calibrated:{}", adapter.map_or("cpu", |adapter| &adapter.name))
}

/// The default number of threads among which a run divides the rows of a frame.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The name of the host's processor, and the number of threads.
pub fn processor() -> String {
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = about.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':').map(|(_, name)| name));
    let name = named.map_or(std::env::consts::ARCH, str::trim);
    format!("{name}, {} threads", threads())
}

/// Everything the figures depend on, one fact per line.
fn identity(adapter: Option<&Adapter>) -> Vec<String> {
    let build = if cfg!(debug_assertions) { ", a debug build" } else { "" };
    let mut facts = vec![format!("vramp {}{build}", env!("CARGO_PKG_VERSION")), format!("host: {}", processor())];
    facts.extend(adapter.map(|adapter| {
        let Adapter { name, backend, driver, driver_version, vendor, model, .. } = adapter;
        format!("device: {name} ({vendor:x}:{model:x}) through {backend}, {driver} {driver_version}")
    }));
    // Each fact becomes one comment line, so a fact must not contain line breaks.
    facts.iter().map(|fact| fact.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn kept_at(facts: &[String]) -> Option<PathBuf> {
    // FNV-1a, only for the file name; the content identifies the machine.
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = facts.join("\n").as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix);
    Some(cache_folder()?.join(format!("calibration-{hash:016x}.toml")))
}

fn put(profile: &Profile, facts: &[String]) -> Option<PathBuf> {
    let path = kept_at(facts)?;
    kept::put(&path, &written(profile, facts, SystemTime::now())).then_some(path)
}

fn written(profile: &Profile, facts: &[String], at: SystemTime) -> String {
    let seconds = at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let facts = facts.join("\n# ");
    format!("{FORM}\n# measured {seconds} s after 1970 began\n# {facts}\n\n{}{END}\n", profile.write())
}

fn read(text: &str, facts: &[String], name: &str) -> Option<Calibrated> {
    let text = text.strip_suffix('\n')?;
    let mut lines = text.lines();
    if lines.next()? != FORM || !text.ends_with(END) {
        return None;
    }
    let seconds = lines.next()?.strip_prefix("# measured ")?.split(' ').next()?.parse().ok()?;
    let measured_on: Vec<&str> = lines.map_while(|line| line.strip_prefix("# ")).collect();
    let fits = measured_on.iter().eq(facts.iter());
    let profile = Profile::read(name, text).ok().filter(|_| fits)?;
    Some(Calibrated { profile, at: UNIX_EPOCH.checked_add(Duration::from_secs(seconds))? })
}

#[cfg(test)]
mod tests {
    use vramp_gpu::{AdapterKind, Backend, DeviceLimits};

    use super::*;

    fn adapter() -> Adapter {
        Adapter {
            index: 0,
            name: "a card\nof two lines".to_owned(),
            backend: Backend::Vulkan,
            kind: AdapterKind::Integrated,
            driver: "driver".to_owned(),
            driver_version: "1.2".to_owned(),
            vendor: 1,
            model: 2,
            pci: None,
            has_timestamps: false,
            has_mappable_buffers: false,
            limits: DeviceLimits {
                storage_buffers_per_stage: 8,
                binding_bytes: 1 << 27,
                buffer_bytes: 1 << 28,
                params_bytes: 65_536,
                params_alignment: 256,
                workgroups_per_dimension: 65_535,
                invocations_per_workgroup: 256,
                workgroup_bytes: 32_768,
                workgroup_sides: [256, 256, 64],
                storage_alignment: 256,
                texture_side: 8192,
            },
        }
    }

    #[test]
    fn a_calibration_reads_back_on_the_machine_it_was_measured_on_only() {
        let facts = identity(Some(&adapter()));
        let profile = Profile::shipped("integrated").unwrap().named("calibrated:x");
        let at = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let text = written(&profile, &facts, at);
        let back = read(&text, &facts, "calibrated:x");
        assert_eq!(back, Some(Calibrated { profile: profile.clone(), at }));
        // The same card under another driver, another card, another API, and no card at all.
        let others = [
            Adapter { driver_version: "1.3".to_owned(), ..adapter() },
            Adapter { driver: "other".to_owned(), ..adapter() },
            Adapter { model: 3, ..adapter() },
            Adapter { backend: Backend::Gles, ..adapter() },
        ];
        for other in others {
            let other = identity(Some(&other));
            assert_eq!(read(&text, &other, "x"), None);
            assert_ne!(other, facts);
        }
        assert_eq!(read(&text, &identity(None), "x"), None);
        let newer = text.replace(&format!("vramp {}", env!("CARGO_PKG_VERSION")), "vramp 99.0.0");
        assert_ne!(newer, text);
        assert_eq!(read(&newer, &facts, "x"), None);
        // The file is also an ordinary profile.
        assert_eq!(Profile::read("calibrated:x", &text), Ok(profile));
    }

    #[test]
    fn a_calibration_that_is_not_whole_is_not_used() {
        let facts = identity(None);
        let text = written(&Profile::shipped("cpu").unwrap(), &facts, UNIX_EPOCH);
        assert!(read(&text, &facts, "x").is_some());
        for cut in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            assert_eq!(read(&text[..cut], &facts, "x"), None, "cut at {cut}");
        }
        for strange in ["", "\n", "{}", "\u{0}", FORM] {
            assert_eq!(read(strange, &facts, "x"), None);
        }
        assert_eq!(read(&text.replacen("value = ", "value = -", 1), &facts, "x"), None);
    }
}
