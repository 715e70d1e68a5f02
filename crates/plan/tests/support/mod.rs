//! Shared by the planner's tests: a small catalogue with every kind of handler, and random graphs and profiles.

use std::fmt::Write as _;

use vramp_plan::catalog::{
    Catalog, Class, Entry, Fallback, Family, FormatRule, Frames, Input, KernelDesc, KernelRule, Liveness, NoProbe,
    Output, PortMedia, RateRule, Setting, SizeRule, TensorRule, TransferDirection, Units, ValueType, When, Work,
};
use vramp_plan::{ANY_SIDE, DType, Format, Graph, GraphSpec, HandlerSpec, Profile, Space};

/// A small seeded random generator that gives the same graphs on every machine.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(0xD1B5_4A32_D192_ED03) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// A number between both bounds, on a logarithmic scale.
    pub fn scale(&mut self, low: f64, high: f64) -> f64 {
        let part = (self.next() % 10_000) as f64 / 10_000.0;
        low * (high / low).powf(part)
    }
}

const fn setting(name: &'static str, value: ValueType, default: &'static str) -> Setting {
    Setting { name, value, fallback: Fallback::Is(default), liveness: Liveness::Fixed, about: "" }
}

const SOURCE_SETTINGS: &[Setting] = &[
    setting("size", ValueType::Size, "64x48"),
    setting("fps", ValueType::Rate, "30"),
    setting("format", ValueType::Format, "rgba8"),
    setting("work", ValueType::Number { min: 0.0, max: 1e9 }, "1"),
];
const WORK_SETTINGS: &[Setting] = &[setting("work", ValueType::Number { min: 0.0, max: 1e9 }, "1")];
const BOTH: &[Space] = &[Space::Gpu, Space::Cpu];
const CPU: &[Space] = &[Space::Cpu];
const GPU: &[Space] = &[Space::Gpu];

const WORK: Work = Work { class: Class::Pixel, units: Units::PerPixelBy(|s| s.number("work").unwrap_or(1.0)) };

const fn source(name: &'static str, spaces: &'static [Space]) -> Entry {
    Entry {
        name,
        family: Family::Source,
        inputs: &[],
        outputs: &[Output {
            media: PortMedia::ANY,
            format: FormatRule::Setting("format"),
            size: SizeRule::Setting("size"),
            rate: RateRule::Setting("fps"),
            ..Output::VIDEO
        }],
        settings: SOURCE_SETTINGS,
        spaces,
        kernel: KernelRule::Always(KernelDesc::GENERATOR),
        work: WORK,
        ..Entry::FILTER
    }
}

const fn filter(name: &'static str, spaces: &'static [Space], kernel: KernelDesc) -> Entry {
    Entry { name, spaces, kernel: KernelRule::Always(kernel), settings: WORK_SETTINGS, work: WORK, ..Entry::FILTER }
}

const fn sink(name: &'static str, spaces: &'static [Space], inputs: &'static [Input]) -> Entry {
    Entry { name, family: Family::Sink, inputs, outputs: &[], spaces, ..filter(name, spaces, KernelDesc::POINTWISE) }
}

const NO_KERNEL: KernelRule = KernelRule::None;
const AB: &[Input] = &[Input { name: "a", ..Input::VIDEO }, Input { name: "b", ..Input::VIDEO }];

