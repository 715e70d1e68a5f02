//! Pixel handlers with data inputs: boxes that a detector finds on the device are drawn on the pictures there, with one
//! small download per frame.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use vramp::harness::{Harness, Stream};
use vramp::kernels::{PixelFn, RowArgs};
use vramp::plan::catalog::{Input, Output, RateRule, SizeRule};
use vramp::prelude::*;
use vramp::runtime::Detection;
use vramp::verify::{Options, verify};

use crate::payloads::{FIND, Find, ROOM, SPREAD, Spread};
use crate::shared::device;

const SIZE: Size = Size { width: 64, height: 48 };
const SIDES: [Space; 2] = [Space::Cpu, Space::Gpu];

/// At most this many boxes are drawn.
const MOST: usize = 8;

type Pixel = [u8; 4];

/// The boxes of picture `n`. The class is the number of the picture.
fn found(n: u64) -> [Detection; 2] {
    let at = |x: u64, y: u64| [x, y, x + 9, y + 7].map(|side| side as f32);
    let class = n as u32;
    [at(n % 50, 10 + n % 7), at(60 - n % 40, 40)].map(|bounds| Detection { bounds, score: 0.5, class })
}

/// Picture `n`: gray, with the f32 values of its boxes in the first pixels, where `crop` and `find` read them.
fn picture(n: u64) -> Vec<Pixel> {
    let row = |found: Detection| {
        let [x0, y0, x1, y1] = found.bounds;
        [x0, y0, x1, y1, found.score, found.class as f32]
    };
    let mut pixels = vec![[100, 100, 100, 255]; SIZE.pixels() as usize];
    let corner = pixels.chunks_mut(SIZE.width as usize).take(8).flat_map(|row| &mut row[..16]);
    let values = [1.0, 2.0].into_iter().chain(found(n).into_iter().flat_map(row)).map(f32::to_le_bytes);
    corner.zip(values.chain(std::iter::repeat([0; 4]))).for_each(|(pixel, value)| *pixel = value);
    pixels
}

/// The colour of the boxes of a class.
fn color(class: u32) -> Pixel {
    [255, class as u8, 0, 255]
}

/// Picture `n` with the outlines of the boxes of picture `of`, of this thickness.
fn drawn(n: u64, of: Option<u64>, thick: i32) -> Vec<Pixel> {
    let mut pixels = picture(n);
    let Some(of) = of else { return pixels };
    for (pixel, at) in pixels.iter_mut().zip(0..) {
        let (x, y) = (at % SIZE.width.cast_signed(), at / SIZE.width.cast_signed());
        let on = |found: &&Detection| {
            let [x0, y0, x1, y1] = found.bounds.map(|side| side as i32);
            let inside = |by: i32| (x0 + by..x1 - by).contains(&x) && (y0 + by..y1 - by).contains(&y);
            inside(0) && !inside(thick)
        };
        if let Some(found) = found(of).iter().find(on) {
            *pixel = color(found.class);
        }
    }
    pixels
}

/// Outlines of boxes. Parameters: the number of boxes and their thickness. Small data: left, top, right, bottom and
/// colour of each box.
static OUTLINES: PixelFn = PixelFn {
    name: "outlines",
    wgsl: "fn outlines(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {
        for (var i = 0u; i < word(k); i++) {
            let near = at - vec2<i32>(i32(small(5u * i)), i32(small(5u * i + 1u)));
            let far = vec2<i32>(i32(small(5u * i + 2u)), i32(small(5u * i + 3u))) - 1 - at;
            let least = min(min(near.x, near.y), min(far.x, far.y));
            if (least >= 0 && least < int(k + 1u)) {
                return unpack_pixel(small(5u * i + 4u));
            }
        }
        return c;
    }",
    words: 2,
    small: true,
    row,
    ..PixelFn::PLAIN
};

fn row(args: &RowArgs<'_>, pixels: &mut [Pixel]) {
    let (count, thick, y) = (args.frame.words[0] as usize, args.frame.int(1), args.y.cast_signed());
    for (pixel, x) in pixels.iter_mut().zip(args.x.cast_signed()..) {
        let on = |side: &&[u32; 5]| {
            let [x0, y0, x1, y1] = [side[0], side[1], side[2], side[3]].map(u32::cast_signed);
            let least = (x - x0).min(y - y0).min(x1 - 1 - x).min(y1 - 1 - y);
            (0..thick).contains(&least)
        };
        if let Some([.., color]) = args.frame.small.as_chunks::<5>().0.iter().take(count).find(on) {
            *pixel = color.to_le_bytes();
        }
    }
}

