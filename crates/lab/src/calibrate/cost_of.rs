//! Fits the rate of one handler to a measured time.
//!
//! This module has no cost formulas of its own. The module asks the planner twice for the cost of the plan: once as if
//! the handler cost nothing, and once with a known rate for the handler.
//!
//! Invariant: with the fitted rate, the planner's cost of the measured pipeline is the measured time, as far as a
//! single rate can explain the measured times.

use vramp_plan::{Profile, Rates, Size, Space};

use super::CalibrateError;
use super::fit::{measured, rate};
use super::timer::{PipelineTimer, TimedPiece};

/// A rate so high that the handler costs almost nothing.
const FREE: f64 = 1e12;

/// Measures each piece at two sizes, and gives all handlers in `keys` the same rate: the rate that explains the times
/// best.
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

/// The handler's units of work in the plan of a piece, and the part of the time that no other figure explains.
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
    // At a rate of one million units a second, a unit takes a thousand nanoseconds.
    let units = (priced(1.0)? - free) / 1e3;
    // Noise can make the remainder vanish, so the remainder counts as at least a fiftieth of the whole time.
    Ok((units, (ns - free).max(ns / 50.0)))
}

pub(super) fn rates(profile: &mut Profile, space: Space) -> Option<&mut Rates> {
    match space {
        Space::Cpu => Some(&mut profile.cpu.rates),
        Space::Gpu => profile.gpu.as_mut().map(|gpu| &mut gpu.rates),
    }
}
