//! Every live and rebuild setting of every built-in handler changes to random values, on both sides.

use std::collections::BTreeMap;
use std::time::Duration;

use vramp::gpu::Device;
use vramp::plan::catalog::{Entry, Liveness, Setting};
use vramp::plan::{GraphSpec, HandlerSpec, Space};
use vramp::{Pipeline, PipelineBuilder, registry};

use crate::random::chance::Chance;
use crate::random::files::Files;
use crate::random::settings;

use super::{Kept, Run, fresh, keeping, lock, on};

/// A handler with its settings, in the smallest graph around it.
#[derive(Clone)]
struct Case {
    entry: &'static Entry,
    settings: BTreeMap<String, String>,
}

impl Case {
    fn spec(&self) -> GraphSpec {
        let mut spec = GraphSpec::new();
        let given = |handler: HandlerSpec| self.settings.iter().fold(handler, |spec, (key, text)| spec.set(key, text));
        let tested = given(HandlerSpec::new(self.entry.name).named("tested"));
        let disc = |kind: &str| HandlerSpec::new("pattern").set("kind", kind).set("size", "64x48");
        let sink = HandlerSpec::new("keeps");
        if self.entry.inputs.is_empty() {
            let (tested, sink) = (spec.add(tested), spec.add(sink));
            spec.connect(tested, sink);
            return spec;
        }
        let (source, tested, sink) = (spec.add(disc("disc")), spec.add(tested), spec.add(sink));
        spec.connect(source, tested);
        spec.connect(tested, sink);
        if let Some(second) = self.entry.inputs.get(1) {
            let bars = spec.add(disc("bars"));
            spec.connect(bars, tested.input(second.name));
        }
        spec
    }

    fn builder(&self, device: Option<&Device>) -> PipelineBuilder {
        let builder = Pipeline::from_spec(self.spec());
        device.into_iter().fold(builder, PipelineBuilder::device)
    }
}

/// Changeable settings of all built-in kinds, of one liveness.
fn changeable(liveness: Liveness) -> Vec<(&'static Entry, Vec<&'static Setting>)> {
    let kinds = registry();
    let all: Vec<&'static Entry> = kinds.catalog().entries().collect();
    all.into_iter()
        .filter(|entry| kinds.runs(entry))
        .map(|entry| (entry, entry.settings.iter().filter(|own| own.liveness == liveness).collect::<Vec<_>>()))
        .filter(|(_, settings)| !settings.is_empty())
        .collect()
}

const FONT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/handlers/assets/DejaVuSans.ttf");

/// Files that handlers read, of several kinds of content.
pub(super) struct Shelf {
    pub(super) files: Files,
    pub(super) folder: std::path::PathBuf,
}

impl Drop for Shelf {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Shelf {
    pub(super) fn new() -> Shelf {
        static MADE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let made = MADE.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("vramp-live-{}-{made}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for files");
        Shelf { files: Files::new(), folder }
    }

    pub(super) fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        std::fs::write(&path, text).expect("there is room for a few lines");
        path.display().to_string()
    }

    fn value(&self, entry: &Entry, setting: &Setting, chance: &mut Chance) -> String {
        match (entry.name, setting.name) {
            ("lut", "path") => match chance.below(3) {
                0 => self.file("one.cube", "LUT_1D_SIZE 2\n0 0 0\n0.5 0.5 0.5\n"),
                1 => self.file("three.cube", "LUT_1D_SIZE 2\n0 0.1 0\n0.5 1 0.25\n"),
                _ => self.files.read_by("lut", chance),
            },
            ("wgsl", "path") => match chance.below(3) {
                0 => self.file("invert.wgsl", "fn pixel(c: vec4f) -> vec4f { return vec4f(1 - c.rgb, c.a); }"),
                1 => self.file("swap.wgsl", "fn pixel(c: vec4f) -> vec4f { return c.brga; }"),
                _ => self.files.read_by("wgsl", chance),
            },
            ("wgsl", "code") => {
                format!("fn pixel(c: vec4f) -> vec4f {{ return vec4f(c.rgb * 0.{}, c.a); }}", chance.between(1, 9))
            }
            ("text", "font") => FONT.to_owned(),
            _ => settings::value(entry, setting, &self.files, chance),
        }
    }

    /// A handler of this kind with the settings that it needs.
    fn case(&self, entry: &'static Entry, chance: &mut Chance) -> Case {
        let mut settings = BTreeMap::new();
        for setting in entry.settings {
            if setting.fallback == vramp::plan::catalog::Fallback::Required {
                settings.insert(setting.name.to_owned(), self.value(entry, setting, chance));
            }
        }
        for group in entry.one_of {
            let setting = entry.setting(group[0]).expect("a group names settings");
            settings.insert(setting.name.to_owned(), self.value(entry, setting, chance));
        }
        match entry.name {
            "pattern" => settings.insert("size".to_owned(), "40x30".to_owned()),
            "crop" => settings.insert("size".to_owned(), "9x7".to_owned()),
            "resize" => settings.insert("size".to_owned(), "50x60".to_owned()),
            _ => None,
        };
        Case { entry, settings }
    }
}

