//! The setup of a maker, for tests that make handlers without a plan.

use vramp_plan::Space;
use vramp_plan::catalog::SettingValues;
use vramp_runtime::{FramePool, Handles, Setup};

/// One input and one output of unknown content, on the CPU, in a pipeline of three handlers.
pub fn setup<'a>(name: &'a str, settings: &'a SettingValues) -> Setup<'a> {
    Setup {
        name,
        settings,
        inputs: &[None],
        outputs: &[None],
        tags: None,
        space: Space::Cpu,
        rate: None,
        handlers: 3,
        declared: None,
        pool: FramePool::new(1 << 20),
        device: None,
        handles: Handles::default(),
    }
}
