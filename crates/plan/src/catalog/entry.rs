//! Entries: static descriptions of handlers, readable without an instance.
//!
//! The parser, the planner, `inspect` and the docs all read the same entry: ports, settings, spaces, kernel, work,
//! latency and rate. An entry is `'static` data. For a property that depends on settings, the entry has a rule that
//! computes the property from the settings alone.

use std::fmt;

use crate::words::{ANY_SIDE, Content, DType, Format, Interval, Size, Space, SpaceSet};

use super::{Class, KernelDesc, KernelRule, NetworkNeedsBy, Setting, SettingValues, Units, Work};

/// The description of one kind of handler.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is an independent fact of a declaration, not a state")]
pub struct Entry {
    /// The kind as written in a pipeline.
    pub name: &'static str,
    pub family: Family,
    /// One line of help.
    pub about: &'static str,
    /// A pipeline that uses the handler.
    pub example: &'static str,
    /// The first input is the lead unless the `lead` setting names another input.
    pub inputs: &'static [Input],
    pub outputs: &'static [Output],
    /// The handler's own settings. Every handler also has `name` and `on-error`, and a handler with several inputs has
    /// `lead` and `until`.
    pub settings: &'static [Setting],
    /// The setting that may be given without its key.
    pub bare: Option<&'static str>,
    /// Groups of settings; exactly one setting of each group must be given.
    pub one_of: &'static [&'static [&'static str]],
    /// True if the handler accepts settings that are not declared here, such as those of a user's shader.
    pub open_settings: bool,
    /// The spaces that the handler has an implementation for. An implementation uses the same space on all ports that
    /// carry video or tensors. Data is read on the host; an implementation on the device writes its data there, and the
    /// planner adds a download.
    pub spaces: &'static [Space],
    /// A setting whose word (`cpu`, `gpu` or `any`) restricts `spaces`.
    pub space_by: Option<&'static str>,
    /// The kernel that computes the handler's frames.
    pub kernel: KernelRule,
    pub work: Work,
    /// `(setting, word, work)`: if the setting has this word, the third value replaces `Entry::work`.
    pub work_when: &'static [(&'static str, &'static str, Work)],
    /// Refuses settings that are valid one by one but contradict each other; returns the message.
    pub check: fn(&SettingValues) -> Result<(), String>,
    /// The size of the small data that the handler's kernel reads on the device, such as a table, glyphs or a logo;
    /// `None` without small data. All small data of a fused kernel share one buffer.
    pub small: Option<SmallBytes>,
    /// The needs of the network that the handler runs; `None` if it runs none.
    pub network: Option<NetworkNeedsBy>,
    /// True if the handler looks up each byte of a pixel in a table. If two such handlers are neighbours in a fused
    /// kernel, their tables become one table.
    pub folds: bool,
    /// Frames that the handler holds back. An image leaves the handler this many frames later, with the number and time
    /// of the frame that arrives then.
    pub delay: Frames,
    /// The condition under which delayed frames keep their own numbers and times. Such frames arrive at the consumers
    /// later than their times.
    pub keeps_times: When,
    /// The handler passes on one of this many frames.
    pub every: Frames,
    /// True if the result of a frame depends on earlier frames.
    pub stateful: bool,
    /// True if the handler waits for the outside world. Such a handler gets its own lane.
    pub blocking: bool,
    /// The condition under which a source cannot be made to wait. The frames of such a source have the times at which
    /// they arrived.
    pub live: When,
    /// True for a sink that shows each frame at the frame's time. On a link with the policy `latest` the sink shows the
    /// newest frame at once.
    pub presents: bool,
    /// Frames in use outside the pipeline: before the source has sent them, or after the sink has taken them.
    pub holds: Frames,
    /// True if the frames of all inputs must have the same size.
    pub equal_sizes: bool,
    /// True if every line of the output depends only on the same line of the lead input, so that the fields of
    /// interlaced material stay apart.
    pub keeps_lines: fn(&SettingValues, Option<KernelDesc>) -> bool,
    /// True for a sink that writes stream tags into a header.
    pub writes_tags: bool,
    /// The direction of an explicit transfer; `None` for other handlers.
    pub transfer: Option<TransferDirection>,
}

/// Entries are equal if they have the same name and either both or neither have inputs. No two entries of a catalogue
/// are equal. Addresses cannot be compared, because each use of a constant may have its own address.
impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        (self.name, self.inputs.is_empty()) == (other.name, other.inputs.is_empty())
    }
}

