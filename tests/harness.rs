//! The harness with built-in handlers: frames that are pushed in come out, and both spaces make the same pixels.
//!
//! Runs on any adapter and fails without one; Mesa's software driver is enough.

use std::path::PathBuf;

use vramp::harness::{Caught, Harness, HarnessError, Rig, Stream};
use vramp::plan::catalog::{Entry, Family, ValueType};
use vramp::plan::{Format, Rate, Size, Space};

use crate::shared::{device, registry};

#[path = "../examples/02_own_handler.rs"]
#[allow(dead_code, reason = "its main is not called here")]
mod own_handler;
#[path = "../examples/03_own_pixel_function.rs"]
#[allow(dead_code, reason = "its main is not called here")]
mod own_pixel_function;

const SIZES: [(u32, u32); 5] = [(1, 1), (1, 7), (9, 1), (17, 13), (64, 48)];

fn size(width: u32, height: u32) -> Size {
    Size { width, height }
}

/// An image that is random in all four channels, with many values at the ends of the range.
fn picture(size: Size, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        match state >> 60 {
            0 => 0,
            1 => 255,
            _ => (state >> 40) as u8,
        }
    };
    (0..4 * size.pixels()).map(|_| byte()).collect()
}

fn rig(text: &str, on: Space, stream: impl Into<Stream>, inputs: &[&str]) -> Rig {
    let stream = stream.into();
    let harness = Harness::of(text, registry()).on(on).device(device());
    let harness = inputs.iter().fold(harness, |harness, port| harness.input(*port, stream));
    harness.build().unwrap_or_else(|error| panic!("{text} on the {on}: {error}"))
}

/// The frames that a part of a pipeline makes from random images at each of its inputs.
fn frames(text: &str, on: Space, of: Size, inputs: &[&str], steps: u64) -> Vec<Caught> {
    let mut rig = rig(text, on, of, inputs);
    for step in 0..steps {
        for (at, port) in inputs.iter().enumerate() {
            rig.push(port, &picture(of, 7 * step + at as u64)).expect("a frame of that size");
        }
        rig.step().unwrap_or_else(|error| panic!("{text} on the {on} at {of}: {error}"));
    }
    let report = rig.finish().expect("it finishes");
    // Tests share a device, so on the GPU the count includes the memory of other tests.
    assert!(report.memory.leaked == 0 || on == Space::Gpu, "{text} on the {on} at {of}");
    assert_eq!(report.counters.dispatches > 0, on == Space::Gpu, "{text} on the {on} at {of}");
    (0..rig.waiting("video").expect("one output")).map(|_| rig.pull("video").expect("it waits")).collect()
}

/// Asserts that both spaces make the same frames from the same inputs, up to a difference of `levels`.
#[track_caller]
fn agree(text: &str, inputs: &[&str], levels: u8) {
    for (width, height) in SIZES {
        let of = size(width, height);
        agree_at(text, of, inputs, levels);
    }
}

/// The indices of the bytes that hold pixels; the others are padding between rows and planes, which may hold anything.
fn places(frame: &Caught) -> impl Iterator<Item = usize> {
    let rows =
        frame.picture().expect("a picture").format.planes(frame.picture().expect("a picture").size).flat_map(|plane| {
            (0..plane.rows)
                .map(move |row| (plane.start + row * plane.stride) as usize)
                .zip(std::iter::repeat(plane.row_bytes))
        });
    rows.flat_map(|(start, bytes)| start..start + bytes as usize)
}