static BOXES: Entry = Entry {
    name: "boxes",
    about: "draws the outlines of detections",
    example: "pattern size=64x48 name=p ! boxes name=b; p. ! crop 16x8 ! find ! b.data",
    inputs: &[Input::VIDEO, Input::DATA],
    settings: &[Setting::int("thick", 1..=4, "thickness of the outlines in pixels").default("1").live()],
    small: Some(|_, _, _| (MOST * 5 * 4) as u64),
    ..Entry::FILTER
};

struct Boxes {
    thick: u32,
    small: Vec<u32>,
}

impl PixelHandler for Boxes {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Function(&OUTLINES)]
    }

    fn frame(&mut self, info: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        self.small.clear();
        assert!(info.data(0).is_none() && info.data(2).is_none(), "only input 1 carries data");
        for found in info.data(1).into_iter().flat_map(Frame::detections).take(MOST) {
            self.small.extend(found.bounds.map(|side| (side as i32).cast_unsigned()));
            self.small.push(u32::from_le_bytes(color(found.class)));
        }
        give.part(&[self.small.len() as u32 / 5, self.thick], &self.small);
        Ok(Flow::Produced)
    }
}

/// A source of the pictures above.
static SCENE: Entry = Entry {
    name: "scene",
    about: "pictures with boxes to be found",
    example: "scene ! null",
    outputs: &[Output { size: SizeRule::Probed(Some("size")), rate: RateRule::Probed(None), ..Output::VIDEO }],
    settings: &[Setting::size("size", "size of the pictures").default("64x48")],
    blocking: false,
    ..Entry::SOURCE
};

struct Scene(Vec<Vec<Pixel>>);

