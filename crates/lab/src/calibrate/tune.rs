//! Tuning: which variant of a class's kernels is quickest on a device.
//!
//! Owns the variants that are tried and how much better one has to be.
//! Does not change a result: every variant makes the same pixels (tests/variants.rs).
//!
//! Always: the usual variant stays unless another one is clearly quicker.

use vramp_plan::catalog::Class;
use vramp_plan::{Profile, Space, Variant};

use super::CalibrateError;
use super::timer::{PipelineTimer, TimedPiece};

/// What is tried beside the usual one: fewer and more pixels each, and smaller and larger workgroups.
const TRIED: [Variant; 6] =
    [variant(64, 1), variant(64, 2), variant(64, 8), variant(32, 4), variant(128, 4), variant(256, 1)];

/// What another variant has to take at most, beside the usual one: less would be noise.
const BETTER: f64 = 0.95;

const fn variant(workgroup: u32, pixels_per_invocation: u32) -> Variant {
    Variant { workgroup, pixels_per_invocation }
}

/// Every variant that a device of this limit takes, the usual one first.
pub fn variants(most_invocations: u32) -> impl Iterator<Item = Variant> {
    let tried = TRIED.into_iter().filter(move |variant| variant.workgroup <= most_invocations);
    std::iter::once(Variant::default()).chain(tried)
}

/// Finds the variant for kernels of a class.
pub(super) fn tune(
    timer: &PipelineTimer<'_>,
    class: Class,
    profile: &mut Profile,
    stopped: &dyn Fn() -> bool,
) -> Result<(), CalibrateError> {
    let Some(most) = timer.device.map(|device| device.limits().invocations_per_workgroup) else { return Ok(()) };
    let chain = match class {
        Class::Tap => "pattern kind=solid size=SIZE ! blur sigma=2 ! null",
        Class::Sample => "pattern kind=solid size=SIZE ! resize scale=2 ! flip h ! null",
        _ => "pattern kind=ball size=SIZE ! saturation 0.7 ! gamma 2.2 ! markers ! null",
    };
    let piece = TimedPiece::new(chain, Space::Gpu);
    let mut best: Option<(f64, Variant)> = None;
    for variant in variants(most) {
        let mut trial = profile.clone();
        set(&mut trial, class, variant);
        let ns = timer.frame_ns(&piece, timer.effort.tuned_at, &trial, stopped)?;
        let is_better = best.is_none_or(|(least, now)| {
            let wanted = if now == Variant::default() { BETTER } else { 1.0 };
            ns < least * wanted
        });
        if is_better {
            best = Some((ns, variant));
        }
    }
    if let Some((_, variant)) = best {
        set(profile, class, variant);
    }
    Ok(())
}

fn set(profile: &mut Profile, class: Class, variant: Variant) {
    let Some(gpu) = &mut profile.gpu else { return };
    match class {
        Class::Tap => gpu.variants.tap = variant,
        Class::Sample => gpu.variants.sample = variant,
        _ => gpu.variants.pixel = variant,
    }
}
