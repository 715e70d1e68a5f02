//! Entries: all that is known of a handler before there is one.
//!
//! Owns the declaration of ports, settings, spaces, kernel, work, latency and rate, as plain data.
//! Does not run anything; the parser, the planner, `inspect` and the docs all read the same entry.
//!
//! Always: an entry is `'static` data; what depends on settings is a rule over them, not code with state.

use std::fmt;

use crate::words::{ANY_SIDE, DType, Format, Interval, Size, Space};

use super::{KernelDesc, KernelRule, Setting, SettingValues, Value};

/// What a handler is, readable without an instance.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact of a declaration, not a state")]
pub struct Entry {
    /// The kind, as written in a pipeline.
    pub name: &'static str,
    /// Which family it belongs to.
    pub family: Family,
    /// What it does, in one line.
    pub about: &'static str,
    /// A pipeline that shows it.
    pub example: &'static str,
    /// Its input ports; the first is the lead.
    pub inputs: &'static [Input],
    /// Its output ports.
    pub outputs: &'static [Output],
    /// Its own settings; `name`, `on-error` and, with several inputs, `lead` and `until` come on top.
    pub settings: &'static [Setting],
    /// The setting that may be given without its key.
    pub bare: Option<&'static str>,
    /// Groups of settings of which exactly one has to be given.
    pub one_of: &'static [&'static [&'static str]],
    /// Whether it takes settings that are not declared here.
    pub open_settings: bool,
    /// The spaces it has an implementation for; one implementation uses one space on all its ports.
    pub spaces: &'static [Space],
    /// What it computes on each frame.
    pub kernel: KernelRule,
    /// How much it computes.
    pub work: Work,
    /// Other work where a setting has a given word: `(setting, word, work)`.
    pub work_when: &'static [(&'static str, &'static str, Work)],
    /// Refuses settings that fit one by one but make no sense together, in words.
    pub check: fn(&SettingValues) -> Result<(), String>,
    /// How large the small data are that its kernel reads on the device: a table, glyphs, a logo; none if it reads none.
    /// All small data of a fused kernel share one buffer.
    pub small: Option<SmallBytes>,
    /// Whether its function is a table of bytes: two such next to each other in a kernel become one.
    pub folds: bool,
    /// Frames it holds back: what leaves is the picture of so many frames before, under the number and time of now.
    pub delay: Frames,
    /// Whether frames that it holds back leave under their own numbers and times instead, and so late.
    pub keeps_times: When,
    /// It lets one frame in this many pass.
    pub every: Frames,
    /// Whether a frame's result depends on frames before it.
    pub stateful: bool,
    /// Whether it waits on the outside world and so gets a lane of its own.
    pub blocking: bool,
    /// Whether it is a source that cannot be made to wait.
    pub live: bool,
    /// Whether all frame inputs have to be of one size.
    pub equal_sizes: bool,
    /// Whether every line of its output is made from the same line of its lead input alone, so that the fields of
    /// interlaced material stay apart.
    pub keeps_lines: fn(&SettingValues, Option<KernelDesc>) -> bool,
    /// Whether it is a sink that writes what is known of a stream into a header.
    pub writes_tags: bool,
    /// Whether it is an explicit transfer, and which way.
    pub transfer: Option<TransferDirection>,
}

/// Entries are equal if they have the same name and both or neither have inputs, which is what a catalogue keeps unique.
/// Addresses cannot be compared: each use of a constant may have its own.
impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        (self.name, self.inputs.is_empty()) == (other.name, other.inputs.is_empty())
    }
}

/// At most how many bytes of small data there are under these settings for frames of the second size that are made from
/// frames of the first.
pub type SmallBytes = fn(&SettingValues, Size, Size) -> u64;

/// The families of handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Brings frames in.
    Source,
    /// Changes pixels.
    Filter,
    /// Draws on top or puts together.
    Draw,
    /// Changes format or space.
    Convert,
    /// Changes which frames pass, and when.
    Control,
    /// Takes frames out.
    Sink,
}

impl Family {
    /// Every family, in the order of a pipeline.
    pub const ALL: [Family; 6] =
        [Family::Source, Family::Filter, Family::Draw, Family::Convert, Family::Control, Family::Sink];

    /// The word used in text.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Source => "source",
            Family::Filter => "filter",
            Family::Draw => "draw",
            Family::Convert => "convert",
            Family::Control => "control",
            Family::Sink => "sink",
        }
    }
}

/// Which way a transfer goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransferDirection {
    /// From the host to the device.
    Up,
    /// From the device to the host.
    Down,
}

impl TransferDirection {
    /// The space it leaves.
    pub const fn from(self) -> Space {
        match self {
            TransferDirection::Up => Space::Cpu,
            TransferDirection::Down => Space::Gpu,
        }
    }

    /// The space it reaches.
    pub const fn to(self) -> Space {
        self.from().other()
    }
}

impl fmt::Display for TransferDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}->{}", self.from(), self.to())
    }
}

