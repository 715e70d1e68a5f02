//! Capability sets, which describe what a port can carry, and the operations on these sets: intersection, union,
//! fixation (the choice of one point) and the explanation of an empty intersection.
//!
//! This module only reports the dimensions in which two ports are incompatible; negotiation inserts the converters.
//!
//! Invariants: a set is fully described by the points that it contains; a point is one content in one space. Operations
//! are defined on these points. No result depends on the order in which alternatives were given.

use std::collections::BTreeSet;
use std::fmt;

use super::{Content, DType, Format, FrameDesc, Rate, Size, Space, SpaceSet, TensorDesc};

/// An inclusive range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval<T> {
    pub min: T,
    pub max: T,
}

impl<T: Copy + Ord> Interval<T> {
    /// Both ends are included.
    pub const fn new(min: T, max: T) -> Interval<T> {
        Interval { min, max }
    }

    pub const fn only(value: T) -> Interval<T> {
        Interval { min: value, max: value }
    }

    pub fn contains(&self, value: T) -> bool {
        self.min <= value && value <= self.max
    }

    fn meet(self, other: Interval<T>) -> Option<Interval<T>> {
        let met = Interval { min: self.min.max(other.min), max: self.max.min(other.max) };
        (met.min <= met.max).then_some(met)
    }

    fn covers(self, other: Interval<T>) -> bool {
        self.min <= other.min && other.max <= self.max
    }
}

impl<T: fmt::Display + PartialEq> fmt::Display for Interval<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max { write!(f, "{}", self.min) } else { write!(f, "{}..{}", self.min, self.max) }
    }
}

/// Every width or height that a frame can have.
pub const ANY_SIDE: Interval<u32> = Interval::new(1, Size::MAX_SIDE);

/// The type of a port without its details.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortType {
    Video,
    Tensor,
    /// A few values for the host.
    Data,
    Audio,
}

impl PortType {
    /// The word used in text.
    pub const fn name(self) -> &'static str {
        match self {
            PortType::Video => "video",
            PortType::Tensor => "tensor",
            PortType::Data => "data",
            PortType::Audio => "audio",
        }
    }
}

impl fmt::Display for PortType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The media that a port can carry, as ranges.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Media {
    /// Frames of any of these formats, sizes and rates.
    Video {
        formats: BTreeSet<Format>,
        width: Interval<u32>,
        height: Interval<u32>,
        /// `None` means any rate, including an unknown rate.
        rate: Option<Interval<Rate>>,
    },
    Tensor {
        dtypes: BTreeSet<DType>,
        /// Extents along each axis; `None` means any rank.
        dims: Option<Vec<Interval<u32>>>,
    },
    Data,
    Audio,
}

impl Media {
    pub fn port_type(&self) -> PortType {
        match self {
            Media::Video { .. } => PortType::Video,
            Media::Tensor { .. } => PortType::Tensor,
            Media::Data => PortType::Data,
            Media::Audio => PortType::Audio,
        }
    }

    /// Video of these formats at any size and rate.
    pub fn video(formats: impl IntoIterator<Item = Format>) -> Media {
        Media::Video { formats: formats.into_iter().collect(), width: ANY_SIDE, height: ANY_SIDE, rate: None }
    }

    /// Exactly this content.
    pub fn exactly(content: &Content) -> Media {
        match content {
            Content::Video(frame) => Media::Video {
                formats: BTreeSet::from([frame.format]),
                width: Interval::only(frame.size.width),
                height: Interval::only(frame.size.height),
                rate: frame.rate.map(Interval::only),
            },
            Content::Tensor(tensor) => Media::Tensor {
                dtypes: BTreeSet::from([tensor.dtype]),
                dims: Some(tensor.dims.iter().map(|d| Interval::only(*d)).collect()),
            },
            Content::Data { .. } => Media::Data,
            Content::Audio { .. } => Media::Audio,
        }
    }
}

/// A dimension in which two capability sets can be incompatible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    /// Video, tensor, data or audio.
    PortType,
    Space,
    Format,
    /// Width or height.
    Size,
    Rate,
    DType,
    /// Extents of a tensor.
    Dims,
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dimension::PortType => "type",
            Dimension::Space => "memory space",
            Dimension::Format => "format",
            Dimension::Size => "size",
            Dimension::Rate => "rate",
            Dimension::DType => "element type",
            Dimension::Dims => "shape",
        })
    }
}

/// One alternative: any of these spaces with any of this media.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cap {
    pub spaces: SpaceSet,
    pub media: Media,
}

impl Cap {
    fn is_empty(&self) -> bool {
        self.spaces.is_empty()
            || match &self.media {
                Media::Video { formats, width, height, rate } => {
                    formats.is_empty()
                        || width.min > width.max
                        || height.min > height.max
                        || rate.is_some_and(|r| r.min > r.max)
                }
                Media::Tensor { dtypes, dims } => dtypes.is_empty() || dims.iter().flatten().any(|d| d.min > d.max),
                Media::Data | Media::Audio => false,
            }
    }

