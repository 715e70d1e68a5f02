//! The content of an output: evaluates the format, size and rate rules of an entry over settings and the lead input.

use crate::catalog::{Entry, FormatRule, Output, PortMedia, Probed, RateRule, SettingValues, SizeRule, TensorRule};
use crate::words::{
    Caps, Content, DType, Format, FrameDesc, Interval, MAX_RANK, Media, Rate, Size, SpaceSet, TensorDesc,
};

/// The reason a rule could not be evaluated, and the remedy.
#[derive(Debug)]
pub(super) struct ShapeProblem {
    pub problem: String,
    pub fix: String,
}

/// The data that the rules depend on.
pub(super) struct ShapeOf<'a> {
    pub entry: &'static Entry,
    pub settings: &'a SettingValues,
    pub probed: &'a Probed,
    pub lead: Option<&'a Content>,
}

impl ShapeOf<'_> {
    /// The content of the output. If several formats are declared, `choose` picks a format.
    pub fn content(&self, output: &Output, choose: impl FnOnce(&[Format]) -> Format) -> Result<Content, ShapeProblem> {
        let rate = self.rate(output.rate)?;
        match output.media {
            PortMedia::Data { bytes } => Ok(Content::Data { bytes, rate }),
            PortMedia::Audio => Ok(Content::Audio { rate }),
            PortMedia::Every { .. } => match self.lead {
                Some(Content::Tensor(tensor)) => Ok(Content::Tensor(TensorDesc { rate, ..tensor.clone() })),
                Some(Content::Data { bytes, .. }) => Ok(Content::Data { bytes: *bytes, rate }),
                _ => self.video(output, &[], rate, choose),
            },
            PortMedia::Tensor { dtypes, dims } => {
                let (dtype, dims) = self.tensor(output.tensor, dtypes, dims)?;
                Ok(Content::Tensor(TensorDesc { dtype, dims, rate }))
            }
            PortMedia::Video { formats, .. } => self.video(output, formats, rate, choose),
        }
    }

    fn video(
        &self,
        output: &Output,
        formats: &[Format],
        rate: Option<Rate>,
        choose: impl FnOnce(&[Format]) -> Format,
    ) -> Result<Content, ShapeProblem> {
        let format = match output.format {
            FormatRule::Declared if formats.len() == 1 => formats[0],
            FormatRule::Declared => choose(formats),
            FormatRule::Input => self.lead_frame()?.format,
            FormatRule::Setting(key) => self.settings.format(key).ok_or_else(|| missing(key))?,
            FormatRule::Probed => self.probed.format.ok_or_else(|| missing("format"))?,
        };
        Ok(Content::Video(FrameDesc { format, size: self.size(output.size)?, rate }))
    }

    fn tensor(
        &self,
        rule: TensorRule,
        dtypes: &[DType],
        dims: Option<&[Interval<u32>]>,
    ) -> Result<(DType, Vec<u32>), ShapeProblem> {
        let shape = match (rule, self.lead) {
            (TensorRule::Declared, _) => {
                let media = Media::Tensor { dtypes: dtypes.iter().copied().collect(), dims: dims.map(<[_]>::to_vec) };
                match Caps::one(SpaceSet::ALL, media).fixate() {
                    Some((_, Content::Tensor(tensor))) => (tensor.dtype, tensor.dims),
                    _ => unreachable!("the catalogue refuses tensor ports that allow nothing"),
                }
            }
            (TensorRule::Input, Some(Content::Tensor(tensor))) => (tensor.dtype, tensor.dims.clone()),
            (TensorRule::By(by), lead) => by(self.settings, lead).map_err(|problem| ShapeProblem {
                problem,
                fix: "change the settings, or the handlers before its lead input".to_owned(),
            })?,
            (TensorRule::Input, _) => {
                return Err(ShapeProblem {
                    problem: "the shape of its output depends on its lead input, which does not carry that".to_owned(),
                    fix: "link its lead input to a port of the right type".to_owned(),
                });
            }
        };
        if shape.1.len() > MAX_RANK {
            return Err(ShapeProblem {
                problem: format!("its output would have {} axes", shape.1.len()),
                fix: format!("a tensor has at most {MAX_RANK} axes"),
            });
        }
        Ok(shape)
    }

    fn size(&self, rule: SizeRule) -> Result<Size, ShapeProblem> {
        match rule {
            SizeRule::Input => Ok(self.lead_frame()?.size),
            SizeRule::Setting(key) => self.settings.size(key).ok_or_else(|| missing(key)),
            SizeRule::SettingOrInput(key) => match self.settings.size(key) {
                Some(size) => Ok(size),
                None => Ok(self.lead_frame()?.size),
            },
            SizeRule::SettingOrScaled(size_key, scale_key) => {
                if let Some(size) = self.settings.size(size_key) {
                    return Ok(size);
                }
                let scale = self.settings.number(scale_key).ok_or_else(|| missing(size_key))?;
                let from = self.lead_frame()?.size;
                let side = |n: u32| (f64::from(n) * scale + 0.5).floor().max(1.0);
                let (width, height) = (side(from.width), side(from.height));
                Size::new(width as u32, height as u32)
                    .filter(|_| width.max(height) <= f64::from(Size::MAX_SIDE))
                    .ok_or_else(|| ShapeProblem {
                        problem: format!("{scale_key}={scale} makes {from} into {width}x{height}"),
                        fix: format!("choose a smaller {scale_key}: a side has at most {} pixels", Size::MAX_SIDE),
                    })
            }
            SizeRule::Cut(x_key, y_key, size_key) => {
                let size = self.settings.size(size_key).ok_or_else(|| missing(size_key))?;
                let from = self.lead_frame()?.size;
                let at = |key: &str| self.settings.int(key).unwrap_or(0);
                let (x, y) = (at(x_key), at(y_key));
                let fits = |at: i64, part: u32, whole: u32| at >= 0 && at + i64::from(part) <= i64::from(whole);
                if fits(x, size.width, from.width) && fits(y, size.height, from.height) {
                    return Ok(size);
                }
                Err(ShapeProblem {
                    problem: format!("{size} at {x},{y} does not lie within the input, which is {from}"),
                    fix: format!("choose {x_key}, {y_key} and {size_key} within {from}"),
                })
            }
            SizeRule::Turned(key) => {
                let from = self.lead_frame()?.size;
                let quarter = matches!(self.settings.word(key), Some("90" | "270"));
                Ok(if quarter { Size { width: from.height, height: from.width } } else { from })
            }
            SizeRule::Probed(key) => {
                self.probed.size.or_else(|| self.settings.size(key?)).ok_or_else(|| missing(key.unwrap_or("size")))
            }
        }
    }

    fn rate(&self, rule: RateRule) -> Result<Option<Rate>, ShapeProblem> {
        match rule {
            RateRule::Setting(key) => Ok(self.settings.rate(key)),
            RateRule::Probed(key) => Ok(self.probed.rate.or_else(|| self.settings.rate(key?))),
            RateRule::Input => {
                let every = self.entry.every.under(self.settings).max(1);
                match self.lead.and_then(Content::rate) {
                    None => Ok(None),
                    Some(rate) => rate.divided(every).map(Some).ok_or_else(|| ShapeProblem {
                        problem: format!("one frame in {every} at {rate} fps is a rate too small to represent"),
                        fix: "keep more frames".to_owned(),
                    }),
                }
            }
        }
    }

    fn lead_frame(&self) -> Result<&FrameDesc, ShapeProblem> {
        self.lead.and_then(Content::frame).ok_or_else(|| ShapeProblem {
            problem: "its output depends on the frames of its lead input, which carries no video".to_owned(),
            fix: "link its lead input to video".to_owned(),
        })
    }
}

fn missing(key: &str) -> ShapeProblem {
    ShapeProblem { problem: format!("{key} is not known"), fix: format!("set {key}") }
}