/// Computes an upper bound on the bytes of small data from the settings and from the sizes of the lead input and the
/// output.
pub type SmallBytes = fn(&SettingValues, Size, Size) -> u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Produces frames.
    Source,
    /// Changes pixels.
    Filter,
    /// Draws on a frame or combines several frames.
    Draw,
    /// Changes format or space.
    Convert,
    /// Runs neural networks.
    Model,
    /// Changes which frames pass, and when.
    Control,
    /// Consumes frames.
    Sink,
}

impl Family {
    /// In the order of a pipeline.
    pub const ALL: [Family; 7] =
        [Family::Source, Family::Filter, Family::Draw, Family::Convert, Family::Model, Family::Control, Family::Sink];

    /// The word used in text.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Source => "source",
            Family::Filter => "filter",
            Family::Draw => "draw",
            Family::Convert => "convert",
            Family::Model => "model",
            Family::Control => "control",
            Family::Sink => "sink",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TransferDirection {
    /// From the host to the device.
    Up,
    /// From the device to the host.
    Down,
}

impl TransferDirection {
    pub const fn from(self) -> Space {
        match self {
            TransferDirection::Up => Space::Cpu,
            TransferDirection::Down => Space::Gpu,
        }
    }

    pub const fn to(self) -> Space {
        self.from().other()
    }
}

impl fmt::Display for TransferDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}->{}", self.from(), self.to())
    }
}

/// The media of a port.
#[derive(Debug, Clone, Copy)]
pub enum PortMedia {
    Video {
        /// Best first.
        formats: &'static [Format],
        width: Interval<u32>,
        height: Interval<u32>,
    },
    Tensor {
        /// Best first.
        dtypes: &'static [DType],
        /// Extents along each axis; `None` means any rank.
        dims: Option<&'static [Interval<u32>]>,
    },
    /// A few values for the host, such as detections, classes or key-values.
    Data {
        /// The room for the values of one frame.
        bytes: u32,
    },
    Audio,
    /// Video of these formats, tensors or data: for handlers that do not look at what they pass on or take.
    Every {
        /// Best first.
        formats: &'static [Format],
    },
}

impl PortMedia {
    /// Video in the processing format, of any size.
    pub const RGBA: PortMedia = PortMedia::Video { formats: &[Format::Rgba8], width: ANY_SIDE, height: ANY_SIDE };
    /// Video of any format and size.
    pub const ANY: PortMedia = PortMedia::Video { formats: &Format::RANKED, width: ANY_SIDE, height: ANY_SIDE };

    /// Video of any format, tensors or data.
    pub const EVERY: PortMedia = PortMedia::Every { formats: &Format::RANKED };
    /// Data of a usual size: up to 256 detections.
    pub const DATA: PortMedia = PortMedia::Data { bytes: 8 << 10 };

    /// Tensors of these element types, best first, of any shape.
    pub const fn tensor(dtypes: &'static [DType]) -> PortMedia {
        PortMedia::Tensor { dtypes, dims: None }
    }

