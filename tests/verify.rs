//! Verification: correct graphs are reported as equal, and planted mistakes are found and named.
//!
//! Runs on any adapter and fails without one; Mesa's software driver is enough.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use vramp::gpu::Device;
use vramp::kernels::PixelFn;
use vramp::plan::catalog::Entry;
use vramp::runtime::{Flow, HandlerError, Kind, ParamWriter, Part, PixelHandler, PixelInfo, Registry, Worker};
use vramp::verify::{ComparisonKind, ComparisonResult, Mismatch, Options, Verified, VerifyError, verify};

use crate::shared::{ADD_RED, device};

fn verified(text: &str, registry: &Registry, frames: u64, device: Option<Device>) -> Result<Verified, VerifyError> {
    let spec = vramp::read(text, registry.catalog()).unwrap_or_else(|mistakes| panic!("{text}: {mistakes}"));
    verify(&spec, registry, &Options { frames, device, ..Options::default() })
}

/// Verifies with a device, asserts that there is no difference, and returns the comparisons.
#[track_caller]
fn equal(text: &str) -> Verified {
    let found =
        verified(text, &vramp::registry(), 5, Some(device().clone())).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert!(found.is_equal(), "{text}\n{found}");
    assert!(found.comparisons.iter().any(|check| check.kind == ComparisonKind::FusedOnCpu), "{text}\n{found}");
    found
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("vramp-verify-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for pictures");
        Folder(path)
    }

    fn files(&self) -> usize {
        std::fs::read_dir(&self.0).expect("it was made").count()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn chains_and_diamonds_are_equal_fused_unfused_and_on_the_device() {
    let mut some_fuse = false;
    for text in [
        "pattern kind=ball size=64x48 ! markers ! waveform ! fps ! null",
        "pattern kind=noise size=33x17 ! contrast 1.2 ! brightness 0.04 ! gamma 2.2 ! saturation 0.7 ! invert ! null",
        "pattern kind=noise size=19x7 ! grayscale ! blur ! flip axis=h ! invert ! null",
        "pattern kind=disc size=40x30 name=p ! blur ! mix name=m mode=difference ! null; p. ! m.b",
        "pattern kind=ball size=40x30 name=p ! delay frames=2 ! mix name=m amount=0.4 ! invert ! null; p. ! flip ! m.b",
        "pattern kind=noise size=8x8 name=p ! every n=2 ! mix name=m mode=screen ! null; p. ! invert ! m.b",
        "pattern kind=noise size=8x8 name=p ! blur name=b ! mix name=m ! null; p. ! every n=2 ! delay frames=1 ! m.b; \
         b. ! gamma 2 ! null",
        "pattern kind=gradient size=31x9 ! resize size=7x7 filter=nearest ! identity ! text \"{frame}\" ! null",
        "pattern kind=noise size=9x9 ! upload ! blur ! download ! invert ! null",
        "pattern kind=bars size=16x9 fps=25 name=p ! mix name=m ! null; \
         pattern kind=noise size=16x9 fps=50 ! every n=3 ! m.b",
        "pattern kind=bars size=16x9 fps=25 name=p ! mix name=m until=shortest ! null; \
         pattern kind=noise size=16x9 fps=50 ! every n=3 ! m.b",
        "pattern kind=noise size=16x9 ! convert format=i420 ! convert format=rgba8 ! blur ! null",
    ] {
        let found = equal(text);
        let fuses = |check: &vramp::verify::Comparison| check.made_by.len() > 1;
        some_fuse |= found.comparisons.iter().any(fuses);
        let compared = |what| found.comparisons.iter().filter(|check| check.kind == what).count();
        assert!(
            compared(ComparisonKind::Twins) >= 2 && compared(ComparisonKind::FusedOnDevice) >= 1,
            "{text}\n{found}"
        );
    }
    assert!(some_fuse, "there was nothing to compare");
}

/// The built-in kinds and those of the random graphs.
fn with_test_kinds() -> Registry {
    let mut registry = vramp::registry();
    crate::random::kinds::add_to(&mut registry);
    crate::random::trouble::add_to(&mut registry, &std::sync::Arc::default());
    registry
}

#[test]
fn each_handler_is_placed_only_where_its_settings_and_its_content_allow() {
    for (text, compared) in [
        // Data stays on the host, and so does a control that passes data on.
        ("facts ! identity ! delay 1 ! null", 2),
        ("pattern size=8x8 ! detect ! identity ! null", 3),
        ("pattern size=8x8 ! means space=cpu ! null", 2),
        ("pattern size=8x8 ! means space=gpu ! weigh ! null", 3),
    ] {
        let found =
            verified(text, &with_test_kinds(), 3, Some(device().clone())).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert!(found.is_equal() && found.compared() >= compared, "{text}\n{found}");
    }
}

#[test]
fn a_handler_that_sends_no_frame_needs_no_dispatch() {
    crate::random::trouble::quietly();
    for how in ["filters", "fails", "panics"] {
        let text = format!("pattern size=8x8 ! stumbles each=1 how={how} on-error=skip ! null");
        let found =
            verified(&text, &with_test_kinds(), 3, Some(device().clone())).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert!(found.is_equal() && found.compared() == 4, "{text}\n{found}");
    }
}

/// A random graph of one or two sources, chains after the sources, and blends of any two outputs.
fn random_graph(state: &mut u64) -> String {
    const WORK: [&str; 18] = [
        "invert",
        "gamma 2",
        "contrast 1.3",
        "saturation 0.4",
        "grayscale",
        "threshold 0.5",
        "blur",
        "blur sigma=0.8",
        "flip axis=h",
        "markers",
        "waveform",
        "fps",
        "identity",
        "delay frames=1",
        "delay frames=3",
        "every n=2",
        "every n=3",
        "text \"{frame} {time}\"",
    ];
    let mut below = |n: usize| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) as usize % n
    };
    let (mut chains, mut ends) = (Vec::new(), Vec::new());
    for source in 0..=below(2) {
        let (kind, fps) = (["noise", "ball", "gradient"][below(3)], [30, 25, 60][below(3)]);
        let mut chain = vec![format!("pattern kind={kind} size=13x9 fps={fps} name=s{source}")];
        ends.push(format!("s{source}"));
        for at in 0..below(4) {
            chain.push(format!("{} name=h{source}-{at}", WORK[below(WORK.len())]));
            ends.push(format!("h{source}-{at}"));
        }
        chains.push(chain.join(" ! ") + " ! null");
    }
    for blend in 0..=below(3) {
        let (a, b) = (ends[below(ends.len())].clone(), ends[below(ends.len())].clone());
        let (mode, lead) = (["mix", "over", "add", "multiply", "screen", "difference"][below(6)], ["a", "b"][below(2)]);
        let until = ["lead", "shortest"][below(2)];
        let mut chain = vec![format!("{a}. ! mix mode={mode} amount=0.4 lead={lead} until={until} name=m{blend}")];
        let mut last = format!("m{blend}");
        for at in 0..below(3) {
            last = format!("g{blend}-{at}");
            chain.push(format!("{} name={last}", WORK[below(WORK.len())]));
        }
        chains.extend([chain.join(" ! ") + " ! null", format!("{b}. ! m{blend}.b")]);
        ends.push(last);
    }
    chains.join("\n")
}

