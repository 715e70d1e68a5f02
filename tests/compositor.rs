//! The compositor in pipelines: where each input is drawn, in both spaces, also if inputs are late, change their size
//! or exceed the limits of a device.
//!
//! Runs on any adapter and fails without one; Mesa's software driver is enough.

use vramp::gpu::{Device, LimitSet};
use vramp::harness::{Harness, Rig, Stream};
use vramp::plan::{Plan, Profile, RunOptions, Size, Space};
use vramp::verify::{ComparisonKind, ComparisonResult, Options, Verified, verify};
use vramp::{Pipeline, registry};

use crate::shared::device;

fn limited(limits: LimitSet) -> Device {
    Device::choose().limits(limits).open().expect("an adapter")
}

fn size(width: u32, height: u32) -> Size {
    Size { width, height }
}

fn rig(text: &str, on: Space, inputs: &[(&str, Stream)]) -> Rig {
    let registry = registry();
    let harness = Harness::of(text, &registry).on(on).device(device());
    let harness = inputs.iter().fold(harness, |harness, (port, stream)| harness.input(*port, *stream));
    harness.build().unwrap_or_else(|error| panic!("{text} on the {on}: {error}"))
}

/// An image of one colour, which stays the same when it is resized.
fn flat(size: Size, color: [u8; 4]) -> Vec<u8> {
    color.repeat(size.pixels() as usize)
}

/// The frame as text, with a letter for the colour of each pixel, or `?` for an unknown colour.
fn drawn(rig: &mut Rig) -> String {
    let frame = rig.pull("video").expect("a frame waits");
    let letter = |pixel: &[u8; 4]| match pixel {
        [0, 0, 0, 255] => '.',
        [0, 0, 0, 0] => ' ',
        [r, 9, 9, 77] => char::from(*r),
        _ => '?',
    };
    let rows = frame
        .pixels()
        .chunks(frame.picture().expect("a picture").size.width as usize)
        .map(|row| row.iter().map(letter).collect::<String>());
    rows.collect::<Vec<_>>().join("/")
}

const LETTERS: &[u8] = b"abcdefgh";

fn push(rig: &mut Rig, port: usize, of: Size) {
    rig.push_sized(&format!("in{port}"), of, &flat(of, [LETTERS[port], 9, 9, 77])).expect("a frame of that size");
}

#[test]
fn every_layout_puts_its_inputs_where_they_belong_in_both_spaces() {
    let cases = [
        ("compositor size=4x4", &[0, 1][..], "aabb/aabb/aabb/aabb"),
        ("compositor size=4x4", &[0, 1, 2], "aabb/aabb/cc../cc.."),
        // Only linked inputs count.
        ("compositor size=4x4", &[0, 3, 7], "aadd/aadd/hh../hh.."),
        ("compositor size=6x3 layout=row", &[0, 1, 2], "aabbcc/aabbcc/aabbcc"),
        ("compositor size=2x3 layout=column", &[0, 1, 2], "aa/bb/cc"),
        ("compositor size=8x4 layout=pip", &[0, 1, 2], "aaaaaaaa/aaaaaaaa/aaaaaaaa/aaaaccbb"),
        ("compositor size=4x4 layout=pip", &[0, 1, 2, 3, 4, 5], "aaaa/aaaa/aaaf/edcb"),
        ("compositor size=6x5", &[0, 1, 2, 3, 4, 5, 6], "aabbcc/aabbcc/ddeeff/gg..../gg...."),
        // Edges are rounded, so that a single pixel shows one of the three inputs.
        ("compositor size=1x1 layout=row", &[0, 1, 2], "b"),
        ("compositor", &[0], "a/a"),
    ];
    for (text, ports, expected) in cases {
        for on in [Space::Cpu, Space::Gpu] {
            let names: Vec<String> = ports.iter().map(|port| format!("in{port}")).collect();
            let inputs: Vec<_> = names.iter().map(|name| (name.as_str(), Stream::of(size(3, 2)))).collect();
            let mut rig = rig(text, on, &inputs);
            for port in ports {
                push(&mut rig, *port, size(1 + *port as u32, 2));
            }
            rig.run().expect("it runs");
            assert_eq!(drawn(&mut rig), expected, "{text} of {ports:?} on the {on}");
        }
    }
}