/// What a port of an entry carries.
#[derive(Debug, Clone, Copy)]
pub enum PortMedia {
    /// Pictures.
    Video {
        /// Formats, best first.
        formats: &'static [Format],
        /// Widths.
        width: Interval<u32>,
        /// Heights.
        height: Interval<u32>,
    },
    /// Tensors.
    Tensor {
        /// Element types, best first.
        dtypes: &'static [DType],
        /// Extents along each axis; none means any rank.
        dims: Option<&'static [Interval<u32>]>,
    },
    /// Data.
    Data,
}

impl PortMedia {
    /// Pictures in the processing format, of any size.
    pub const RGBA: PortMedia = PortMedia::Video { formats: &[Format::Rgba8], width: ANY_SIDE, height: ANY_SIDE };
    /// Pictures of any format and size.
    pub const ANY: PortMedia = PortMedia::Video { formats: &Format::RANKED, width: ANY_SIDE, height: ANY_SIDE };

    /// Pictures of these formats, best first, of any size.
    pub const fn video(formats: &'static [Format]) -> PortMedia {
        PortMedia::Video { formats, width: ANY_SIDE, height: ANY_SIDE }
    }
}

/// An input port.
#[derive(Debug, Clone, Copy)]
pub struct Input {
    /// Its name.
    pub name: &'static str,
    /// What it accepts.
    pub media: PortMedia,
    /// Whether it has to be linked.
    pub required: bool,
}

impl Input {
    /// The usual video input.
    pub const VIDEO: Input = Input { name: "video", media: PortMedia::RGBA, required: true };
    /// A video input that takes every format as it comes.
    pub const ANY: Input = Input { name: "video", media: PortMedia::ANY, required: true };
}

/// An output port.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// Its name.
    pub name: &'static str,
    /// What it offers.
    pub media: PortMedia,
    /// Where its format comes from.
    pub format: FormatRule,
    /// Where its size comes from.
    pub size: SizeRule,
    /// Where its rate comes from.
    pub rate: RateRule,
}

impl Output {
    /// The usual video output: processing format, size and rate of the lead input.
    pub const VIDEO: Output = Output {
        name: "video",
        media: PortMedia::RGBA,
        format: FormatRule::Declared,
        size: SizeRule::Input,
        rate: RateRule::Input,
    };
    /// An output that passes on what came in, whatever its format.
    pub const SAME: Output = Output { media: PortMedia::ANY, format: FormatRule::Input, ..Output::VIDEO };
}

/// Where an output's format comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatRule {
    /// The declared list; among several the one that spares most conversions.
    Declared,
    /// The lead input's.
    Input,
    /// This setting.
    Setting(&'static str),
    /// What the source was found to hold.
    Probed,
}

