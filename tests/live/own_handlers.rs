//! Settings of handlers that a program registers, and files that handlers follow.

use std::time::Duration;

use vramp::Pipeline;
use vramp::plan::catalog::{Entry, Family, Setting};
use vramp::plan::{RunOptions, Space};
use vramp::runtime::{
    Call, Flow, FrameHandler, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Registry, RunEvent, Setup,
};

use crate::shared::{ADD_RED, device, pass};

use super::every_setting::Shelf;
use super::{By, Events, Run, lock, on};

const BY: Setting = Setting::int("by", 0..=99, "what to add; 99 is refused late").default("1").live();
static ADDS: Entry = Entry {
    name: "adds",
    family: Family::Filter,
    about: "adds to red and counts its frames in green",
    example: "pattern ! adds ! null",
    settings: &[BY],
    spaces: &[Space::Cpu],
    kernel: vramp::plan::catalog::KernelRule::None,
    ..Entry::FILTER
};
static STUBBORN: Entry =
    Entry { name: "stubborn", about: "declares more than it does", example: "pattern ! stubborn ! null", ..ADDS };
static COUNTS: Entry = Entry {
    name: "counts",
    about: "adds the number of its frames, times a factor",
    example: "pattern ! counts ! null",
    settings: &[BY],
    ..Entry::FILTER
};

/// A frame handler with a live setting and a state.
struct Adds {
    by: u8,
    frames: u8,
}

impl FrameHandler for Adds {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let mut frame = call.take(0).ok_or_else(|| HandlerError::failed("no lead frame"))?;
        let pool = call.pool().clone();
        let mut bytes = frame.edit(&pool)?;
        (bytes[0], bytes[1]) = (bytes[0].wrapping_add(self.by), self.frames);
        drop(bytes);
        self.frames += 1;
        call.send(0, frame);
        Ok(Flow::Produced)
    }

    fn change(&mut self, setup: &Setup<'_>) -> Result<(), HandlerError> {
        let by = setup.int("by")?;
        if by == 99 {
            return Err(HandlerError::failed("99 is too much today"));
        }
        self.by = by;
        Ok(())
    }
}

/// A pixel handler that hands its count over to its successor.
struct Counts {
    by: u32,
    frames: u32,
}

impl PixelHandler for Counts {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Function(&ADD_RED)]
    }

    fn hand_over(&mut self) -> Option<Box<dyn std::any::Any + Send>> {
        Some(Box::new(self.frames))
    }

    fn take_over(&mut self, state: Box<dyn std::any::Any + Send>) {
        self.frames = *state.downcast().expect("the count of the predecessor");
    }

    fn frame(&mut self, _: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        self.frames += 1;
        give.part(&[self.by * self.frames], &[]);
        Ok(Flow::Produced)
    }
}