#[test]
fn random_graphs_are_equal_too() {
    let mut state = 42;
    for _ in 0..40 {
        equal(&random_graph(&mut state));
    }
}

#[test]
fn frames_are_counted_as_they_reach_the_sinks() {
    let found = equal("pattern kind=noise size=8x8 ! every n=2 ! invert ! null");
    assert!(
        found.comparisons.iter().all(|check| matches!(check.result, ComparisonResult::Equal { frames: 3 | 5, .. })),
        "{found}"
    );
    let text = "pattern0, gpu and cpu: 5 frames are equal";
    assert!(found.to_string().contains(text), "{found}");
    assert!(found.to_string().contains("null0.video (made by invert0), fused and unfused on the cpu: 3 frames"));
}

#[test]
fn files_are_read_once_and_nothing_is_written() {
    let folder = Folder::new("files");
    let path = |name: &str| folder.0.join(name).display().to_string();
    for (name, size) in [("a", "20x10"), ("b", "9x13"), ("c", "20x10")] {
        run(&format!("pattern kind=noise size={size} frames=1 ! png path={}", path(&format!("{name}.png"))));
    }
    run(&format!("pattern kind=ball size=32x18 frames=3 ! y4m path={}", path("d.y4m")));
    let before = folder.files();
    // Images of two sizes, and a sink that a run would write to.
    equal(&format!("image path={} ! blur ! invert ! png path={}", path("?.png"), path("out-%02d.png")));
    // Frames of luma and chroma, which are converted after the source and before the sink.
    equal(&format!("y4m path={} ! gamma 1.5 ! markers ! y4m path={}", path("d.y4m"), path("out.y4m")));
    equal(&format!("y4m path={} ! probe ! raw path=-", path("d.y4m")));
    assert_eq!(folder.files(), before);
    std::fs::write(path("empty.y4m"), "YUV4MPEG2 W4 H4 F30:1 C420jpeg\n").expect("the folder is there");
    let text = format!("y4m path={} ! null", path("empty.y4m"));
    let error = verified(&text, &vramp::registry(), 3, None).expect_err("it has no frames").to_string();
    assert!(error.starts_with("y4m0: it ended before its first frame"), "{error}");
}