    /// The intersection of two alternatives, or every dimension in which the two are incompatible.
    fn meet(&self, other: &Cap) -> Result<Cap, Vec<Dimension>> {
        let mut missed = Vec::new();
        let spaces = self.spaces.intersect(other.spaces);
        if spaces.is_empty() {
            missed.push(Dimension::Space);
        }
        let media = match (&self.media, &other.media) {
            (
                Media::Video { formats: fa, width: wa, height: ha, rate: ra },
                Media::Video { formats: fb, width: wb, height: hb, rate: rb },
            ) => {
                let formats: BTreeSet<_> = fa.intersection(fb).copied().collect();
                if formats.is_empty() {
                    missed.push(Dimension::Format);
                }
                let (width, height) = (wa.meet(*wb), ha.meet(*hb));
                if width.is_none() || height.is_none() {
                    missed.push(Dimension::Size);
                }
                let rate = match (ra, rb) {
                    (Some(a), Some(b)) => {
                        let met = a.meet(*b);
                        if met.is_none() {
                            missed.push(Dimension::Rate);
                        }
                        met
                    }
                    (one, other) => one.or(*other),
                };
                Media::Video { formats, width: width.unwrap_or(*wa), height: height.unwrap_or(*ha), rate }
            }
            (Media::Tensor { dtypes: ta, dims: da }, Media::Tensor { dtypes: tb, dims: db }) => {
                let dtypes: BTreeSet<_> = ta.intersection(tb).copied().collect();
                if dtypes.is_empty() {
                    missed.push(Dimension::DType);
                }
                let dims = match (da, db) {
                    (Some(a), Some(b)) => {
                        let met: Option<Vec<_>> =
                            (a.len() == b.len()).then(|| a.iter().zip(b).map(|(a, b)| a.meet(*b)).collect()).flatten();
                        if met.is_none() {
                            missed.push(Dimension::Dims);
                        }
                        met
                    }
                    (one, other) => one.clone().or_else(|| other.clone()),
                };
                Media::Tensor { dtypes, dims }
            }
            (Media::Data, Media::Data) => Media::Data,
            (Media::Audio, Media::Audio) => Media::Audio,
            _ => {
                missed.push(Dimension::PortType);
                Media::Data
            }
        };
        if missed.is_empty() { Ok(Cap { spaces, media }) } else { Err(missed) }
    }

    fn covers(&self, other: &Cap) -> bool {
        self.spaces.intersect(other.spaces) == other.spaces
            && match (&self.media, &other.media) {
                (
                    Media::Video { formats: fa, width: wa, height: ha, rate: ra },
                    Media::Video { formats: fb, width: wb, height: hb, rate: rb },
                ) => {
                    fa.is_superset(fb)
                        && wa.covers(*wb)
                        && ha.covers(*hb)
                        && ra.is_none_or(|a| rb.is_some_and(|b| a.covers(b)))
                }
                (Media::Tensor { dtypes: ta, dims: da }, Media::Tensor { dtypes: tb, dims: db }) => {
                    ta.is_superset(tb)
                        && da.as_ref().is_none_or(|a| {
                            db.as_ref()
                                .is_some_and(|b| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.covers(*b)))
                        })
                }
                (Media::Data, Media::Data) | (Media::Audio, Media::Audio) => true,
                _ => false,
            }
    }

    /// True if this alternative allows the content in the space. Content of unknown rate needs an alternative that
    /// allows any rate.
    fn contains(&self, space: Space, content: &Content) -> bool {
        self.covers(&Cap { spaces: SpaceSet::only(space), media: Media::exactly(content) })
    }
}

impl fmt::Display for Cap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.media {
            Media::Video { formats, width, height, rate } => {
                let names: Vec<_> = formats.iter().map(|f| f.name()).collect();
                write!(f, "{}", if names.is_empty() { "no format".to_owned() } else { names.join("|") })?;
                if (*width, *height) != (ANY_SIDE, ANY_SIDE) {
                    write!(f, " {width}x{height}")?;
                }
                if let Some(rate) = rate {
                    write!(f, " at {rate} fps")?;
                }
            }
            Media::Tensor { dtypes, dims } => {
                let names: Vec<_> = dtypes.iter().map(|d| d.name()).collect();
                write!(f, "tensor {}", names.join("|"))?;
                if let Some(dims) = dims {
                    let dims: Vec<_> = dims.iter().map(ToString::to_string).collect();
                    write!(f, " [{}]", dims.join(", "))?;
                }
            }
            Media::Data => f.write_str("data")?,
            Media::Audio => f.write_str("audio")?,
        }
        write!(f, " in {}", self.spaces)
    }
}

/// A capability set: a union of alternatives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Caps(Vec<Cap>);

impl Caps {
    /// The empty set.
    pub const NONE: Caps = Caps(Vec::new());