#[test]
fn the_size_is_that_of_the_lead_and_pictures_may_change_theirs() {
    for on in [Space::Cpu, Space::Gpu] {
        let stream = Stream::of(size(2, 2));
        let mut rig = rig("compositor layout=row lead=in1 ! invert ! invert", on, &[("in0", stream), ("in1", stream)]);
        for (other, lead, expected) in [
            (size(2, 2), size(2, 2), "ab/ab"),
            (size(9, 5), size(4, 1), "aabb"),
            (size(1, 1), size(2, 3), "ab/ab/ab"),
            (size(30, 30), size(3, 1), "aab"),
        ] {
            push(&mut rig, 0, other);
            push(&mut rig, 1, lead);
            rig.step().expect("it runs");
            assert_eq!(drawn(&mut rig), expected, "on the {on}");
        }
        assert_eq!(rig.finish().expect("it finishes").failed, 0);
    }
}

#[test]
fn a_single_picture_may_change_its_size_too() {
    for on in [Space::Cpu, Space::Gpu] {
        let mut rig = rig("compositor", on, &[("in0", Stream::of(size(2, 2)))]);
        for (coming, expected) in [(size(2, 2), "aa/aa"), (size(4, 1), "aaaa"), (size(1, 3), "a/a/a")] {
            push(&mut rig, 0, coming);
            rig.step().expect("it runs");
            assert_eq!(drawn(&mut rig), expected, "on the {on}");
        }
    }
}

#[test]
fn an_input_that_has_brought_nothing_yet_is_transparent_and_one_that_brings_no_more_stays() {
    for on in [Space::Cpu, Space::Gpu] {
        let stream = Stream::of(size(2, 2));
        let text = "compositor layout=row size=6x1";
        let mut rig = rig(text, on, &[("in0", stream), ("in1", stream), ("in2", stream)]);
        let mut seen = Vec::new();
        for step in 0..4 {
            push(&mut rig, 0, size(2, 2));
            if step >= 1 {
                push(&mut rig, 2, size(7, 3));
            }
            if step == 2 {
                push(&mut rig, 1, size(1, 9));
            }
            rig.step().expect("it runs");
            seen.push(drawn(&mut rig));
        }
        assert_eq!(seen, ["aa    ", "aa  cc", "aabbcc", "aabbcc"], "on the {on}");
    }
    // The result is the same if another input is the lead.
    for on in [Space::Cpu, Space::Gpu] {
        let stream = Stream::of(size(4, 1));
        let mut rig =
            rig("compositor layout=row lead=in1 ! mix", on, &[("in0", stream), ("in1", stream), ("b", stream)]);
        push(&mut rig, 1, size(4, 1));
        rig.step().expect("it runs");
        let half = [LETTERS[1] / 2, 5, 5, 39];
        assert_eq!(rig.pull("video").expect("a frame").pixels(), [[0; 4], [0; 4], half, half], "on the {on}");
    }
}

/// A pipeline with `count` sources of different sizes, one compositor, and functions after the compositor.
fn many(count: usize, layout: &str) -> String {
    let source = |at: usize| {
        format!("pattern kind=noise seed={at} size={}x{} label=false ! all.in{at}", 3 + 5 * at, 30 - 3 * at)
    };
    let sources: Vec<String> = (0..count).map(source).collect();
    format!("{}; compositor size=33x21 layout={layout} name=all ! invert ! saturation 0.7 ! null", sources.join("; "))
}

fn verified(text: &str, device: &Device) -> Verified {
    let registry = registry();
    let spec = vramp::read(text, registry.catalog()).unwrap_or_else(|mistakes| panic!("{text}: {mistakes}"));
    let options = Options { frames: 2, device: Some(device.clone()), ..Options::default() };
    let found = verify(&spec, &registry, &options).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert!(found.is_equal(), "{text}\n{found}");
    found
}