fn run(text: &str) {
    let registry = vramp::registry();
    let spec = vramp::read(text, registry.catalog()).expect("it reads");
    let graph = registry.check(&spec).expect("it checks");
    let builder = vramp::Pipeline::from_graph(graph.clone())
        .registry(&registry)
        .options(vramp::plan::RunOptions::new().only(vramp::plan::Space::Cpu));
    builder.build().expect("it is ready").run().expect("it does not fail");
}

#[test]
fn big_frames_are_fewer_and_never_none() {
    let registry = vramp::registry();
    let spec = vramp::read("pattern kind=noise size=64x64 ! invert ! null", registry.catalog()).expect("it reads");
    // Verification keeps 64 KiB per frame: two outputs of 16 KiB, each of them twice.
    for (most_bytes, count) in [(64 << 10, 1), (0, 1), (3 * (64 << 10), 3), (u64::MAX, 8)] {
        let found = verify(&spec, &registry, &Options { most_bytes, ..Options::default() }).expect("it runs");
        assert!(
            found.comparisons.iter().all(|check| check.result == ComparisonResult::Equal { frames: count, levels: 0 }),
            "{most_bytes}: {found}"
        );
    }
}

#[test]
fn an_app_sink_is_verified_in_any_space_and_an_app_source_is_refused() {
    equal("pattern kind=noise size=33x17 ! blur ! app");
    equal("pattern kind=noise size=33x17 ! blur ! app space=gpu format=any");
    let error = verified("app 8x8 ! invert ! null", &vramp::registry(), 2, None).expect_err("no program pushes");
    assert_eq!(
        error.to_string(),
        "app0: its frames come from the program, so they cannot be captured; verify with `pattern` or a file"
    );
}

#[test]
fn a_level_that_others_may_amplify_is_not_compared_as_a_whole() {
    let own = "wgsl code=\"fn pixel(c: vec4f) -> vec4f { return c; }\"";
    let found = equal(&format!("pattern kind=noise size=20x20 ! {own} ! contrast amount=3 ! null"));
    let whole = found.comparisons.iter().find(|check| check.kind == ComparisonKind::FusedOnDevice).expect("one sink");
    assert!(
        matches!(&whole.result, ComparisonResult::Left(why) if why.starts_with("wgsl0 may be a level off")),
        "{found}"
    );
    // A difference of one level stays one level if handlers only move pixels.
    let found = equal(&format!("pattern kind=noise size=20x20 ! {own} ! flip ! identity ! null"));
    let whole = found.comparisons.iter().find(|check| check.kind == ComparisonKind::FusedOnDevice).expect("one sink");
    assert_eq!(whole.result, ComparisonResult::Equal { frames: 5, levels: 1 }, "{found}");
}

