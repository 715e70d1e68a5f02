//! The trial: runs a small pipeline on the CPU and on the device, and compares the results with `vramp::verify`.

use vramp::gpu::Device;
use vramp::machine;
use vramp::verify::{ComparisonKind, ComparisonResult, Options, Verified, verify};

use super::HealthCheck;
use crate::run::counted;

/// A small pipeline. Its blur reads neighbouring pixels, and its inversion is fused with the blur.
const PIPELINE: &str = "pattern size=64x48 frames=2 ! blur ! invert ! null";

/// Runs the pipeline on the CPU and, if there are adapters, on the adapter that a run would use.
pub(super) fn checks(has_adapters: bool) -> Vec<HealthCheck> {
    let opened = has_adapters.then(|| machine::choose().open());
    let (device, refused) = match opened {
        None => (None, None),
        Some(Ok(device)) => (Some(device), None),
        Some(Err(why)) => {
            let fix = "vramp devices, then vramp run PIPELINE --device N, or --cpu";
            (None, Some(HealthCheck::problem("gpu", why.to_string(), fix)))
        }
    };
    let verified = match tried(device.as_ref()) {
        Ok(verified) => verified,
        Err(why) => return vec![HealthCheck::problem("trial", why, format!("vramp run '{PIPELINE}' --cpu -v"))],
    };
    let mut checks = vec![check_of("trial on cpu", &verified, "the CPU", |what| what == ComparisonKind::FusedOnCpu)];
    checks.extend(refused);
    if let Some(device) = device {
        let name = format!("{} ({})", device.adapter().name, device.adapter().backend);
        checks.push(check_of("trial on gpu", &verified, &name, |what| what != ComparisonKind::FusedOnCpu));
    }
    checks
}

fn tried(device: Option<&Device>) -> Result<Verified, String> {
    let registry = vramp::registry();
    let spec = vramp::read(PIPELINE, registry.catalog()).map_err(|mistakes| mistakes.render(false))?;
    let options = Options { frames: 2, device: device.cloned(), ..Options::default() };
    verify(&spec, &registry, &options).map_err(|error| error.to_string())
}

/// The result of those comparisons whose kind satisfies `which`.
fn check_of(name: &'static str, verified: &Verified, on: &str, which: impl Fn(ComparisonKind) -> bool) -> HealthCheck {
    let checks: Vec<_> = verified.comparisons.iter().filter(|check| which(check.kind)).collect();
    if let Some(different) = checks.iter().find(|check| matches!(check.result, ComparisonResult::Different(_))) {
        let fix = format!("vramp run '{PIPELINE}' --verify -v, and use --cpu until the driver is updated");
        return HealthCheck::problem(name, format!("{on} computes different pixels: {different}"), fix);
    }
    let equal = checks.iter().filter(|check| matches!(check.result, ComparisonResult::Equal { .. })).count();
    if equal == 0 {
        return HealthCheck::warning(name, format!("{on}: nothing could be compared"));
    }
    let against = if name == "trial on gpu" { "those of the CPU" } else { "those of unfused handlers" };
    HealthCheck::ok(
        name,
        format!("{on} ran `{PIPELINE}`; its pixels equal {against} ({})", counted(equal, "comparison")),
    )
}