/// Whether the compositor was compared on the device. The error is the reason why not.
fn compared(found: &Verified) -> Result<(), String> {
    let twins = found.comparisons.iter().find(|check| check.kind == ComparisonKind::Twins && check.made_by == ["all"]);
    match &twins.expect("it is looked at").result {
        ComparisonResult::Left(why) => Err(why.clone()),
        _ => Ok(()),
    }
}

#[test]
fn one_to_eight_inputs_verify_in_every_layout() {
    for (layout, counts) in
        [("grid", &[1, 2, 3, 4, 5, 6, 7, 8][..]), ("row", &[3, 8]), ("column", &[2, 7]), ("pip", &[2, 8])]
    {
        for count in counts {
            let most = device().limits().storage_buffers_per_stage as usize;
            let found = compared(&verified(&many(*count, layout), device()));
            assert_eq!(found.is_ok(), count + 2 <= most, "{count} inputs, {most} buffers: {found:?}");
        }
    }
}

#[test]
fn inputs_that_a_device_cannot_bind_stay_on_the_cpu_with_the_reason() {
    for (limits, most) in [(LimitSet::WebGpu, 8), (LimitSet::Downlevel, 4)] {
        let device = limited(limits);
        assert_eq!(device.limits().storage_buffers_per_stage, most);
        // Small data and the output take two of the buffers.
        let fit = most as usize - 2;
        assert_eq!(compared(&verified(&many(fit, "grid"), &device)), Ok(()));
        let why =
            format!("it stays on the cpu: its kernel binds {} storage buffers, but the device allows {most}", fit + 3);
        assert_eq!(compared(&verified(&many(fit + 1, "grid"), &device)), Err(why));
    }
}

#[test]
fn a_run_puts_what_does_not_fit_on_the_cpu_and_says_so() {
    let (registry, text) = (registry(), many(8, "grid"));
    let spec = vramp::read(&text, registry.catalog()).expect("it reads");
    let graph = registry.check(&spec).expect("a graph");
    let builder = Pipeline::from_graph(graph.clone())
        .registry(&registry)
        .options(RunOptions::new().only(Space::Gpu).frames(5))
        .choice(vramp::machine::choose().limits(LimitSet::WebGpu));
    let figures = Profile::shipped("software").expect("it ships");
    let mut pipeline = builder.profile(figures).build().expect("it is made ready");
    let said = "all stays on the cpu: its kernel binds 10 storage buffers, but the device allows 8";
    assert!(pipeline.plan().warnings.iter().any(|words| words == said), "{:?}", pipeline.plan().warnings);
    assert!(pipeline.plan().handlers.iter().any(|handler| handler.name == "pattern0" && handler.space == Space::Gpu));
    let report = pipeline.outcome().expect("it runs").into_result().expect("to its end");
    assert_eq!((report.frames_out, report.memory.leaked), (5, 0));
    assert!(report.counters.dispatches > 0 && report.counters.downloads > 0);
}

#[test]
fn functions_after_it_are_fused_and_those_before_it_only_of_a_single_image() {
    let groups = |text: &str| {
        let registry = registry();
        let spec = vramp::read(text, registry.catalog()).expect("it reads");
        let graph = registry.check(&spec).expect("a graph");
        let profile = Profile::shipped("integrated").expect("it ships");
        let plan = Plan::decide(&graph, &profile, &RunOptions::new().only(Space::Gpu)).expect("a plan");
        let names = |all: &[usize]| all.iter().map(|at| plan.handlers[*at].name.clone()).collect::<Vec<_>>().join("+");
        plan.groups.iter().map(|group| names(&group.handlers)).collect::<Vec<_>>().join(" ")
    };
    let two = "pattern size=64x48 ! blur ! invert ! compositor name=all ! gamma 2 ! hue 9 ! null; pattern ! all.in1";
    assert_eq!(groups(two), "pattern0 blur0+invert0 pattern1 all+gamma0+hue0");
    let one = "raw path=- size=64x48 ! invert ! compositor ! hue 9 ! null";
    assert_eq!(groups(one), "invert0+compositor0+hue0");
    let two = "raw path=- size=64x48 ! invert ! compositor name=c ! hue 9 ! null; pattern ! c.in4";
    assert_eq!(groups(two), "invert0 pattern0 c+hue0");
}
