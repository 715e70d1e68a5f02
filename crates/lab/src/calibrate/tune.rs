//! Tuning: finds the quickest variant of a class of kernels on a device.
//!
//! A variant is a workgroup size, a number of pixels per invocation, and how their bounds are tested. Each class of
//! kernels (in place, gathering, two passes) is composed in several variants, and the quickest variant replaces the
//! default if that variant takes at least 5 % less time. The chosen variants are part of the profile, so pipelines that are planned with the profile use
//! these variants. All variants give the same pixels (tests/variants.rs).

use vramp_plan::catalog::Class;
use vramp_plan::{Profile, Space, Variant};

use super::CalibrateError;
use super::timer::{PipelineTimer, TimedPiece};

/// The variants to try besides the default: fewer and more pixels per invocation, smaller and larger workgroups. The
/// quickest one is then tried with one test of bounds per invocation.
const TRIED: [Variant; 6] =
    [variant(64, 1), variant(64, 2), variant(64, 8), variant(32, 4), variant(128, 4), variant(256, 1)];

/// A variant replaces the default if the variant takes at most this share of the default's time; smaller gains may be
/// noise.
const BETTER: f64 = 0.95;

const fn variant(workgroup: u32, pixels_per_invocation: u32) -> Variant {
    Variant { workgroup, pixels_per_invocation, wide: false }
}

/// Every variant that a device with this limit accepts, the default first.
pub fn variants(most_invocations: u32) -> impl Iterator<Item = Variant> {
    let tried = TRIED.into_iter().filter(move |variant| variant.workgroup <= most_invocations);
    std::iter::once(Variant::default()).chain(tried)
}

/// Finds the quickest variant for kernels of a class and stores the variant in the profile.
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
    let time = |variant: Variant| {
        let mut trial = profile.clone();
        set(&mut trial, class, variant);
        timer.frame_ns(&piece, timer.effort.tuned_at, &trial, stopped)
    };
    let mut best = (time(Variant::default())?, Variant::default());
    for variant in variants(most).skip(1) {
        let wanted = if best.1 == Variant::default() { BETTER } else { 1.0 };
        let ns = time(variant)?;
        if ns < best.0 * wanted {
            best = (ns, variant);
        }
    }
    let wide = Variant { wide: true, ..best.1 };
    if time(wide)? < best.0 * BETTER {
        best.1 = wide;
    }
    set(profile, class, best.1);
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
