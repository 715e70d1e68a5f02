//! The events of a run in words, for programs that print them.

use std::time::Duration;

use vramp_plan::OnError;

use super::monitor::{GoesOn, RunEvent};

impl RunEvent {
    /// Whether the run continues, but not as requested. Other events are only useful to know.
    pub fn is_warning(&self) -> bool {
        match self {
            RunEvent::Told { is_warning, .. } => *is_warning,
            RunEvent::Reloaded { .. }
            | RunEvent::Changed { .. }
            | RunEvent::GraphReplaced { .. }
            | RunEvent::DeviceBack { .. }
            | RunEvent::Second(_)
            | RunEvent::Replanned { .. } => false,
            RunEvent::NotChanged { .. }
            | RunEvent::NotReloaded { .. }
            | RunEvent::Failed { .. }
            | RunEvent::Slow { .. }
            | RunEvent::DeviceLost { .. }
            | RunEvent::Unresponsive { .. } => true,
        }
    }

    /// A sentence about the event. `None` for progress, for an error that ends the run, because the error is the result
    /// of the run, and for a change of the frame size, because a folder of images of different sizes has one for each
    /// image.
    pub fn words(&self) -> Option<String> {
        Some(match self {
            RunEvent::Failed { policy: OnError::Stop, .. }
            | RunEvent::Unresponsive { .. }
            | RunEvent::Second(_)
            | RunEvent::Replanned { .. } => return None,
            RunEvent::Reloaded { handler } => format!("{handler}: reloaded"),
            RunEvent::Changed { handler, settings, frame } => {
                let settings: Vec<String> = settings.iter().map(setting).collect();
                format!("{handler}: {} from frame {frame} on", settings.join(" "))
            }
            RunEvent::GraphReplaced { handlers, kept, frames } => format!(
                "another graph continues the run after {}; {kept} of its {} kept their state",
                counted(*frames, "frame"),
                counted(*handlers as u64, "handler"),
            ),
            RunEvent::Told { handler, words, .. } => format!("{handler}: {words}"),
            RunEvent::DeviceBack { device } => format!("{device} is available again and continues the run"),
            RunEvent::Failed { handler, frame, error, policy } => {
                let then = match policy {
                    OnError::Retry => "the frame is retried once",
                    _ => "the frame is skipped",
                };
                format!("{handler} failed on frame {frame}: {error}; {then}, and later failures are not reported")
            }
            RunEvent::NotChanged { handler, frame, problem } => {
                format!("{handler} keeps its settings at frame {frame}: {problem}")
            }
            RunEvent::NotReloaded { handler, problem } => {
                format!("{handler}: the saved file cannot be used, so the handler keeps running as before: {problem}")
            }
            RunEvent::Slow { handler, own, frame, took, budget, count } => {
                let more = match count {
                    0 | 1 => String::new(),
                    _ => format!(", one of {count} late frames since the last warning"),
                };
                let late = format!("frame {frame} came after {:.1} ms{more}", ms(*took));
                let (own, budget) = (ms(*own), ms(*budget));
                if own > budget {
                    format!("{handler} takes {own:.1} ms of a {budget:.1} ms frame; {late}")
                } else {
                    format!(
                        "{late}, not {budget:.1} ms; no handler takes that long; the slowest is {handler} with \
                         {own:.1} ms"
                    )
                }
            }
            RunEvent::DeviceLost { reason, on, lost } => {
                let then = match on {
                    GoesOn::Device => "the device was opened again",
                    GoesOn::Cpu => "the CPU continues",
                };
                format!("{reason}, with {} on it; {then}", counted(*lost, "frame"))
            }
        })
    }
}

/// A setting as a pipeline's text has it.
fn setting((key, value): &(String, String)) -> String {
    let is_plain = !value.is_empty() && !value.contains(|c: char| c == '"' || c <= ' ');
    if is_plain { format!("{key}={value}") } else { format!("{key}={value:?}") }
}

fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
