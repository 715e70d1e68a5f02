//! Frames per second, drops and memory over the time of the run, with marks where the device was lost.

use vramp_runtime::observe::RunSample;

use super::section;
use crate::draw::chart::{Chart, Series};
use crate::figures::{bytes, digits};
use crate::markup::Markup;
use crate::page::RunPart;

/// Fewer samples are of a run of a few milliseconds, and say nothing about time.
const LEAST_SAMPLES: usize = 4;

pub(crate) fn write(page: &mut Markup, run: &RunPart) {
    let samples = &run.record.samples;
    let Some(last) = samples.last().filter(|_| samples.len() >= LEAST_SAMPLES) else { return };
    let to_ns = last.at_ns as f64;
    let losses = run.record.events.iter().filter(|event| event.is_loss);
    let marks: Vec<(f64, String)> = losses.map(|event| (event.at_ns as f64, event.text.clone())).collect();
    let words = format!(
        "{} samples{}.",
        samples.len(),
        if marks.is_empty() { "" } else { "; dashed red lines show where the device was lost" }
    );
    let series = |class, name: &str, filled, value: fn(&RunSample) -> u64| Series {
        class,
        name: name.to_owned(),
        points: samples.iter().map(|own| (own.at_ns as f64, value(own) as f64)).collect(),
        filled,
    };
    let in_bytes: fn(f64) -> String = |value| bytes(value as u64);
    let plain: fn(f64) -> String = |value| if value.fract() == 0.0 { format!("{value:.0}") } else { digits(value) };
    section(page, "Over time", &words, |page| {
        page.element("div", &[("class", "two")], |page| {
            let rate = Series { class: "out", name: "at the sinks".to_owned(), points: rates(samples), filled: true };
            let chart = |title, series, unit| Chart { title, series, unit, to_ns, marks: &marks };
            chart("Frames per second", vec![rate], plain).draw(page);
            let mut memory = Vec::new();
            if samples.iter().any(|own| own.cpu_bytes > 0) {
                memory.push(series("cpu", "cpu, lent", true, |own| own.cpu_used_bytes));
                memory.push(series("cpu thin", "cpu, pool", false, |own| own.cpu_bytes));
            }
            if samples.iter().any(|own| own.gpu_bytes > 0) {
                memory.push(series("gpu", "gpu, lent", true, |own| own.gpu_used_bytes));
                memory.push(series("gpu thin", "gpu, pool", false, |own| own.gpu_bytes));
            }
            chart("Memory of frames", memory, in_bytes).draw(page);
            if last.dropped > 0 {
                let dropped = series("lost", "so far, for any reason", true, |own| own.dropped);
                chart("Dropped frames", vec![dropped], plain).draw(page);
            }
        });
    });
}

/// Frames per second at the sinks, over at least five samples, so that single frames do not show as spikes.
fn rates(samples: &[RunSample]) -> Vec<(f64, f64)> {
    let reach = (samples.len() / 24).max(5);
    let rate = |at: usize| {
        let (from, to) = (samples[at.saturating_sub(reach)], samples[(at + reach).min(samples.len() - 1)]);
        let seconds = (to.at_ns.saturating_sub(from.at_ns)) as f64 / 1e9;
        let frames = to.frames_out.saturating_sub(from.frames_out) as f64;
        (samples[at].at_ns as f64, if seconds > 0.0 { frames / seconds } else { 0.0 })
    };
    (0..samples.len()).map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_frames_around_a_sample() {
        let sample = |at: u64| RunSample { at_ns: at * 10_000_000, frames_out: at * 2, ..RunSample::default() };
        let samples: Vec<RunSample> = (0..50).map(sample).collect();
        assert!(rates(&samples).iter().all(|(_, rate)| (rate - 200.0).abs() < 1e-6));
        assert_eq!(rates(&samples[..1]), [(0.0, 0.0)]);
    }
}
