//! WGSL to SPIR-V, as wgpu does it on the devices that vramp opens.
//!
//! The options decide how many instructions a kernel has: checks of loops, divisions and indices are code. They are
//! those of wgpu-hal's Vulkan adapter for a device with `robustBufferAccess2`, which all of the compiled-for devices
//! have: the hardware checks the bounds of buffers, and naga checks the indices of everything else. vramp's kernels are
//! compiled with all of wgpu's checks. A test names the version of wgpu from which the options were taken.

use anyhow::{Context as _, anyhow, bail};
use naga::back::spv::{Options, PipelineOptions, WriterFlags, ZeroInitializeWorkgroupMemoryMode, write_vec};
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, ValidationFlags, Validator};

/// A kernel in SPIR-V.
#[derive(Debug, Clone)]
pub(crate) struct Spirv {
    pub(crate) words: Vec<u32>,
    pub(crate) entry: String,
    /// The bindings that the text declares: number, and whether the binding is a uniform buffer.
    pub(crate) bindings: Vec<(u32, bool)>,
}

/// Whether naga adds the checks that wgpu asks for by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checks {
    /// As vramp compiles its kernels.
    On,
    /// Without checks of loops and divisions, to see what they cost.
    Off,
}

pub(crate) fn translate(wgsl: &str, checks: Checks) -> anyhow::Result<Spirv> {
    let module = naga::front::wgsl::parse_str(wgsl).map_err(|error| anyhow!("{}", error.emit_to_string(wgsl)))?;
    let info = Validator::new(ValidationFlags::all(), Capabilities::all())
        .validate(&module)
        .map_err(|error| anyhow!("{}", error.emit_to_string(wgsl)))?;
    let [entry] = module.entry_points.as_slice() else {
        bail!("a kernel has one entry point, this text has {}", module.entry_points.len());
    };
    let bindings = module.global_variables.iter().filter_map(|(_, variable)| {
        Some((variable.binding.as_ref()?.binding, variable.space == naga::AddressSpace::Uniform))
    });
    let only = PipelineOptions { shader_stage: naga::ShaderStage::Compute, entry_point: entry.name.clone() };
    Ok(Spirv {
        words: write_vec(&module, &info, &options(checks), Some(&only)).context("naga writes no SPIR-V")?,
        entry: entry.name.clone(),
        bindings: bindings.collect(),
    })
}

/// Invocations of a workgroup of a kernel.
pub(crate) fn workgroup(wgsl: &str) -> anyhow::Result<u32> {
    let module = naga::front::wgsl::parse_str(wgsl).map_err(|error| anyhow!("{}", error.emit_to_string(wgsl)))?;
    let entry = module.entry_points.first().context("the text has no entry point")?;
    Ok(entry.workgroup_size.iter().product())
}

fn options(checks: Checks) -> Options<'static> {
    Options {
        lang_version: (1, 6),
        flags: WriterFlags::LABEL_VARYINGS | WriterFlags::FORCE_POINT_SIZE,
        // Without a map of bindings, bindings keep the numbers of the text, as on a device.
        fake_missing_bindings: true,
        bounds_check_policies: BoundsCheckPolicies {
            index: if checks == Checks::On { BoundsCheckPolicy::Restrict } else { BoundsCheckPolicy::Unchecked },
            buffer: BoundsCheckPolicy::Unchecked,
            image_load: BoundsCheckPolicy::Unchecked,
            binding_array: BoundsCheckPolicy::Unchecked,
        },
        zero_initialize_workgroup_memory: ZeroInitializeWorkgroupMemoryMode::Native,
        force_loop_bounding: checks == Checks::On,
        emit_int_div_checks: checks == Checks::On,
        ..Options::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> made: array<u32>;
@group(0) @binding(2) var<uniform> count: vec4<u32>;
@compute @workgroup_size(8, 4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var sum = 0u;
    for (var at = 0u; at < count.x; at++) { sum += source[at] / count.y; }
    made[id.x] = sum;
}";

    #[test]
    fn a_kernel_keeps_its_entry_point_workgroup_and_bindings() {
        let made = translate(TEXT, Checks::On).unwrap();
        assert_eq!((made.entry.as_str(), workgroup(TEXT).unwrap()), ("main", 32));
        assert_eq!(made.bindings, [(0, false), (1, false), (2, true)]);
    }

    #[test]
    fn checks_of_loops_and_divisions_are_code() {
        let [on, off] = [Checks::On, Checks::Off].map(|checks| translate(TEXT, checks).unwrap().words.len());
        assert!(on > off, "{on} words with checks, {off} without");
    }

    #[test]
    fn a_wrong_text_is_refused_with_its_line() {
        let error = translate("fn main() {\n    let a = b;\n}", Checks::On).unwrap_err().to_string();
        assert!(error.contains("wgsl:2:13"), "{error}");
        assert!(translate("fn f() {}", Checks::On).unwrap_err().to_string().contains("this text has 0"));
    }

    /// The options were read in this version of wgpu-hal: `vulkan/adapter.rs`, `spv::Options`. After an update, compare
    /// them again and change the version here.
    #[test]
    fn the_options_are_those_of_the_wgpu_in_use() {
        let lock = include_str!("../../../Cargo.lock");
        let version = lock.split("name = \"wgpu-hal\"\nversion = \"").nth(1).and_then(|rest| rest.split('"').next());
        assert_eq!(version, Some("30.0.1"));
    }
}
