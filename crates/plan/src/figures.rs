//! What a plan promises per frame: the figures of a budget that are known without running.
//!
//! The names are those of a run's report. A figure counts per frame of the fastest source, so that work after `every
//! n=10` counts one tenth. Handlers that record work of their own on the device may add dispatches to those of the
//! plan's kernels.

use crate::catalog::TransferDirection;
use crate::plan::{Plan, PlannedHandler};
use crate::words::{Rate, Space};

/// Figures per frame, without the figures that only a run can know.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PlanFigures {
    pub uploads: f64,
    pub downloads: f64,
    pub transfer_bytes: f64,
    /// Dispatches of the plan's kernels.
    pub dispatches: f64,
    /// `None` if a submission may hold several frames, because only the run shows how many.
    pub submits: Option<f64>,
    /// Handlers between sources and sinks that run on the CPU.
    pub cpu_handlers: usize,
    /// Share of the frames that such a handler computes.
    pub cpu_frames: f64,
}

impl PlanFigures {
    /// A figure by name; `transfers` is a sum. `None` if only a run can know the figure.
    pub fn named(&self, name: &str) -> Option<f64> {
        Some(match name {
            "uploads" => self.uploads,
            "downloads" => self.downloads,
            "transfers" => self.uploads + self.downloads,
            "transfer_bytes" => self.transfer_bytes,
            "dispatches" => self.dispatches,
            "submits" => self.submits?,
            "cpu_handlers" => self.cpu_handlers as f64,
            "cpu_frames" => self.cpu_frames,
            _ => return None,
        })
    }
}

impl Plan {
    /// The figures of this plan, if a submission may hold up to `batch` frames.
    pub fn figures(&self, batch: u32) -> PlanFigures {
        let mut figures = PlanFigures::default();
        for transfer in &self.transfers {
            let share = self.share_of_output(transfer.from.handler);
            match transfer.direction {
                TransferDirection::Up => figures.uploads += share,
                TransferDirection::Down => figures.downloads += share,
            }
            figures.transfer_bytes += share * transfer.bytes as f64;
        }
        for group in &self.groups {
            let share = group.handlers.first().map_or(1.0, |first| self.share_of(*first));
            figures.dispatches += share * f64::from(group.dispatches);
        }
        let segments = self.lanes.iter().filter(|lane| lane.device).flat_map(|lane| &lane.segments);
        let first = |segment: &Vec<usize>| self.units[*segment.first()?].handlers.first().copied();
        let submits = segments.map(|segment| first(segment).map_or(1.0, |first| self.share_of(first))).sum();
        figures.submits = (batch <= 1).then_some(submits);
        for at in 0..self.handlers.len() {
            if self.handlers[at].is_between_ends() && self.handlers[at].space == Space::Cpu {
                figures.cpu_handlers += 1;
                figures.cpu_frames = figures.cpu_frames.max(self.share_of(at));
            }
        }
        figures
    }

    /// True if a handler or a transfer puts frames on the device.
    pub fn uses_device(&self) -> bool {
        !self.transfers.is_empty() || self.handlers.iter().any(|handler| handler.space == Space::Gpu)
    }

    /// The handlers between sources and sinks that run on the CPU.
    pub fn between_on_cpu(&self) -> impl Iterator<Item = &PlannedHandler> {
        self.handlers.iter().filter(|handler| handler.is_between_ends() && handler.space == Space::Cpu)
    }

    /// How often a handler runs per frame of the fastest source, by the rate of its lead input.
    fn share_of(&self, handler: usize) -> f64 {
        let planned = &self.handlers[handler];
        let lead = planned.entry.inputs.get(planned.lead).map(|input| input.name);
        let link = self.links.iter().find(|link| link.to.handler == handler && Some(link.to.port) == lead);
        match link {
            Some(link) => self.share(link.content.rate()),
            None => self.share_of_output(handler),
        }
    }

    fn share_of_output(&self, handler: usize) -> f64 {
        self.share(self.links.iter().find(|link| link.from.handler == handler).and_then(|link| link.content.rate()))
    }

    fn share(&self, rate: Option<Rate>) -> f64 {
        let from_source = self.links.iter().filter(|link| self.handlers[link.from.handler].entry.inputs.is_empty());
        let fastest = from_source.filter_map(|link| link.content.rate()).max();
        match (rate, fastest) {
            (Some(rate), Some(fastest)) => rate.per_second() / fastest.per_second(),
            _ => 1.0,
        }
    }
}