/// Where an output's size comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeRule {
    /// The lead input's.
    Input,
    /// This setting.
    Setting(&'static str),
    /// This setting where given, the lead input's otherwise.
    SettingOrInput(&'static str),
    /// The first setting where given, otherwise the lead input's size times the second, rounded, at least 1.
    SettingOrScaled(&'static str, &'static str),
    /// The third setting, cut out of the lead input at the first two, which has to hold it.
    Cut(&'static str, &'static str, &'static str),
    /// The lead input's, sides swapped where this setting is a quarter turn (90 or 270).
    Turned(&'static str),
    /// What the source was found to hold, or this setting.
    Probed(Option<&'static str>),
}

/// Where an output's rate comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateRule {
    /// The lead input's, divided by [`Entry::every`].
    Input,
    /// This setting.
    Setting(&'static str),
    /// What the source was found to hold, or this setting.
    Probed(Option<&'static str>),
}

/// A number of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frames {
    /// Always this many.
    Fixed(u32),
    /// As many as this setting says.
    Setting(&'static str),
}

impl Frames {
    /// The number under these settings.
    pub fn under(self, settings: &SettingValues) -> u32 {
        match self {
            Frames::Fixed(n) => n,
            Frames::Setting(key) => settings.int(key).and_then(|n| u32::try_from(n).ok()).unwrap_or(0),
        }
    }
}

/// Whether something holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// It never does.
    Never,
    /// It always does.
    Always,
    /// It does if this setting is true.
    Setting(&'static str),
}

impl When {
    /// Whether it holds under these settings.
    pub fn under(self, settings: &SettingValues) -> bool {
        match self {
            When::Never => false,
            When::Always => true,
            When::Setting(key) => settings.get(key) == Some(&Value::Bool(true)),
        }
    }
}

/// What sort of work a handler does: a device profile has one rate for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A per-pixel function: a table, a small matrix, a blend.
    Pixel,
    /// Drawing a few pixels: text, lines, boxes. Unit: one touched pixel.
    Draw,
    /// One multiply-add of a stencil. Unit: one tap of one pixel.
    Tap,
    /// One filtered sample at a computed place.
    Sample,
    /// One compare-exchange of a sorting network on one pixel.
    Sort,
    /// One pixel of a whole-frame sum.
    Reduce,
    /// One pixel encoded or decoded by a compressed codec.
    Codec,
    /// One pixel moved as it is, through a pipe, file or window.
    Move,
}

impl Class {
    /// Every class, in a fixed order.
    pub const ALL: [Class; 8] =
        [Class::Pixel, Class::Draw, Class::Tap, Class::Sample, Class::Sort, Class::Reduce, Class::Codec, Class::Move];

    /// The word used in profiles and text.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Pixel => "pixel",
            Class::Draw => "draw",
            Class::Tap => "tap",
            Class::Sample => "sample",
            Class::Sort => "sort",
            Class::Reduce => "reduce",
            Class::Codec => "codec",
            Class::Move => "move",
        }
    }
}

/// How much a handler computes on a frame.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    /// What sort of work.
    pub class: Class,
    /// How many units of it.
    pub units: Units,
}

impl Work {
    /// Nothing worth counting.
    pub const NONE: Work = Work { class: Class::Pixel, units: Units::PerPixel(0.0) };
}

/// Units of work on one frame.
#[derive(Debug, Clone, Copy)]
pub enum Units {
    /// This many for each pixel of the output (of the lead input for sinks).
    PerPixel(f64),
    /// This many for each pixel, by settings.
    PerPixelBy(fn(&SettingValues) -> f64),
    /// This many for the whole frame, by settings and the sizes of the lead input and the output: for handlers that
    /// touch only a part, or read more than they write. A handler without one of them gets the other twice.
    PerFrameBy(fn(&SettingValues, Size, Size) -> f64),
}

impl Entry {
    /// A filter with one video input and output, both implementations and a pixel function: most fields of most
    /// entries.
    pub const FILTER: Entry = Entry {
        name: "",
        family: Family::Filter,
        about: "",
        example: "",
        inputs: &[Input::VIDEO],
        outputs: &[Output::VIDEO],
        settings: &[],
        bare: None,
        one_of: &[],
        open_settings: false,
        spaces: &[Space::Gpu, Space::Cpu],
        kernel: KernelRule::Always(KernelDesc::POINTWISE),
        work: Work { class: Class::Pixel, units: Units::PerPixel(1.0) },
        work_when: &[],
        check: |_| Ok(()),
        small: None,
        folds: false,
        delay: Frames::Fixed(0),
        keeps_times: When::Never,
        every: Frames::Fixed(1),
        stateful: false,
        blocking: false,
        live: false,
        equal_sizes: false,
        keeps_lines: |_, kernel| kernel.is_none_or(|kernel| kernel.works_in_place()),
        writes_tags: false,
        transfer: None,
    };

    /// A source that reads from outside into host memory.
    pub const SOURCE: Entry = Entry {
        family: Family::Source,
        inputs: &[],
        spaces: &[Space::Cpu],
        kernel: KernelRule::None,
        work: Work { class: Class::Move, units: Units::PerPixel(1.0) },
        blocking: true,
        ..Entry::FILTER
    };

    /// A sink that writes outside from host memory.
    pub const SINK: Entry = Entry { family: Family::Sink, inputs: &[Input::VIDEO], outputs: &[], ..Entry::SOURCE };

    /// A handler that passes frames on untouched, in either space.
    pub const CONTROL: Entry = Entry {
        family: Family::Control,
        inputs: &[Input::ANY],
        outputs: &[Output::SAME],
        kernel: KernelRule::None,
        work: Work::NONE,
        ..Entry::FILTER
    };

    /// The handler as its example writes it: its kind and settings, such as `threshold level=0.4`.
    pub fn in_example(&self) -> &'static str {
        let mut quoted = false;
        let mut pieces = self.example.split(|c: char| {
            quoted ^= c == '"';
            !quoted && matches!(c, '!' | ';')
        });
        let is_this = |piece: &&str| piece.split_whitespace().next() == Some(self.name);
        pieces.by_ref().map(str::trim).find(is_this).unwrap_or(self.name)
    }

    /// The input port of this name.
    pub fn input(&self, name: &str) -> Option<usize> {
        self.inputs.iter().position(|p| p.name == name)
    }

    /// The output port of this name.
    pub fn output(&self, name: &str) -> Option<usize> {
        self.outputs.iter().position(|p| p.name == name)
    }

    /// The setting of this name.
    pub fn setting(&self, name: &str) -> Option<&'static Setting> {
        self.settings.iter().find(|s| s.name == name)
    }

    /// Its work under these settings.
    pub fn work_under(&self, settings: &SettingValues) -> Work {
        let case = self.work_when.iter().find(|(key, word, _)| settings.word(key) == Some(*word));
        case.map_or(self.work, |(_, _, work)| *work)
    }

    /// How many frames after it came a frame leaves under these settings.
    pub fn latency(&self, settings: &SettingValues) -> u32 {
        if self.keeps_times.under(settings) { self.delay.under(settings) } else { 0 }
    }

    /// Whether it has an implementation for this space.
    pub fn offers(&self, space: Space) -> bool {
        self.spaces.contains(&space)
    }
}