impl FrameHandler for Scene {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let mut frame = call.lend(Format::Rgba8, SIZE)?;
        let picture = &self.0[call.now().number as usize % self.0.len()];
        frame.fill().unwrap().copy_from_slice(picture.as_flattened());
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

fn registry() -> Registry {
    let mut registry = vramp::registry();
    registry.add(&FIND, |_| Ok(Find::default())).unwrap();
    registry.add(&SCENE, |_| Ok(Scene((0..200).map(picture).collect()))).unwrap();
    let boxes = |setup: &Setup<'_>| Ok(Boxes { thick: setup.int("thick")?, small: Vec::with_capacity(5 * MOST) });
    registry.add(&BOXES, boxes).unwrap();
    registry
}

/// The numbers and pixels of the frames that reach `out`.
fn frames(text: &str, options: RunOptions) -> (Vec<(u64, Vec<Pixel>)>, Report) {
    // A device of its own, which may be lost.
    let running = Pipeline::parse(text).registry(&registry()).options(options).build().expect(text).spawn().unwrap();
    let row = |frame: PulledFrame| (frame.meta().number, frame.bytes().as_chunks().0.to_vec());
    let frames = running.output("out").unwrap().iter().map(|frame| row(frame.unwrap())).collect();
    let report = running.wait().unwrap();
    assert_eq!((report.memory.leaked, report.failed), (0, 0), "{:?}", report.memory.leaks);
    (frames, report)
}

const DRAWS: &str = "scene name=s ! boxes name=b ! app name=out; s. ! crop 16x8 ! find ! b.data";

#[test]
fn each_picture_has_the_boxes_that_were_found_in_it() {
    for side in SIDES {
        let (frames, report) = frames(DRAWS, RunOptions::new().only(side).frames(60));
        assert_eq!(frames.len(), 60, "{side}");
        for (number, pixels) in &frames {
            assert!(*pixels == drawn(*number, Some(*number), 1), "{side}: frame {number}");
        }
        assert_eq!((report.frames_in, report.dropped.sum()), (60, 0), "{side}");
        assert_eq!(report.counters.dispatches > 0, side == Space::Gpu);
    }
}

#[test]
fn pictures_stay_on_the_device_and_steady_frames_allocate_nothing() {
    let text = "scene name=s ! boxes name=b ! null; s. ! crop 16x8 ! find ! b.data";
    for side in SIDES {
        let options = RunOptions::new().only(side).frames(600).threads(1);
        let built = Pipeline::parse(text).registry(&registry()).device(device()).options(options).build();
        let report = built.unwrap().run().unwrap();
        let (steady, counters) = (report.steady, report.counters);
        assert_eq!((steady.heap_allocs, steady.gpu_allocs, steady.frame_copies), (Some(0.0), 0.0, 0.0), "{side}");
        if side == Space::Gpu {
            // Each picture goes up once, and only its boxes come down.
            assert_eq!((counters.uploads, counters.downloads), (600, 600));
            assert_eq!(counters.transfer_bytes, 600 * (SIZE.pixels() * 4 + u64::from(ROOM)));
            // The upload, which two consumers share; the detector; the drawing, once the boxes have come down.
            assert_eq!((steady.submits, steady.dispatches), (3.0, 2.0));
        }
        assert_eq!((report.memory.leaked, report.dropped.sum()), (0, 0), "{side}: {:?}", report.memory.leaks);
    }
}

#[test]
fn newest_wins_links_never_draw_what_was_found_later() {
    let text = "scene name=s ! boxes name=b ! app name=out; s. !{latest} crop 16x8 !{latest} find !{latest} b.data";
    for side in SIDES {
        let (frames, report) = frames(text, RunOptions::new().only(side).frames(200));
        assert_eq!((frames.len(), report.frames_in), (200, 200), "{side}: the lead is lossless");
        let mut before = None;
        for (number, pixels) in &frames {
            let mut older = (0..=*number).rev().map(Some).chain([None]);
            let of = older.find(|of| drawn(*number, *of, 1) == *pixels);
            let of = of.unwrap_or_else(|| panic!("{side}: frame {number} has no boxes of its own or an older picture"));
            assert!(of >= before, "{side}: frame {number} has the boxes of {of:?} after those of {before:?}");
            before = of;
        }
        assert!(before.is_some(), "{side}: boxes were drawn");
    }
}

#[test]
fn a_lost_device_draws_no_wrong_boxes() {
    for options in [RunOptions::new(), RunOptions::new().on_loss(OnLoss::Cpu), RunOptions::new().away_ms(20)] {
        let (frames, report) = frames(DRAWS, options.only(Space::Gpu).frames(120).lose_device_at(&[20]));
        assert_eq!(report.recoveries.len(), 1);
        // Boxes that are lost on their way to the host count too.
        assert!(frames.len() as u64 + report.dropped.device_lost >= 120, "{:?}", report.dropped);
        assert!(frames.len() >= 80 && frames.last().unwrap().0 == 119, "{} frames", frames.len());
        for (number, pixels) in &frames {
            assert!(*pixels == drawn(*number, Some(*number), 1), "frame {number}");
        }
    }
}

#[test]
fn a_handler_with_data_is_a_unit_of_its_own_and_verifies() {
    let registry = registry();
    let text = "scene name=s ! invert ! boxes thick=2 name=b ! invert ! null; s. ! crop 16x8 ! find ! b.data";
    let spec = vramp::read(text, registry.catalog()).unwrap();
    let options = Options { frames: 5, device: Some(device().clone()), ..Options::default() };
    let verified = verify(&spec, &registry, &options).unwrap();
    assert!(verified.is_equal(), "{verified}");
    let compared: Vec<&str> = verified.comparisons.iter().flat_map(|own| &own.made_by).map(String::as_str).collect();
    assert!(["b", "find0", "invert1"].iter().all(|name| compared.contains(name)), "{compared:?}");
    for side in SIDES {
        let built = Pipeline::parse(text).registry(&registry).device(device()).options(RunOptions::new().only(side));
        let plan = built.plan().unwrap();
        let at = plan.handlers.iter().position(|handler| handler.name == "b").unwrap();
        let unit = plan.units.iter().find(|unit| unit.handlers.contains(&at)).unwrap();
        assert_eq!((unit.handlers.len(), plan.handlers[at].space), (1, side));
    }
}

#[test]
fn data_is_not_bound_to_the_kernel() {
    let mut profile = Profile::shipped("software").unwrap();
    // The picture, the result and the small data.
    profile.gpu.as_mut().unwrap().limits.storage_buffers_per_stage.value = 3.0;
    let built =
        Pipeline::parse(DRAWS).registry(&registry()).profile(profile).options(RunOptions::new().only(Space::Gpu));
    let plan = built.plan().unwrap();
    assert_eq!(plan.handlers.iter().find(|handler| handler.name == "b").unwrap().space, Space::Gpu);
}

#[test]
fn settings_change_while_boxes_are_drawn() {
    for side in SIDES {
        let text = "app name=in size=64x48 ! boxes name=b ! app name=out; in. ! crop 16x8 ! find ! b.data";
        let built = Pipeline::parse(text).registry(&registry()).device(device()).options(RunOptions::new().only(side));
        let running = built.build().unwrap().spawn().unwrap();
        let (input, output) = (running.input("in").unwrap(), running.output("out").unwrap());
        for (n, thick) in (0..8).zip([1, 1, 3, 3, 2, 4, 1, 1]) {
            running.set("b.thick", thick.to_string().as_str()).unwrap();
            input.push(picture(n).as_flattened()).unwrap();
            let frame = output.pull().unwrap().unwrap();
            assert!(frame.bytes()[..] == *drawn(n, Some(n), thick).as_flattened(), "{side}: frame {n}, {thick}");
        }
        input.close();
        assert_eq!(running.wait().unwrap().failed, 0, "{side}");
    }
}

#[test]
fn the_harness_pushes_data_to_a_pixel_handler() {
    let registry = registry();
    for side in SIDES {
        let rig = Harness::of("boxes", &registry).on(side).device(device());
        let mut rig = rig.input("video", SIZE).input("data", Stream::data(ROOM)).build().unwrap();
        rig.push("video", picture(3).as_flattened()).unwrap();
        rig.push_values("data", &[0.0]).unwrap();
        rig.step().unwrap();
        assert!(rig.pull("video").unwrap().bytes == picture(3).as_flattened(), "{side}: nothing was found");
        let (boxes, class) = (found(4), found(4)[0].class as f32);
        let rows = boxes.iter().flat_map(|found| found.bounds.into_iter().chain([0.5, class]));
        let values: Vec<f32> = [1.0, 2.0].into_iter().chain(rows).collect();
        rig.push("video", picture(4).as_flattened()).unwrap();
        rig.push_values("data", &values).unwrap();
        rig.step().unwrap();
        assert!(rig.pull("video").unwrap().bytes == drawn(4, Some(4), 1).as_flattened(), "{side}");
    }
}

#[test]
fn other_inputs_that_are_not_pictures_are_refused_in_words() {
    static TENSOR: Entry = Entry {
        name: "takes-tensor",
        example: "pattern ! takes-tensor ! null",
        inputs: &[Input::VIDEO, Input::TENSOR],
        settings: &[],
        ..BOXES
    };
    static FIRST: Entry = Entry {
        name: "data-first",
        example: "pattern ! data-first ! null",
        inputs: &[Input::DATA, Input::VIDEO],
        settings: &[],
        ..BOXES
    };
    let mut registry = registry();
    let make = |_: &Setup<'_>| Ok(Boxes { thick: 1, small: Vec::new() });
    registry.add(&SPREAD, |_| Ok(Spread)).unwrap();
    registry.add(&TENSOR, make).unwrap();
    registry.add(&FIRST, make).unwrap();
    let refused = |text: &str| {
        let options = RunOptions::new().only(Space::Cpu);
        Pipeline::parse(text).registry(&registry).options(options).build().unwrap_err().to_string()
    };
    let first = "only inputs after the first that do not lead may carry data";
    for (text, words) in [
        (
            "scene name=s ! takes-tensor name=t ! null; s. ! spread ! t.tensor",
            "pictures, but tensor carries u8 [48, 64, 4]",
        ),
        ("scene name=s ! f.video; s. ! crop 16x8 ! find ! data-first lead=video name=f ! null", first),
        (
            "scene name=s ! boxes lead=data name=b ! null; s. ! crop 16x8 ! find ! b.data",
            "lead input, which carries no video",
        ),
    ] {
        let error = refused(text);
        assert!(error.contains(words), "{text}: {error}");
    }
}