pub static ENTRIES: &[Entry] = &[
    source("src", BOTH),
    source("src-cpu", CPU),
    source("src-gpu", GPU),
    Entry { live: When::Always, kernel: NO_KERNEL, blocking: true, ..source("src-live", CPU) },
    filter("point", BOTH, KernelDesc::POINTWISE),
    filter("point-cpu", CPU, KernelDesc::POINTWISE),
    filter("point-gpu", GPU, KernelDesc::POINTWISE),
    filter("gather", BOTH, KernelDesc::GATHER),
    filter("stencil", BOTH, KernelDesc::separable(5)),
    filter("reduce", BOTH, KernelDesc::REDUCTION),
    filter("opaque", BOTH, KernelDesc::OPAQUE),
    Entry { small: Some(|_, _, _| 1024), folds: true, ..filter("tabled", BOTH, KernelDesc::POINTWISE) },
    Entry {
        outputs: &[Output { size: SizeRule::Setting("size"), ..Output::VIDEO }],
        settings: SOURCE_SETTINGS,
        ..filter("shrink", BOTH, KernelDesc::GATHER)
    },
    Entry {
        outputs: &[Output { size: SizeRule::Setting("size"), ..Output::VIDEO }],
        settings: SOURCE_SETTINGS,
        ..filter("resample", BOTH, KernelDesc::resampling(3))
    },
    Entry { inputs: AB, equal_sizes: true, ..filter("mix", BOTH, KernelDesc::POINTWISE) },
    Entry { inputs: AB, ..filter("join", BOTH, KernelDesc::OPAQUE) },
    Entry {
        outputs: &[Output { name: "left", ..Output::VIDEO }, Output { name: "right", ..Output::VIDEO }],
        ..filter("split", BOTH, KernelDesc::OPAQUE)
    },
    Entry {
        outputs: &[Output::VIDEO, Output { name: "found", media: PortMedia::DATA, ..Output::VIDEO }],
        ..filter("detect", BOTH, KernelDesc::REDUCTION)
    },
    Entry {
        inputs: &[Input::VIDEO, Input { name: "found", media: PortMedia::DATA, ..Input::VIDEO }],
        ..filter("outline", BOTH, KernelDesc::POINTWISE)
    },
    Entry {
        outputs: &[Output {
            name: "tensor",
            tensor: TensorRule::By(|_, lead| {
                let size = lead.and_then(|lead| Some(lead.frame()?.size)).ok_or("it needs frames")?;
                Ok((DType::F32, vec![size.height / 4 + 1, size.width / 4 + 1, 8]))
            }),
            ..Output::TENSOR
        }],
        ..filter("features", BOTH, KernelDesc::OPAQUE)
    },
    Entry { inputs: &[Input::VIDEO, Input::TENSOR], ..filter("paint", BOTH, KernelDesc::OPAQUE) },
    Entry {
        name: "convert",
        family: Family::Convert,
        inputs: &[Input::ANY],
        outputs: &[Output { media: PortMedia::ANY, format: FormatRule::Setting("format"), ..Output::VIDEO }],
        settings: &[setting("format", ValueType::Format, "rgba8")],
        kernel: KernelRule::By {
            setting: "format",
            cases: &[("rgba8", KernelDesc::GATHER)],
            otherwise: KernelDesc::stencil(4),
        },
        ..Entry::FILTER
    },
    Entry { name: "upload", transfer: Some(TransferDirection::Up), ..Entry::CONTROL },
    Entry { name: "download", transfer: Some(TransferDirection::Down), ..Entry::CONTROL },
    Entry { name: "pass", ..Entry::CONTROL },
    Entry {
        name: "delay",
        settings: &[setting("frames", ValueType::Int { min: 0, max: 1000 }, "1")],
        delay: Frames::Setting("frames"),
        keeps_times: When::Always,
        stateful: true,
        ..Entry::CONTROL
    },
    Entry {
        name: "every",
        settings: &[setting("n", ValueType::Int { min: 1, max: 1000 }, "2")],
        every: Frames::Setting("n"),
        ..Entry::CONTROL
    },
    Entry { kernel: NO_KERNEL, ..sink("sink", BOTH, &[Input::ANY]) },
    Entry { kernel: NO_KERNEL, ..sink("sink-cpu", CPU, &[Input::ANY]) },
    Entry { kernel: NO_KERNEL, ..sink("sink-gpu", GPU, &[Input::ANY]) },
    Entry {
        kernel: NO_KERNEL,
        blocking: true,
        ..sink(
            "file",
            CPU,
            &[Input {
                media: PortMedia::Video { formats: &[Format::I420, Format::Gray8], width: ANY_SIDE, height: ANY_SIDE },
                ..Input::VIDEO
            }],
        )
    },
];