#[track_caller]
fn agree_at(text: &str, of: Size, inputs: &[&str], levels: u8) {
    let [cpu, gpu] = [Space::Cpu, Space::Gpu].map(|on| frames(text, on, of, inputs, 2));
    assert_eq!((cpu.len(), gpu.len()), (2, 2), "{text} at {of}");
    for (cpu, gpu) in cpu.iter().zip(&gpu) {
        let facts = |frame: &Caught| (frame.number, frame.pts_ns, frame.content);
        assert_eq!(facts(cpu), facts(gpu), "{text} at {of}");
        let apart = |at: &usize| cpu.bytes[*at].abs_diff(gpu.bytes[*at]) > levels;
        if let Some(at) = places(cpu).find(apart) {
            let (row, pixel) = (cpu.picture().expect("a picture").size.width as usize, at / 4);
            panic!(
                "{text} at {of}, frame {}, pixel {},{}: {:?} on the cpu, {:?} on the gpu",
                cpu.number,
                pixel % row,
                pixel / row,
                cpu.pixels()[pixel],
                gpu.pixels()[pixel],
            );
        }
    }
}

/// A folder for one test, deleted on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("vramp-harness-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for pictures");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

// ---- the harness itself

#[test]
fn what_is_pushed_comes_out_one_frame_a_step_with_the_times_of_its_rate() {
    for on in [Space::Cpu, Space::Gpu] {
        let of = size(3, 2);
        let stream = Stream::of(of).rate(Rate::new(25, 1).expect("a rate"));
        let mut rig = rig("invert ! invert", on, stream, &["video"]);
        for seed in 0..3 {
            rig.push("video", &picture(of, seed)).expect("a frame");
        }
        for number in 0..3_u64 {
            assert_eq!(rig.waiting("video").expect("one output"), 0);
            rig.step().expect("it steps");
            let frame = rig.pull("video").expect("one a step");
            assert_eq!((frame.number, frame.pts_ns), (number, number.cast_signed() * 40_000_000));
            assert_eq!(frame.bytes, picture(of, number));
        }
        assert!(matches!(rig.pull("video"), Err(HarnessError::Nothing { .. })));
        let report = rig.finish().expect("it finishes");
        assert_eq!((report.frames_in, report.frames_out, report.in_flight), (3, 3, 0));
    }
}

#[test]
fn a_chain_is_fused_as_it_would_be_between_any_other_ends() {
    for on in [Space::Cpu, Space::Gpu] {
        let text = "invert ! gamma value=2 ! blur ! markers";
        let alone =
            Harness::of(text, registry()).on(on).device(device()).fusion(false).build().expect("it can be built");
        assert_eq!(alone.plan().groups.len(), 4);
        let fused = rig(text, on, size(8, 8), &["video"]).plan().groups.len();
        // Whether a handler before a blur is fused with it depends on the costs in that space.
        assert!((1..=2).contains(&fused), "{fused} groups on the {on}");
    }
}

#[test]
fn a_step_without_a_push_leaves_a_place_empty() {
    let of = size(1, 1);
    let mut rig = rig("identity", Space::Cpu, of, &["video"]);
    rig.step().expect("nothing happens");
    assert_eq!(rig.waiting("video").expect("one output"), 0);
    rig.push("video", &[1, 2, 3, 4]).expect("a frame");
    rig.step().expect("it steps");
    assert_eq!(rig.pull("video").expect("it waits").number, 1);
}

#[test]
fn inputs_of_different_rates_meet_by_their_times() {
    let (of, text) = (size(1, 1), "mix mode=mix amount=1");
    let at = |rate| Stream::of(of).rate(Rate::new(rate, 1).expect("a rate"));
    let uneven = Harness::of(text, registry()).input("a", of).input("b", at(20)).build();
    assert!(matches!(uneven, Err(HarnessError::Rates { .. })));
    for on in [Space::Cpu, Space::Gpu] {
        let slow = at(10);
        let harness = Harness::of(text, registry()).on(on).device(device());
        let mut rig = harness.input("a", of).input("b", slow).build().expect("it can be built");
        for level in 0..6 {
            rig.push("a", &[level; 4]).expect("a frame");
        }
        for level in [100, 200] {
            rig.push("b", &[level; 4]).expect("a frame");
        }
        rig.run().expect("it runs");
        rig.finish().expect("it finishes");
        let levels: Vec<u8> = (0..6).map(|_| rig.pull("video").expect("one a step").bytes[0]).collect();
        assert_eq!(levels, [100, 100, 100, 200, 200, 200], "on the {on}");
    }
}