    /// Video of these formats, best first, of any size.
    pub const fn video(formats: &'static [Format]) -> PortMedia {
        PortMedia::Video { formats, width: ANY_SIDE, height: ANY_SIDE }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Input {
    pub name: &'static str,
    pub media: PortMedia,
    /// A setting with the name of the one accepted format, or `any`. Without this setting, all formats of `media` are
    /// accepted.
    pub format_by: Option<&'static str>,
    /// Computes the accepted media from the settings; replaces `media`.
    pub media_by: Option<fn(&SettingValues) -> PortMedia>,
    /// What helps if a link carries something else than `media_by` accepts.
    pub remedy: Option<&'static str>,
    /// True if the input must be linked.
    pub required: bool,
}

impl Input {
    /// The usual video input.
    pub const VIDEO: Input =
        Input { name: "video", media: PortMedia::RGBA, format_by: None, media_by: None, remedy: None, required: true };
    /// A video input that accepts every format unchanged.
    pub const ANY: Input = Input { media: PortMedia::ANY, ..Input::VIDEO };
    /// An input that accepts video of every format, tensors and data.
    pub const EVERY: Input = Input { media: PortMedia::EVERY, ..Input::VIDEO };
    /// An input for tensors of any shape and element type.
    pub const TENSOR: Input = Input { name: "tensor", media: PortMedia::tensor(&DType::ALL), ..Input::VIDEO };
    /// An input for data.
    pub const DATA: Input = Input { name: "data", media: PortMedia::DATA, ..Input::VIDEO };

    /// The media that the input accepts under these settings.
    pub fn media_under(&self, settings: &SettingValues) -> PortMedia {
        let format: Option<Format> = self.format_by.and_then(|key| settings.word(key)?.parse().ok());
        let media = self.media_by.map_or(self.media, |media| media(settings));
        match (media, format) {
            (PortMedia::Video { formats, width, height }, Some(format)) => {
                let only = formats.iter().position(|own| *own == format).map_or(formats, |at| &formats[at..=at]);
                PortMedia::Video { formats: only, width, height }
            }
            (PortMedia::Every { formats }, Some(format)) => PortMedia::Every {
                formats: formats.iter().position(|own| *own == format).map_or(formats, |at| &formats[at..=at]),
            },
            (media, _) => media,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Output {
    pub name: &'static str,
    pub media: PortMedia,
    pub format: FormatRule,
    pub size: SizeRule,
    /// The rule for the element type and the shape of a tensor.
    pub tensor: TensorRule,
    pub rate: RateRule,
    /// Refuses links from the output under settings with which it sends nothing; returns the message with the remedy.
    pub links: fn(&SettingValues) -> Result<(), String>,
}

impl Output {
    /// The usual video output: processing format, size and rate of the lead input.
    pub const VIDEO: Output = Output {
        name: "video",
        media: PortMedia::RGBA,
        format: FormatRule::Declared,
        size: SizeRule::Input,
        tensor: TensorRule::Declared,
        rate: RateRule::Input,
        links: |_| Ok(()),
    };
    /// An output that passes on what the lead input carries.
    pub const PASSED: Output = Output { media: PortMedia::EVERY, ..Output::SAME };
    /// An output of tensors; the entry sets the rule for their shape.
    pub const TENSOR: Output = Output { name: "tensor", media: PortMedia::tensor(&DType::ALL), ..Output::VIDEO };
    /// An output of data.
    pub const DATA: Output = Output { name: "data", media: PortMedia::DATA, ..Output::VIDEO };
    /// An output that passes on the lead input's frames in their format.
    pub const SAME: Output = Output { media: PortMedia::ANY, format: FormatRule::Input, ..Output::VIDEO };
}

/// The rule for an output's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FormatRule {
    /// A format of the declared list. If the list has several formats, the planner picks the format that needs the
    /// fewest conversions.
    Declared,
    /// The lead input's format.
    Input,
    /// The value of this setting.
    Setting(&'static str),
    /// The format that probing the source found.
    Probed,
}

/// The rule for an output's size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeRule {
    /// The lead input's size.
    Input,
    /// The value of this setting.
    Setting(&'static str),
    /// The value of this setting if it is given, otherwise the lead input's size.
    SettingOrInput(&'static str),
    /// The value of the first setting if it is given, otherwise the lead input's size times the value of the second
    /// setting. Each side is rounded and at least 1.
    SettingOrScaled(&'static str, &'static str),
    /// The value of the third setting, as the size of a rectangle of the lead input. The first two settings are the
    /// rectangle's position. The rectangle must lie within the input.
    Cut(&'static str, &'static str, &'static str),
    /// The lead input's size, with width and height swapped if this setting is 90 or 270.
    Turned(&'static str),
    /// The size that probing the source found, otherwise this setting.
    Probed(Option<&'static str>),
}

/// The rule for the element type and the shape of a tensor output.
#[derive(Debug, Clone, Copy)]
pub enum TensorRule {
    /// The first declared element type, and the largest declared extents.
    Declared,
    /// Those of the lead input, which carries tensors.
    Input,
    /// Computed from the settings and the content of the lead input, which a source does not have. Returns the message if
    /// that is impossible.
    By(TensorBy),
}

/// Computes the element type and the extents of a tensor output.
pub type TensorBy = fn(&SettingValues, Option<&Content>) -> Result<(DType, Vec<u32>), String>;

/// The rule for an output's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateRule {
    /// The lead input's rate divided by [`Entry::every`].
    Input,
    /// The value of this setting.
    Setting(&'static str),
    /// The rate that probing the source found, otherwise this setting.
    Probed(Option<&'static str>),
}

/// A number of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frames {
    Fixed(u32),
    /// The value of this setting.
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

/// A condition over settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Never,
    Always,
    /// True if this setting is true.
    Setting(&'static str),
    /// True if this setting is an address whose protocol sends in real time, such as `rtsp://`.
    LiveAddress(&'static str),
}

/// Protocols that send in real time and cannot wait.
const LIVE_PROTOCOLS: [&str; 8] = ["rtsp", "rtsps", "udp", "rtp", "srt", "rtmp", "rtmps", "tcp"];

/// Whether an address has a protocol that sends in real time.
pub fn is_live_address(address: &str) -> bool {
    let scheme = address.split_once("://").map_or("", |(scheme, _)| scheme);
    LIVE_PROTOCOLS.iter().any(|live| scheme.eq_ignore_ascii_case(live))
}

impl When {
    /// True if the condition holds under these settings.
    pub fn under(self, settings: &SettingValues) -> bool {
        match self {
            When::Never => false,
            When::Always => true,
            When::Setting(key) => settings.flag(key),
            When::LiveAddress(key) => settings.text(key).is_some_and(is_live_address),
        }
    }
}

impl Entry {
    /// A filter with one video input, one video output, an implementation for each space and a pointwise kernel. Most
    /// entries are copies of this entry with some fields changed.
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
        space_by: None,
        kernel: KernelRule::Always(KernelDesc::POINTWISE),
        work: Work { class: Class::Pixel, units: Units::PerPixel(1.0) },
        work_when: &[],
        check: |_| Ok(()),
        small: None,
        network: None,
        folds: false,
        delay: Frames::Fixed(0),
        keeps_times: When::Never,
        every: Frames::Fixed(1),
        stateful: false,
        blocking: false,
        live: When::Never,
        presents: false,
        holds: Frames::Fixed(0),
        equal_sizes: false,
        keeps_lines: |_, kernel| kernel.is_none_or(|kernel| kernel.works_in_place()),
        writes_tags: false,
        transfer: None,
    };

    /// A source that reads into host memory.
    pub const SOURCE: Entry = Entry {
        family: Family::Source,
        inputs: &[],
        spaces: &[Space::Cpu],
        kernel: KernelRule::None,
        work: Work { class: Class::Move, units: Units::PerPixel(1.0) },
        blocking: true,
        ..Entry::FILTER
    };

    /// A sink that writes from host memory.
    pub const SINK: Entry = Entry { family: Family::Sink, inputs: &[Input::VIDEO], outputs: &[], ..Entry::SOURCE };

    /// A handler that passes on unchanged what it is given, in either space.
    pub const CONTROL: Entry = Entry {
        family: Family::Control,
        inputs: &[Input::EVERY],
        outputs: &[Output::PASSED],
        kernel: KernelRule::None,
        work: Work::NONE,
        ..Entry::FILTER
    };

    /// The handler as written in its example: kind and settings, such as `threshold level=0.4`.
    pub fn in_example(&self) -> &'static str {
        let mut quoted = false;
        let mut pieces = self.example.split(|c: char| {
            quoted ^= c == '"';
            !quoted && matches!(c, '!' | ';')
        });
        let is_this = |piece: &&str| piece.split_whitespace().next() == Some(self.name);
        pieces.by_ref().map(str::trim).find(is_this).unwrap_or(self.name)
    }

    /// The index of this input port.
    pub fn input(&self, name: &str) -> Option<usize> {
        self.inputs.iter().position(|p| p.name == name)
    }

    /// The index of this output port.
    pub fn output(&self, name: &str) -> Option<usize> {
        self.outputs.iter().position(|p| p.name == name)
    }

    pub fn setting(&self, name: &str) -> Option<&'static Setting> {
        self.settings.iter().find(|s| s.name == name)
    }

    pub fn work_under(&self, settings: &SettingValues) -> Work {
        let case = self.work_when.iter().find(|(key, word, _)| settings.word(key) == Some(*word));
        case.map_or(self.work, |(_, _, work)| *work)
    }

    /// Frames by which the output lags behind the input under these settings.
    pub fn latency(&self, settings: &SettingValues) -> u32 {
        if self.keeps_times.under(settings) { self.delay.under(settings) } else { 0 }
    }

    /// The spaces that the handler offers under these settings.
    pub fn spaces_under(&self, settings: &SettingValues) -> SpaceSet {
        let word = self.space_by.and_then(|key| settings.word(key));
        self.spaces
            .iter()
            .copied()
            .filter(|space| word.is_none_or(|word| word == "any" || word == space.name()))
            .collect()
    }

    /// True if the handler is neither a source nor a sink.
    pub fn is_between_ends(&self) -> bool {
        !self.inputs.is_empty() && !self.outputs.is_empty()
    }

    /// True if the handler has an implementation for this space.
    pub fn offers(&self, space: Space) -> bool {
        self.spaces.contains(&space)
    }
}
