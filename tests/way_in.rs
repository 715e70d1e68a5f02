//! Pipelines are built from text, TOML and Rust, handlers are registered with probes, and errors are readable.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use vramp::plan::catalog::{ProbeError, RateRule, SizeRule};
use vramp::plan::{GraphSpec, write_toml};
use vramp::prelude::*;
use vramp::runtime::Stopper;

const CPU: Space = Space::Cpu;

fn on_cpu() -> RunOptions {
    RunOptions::new().only(CPU)
}

/// A source of frames whose size only its probe knows.
struct Blank {
    size: Size,
    left: u64,
}

impl Blank {
    const ENTRY: Entry = Entry {
        name: "blank",
        about: "makes empty frames",
        example: "blank path=a.blank ! null",
        outputs: &[vramp::plan::catalog::Output {
            size: SizeRule::Probed(None),
            rate: RateRule::Probed(None),
            ..vramp::plan::catalog::Output::VIDEO
        }],
        settings: &[Setting::text("path", "which file")],
        spaces: &[CPU],
        ..Entry::SOURCE
    };

    fn kind() -> Kind {
        Kind::new(&Blank::ENTRY, |setup: &Setup<'_>| {
            let size = setup.outputs.iter().flatten().find_map(|content| content.frame()).map(|frame| frame.size);
            Ok(Blank { size: size.ok_or_else(|| HandlerError::failed("it has no size"))?, left: 2 })
        })
        .probed(|settings| match settings.text("path") {
            Some("a.blank") => Ok(Probed { size: Size::new(12, 7), rate: "25".parse().ok(), ..Probed::default() }),
            other => Err(ProbeError {
                problem: format!("`{}` cannot be read", other.unwrap_or("")),
                help: "check the path".to_owned(),
            }),
        })
    }
}