#[test]
fn a_slower_input_has_its_own_numbers_and_no_slots_in_between() {
    let at = |rate| Stream::of(size(1, 1)).rate(Rate::new(rate, 1).expect("a rate"));
    // The slow input is led by no other input, so that its frames come out under their own numbers and times.
    let text = "identity name=slow; identity name=fast";
    let harness = Harness::of(text, registry()).input("slow.video", at(10)).input("fast.video", at(30));
    let mut rig = harness.build().expect("it can be built");
    for level in 0..3 {
        rig.push("slow.video", &[level; 4]).expect("a frame");
    }
    rig.run().expect("it runs");
    let report = rig.finish().expect("it finishes");
    let pulled: Vec<Caught> = (0..3).map(|_| rig.pull("slow.video").expect("it waits")).collect();
    let places: Vec<_> = pulled.iter().map(|frame| (frame.number, frame.pts_ns)).collect();
    assert_eq!(places, [(0, 0), (1, 100_000_000), (2, 200_000_000)]);
    // Seven ticks: three slots of the slow input with frames, and seven empty slots of the fast input.
    assert_eq!((report.frames_in, report.frames_out), (10, 3));
}

#[test]
fn a_rig_that_has_failed_takes_no_more_frames() {
    let harness = Harness::of("mix", registry()).input("a", size(2, 2)).input("b", size(2, 2));
    let mut rig = harness.build().expect("it can be built");
    for _ in 0..9 {
        rig.push("a", &[0; 16]).expect("a frame");
        rig.push_sized("b", size(1, 1), &[0; 4]).expect("a frame");
    }
    rig.step().expect_err("its inputs differ in size");
    rig.run().expect("the rest is dropped");
    assert_eq!(rig.finish().expect("it stops").failed, 1);
}

#[test]
fn held_frames_come_out_at_the_end_and_skipped_ones_never() {
    for on in [Space::Cpu, Space::Gpu] {
        let of = size(2, 2);
        let mut rig = rig("invert ! delay frames=2 keep-times=true ! every n=2", on, of, &["video"]);
        for seed in 0..5 {
            rig.push("video", &picture(of, seed)).expect("a frame");
            rig.step().expect("it steps");
        }
        assert_eq!(rig.waiting("video").expect("one output"), 2, "two of five are held, 0 and 2 came");
        let report = rig.finish().expect("it finishes");
        assert_eq!((report.frames_out, report.filtered, report.in_flight), (3, 2, 0));
        let numbers: Vec<u64> = (0..3).map(|_| rig.pull("video").expect("it waits").number).collect();
        assert_eq!(numbers, [0, 2, 4]);
    }
}

#[test]
fn frames_may_change_their_size_in_mid_stream() {
    for on in [Space::Cpu, Space::Gpu] {
        let mut rig = rig("blur ! flip axis=h ! flip axis=h ! invert", on, size(4, 4), &["video"]);
        for (at, of) in [size(4, 4), size(9, 5), size(1, 1), size(4, 4)].into_iter().enumerate() {
            rig.push_sized("video", of, &vec![255; 4 * of.pixels() as usize]).expect("a frame");
            rig.step().unwrap_or_else(|error| panic!("{of} on the {on}: {error}"));
            let frame = rig.pull("video").expect("one a step");
            assert_eq!((frame.number, frame.picture().expect("a picture").size), (at as u64, of), "on the {on}");
            assert!(frame.pixels().iter().all(|pixel| *pixel == [0, 0, 0, 255]), "{of} on the {on}");
        }
        assert_eq!(rig.finish().expect("it finishes").counters.replans, 3);
    }
}