#[test]
fn a_handler_that_cannot_run_ends_it_as_it_ends_a_run() {
    let registry = vramp::registry().replaced(&Kind::planned(&vramp::handlers::sink::window::ENTRY));
    let error = verified("pattern size=64x48 ! window", &registry, 1, None).expect_err("it cannot run").to_string();
    assert_eq!(error, "window0: `window` can be planned, but it cannot run yet; `vramp inspect` lists what runs");
    // A sink with a maker need not be able to run: verification puts another one in its place.
    verified("pattern size=64x48 ! window", &vramp::registry(), 1, None).expect("it needs no window");
}

// ---- planted mistakes

/// A shader whose result is one level too high, at a single pixel.
const WRONG: &str = "fn add_red(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {
    return vec4<i32>((c.x + int(k) + select(0, 1, at.x == 3 && at.y == 2)) & 255, c.yzw);
}";

static AGREES: PixelFn = ADD_RED;
static DIFFERS: PixelFn = PixelFn { wgsl: WRONG, ..ADD_RED };

struct AddRed {
    function: &'static PixelFn,
    amount: u32,
}

impl PixelHandler for AddRed {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Function(self.function)]
    }

    fn frame(&mut self, _: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        give.part(&[self.amount], &[]);
        Ok(Flow::Produced)
    }
}

static ENTRY: Entry = Entry { name: "addred", about: "adds to red", example: "", ..Entry::FILTER };

fn with(function: &'static PixelFn, amount: impl Fn() -> u32 + Send + Sync + 'static) -> Registry {
    let mut registry = vramp::registry();
    registry.add(&ENTRY, move |_| Ok(Worker::pixels(AddRed { function, amount: amount() }))).expect("a new name");
    registry
}

const OWN: &str = "pattern kind=gradient size=9x5 label=false ! invert ! addred ! blur ! null";

#[test]
fn a_kind_of_ones_own_is_verified_like_any_other() {
    let found = verified(OWN, &with(&AGREES, || 9), 3, Some(device().clone())).expect("it runs");
    assert!(found.is_equal(), "{found}");
    assert!(found.comparisons.iter().any(|check| check.kind == ComparisonKind::Twins && check.made_by == ["addred0"]));
}

#[test]
fn a_kernel_that_differs_from_its_twin_is_found_and_named() {
    let found = verified(OWN, &with(&DIFFERS, || 9), 3, Some(device().clone())).expect("it runs");
    let twins: Vec<_> = found.differences().filter(|(check, _)| check.kind == ComparisonKind::Twins).collect();
    let [(check, difference)] = twins[..] else { panic!("only one handler is wrong\n{found}") };
    assert_eq!((check.made_by.as_slice(), check.port.as_str()), (&["addred0".to_owned()][..], "addred0.video"));
    assert_eq!((difference.frame, difference.frames), (0, 3));
    let Mismatch::Pixels { x: 3, y: 2, expected, found: is, count: 1, most: 1 } = difference.found else {
        panic!("{difference}")
    };
    assert_eq!((is[0], &is[1..]), (expected[0] + 1, &expected[1..]));
    assert!(found.to_string().contains("addred0, gpu and cpu: frame 0, pixel 3,2 is "), "{found}");
    // On the CPU alone there is no difference to find.
    assert!(verified(OWN, &with(&DIFFERS, || 9), 3, None).expect("it runs").is_equal());
}

#[test]
fn a_mistake_that_only_a_fused_run_has_is_found() {
    // The first instance runs alone, the second is fused.
    static MADE: AtomicU32 = AtomicU32::new(0);
    let registry = with(&AGREES, || 20 + MADE.fetch_add(1, Ordering::Relaxed).min(1));
    let found = verified(OWN, &registry, 2, None).expect("it runs");
    let differences: Vec<_> = found.differences().collect();
    let [(check, difference)] = differences[..] else { panic!("one sink\n{found}") };
    assert_eq!((check.kind, check.port.as_str()), (ComparisonKind::FusedOnCpu, "null0.video"));
    assert!(check.made_by.contains(&"addred0".to_owned()), "{found}");
    assert!(matches!(difference.found, Mismatch::Pixels { count: 45, .. }), "{found}");
}