/// Number of changes over all tests of every setting.
fn wanted_changes() -> usize {
    if std::env::var_os("VRAMP_LONG").is_some() { 1000 } else { 200 }
}

/// Changes settings of one liveness in running pipelines, in turn, and compares every picture.
fn change_every_setting(side: Space, liveness: Liveness, count: usize, seed: u64) {
    let shelf = Shelf::new();
    // A device of its own, because compilations are counted.
    let device = (side == Space::Gpu).then(|| Device::choose().open().expect("an adapter"));
    let mut chance = Chance::of(seed);
    let kinds = changeable(liveness);
    let kinds: Vec<_> = kinds.into_iter().filter(|(entry, _)| entry.offers(side)).collect();
    let settings: usize = kinds.iter().map(|(_, settings)| settings.len()).sum();
    for (entry, own) in &kinds {
        let turns = (own.len() * count).div_ceil(settings).max(own.len());
        change_kind((&shelf, device.as_ref()), (side, liveness), entry, own, turns, &mut chance);
    }
}

fn change_kind(
    (shelf, device): (&Shelf, Option<&Device>),
    (side, liveness): (Space, Liveness),
    entry: &'static Entry,
    settings: &[&'static Setting],
    turns: usize,
    chance: &mut Chance,
) {
    let mut case = shelf.case(entry, chance);
    let mut run = Run::of(case.builder(device), on(side), |kinds| kinds);
    let controls = run.controls();
    let mut made = vec![(0, case.clone())];
    // Some values are refused, because they do not fit the other settings or the frame.
    let (mut turn, mut tries) = (0, 0);
    while turn < turns {
        tries += 1;
        assert!(tries < 60 * turns, "{}: nearly every value is refused", entry.name);
        run.step_to(run.came() + 1 + chance.below(2));
        let setting = settings[turn % settings.len()];
        let text = shelf.value(entry, setting, chance);
        let mut next = case.clone();
        for group in entry.one_of.iter().filter(|group| group.contains(&setting.name)) {
            next.settings.retain(|key, _| !group.contains(&key.as_str()));
        }
        next.settings.insert(setting.name.to_owned(), text.clone());
        let name = format!("tested.{}", setting.name);
        match controls.set(&name, &text) {
            Ok(change) => {
                while change.frame(Duration::ZERO).is_none() {
                    assert!(run.step(), "{name}={text} never took effect");
                }
                let frame = change.frame(Duration::ZERO).expect("it was applied");
                let read = setting.value.read(&text).expect("it was accepted").to_string();
                let expected = ("tested".to_owned(), format!("{}={read}", setting.name), frame);
                assert_eq!(run.changes().last(), Some(&expected));
                assert_eq!(controls.get(&name).expect("it has a value"), read);
                made.push((frame, next.clone()));
                (case, turn) = (next, turn + 1);
            }
            Err(error) => {
                let fails =
                    next.builder(device).registry(&keeping(&Kept::default())).options(on(side)).build().is_err();
                assert!(fails, "{} {name}={text} was refused, but a fresh run has it: {error}", entry.name);
            }
        }
    }
    let report = run.finish();
    assert_eq!(report.changes as usize, made.len() - 1, "{}", entry.name);
    if liveness == Liveness::Live {
        let compiles = report.counters.compiles_after_first_frame;
        assert_eq!((report.swaps, compiles), (0, 0), "{}: live settings change no kernel", entry.name);
    }
    let frames = run.came() as u64;
    assert_eq!((report.frames_out, report.dropped.sum(), report.failed), (frames, 0, 0), "{}", entry.name);
    assert!(lock(&run.kept).keys().map(|(_, number)| *number).eq(0..frames), "{}: no frame is lost", entry.name);
    for (at, (from, case)) in made.iter().enumerate() {
        let to = made.get(at + 1).map_or(frames, |(next, _)| *next);
        let truth = fresh(case.builder(device), on(side), to);
        for number in *from..to {
            let same = run.picture("keeps0", number) == truth.picture("keeps0", number);
            assert!(same, "{} {:?}, frame {number} on the {side}", entry.name, case.settings);
        }
    }
}

#[test]
fn every_live_setting_changes_on_the_cpu_without_another_kernel() {
    change_every_setting(Space::Cpu, Liveness::Live, wanted_changes() * 3 / 10, 1);
}

#[test]
fn every_live_setting_changes_on_the_gpu_without_another_kernel() {
    change_every_setting(Space::Gpu, Liveness::Live, wanted_changes() * 3 / 10, 2);
}

#[test]
fn every_rebuild_setting_changes_on_the_cpu() {
    change_every_setting(Space::Cpu, Liveness::Rebuild, wanted_changes() / 5, 3);
}

#[test]
fn every_rebuild_setting_changes_on_the_gpu() {
    change_every_setting(Space::Gpu, Liveness::Rebuild, wanted_changes() / 5, 4);
}