#[test]
fn a_source_under_test_makes_a_frame_a_step_and_a_sink_takes_one() {
    for on in [Space::Cpu, Space::Gpu] {
        let mut rig = rig("pattern kind=gradient size=3x3", on, size(1, 1), &[]);
        for number in 0..3 {
            rig.step().expect("it steps");
            assert_eq!(rig.pull("video").expect("one a step").number, number);
        }
        assert_eq!(rig.waiting("video").expect("one output"), 0, "it is endless and still waits for the clock");
        assert_eq!(rig.finish().expect("it ends").frames_out, 3);
    }
    let folder = Folder::new("sink");
    let text = format!("png path={}/%02d.png", folder.0.display());
    let mut rig = rig(&text, Space::Cpu, size(5, 4), &["video"]);
    for seed in 0..2 {
        rig.push("video", &picture(size(5, 4), seed)).expect("a frame");
    }
    assert_eq!(rig.finish().expect("it writes").frames_out, 2);
    let text = format!("image path={}/01.png", folder.0.display());
    let mut rig = self::rig(&text, Space::Cpu, size(1, 1), &[]);
    rig.step().expect("it reads");
    assert_eq!(rig.pull("video").expect("the picture").bytes, picture(size(5, 4), 1));
}

#[test]
fn other_formats_go_in_and_come_out_as_they_are() {
    let stream = Stream::of(size(5, 3)).format(Format::I420);
    let mut rig = rig("convert format=gray8", Space::Cpu, stream, &["video"]);
    let luma_only = vec![128; Format::I420.frame_bytes(size(5, 3)) as usize];
    rig.push("video", &luma_only).expect("a frame");
    rig.step().expect("it converts");
    let frame = rig.pull("video").expect("it waits");
    assert_eq!(
        (frame.picture().map(|own| (own.format, own.size)), frame.pixel(0, 0)),
        (Some((Format::Gray8, size(5, 3))), None)
    );
}

#[test]
fn a_mistake_is_answered_with_what_there_is() {
    let built = |text: &'static str| Harness::of(text, registry()).build();
    let problem = |text: &'static str| built(text).err().unwrap_or_else(|| panic!("{text} was built")).to_string();
    assert!(problem("blru").contains("blru"), "{}", problem("blru"));
    assert!(problem("blur sigma=-1").contains("sigma"));
    assert!(problem("pattern ! null ! blur").contains("null"), "{}", problem("pattern ! null ! blur"));
    let mut rig = built("mix").expect("both inputs are fed");
    let asked = rig.push("video", &[]).expect_err("there is no such input").to_string();
    assert_eq!(asked, "`video` does not name exactly one open input of the rig; open inputs: mix0.a, mix0.b");
    let short = rig.push("a", &[0; 5]).expect_err("not a frame").to_string();
    assert_eq!(short, "mix0.a: 5 bytes were pushed, but a frame of rgba8 64x48 has 12288 bytes");
    let gpu = Harness::of("probe", registry()).on(Space::Gpu).device(device()).build();
    assert!(matches!(gpu, Err(HarnessError::NotThere { .. })));
    assert!(matches!(built("upload"), Err(HarnessError::Pipeline(_))), "a transfer needs a device");
    let unknown = Harness::of("blur", registry()).input("alpha", size(1, 1)).build();
    assert!(matches!(unknown, Err(HarnessError::NoPort { .. })));
}

#[test]
fn a_failing_handler_is_named_with_its_frame() {
    let harness = Harness::of("mix", registry()).input("a", size(2, 2)).input("b", size(2, 2));
    let mut rig = harness.build().expect("it can be built");
    rig.push("a", &[0; 16]).expect("a frame");
    rig.push_sized("b", size(1, 1), &[0; 4]).expect("a frame");
    let failed = rig.step().expect_err("its inputs differ in size").to_string();
    assert!(failed.contains("2x2 and 1x1") || failed.contains("1x1"), "{failed}");
}

// ---- the handlers of the lessons

