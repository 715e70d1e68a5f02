//! Pixel handlers fused into one unit make the pixels that they make one after the other.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use vramp_kernels::head::{flip, noise};
use vramp_kernels::pixel::{color, gray, markers, mix, table};
use vramp_plan::{Policy, Rate, Size};
use vramp_runtime::internals::{ExtraInput, FusedPorts, FusedUnit, Lane, LaneContext, Node, WakeSignal, link};
use vramp_runtime::{
    Call, Clock, Flow, FrameHandler, FramePool, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Stepped,
};

const SIZE: Size = Size { width: 37, height: 21 };
const FRAMES: u64 = 5;

/// A kernel with fixed parameters.
#[derive(Clone, Copy)]
enum Kind {
    Noise,
    Invert,
    Gray,
    Markers,
    Flip,
    Mix,
}

struct Pixels(Kind);

impl PixelHandler for Pixels {
    fn parts(&self) -> Vec<Part> {
        vec![match self.0 {
            Kind::Noise => Part::Head(&noise::NOISE),
            Kind::Flip => Part::Head(&flip::FLIP),
            Kind::Invert => Part::Function(&table::TABLE),
            Kind::Gray => Part::Function(&gray::GRAY),
            Kind::Markers => Part::Function(&markers::MARKERS),
            Kind::Mix => Part::Function(&mix::MIX),
        }]
    }

    fn frame(&mut self, info: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        match self.0 {
            Kind::Noise => give.part(&noise::pack(info.now.number, 3), &[]),
            Kind::Flip => give.part(&flip::pack(true, info.now.number.is_multiple_of(2)), &[]),
            Kind::Invert => give.part(&table::pack(&color::invert()), &[]),
            Kind::Gray => give.part(&[], &[]),
            Kind::Markers => give.part(&markers::pack(6, info.now.number as u8 * 40), &[]),
            Kind::Mix => give.part(&mix::pack(mix::Mode::Mix, 0.3), &[]),
        }
        Ok(Flow::Produced)
    }
}

/// Keeps the bytes of every frame.
struct Keep(Arc<Mutex<Vec<Vec<u8>>>>);

impl FrameHandler for Keep {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let frame = call.input(0).expect("a lead frame");
        self.0.lock().expect("no thread panicked").push(frame.bytes().to_vec());
        Ok(Flow::Produced)
    }
}

/// Ends a unit's stream after this many frames.
struct Bounded(FusedUnit, u64);

impl FrameHandler for Bounded {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        if call.now().number == self.1 {
            return Ok(Flow::Ended);
        }
        self.0.process(call)
    }
}

fn unit(kinds: &[Kind], extra_inputs: Vec<usize>) -> FusedUnit {
    let handlers = kinds.iter().map(|kind| Box::new(Pixels(*kind)) as Box<dyn PixelHandler>).collect();
    let source = if matches!(kinds[0], Kind::Noise) { None } else { Some(0) };
    let reads = (0..kinds.len()).filter(|at| matches!(kinds[*at], Kind::Mix));
    let extra_inputs = extra_inputs.into_iter().zip(reads).map(|(port, member)| ExtraInput { port, member }).collect();
    FusedUnit::fuse(
        "unit",
        handlers,
        Rate::new(30, 1),
        FusedPorts { source, extra_inputs, data_inputs: vec![], size: SIZE, small_bytes: 0 },
    )
}

/// Runs units one after another; a unit with two inputs also receives the first unit's frames.
fn run(units: Vec<(FusedUnit, usize)>) -> Vec<Vec<u8>> {
    let signal = WakeSignal::new();
    let kept = Arc::new(Mutex::new(Vec::new()));
    let mut nodes: Vec<Node> = Vec::new();
    for (at, (unit, inputs)) in units.into_iter().enumerate() {
        let name = format!("unit{at}");
        nodes.push(match at {
            0 => Node::new(name, Box::new(Bounded(unit, FRAMES)), 0, 1)
                .clock(Clock::free(Rate::new(30, 1).expect("a rate"))),
            _ => Node::new(name, Box::new(unit), inputs, 1),
        });
        if at > 0 {
            let (output, input) = link(Policy::Lossless, 2, &signal, &signal);
            nodes[at - 1].connect_output(0, output);
            nodes[at].connect_input(0, input, Policy::Lossless);
        }
        if inputs == 2 {
            let (output, input) = link(Policy::Lossless, 8, &signal, &signal);
            nodes[0].connect_output(0, output);
            nodes[at].connect_input(1, input, Policy::Lossless);
        }
    }
    let (output, input) = link(Policy::Lossless, 2, &signal, &signal);
    nodes.last_mut().expect("there is a unit").connect_output(0, output);
    let mut sink = Node::new("keep", Box::new(Keep(Arc::clone(&kept))), 1, 0);
    sink.connect_input(0, input, Policy::Lossless);
    nodes.push(sink);
    let pool = FramePool::new(16 << 20);
    let mut lane = Lane::new(nodes, signal, LaneContext::new(pool.clone()));
    while matches!(lane.step(&|| Duration::ZERO), Stepped::Moved) {}
    drop(lane);
    assert_eq!(pool.stats().lent_bytes, 0);
    Arc::into_inner(kept).expect("the lane is gone").into_inner().expect("no thread panicked")
}

#[test]
fn a_fused_group_makes_what_its_members_make_one_by_one() {
    let one_by_one = run(vec![
        (unit(&[Kind::Noise], vec![]), 0),
        (unit(&[Kind::Invert], vec![]), 1),
        (unit(&[Kind::Flip], vec![]), 1),
        (unit(&[Kind::Markers], vec![]), 1),
        (unit(&[Kind::Gray], vec![]), 1),
    ]);
    // The generator is alone; the table before the flip and the functions after it are one kernel.
    let fused = run(vec![
        (unit(&[Kind::Noise], vec![]), 0),
        (unit(&[Kind::Invert, Kind::Flip, Kind::Markers, Kind::Gray], vec![]), 1),
    ]);
    assert_eq!(one_by_one.len() as u64, FRAMES);
    assert!(one_by_one == fused, "fusing changed pixels");
    assert!(one_by_one[0] != one_by_one[1], "frames differ from each other");
}

#[test]
fn a_generator_with_functions_after_it_is_one_kernel_too() {
    let one_by_one = run(vec![(unit(&[Kind::Noise], vec![]), 0), (unit(&[Kind::Markers], vec![]), 1)]);
    assert!(one_by_one == run(vec![(unit(&[Kind::Noise, Kind::Markers], vec![]), 0)]));
}

#[test]
fn another_image_reaches_the_function_that_reads_it() {
    let one_by_one = run(vec![
        (unit(&[Kind::Noise], vec![]), 0),
        (unit(&[Kind::Invert], vec![]), 1),
        (unit(&[Kind::Mix], vec![1]), 2),
    ]);
    let fused = run(vec![(unit(&[Kind::Noise], vec![]), 0), (unit(&[Kind::Invert, Kind::Mix], vec![1]), 2)]);
    assert!(one_by_one == fused);
    // 0.7 of the negative and 0.3 of the image itself: never all of either.
    let negative = run(vec![(unit(&[Kind::Noise, Kind::Invert], vec![]), 0)]);
    assert!(one_by_one[0] != negative[0]);
}