    /// The set of these alternatives, without those that are empty or covered by another alternative.
    pub fn any_of(caps: impl IntoIterator<Item = Cap>) -> Caps {
        let mut kept: Vec<Cap> = caps.into_iter().filter(|c| !c.is_empty()).collect();
        kept.sort();
        kept.dedup();
        let covered: Vec<bool> = kept
            .iter()
            .enumerate()
            .map(|(i, c)| kept.iter().enumerate().any(|(j, other)| i != j && other.covers(c)))
            .collect();
        let mut covered = covered.into_iter();
        kept.retain(|_| !covered.next().expect("one verdict per alternative"));
        Caps(kept)
    }

    /// A set with one alternative.
    pub fn one(spaces: SpaceSet, media: Media) -> Caps {
        Caps::any_of([Cap { spaces, media }])
    }

    /// The alternatives of the type of this content; all alternatives if none is of that type.
    #[must_use]
    pub fn of_type(self, content: &Content) -> Caps {
        let wanted = Media::exactly(content).port_type();
        if !self.0.iter().any(|cap| cap.media.port_type() == wanted) {
            return self;
        }
        Caps(self.0.into_iter().filter(|cap| cap.media.port_type() == wanted).collect())
    }

    /// The alternatives in a fixed order.
    pub fn alternatives(&self) -> &[Cap] {
        &self.0
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn intersect(&self, other: &Caps) -> Caps {
        Caps::any_of(self.pairs(other).filter_map(|(a, b)| a.meet(b).ok()))
    }

    #[must_use]
    pub fn union(&self, other: &Caps) -> Caps {
        Caps::any_of(self.0.iter().chain(&other.0).cloned())
    }

    /// True if the set allows this content in this space.
    pub fn contains(&self, space: Space, content: &Content) -> bool {
        self.0.iter().any(|c| c.contains(space, content))
    }

    /// The dimensions in which the two sets are incompatible, for the closest pair of alternatives. Alternatives of the
    /// same type are closer than others. The list is empty exactly if the sets intersect. If one of the sets is empty, the
    /// result is [`Dimension::PortType`].
    pub fn explain(&self, other: &Caps) -> Vec<Dimension> {
        let mut closest: Option<Vec<Dimension>> = None;
        let distance = |missed: &[Dimension]| (missed.contains(&Dimension::PortType), missed.len());
        for (a, b) in self.pairs(other) {
            match a.meet(b) {
                Ok(_) => return Vec::new(),
                Err(missed) => {
                    if closest.as_ref().is_none_or(|best| (distance(&missed), &missed) < (distance(best), best)) {
                        closest = Some(missed);
                    }
                }
            }
        }
        closest.unwrap_or_else(|| vec![Dimension::PortType])
    }

    /// Picks one point by rank: gpu before cpu, formats and element types in their listed order, the largest size, the
    /// highest rate. `None` exactly if the set is empty.
    pub fn fixate(&self) -> Option<(Space, Content)> {
        self.0.iter().map(Cap::fixate).min_by(|a, b| rank(a).cmp(&rank(b)))
    }

    fn pairs<'a>(&'a self, other: &'a Caps) -> impl Iterator<Item = (&'a Cap, &'a Cap)> {
        self.0.iter().flat_map(move |a| other.0.iter().map(move |b| (a, b)))
    }
}

/// The sort key of [`Caps::fixate`]; the smallest key wins.
type Rank = (Space, PortType, u8, std::cmp::Reverse<(u32, u32)>, std::cmp::Reverse<Option<Rate>>, Vec<u32>);

fn rank((space, content): &(Space, Content)) -> Rank {
    use std::cmp::Reverse;
    match content {
        Content::Video(f) => (
            *space,
            PortType::Video,
            f.format as u8,
            Reverse((f.size.width, f.size.height)),
            Reverse(f.rate),
            Vec::new(),
        ),
        Content::Tensor(t) => (*space, PortType::Tensor, t.dtype as u8, Reverse((0, 0)), Reverse(None), t.dims.clone()),
        Content::Data { .. } => (*space, PortType::Data, 0, Reverse((0, 0)), Reverse(None), Vec::new()),
        Content::Audio { .. } => (*space, PortType::Audio, 0, Reverse((0, 0)), Reverse(None), Vec::new()),
    }
}

impl Cap {
    fn fixate(&self) -> (Space, Content) {
        let space = self.spaces.ranked().next().expect("an empty alternative is never kept");
        let content = match &self.media {
            Media::Video { formats, width, height, rate } => Content::Video(FrameDesc {
                format: *formats.first().expect("an empty alternative is never kept"),
                size: Size { width: width.max, height: height.max },
                rate: rate.map(|r| r.max),
            }),
            Media::Tensor { dtypes, dims } => Content::Tensor(TensorDesc {
                dtype: *dtypes.first().expect("an empty alternative is never kept"),
                dims: dims.iter().flatten().map(|d| d.max).collect(),
                rate: None,
            }),
            Media::Data => Content::Data { bytes: 0, rate: None },
            Media::Audio => Content::Audio { rate: None },
        };
        (space, content)
    }
}

impl fmt::Display for Caps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("nothing");
        }
        let alternatives: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&alternatives.join(" or "))
    }
}