pub fn catalog() -> Catalog {
    let mut catalog = Catalog::of(ENTRIES).expect("the test catalogue is well formed");
    catalog.set_converter("convert").expect("it has one");
    catalog
}

pub fn check(spec: &GraphSpec) -> Graph {
    Graph::check(spec, &catalog(), &NoProbe).unwrap_or_else(|e| panic!("{e}"))
}

/// A chain of handlers, linked through their main ports.
pub fn chain(kinds: &[&str]) -> GraphSpec {
    let mut spec = GraphSpec::new();
    let mut before = None;
    for kind in kinds {
        let at = spec.add(HandlerSpec::new(*kind));
        if let Some(before) = before.replace(at) {
            spec.connect(before, at);
        }
    }
    spec
}

/// A source whose frames meet again, with a delay on one branch: `join0.a` is the delayed input.
pub fn diamond(source: HandlerSpec, frames: u32) -> GraphSpec {
    let mut spec = GraphSpec::new();
    let source = spec.add(source);
    let delay = spec.add(HandlerSpec::new("delay").set("frames", frames));
    let join = spec.add(HandlerSpec::new("join"));
    let sink = spec.add(HandlerSpec::new("sink"));
    spec.connect(source, delay);
    spec.connect(delay, join.port("a"));
    spec.connect(source, join.port("b"));
    spec.connect(join, sink);
    spec
}

/// A source, a delay and a sink.
pub fn delayed(source: HandlerSpec, frames: u32) -> GraphSpec {
    let mut spec = GraphSpec::new();
    let source = spec.add(source);
    let delay = spec.add(HandlerSpec::new("delay").set("frames", frames));
    let sink = spec.add(HandlerSpec::new("sink"));
    spec.connect(source, delay);
    spec.connect(delay, sink);
    spec
}

/// A machine with random figures. Their ratios vary so widely that each space wins sometimes.
pub fn random_profile(random: &mut Random) -> Profile {
    let mut rates = || {
        let mut text = String::new();
        for class in Class::ALL {
            let _ = writeln!(text, "{} = {}", class.name(), random.scale(1.0, 1000.0));
        }
        text
    };
    let (cpu, gpu) = (rates(), rates());
    let text = format!(
        "about = \"random\"\n[cpu]\nthreads = 4\ncache_bytes = {}\ncache_gb_s = {}\nmemory_gb_s = {}\n\
         memory_bytes = 1e15\ncall_us = {}\n[cpu.rates]\n{cpu}\n[gpu]\nunified = {}\nupload_us = {}\nupload_gb_s = {}\n\
         download_us = {}\ndownload_gb_s = {}\ndispatch_us = {}\nsubmit_us = {}\nmemory_gb_s = {}\n\
         memory_bytes = 1e15\n[gpu.rates]\n{gpu}\n[gpu.limits]\nstorage_buffers_per_stage = {}\n\
         binding_bytes = 134217728\nbuffer_bytes = 268435456\nworkgroups_per_dimension = 65535\n",
        random.scale(1e3, 1e6),
        random.scale(0.1, 50.0),
        random.scale(0.05, 10.0),
        random.scale(0.01, 100.0),
        random.chance(50),
        random.scale(0.1, 300.0),
        random.scale(0.02, 5.0),
        random.scale(0.1, 300.0),
        random.scale(0.02, 5.0),
        random.scale(0.1, 100.0),
        random.scale(0.1, 300.0),
        random.scale(0.1, 50.0),
        3 + random.below(6),
    );
    Profile::read("random", &text).expect("a random profile is well formed")
}