#[test]
fn the_trail_of_lesson_two_fades_from_frame_to_frame() {
    let registry = own_handler::registry();
    let mut rig = Harness::of("trail fade=100", &registry).input("video", size(1, 1)).build().expect("it can be built");
    for level in [255, 10, 10, 10] {
        rig.push("video", &[level, 0, 200, 255]).expect("a frame");
    }
    rig.run().expect("it runs");
    let reds: Vec<u8> = (0..4).map(|_| rig.pull("video").expect("one a step").bytes[0]).collect();
    assert_eq!(reds, [255, 155, 55, 10]);
}

#[test]
fn the_scanlines_of_lesson_three_agree_with_the_formula_on_both_sides() {
    let registry = own_pixel_function::registry();
    for on in [Space::Cpu, Space::Gpu] {
        for (width, height) in SIZES {
            let of = size(width, height);
            let text = "invert ! scanlines amount=0.3 ! invert";
            let harness = Harness::of(text, &registry).input("video", of).on(on).device(device());
            let mut rig = harness.build().expect("it can be built");
            rig.push("video", &picture(of, 1)).expect("a frame");
            rig.step().expect("it steps");
            let made = rig.pull("video").expect("one a step");
            // The remaining brightness, 1 - 0.3, is 179 in 1/256.
            let dark = |level: u8| 255 - ((u32::from(255 - level) * 179 + 128) >> 8) as u8;
            for (at, (pixel, found)) in picture(of, 1).as_chunks::<4>().0.iter().zip(made.pixels()).enumerate() {
                let [r, g, b, a] = *pixel;
                let odd = at as u32 / width % 2 == 1;
                let expected = if odd { [dark(r), dark(g), dark(b), a] } else { *pixel };
                assert_eq!(*found, expected, "pixel {at} of {of} on the {on}");
            }
        }
    }
}

// ---- every handler that runs, in both spaces: its example first, then special settings

/// The files that examples name.
fn with_files(name: &str) -> Folder {
    let folder = Folder::new(name);
    let mut logo = rig(&format!("png path={}/logo.png", folder.0.display()), Space::Cpu, size(7, 5), &["video"]);
    logo.push("video", &picture(size(7, 5), 3)).expect("a frame");
    logo.finish().expect("it writes");
    let corner = |i: u32| format!("{} {} {}\n", 1 - (i & 1), (i >> 1) & 1, i >> 2);
    let cube: String = (0..8).map(corner).collect();
    std::fs::write(folder.0.join("film.cube"), format!("LUT_3D_SIZE 2\n{cube}")).expect("it can be written");
    folder
}

/// Filters, drawings and conversions that run in both spaces, each as in its example.
fn shown(folder: &Folder) -> Vec<(&'static Entry, String)> {
    let in_both = |entry: &&Entry| {
        let family = matches!(entry.family, Family::Filter | Family::Draw | Family::Convert);
        family && registry().runs(entry) && entry.spaces.len() == 2
    };
    let text = |entry: &'static Entry| {
        let paths = entry.settings.iter().filter(|setting| matches!(setting.value, ValueType::Path(_)));
        let place =
            |text: String, key: &str| text.replace(&format!("{key}="), &format!("{key}={}/", folder.0.display()));
        (entry, paths.fold(entry.in_example().to_owned(), |text, setting| place(text, setting.name)))
    };
    registry().catalog().entries().filter(in_both).map(text).collect()
}

/// Compares both spaces at every size that the part of a pipeline accepts. It must accept at least one size.
fn agree_where_it_fits(text: &str, inputs: &[&str], sizes: &[(u32, u32)]) {
    let fits = |of: Size| {
        let harness = Harness::of(text, registry()).on(Space::Cpu);
        inputs.iter().fold(harness, |harness, port| harness.input(*port, of)).build().is_ok()
    };
    let sizes: Vec<Size> = sizes.iter().map(|(w, h)| size(*w, *h)).filter(|of| fits(*of)).collect();
    assert!(!sizes.is_empty(), "{text} takes none of the sizes; write an example for frames of 64x48 at most");
    for of in sizes {
        agree_at(text, of, inputs, 0);
    }
}

