//! From a time to a figure: what a plan does not explain yet.
//!
//! Owns the fitting of one handler's rate, through the planner's own prices.
//! Does not know formulas of costs: it asks what the plan costs with the handler at no cost, and with it at a known one.
//!
//! Always: a plan of what was measured costs what was measured, as far as one rate can make it so.

use vramp_plan::{Profile, Rates, Size, Space};

use super::CalibrateError;
use super::fit::{measured, rate};
use super::timer::{PipelineTimer, TimedPiece};

/// So fast that it costs nothing.
const FREE: f64 = 1e12;

/// Measures a piece at two sizes and gives all of these handlers the rate that explains it.
pub(super) fn handler(
    timer: &PipelineTimer<'_>,
    keys: &[&str],
    pieces: &[TimedPiece],
    profile: &mut Profile,
    stopped: &dyn Fn() -> bool,
) -> Result<(), CalibrateError> {
    let (mut points, mut words) = (Vec::new(), Vec::new());
    for piece in pieces {
        for size in [timer.effort.small, timer.effort.large] {
            let ns = timer.frame_ns(piece, size, profile, stopped)?;
            points.push(point(timer, keys, piece, size, profile, ns)?);
            words.push(format!("{size} in {:.1} us", ns / 1e3));
        }
    }
    let shown = pieces.iter().map(|piece| piece.text.replace(" size=SIZE", "")).collect::<Vec<_>>().join(" and ");
    let how = format!("`{shown}` at {}", words.join(", "));
    let value = rate(&points);
    let space = pieces.first().map_or(Space::Cpu, |piece| piece.space);
    for key in keys {
        let figure = measured(value, &how);
        rates(profile, space).map(|rates| rates.handlers.insert((*key).to_owned(), figure));
    }
    Ok(())
}

/// The handler's units of work in a plan of a piece, and the time that nothing else explains.
fn point(
    timer: &PipelineTimer<'_>,
    keys: &[&str],
    piece: &TimedPiece,
    size: Size,
    profile: &Profile,
    ns: f64,
) -> Result<(f64, f64), CalibrateError> {
    let priced = |value: f64| {
        let mut trial = profile.clone();
        for key in keys {
            let figure = measured(value, "");
            rates(&mut trial, piece.space).map(|rates| rates.handlers.insert((*key).to_owned(), figure));
        }
        timer.cost_ns(piece, size, &trial)
    };
    let free = priced(FREE)?;
    // A million units a second are a unit in a thousand nanoseconds.
    let units = (priced(1.0)? - free) / 1e3;
    // What is lost in noise is at least a fiftieth of the whole.
    Ok((units, (ns - free).max(ns / 50.0)))
}

pub(super) fn rates(profile: &mut Profile, space: Space) -> Option<&mut Rates> {
    match space {
        Space::Cpu => Some(&mut profile.cpu.rates),
        Space::Gpu => profile.gpu.as_mut().map(|gpu| &mut gpu.rates),
    }
}