impl FrameHandler for Blank {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        if self.left == 0 {
            return Ok(Flow::Ended);
        }
        self.left -= 1;
        let mut frame = call.lend(Format::Rgba8, self.size)?;
        frame.fill().ok_or_else(|| HandlerError::failed("a lent frame is held twice"))?.fill(0);
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

#[test]
fn a_pipeline_is_owned_and_can_go_to_a_thread() {
    fn is_send<T: Send + 'static>(_: &T) {}
    let mut pipeline =
        Pipeline::parse("pattern size=8x8 frames=5 ! null").options(on_cpu()).build().expect("it builds");
    is_send(&pipeline);
    let stopper = pipeline.stopper();
    let report = std::thread::spawn(move || pipeline.run()).join().expect("no panic").expect("it runs");
    assert_eq!((report.frames_out, stopper.is_stopped()), (5, false));
}

#[test]
fn text_toml_and_rust_give_the_same_plan() {
    let text = "pattern size=16x8 frames=2 name=p ! blur sigma=1 ! mix name=m ! null; p. ! m.b";
    let mut spec: GraphSpec = Graph::builder();
    let pattern = spec.add(HandlerSpec::new("pattern").named("p").set("size", "16x8").set("frames", 2));
    let blur = spec.add(HandlerSpec::new("blur").set("sigma", 1));
    let mix = spec.add(HandlerSpec::new("mix").named("m"));
    let sink = spec.add("null");
    spec.connect(pattern, blur);
    spec.connect(blur.output("video"), mix.input("a"));
    spec.connect(mix, sink);
    spec.connect(pattern, mix.input("b"));
    let toml = write_toml(&spec);
    let plans = [Pipeline::parse(text), Pipeline::parse_toml(toml), Pipeline::from_spec(spec)]
        .map(|builder| builder.options(on_cpu()).plan().expect("a plan").to_json());
    assert_eq!(plans[0], plans[1]);
    assert_eq!(plans[0], plans[2]);
}

#[test]
fn a_source_of_ones_own_is_probed() {
    let builder = |text: &str| Pipeline::parse(text).register_kind(Blank::kind()).options(on_cpu());
    let mut pipeline = builder("blank path=a.blank ! invert ! null").build().expect("it builds");
    let planned = pipeline.plan().output("blank0", "video").expect("it is linked");
    assert_eq!(planned.content.frame().map(|frame| frame.size), Size::new(12, 7));
    assert_eq!(pipeline.run().expect("it runs").frames_out, 2);
    let error = builder("blank path=b.blank ! null").build().expect_err("there is no such file");
    assert_eq!(
        (error.handler(), error.to_string().as_str()),
        (Some("blank0"), "blank0: `b.blank` cannot be read; check the path")
    );
}

#[test]
fn a_name_that_is_taken_is_refused_when_building() {
    let twice = Pipeline::parse("pattern ! null").register_kind(Blank::kind()).register_kind(Blank::kind());
    let error = twice.build().expect_err("one name, two sources");
    assert!(matches!(error, Error::Entry(_)), "{error}");
    assert!(error.to_string().contains("`blank`: is already registered"), "{error}");
}

#[test]
fn errors_that_leave_main_show_the_caret() {
    let wrong = [
        ("pattern ! blru ! null", "^^^^ expected the kind of a handler"),
        ("pattern ! blur sigma=-1 ! null", "^^ expected a number from 0.01 to 100"),
        ("pattern !! null", "^"),
    ];
    for (text, caret) in wrong {
        let error = Pipeline::parse(text).build().expect_err("it is wrong");
        let (debug, display) = (format!("{error:?}"), error.to_string());
        assert_eq!(debug, display);
        assert!(debug.contains(text) && debug.contains(caret), "{debug}");
    }
    let error = Pipeline::parse("pattern ! null").options(RunOptions::new().place("nul0", CPU)).plan().err();
    assert_eq!(
        format!("{:?}", error.expect("no such handler")),
        "--place nul0: no handler has this name\nhelp: did you mean `null0`?"
    );
}

#[test]
fn a_pipeline_runs_once_and_its_builder_again() {
    let builder = Pipeline::parse("pattern size=8x8 frames=3 ! null").options(on_cpu());
    for _ in 0..2 {
        let mut pipeline = builder.build().expect("it builds");
        assert_eq!(pipeline.run().expect("it runs").frames_out, 3);
        assert!(matches!(pipeline.run(), Err(Error::HasRun)));
        assert!(matches!(pipeline.step(), Err(Error::HasRun)));
        assert!(matches!(pipeline.finish(), Err(Error::HasRun)));
    }
}

#[test]
fn a_stepped_pipeline_fails_with_the_handler_that_failed() {
    struct Fails;
    impl FrameHandler for Fails {
        fn process(&mut self, _: &mut Call<'_>) -> Result<Flow, HandlerError> {
            Err(HandlerError::failed("on purpose"))
        }
    }
    static FAILS: Entry = Entry { name: "fails", spaces: &[CPU], kernel: KernelRule::None, ..Entry::FILTER };
    let builder = Pipeline::parse("pattern size=8x8 frames=3 ! fails ! null").register(&FAILS, |_| Ok(Fails));
    let mut pipeline = builder.options(on_cpu()).build().expect("it builds");
    let error = loop {
        match pipeline.step() {
            Ok(Step::Over) => panic!("it ended without failing"),
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(error.handler(), Some("fails0"));
    assert!(error.to_string().contains("on purpose"), "{error}");
    assert_eq!(pipeline.finish().expect("its handlers stop").frames_out, 0);
}

#[test]
fn the_longest_time_ends_a_run_as_intended() {
    let options = on_cpu().pace("50".parse().expect("a rate")).longest_ms(120);
    let report = Pipeline::parse("pattern size=8x8 ! null").options(options).build().and_then(|mut p| p.run());
    assert!(report.expect("a time that is up is not a failure").frames_out > 0);
}

#[test]
fn the_longest_time_ends_a_stepped_pipeline_too() {
    let options = on_cpu().pace("50".parse().expect("a rate")).longest_ms(120);
    let mut pipeline = Pipeline::parse("pattern size=8x8 ! null").options(options).build().expect("it is planned");
    loop {
        match pipeline.step().expect("nothing fails") {
            Step::Wait(time) => std::thread::sleep(time),
            Step::Over => break,
            Step::Moved | Step::Stuck => {}
        }
    }
    assert!(pipeline.finish().expect("its handlers stop").frames_out > 0);
}

#[test]
fn a_stepped_pipeline_that_is_stopped_is_over() {
    for stop in [Stopper::stop, Stopper::end] {
        let mut pipeline = Pipeline::parse("pattern size=8x8 ! null").options(on_cpu()).build().expect("it is planned");
        assert_eq!(pipeline.step().expect("nothing fails"), Step::Moved);
        stop(&pipeline.stopper());
        assert_eq!(pipeline.step().expect("nothing fails"), Step::Over);
        assert_eq!(pipeline.finish().expect("its handlers stop").frames_in, 1);
    }
}

/// A handler that counts its starts, and fails when it is started or on its second frame.
struct Weak {
    starts: Arc<AtomicUsize>,
    at_start: bool,
    frames: u64,
}

impl Weak {
    const ENTRY: Entry = Entry {
        name: "weak",
        spaces: &[CPU],
        kernel: KernelRule::None,
        example: "pattern ! weak ! null",
        ..Entry::FILTER
    };
}

impl FrameHandler for Weak {
    fn start(&mut self, _: &mut StartContext<'_>) -> Result<(), HandlerError> {
        self.starts.fetch_add(1, Relaxed);
        if self.at_start { Err(HandlerError::failed("at its start")) } else { Ok(()) }
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        self.frames += 1;
        match call.input(0).cloned() {
            Some(frame) if self.frames < 2 => {
                call.send(0, frame);
                Ok(Flow::Produced)
            }
            _ => Err(HandlerError::failed("on its second frame")),
        }
    }
}

#[test]
fn after_a_failed_step_nothing_is_started_again_and_nothing_moves() {
    for (at_start, arrived) in [(true, 0), (false, 1)] {
        let starts = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&starts);
        let make = move |_: &Setup<'_>| Ok(Weak { starts: Arc::clone(&counted), at_start, frames: 0 });
        let built = Pipeline::parse("pattern size=8x8 frames=5 ! weak ! null").register(&Weak::ENTRY, make);
        let mut pipeline = built.options(on_cpu()).build().expect("it is planned");
        let failed = (0..100).find_map(|_| pipeline.step().err());
        assert_eq!(failed.expect("it fails").handler(), Some("weak0"));
        for _ in 0..3 {
            assert_eq!(pipeline.step().expect("it failed before"), Step::Over);
        }
        assert_eq!(pipeline.finish().expect("its handlers stop").frames_out, arrived);
        assert_eq!(starts.load(Relaxed), 1);
    }
}

#[test]
fn what_was_stepped_is_not_run() {
    let mut pipeline = Pipeline::parse("pattern size=8x8 frames=5 ! null").options(on_cpu()).build().expect("planned");
    assert_eq!(pipeline.step().expect("nothing fails"), Step::Moved);
    assert!(format!("{pipeline:?}").contains("being stepped"), "{pipeline:?}");
    assert!(matches!(pipeline.run(), Err(Error::HasBegun)));
    while pipeline.step().expect("nothing fails") != Step::Over {}
    assert_eq!(pipeline.finish().expect("its handlers stop").frames_out, 5);
    assert!(matches!(pipeline.run(), Err(Error::HasRun)));
}

/// Each use of a constant may have a different address, so a kind must be found by its name.
#[test]
fn a_graph_is_built_with_another_registry_that_has_the_kind() {
    static ONE: Entry = Weak::ENTRY;
    static OTHER: Entry = Weak::ENTRY;
    let make = |_: &Setup<'_>| Ok(Weak { starts: Arc::default(), at_start: false, frames: 0 });
    let text = "pattern size=8x8 frames=1 ! weak ! null";
    let graph = Pipeline::parse(text).register(&ONE, make).check().expect("it is right");
    let built = Pipeline::from_graph(graph).register(&OTHER, make).options(on_cpu()).build();
    assert_eq!(built.and_then(|mut p| p.run()).expect("it runs").frames_out, 1);
}

#[test]
fn registering_comes_before_or_after_the_registry() {
    let make = |_: &Setup<'_>| Ok(Weak { starts: Arc::default(), at_start: false, frames: 0 });
    let text = || Pipeline::parse("pattern size=8x8 frames=1 ! weak ! null").options(on_cpu());
    let registry = vramp::registry();
    assert!(text().register(&Weak::ENTRY, make).registry(&registry).plan().is_ok());
    assert!(text().registry(&registry).register(&Weak::ENTRY, make).plan().is_ok());
}

#[test]
fn a_maker_or_probe_that_panics_is_that_handlers_error() {
    let maker = |_: &Setup<'_>| -> Result<Blank, HandlerError> { panic!("no idea how") };
    let built = Pipeline::parse("blank path=a.blank ! null").options(on_cpu());
    let probed = |_: &_| Ok(Probed { size: Size::new(12, 7), ..Probed::default() });
    let error = built.clone().register_kind(Kind::new(&Blank::ENTRY, maker).probed(probed)).build().unwrap_err();
    assert_eq!(error.handler(), Some("blank0"));
    assert!(error.to_string().contains("it panicked: no idea how"), "{error}");
    let error = built.register_kind(Blank::kind().probed(|_| panic!("no idea what"))).build().unwrap_err();
    assert_eq!(error.handler(), Some("blank0"));
    assert!(error.to_string().contains("it panicked: no idea what"), "{error}");
}

#[test]
fn an_unknown_size_is_an_error_that_says_what_the_kind_needs() {
    let kind = Blank::kind().probed(|_| Ok(Probed::default()));
    let error = Pipeline::parse("blank path=a.blank ! null").register_kind(kind).check().unwrap_err();
    assert!(
        error.to_string().contains("register the source with a probe that returns the size (`Kind::probed`)"),
        "{error}"
    );
}