#[test]
fn the_example_of_every_handler_with_pixels_agrees_to_the_bit() {
    let folder = with_files("examples");
    let shown = shown(&folder);
    assert!(shown.len() > 28, "only {} handlers run in both spaces", shown.len());
    for (entry, text) in shown {
        // Links all required inputs, and one optional input if there is any.
        let needed = entry.inputs.iter().filter(|input| input.required).count();
        let inputs: Vec<&str> = entry.inputs.iter().take(needed + 1).map(|input| input.name).collect();
        agree_where_it_fits(&text, &inputs, &SIZES);
    }
}

#[test]
fn the_example_of_every_handler_with_pixels_agrees_to_the_bit_between_neighbours() {
    let (folder, mut fused) = (with_files("neighbours"), 0);
    for (entry, text) in shown(&folder) {
        let others = entry.inputs.iter().skip(1).filter(|input| input.required).map(|input| input.name);
        let inputs: Vec<&str> = ["video"].into_iter().chain(others).collect();
        let text = format!("saturation amount=0.6 ! {text} ! gamma value=1.7");
        agree_where_it_fits(&text, &inputs, &[(1, 1), (17, 13), (64, 48)]);
        fused += usize::from(rig(&text, Space::Gpu, size(64, 48), &inputs).plan().groups.len() == 1);
    }
    assert!(fused > 15, "only {fused} were joined with both neighbours");
}

#[test]
fn colour_filters_agree_to_the_bit() {
    for text in [
        "invert",
        "brightness amount=0.3",
        "brightness amount=-0.7",
        "contrast amount=1.7 pivot=0.5",
        "gamma value=2.2",
        "gamma value=0.4",
        "saturation amount=0.3",
        "saturation amount=2.5",
        "colormatrix m=0.3,-0.2,1.1,0.4,0.01,0.5,0.5,0,0,-0.1,1,0,0,0,0,0.2,0.3,0.1,0.4,0.05",
        "grayscale",
        "threshold level=0.4",
        "identity ! invert",
    ] {
        agree(text, &["video"], 0);
    }
    agree("hue degrees=77", &["video"], 1);
}

#[test]
fn neighbourhoods_and_places_agree() {
    for text in ["blur", "blur sigma=0.8", "blur sigma=5", "flip axis=h", "flip axis=v", "flip axis=both"] {
        agree(text, &["video"], 0);
    }
    for text in [
        "edges",
        "sharpen",
        "sharpen amount=-0.3",
        "convolve kernel=-2,-1,0,-1,1,1,0,1,2",
        "convolve kernel=0.1,0.2,0.1,0.2,0.4,0.2,0.1,0.2,0.1 divisor=-3 bias=200",
        "gamma value=2 ! edges ! sharpen amount=0.7 ! invert",
    ] {
        agree(text, &["video"], 0);
    }
    for text in ["resize size=23x5 filter=nearest", "resize scale=0.5 filter=nearest", "resize scale=3 filter=nearest"]
    {
        agree(text, &["video"], 0);
    }
    for text in ["resize size=23x5", "resize scale=0.5", "resize scale=3", "resize size=1x1"] {
        agree(text, &["video"], 1);
    }
}

#[test]
fn tables_keys_turns_and_maps_agree_to_the_bit() {
    let folder = Folder::new("cubes");
    let (cube, curves) = (folder.0.join("bent.cube"), folder.0.join("curves.cube"));
    let bent = (0..27)
        .map(|i| format!("{} {} {}\n", f64::from(i) / 20.0 - 0.1, f64::from(i * 7 % 27) / 27.0, f64::from(i % 3)));
    std::fs::write(&cube, format!("LUT_3D_SIZE 3\n{}", bent.collect::<String>())).expect("it can be written");
    std::fs::write(&curves, "LUT_1D_SIZE 2\n0 1 0.3\n1 0 0.6\n").expect("it can be written");
    for text in [
        &format!("lut path={}", cube.display()),
        &format!("lut path={} ! invert", curves.display()),
        "chromakey",
        "chromakey color=8030ff similarity=0.4 smooth=0",
        "chromakey color=8030ff similarity=0.1 smooth=0.9 ! rotate",
        "crop size=1x1",
        "rotate degrees=90",
        "rotate degrees=180",
        "invert ! rotate degrees=270 ! grayscale",
        "warp m=0.9,-0.2,4,0.2,0.9,-2",
        &format!("lut path={} ! warp m=0.1,1.5,-3,-1,0.2,9 ! chromakey", cube.display()),
    ] {
        agree(text, &["video"], 0);
    }
    agree_at("invert ! crop x=13 y=7 size=30x41 ! gamma value=2", size(64, 48), &["video"], 0);
}