fn with_own(mut kinds: Registry) -> Registry {
    kinds.add(&ADDS, |setup: &Setup<'_>| Ok(Adds { by: setup.int("by")?, frames: 0 })).expect("a good entry");
    kinds.add(&STUBBORN, |_: &Setup<'_>| Ok(By(pass))).expect("a good entry");
    kinds.add(&COUNTS, |setup: &Setup<'_>| Ok(Counts { by: setup.int("by")?, frames: 0 })).expect("a good entry");
    kinds
}

#[test]
fn a_frame_handler_changes_in_place_and_keeps_its_state() {
    let builder = Pipeline::parse("pattern kind=solid color=000000 size=8x8 ! adds ! keeps");
    let mut run = Run::of(builder, on(Space::Cpu), with_own);
    run.step_to(3);
    let change = run.controls().set("adds0.by", 7).expect("a good value");
    run.step_to(8);
    let first = change.frame(Duration::ZERO).expect("it took effect");
    assert_eq!(run.changes(), [("adds0".to_owned(), "by=7".to_owned(), first)]);
    for number in 0..8 {
        let red = if number < first { 1 } else { 7 };
        assert_eq!(run.picture("keeps0", number)[..2], [red, number as u8], "frame {number}");
    }
}

#[test]
fn a_change_that_a_frame_handler_refuses_is_reported_and_the_handler_continues() {
    for (handler, value, words) in [
        ("adds", 99, "99 is too much today"),
        ("stubborn", 7, "its entry declares a setting that can change, but it does not implement `change`"),
    ] {
        let builder = Pipeline::parse(format!("pattern kind=solid size=8x8 ! {handler} ! keeps"));
        let mut run = Run::of(builder, on(Space::Cpu), with_own);
        run.step_to(2);
        let change = run.controls().set(&format!("{handler}0.by"), value).expect("a valid value");
        run.step_to(6);
        assert_eq!((change.frame(Duration::ZERO), change.problem().as_deref()), (None, Some(words)));
        let told = |event: &RunEvent| matches!(event, RunEvent::NotChanged { problem, .. } if problem == words);
        assert_eq!(lock(&run.events).iter().filter(|event| told(event)).count(), 1);
        assert_eq!(run.finish().changes, 0);
    }
}

#[test]
fn a_pixel_handler_hands_its_state_to_its_successor() {
    for side in [Space::Cpu, Space::Gpu] {
        let builder = Pipeline::parse("pattern kind=solid color=000000 size=8x8 ! counts ! keeps").device(device());
        let mut run = Run::of(builder, on(side), with_own);
        run.step_to(3);
        let change = run.controls().set("counts0.by", 3).expect("a good value");
        run.step_to(8);
        let first = change.frame(Duration::ZERO).expect("it took effect");
        for number in 0..8 {
            let by = if number < first { 1 } else { 3 };
            assert_eq!(u64::from(run.picture("keeps0", number)[0]), by * (number + 1), "frame {number} on the {side}");
        }
        run.finish();
    }
}

#[test]
fn after_a_change_frames_allocate_nothing() {
    for side in [Space::Cpu, Space::Gpu] {
        let builder = Pipeline::parse("pattern kind=disc size=64x48 ! blur ! gamma ! null").device(device());
        let mut run = Run::of(builder, RunOptions { frames: Some(600), ..on(side) }, |kinds| kinds);
        let change = run.controls().set_all([("blur0.sigma", 3.0), ("gamma0.value", 1.5)]).expect("good values");
        while run.step() {}
        assert_eq!(change.frame(Duration::ZERO), Some(0));
        let report = run.pipeline.finish().expect("it finishes");
        let steady = report.steady;
        assert_eq!((steady.heap_allocs, steady.gpu_allocs, steady.bind_groups), (Some(0.0), 0.0, 0.0), "{side}");
    }
}

/// Waits until an event that `is_it` accepts has come this often.
fn wait_for(events: &Events, count: usize, is_it: impl Fn(&RunEvent) -> bool) -> bool {
    let begun = std::time::Instant::now();
    while lock(events).iter().filter(|event| is_it(event)).count() < count {
        if begun.elapsed() > Duration::from_secs(60) {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

#[test]
fn a_followed_file_takes_effect_when_it_is_saved_and_a_wrong_one_is_reported_once() {
    let shelf = Shelf::new();
    let picture = |width: u32| {
        let pattern = shelf.files.pictures((width, 5), 1);
        std::fs::read(pattern.replace('*', "0")).expect("it was written")
    };
    let (half, third) = (
        "LUT_1D_SIZE 2\n0 0 0\n0.5 0.5 0.5\n",
        "LUT_3D_SIZE 2\n0 0 0\n1 0 0\n0 1 0\n1 1 0\n0 0 1\n1 0 1\n0 1 1\n0.3 0.2 0.1\n",
    );
    let cases = [
        ("lut", "film.cube", half.as_bytes().to_vec(), third.as_bytes().to_vec()),
        ("overlay", "logo.png", picture(9), picture(40)),
    ];
    for (kind, name, first, second) in cases {
        let path = shelf.folder.join(name);
        // Saved by renaming, as editors do.
        let save = |bytes: &[u8]| {
            let new = shelf.folder.join("new");
            std::fs::write(&new, bytes).and_then(|()| std::fs::rename(&new, &path)).expect("there is room");
        };
        save(&first);
        let text = format!("pattern kind=solid color=ffffff size=48x8 ! {kind} {} name=made ! keeps", path.display());
        let options = RunOptions { pace: vramp::plan::Rate::new(100, 1), ..on(Space::Cpu) }.watch(true);
        let Run { mut pipeline, kept, events } = Run::text(&text, options);
        let stopper = pipeline.stopper();
        let reloaded = |event: &RunEvent| matches!(event, RunEvent::Reloaded { handler } if handler == "made");
        let refused = |event: &RunEvent| matches!(event, RunEvent::NotReloaded { handler, .. } if handler == "made");
        let saw = std::thread::scope(|scope| {
            let running = scope.spawn(move || pipeline.run().map_err(|error| error.to_string()));
            save(&second);
            let mut saw = vec![wait_for(&events, 1, reloaded)];
            save(b"garbage");
            saw.push(wait_for(&events, 1, refused));
            save(&first);
            saw.push(wait_for(&events, 2, reloaded));
            stopper.finish();
            running.join().expect("it does not panic").expect("it does not fail");
            saw
        });
        assert_eq!(saw, [true; 3], "{kind}");
        assert_eq!(lock(&events).iter().filter(|event| refused(event)).count(), 1, "{kind}");
        let (kept, number) = (lock(&kept).clone(), |event: &RunEvent| match event {
            RunEvent::Changed { frame, .. } => Some(*frame),
            _ => None,
        });
        let changed: Vec<u64> = lock(&events).iter().filter_map(number).collect();
        let [second_from, first_again] = changed[..] else { panic!("{kind}: {changed:?}") };
        let at = |number: u64| &kept[&("keeps0".to_owned(), number)];
        assert!(at(second_from) == at(first_again - 1) && at(second_from) != at(first_again), "{kind}");
        assert!(second_from == 0 || at(0) == at(first_again), "{kind}");
    }
}