#[test]
fn patterns_agree_to_the_bit() {
    for kind in ["ball", "bars", "gradient", "checker", "noise", "solid", "disc"] {
        for (width, height) in SIZES.into_iter().chain([(200, 150)]) {
            let text = format!("pattern kind={kind} size={width}x{height} fps=24 seed=9 color=12a0ff");
            agree_at(&text, size(width, height), &[], 0);
            agree_at(&format!("{text} label=false"), size(width, height), &[], 0);
        }
    }
}

#[test]
fn drawings_agree() {
    for text in ["markers", "markers size=3 pulse=false", "waveform", "fps"] {
        agree(text, &["video"], 0);
        agree_at(text, size(320, 180), &["video"], 0);
    }
    for text in [
        "text \"{frame} {time} {size} {fps}\"",
        "text \"gj\u{e4}\u{df}\\nz\" x=-3 y=9 size=17 color=ff008080",
        "text \"\"",
    ] {
        agree(text, &["video"], 1);
        agree_at(text, size(320, 180), &["video"], 1);
    }
}

#[test]
fn blends_agree_to_the_bit() {
    for mode in ["mix", "over", "add", "multiply", "screen", "difference"] {
        for amount in ["0", "0.3", "1"] {
            agree(&format!("mix mode={mode} amount={amount}"), &["a", "b"], 0);
        }
    }
    let folder = Folder::new("logo");
    let path = folder.0.join("logo.png");
    let mut logo = rig(&format!("png path={}", path.display()), Space::Cpu, size(7, 5), &["video"]);
    logo.push("video", &picture(size(7, 5), 3)).expect("a frame");
    logo.finish().expect("it writes");
    for place in ["", "x=3 y=2 alpha=0.4", "x=-4 y=-3", "x=60 y=46 alpha=0.9", "x=-70 y=1"] {
        agree(&format!("overlay path={} {place}", path.display()), &["video"], 0);
    }
}

#[test]
fn chains_agree_fused_with_transfers_and_with_controls() {
    for text in [
        "contrast amount=1.2 ! brightness amount=0.0392157 ! gamma value=2.2 ! saturation amount=0.7 ! invert",
        "grayscale ! blur ! invert ! flip axis=h ! gamma value=0.5",
        "markers ! waveform ! fps",
        "invert ! blur sigma=1 ! markers ! flip axis=both ! grayscale ! blur",
        "resize size=31x9 filter=nearest ! blur ! resize size=5x5 filter=nearest ! invert",
        "gamma value=2 ! identity ! delay frames=1 keep-times=true ! contrast amount=0.5",
        "invert name=i ! mix name=m mode=difference ! blur; i. ! flip axis=v ! m.b",
        "blur name=s ! mix name=m amount=0.3; s. ! delay frames=1 ! m.b",
    ] {
        agree(text, &["video"], 0);
    }
    let device_only = [
        "upload ! blur ! download",
        "upload ! invert ! download ! upload ! gamma value=2 ! download",
        "blur ! download ! probe ! upload ! invert",
    ];
    for text in device_only {
        let of = size(17, 13);
        let without = text.replace("upload ! ", "").replace(" ! download", "").replace("probe ! ", "");
        let (there, here) =
            (frames(text, Space::Gpu, of, &["video"], 3), frames(&without, Space::Cpu, of, &["video"], 3));
        assert_eq!(there, here, "{text}");
    }
}
