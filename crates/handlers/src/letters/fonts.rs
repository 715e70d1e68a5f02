//! Fonts: shapes runs of text with the chosen font, the embedded font or the system fonts, in that order.
//!
//! System fonts are loaded only if a text has characters that neither the chosen nor the embedded font has, since
//! loading system fonts takes tens of milliseconds. A character that no font has is drawn as the box that the chosen
//! font has for missing characters.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use cosmic_text::fontdb::{self, Database, Language, Source, Style, Weight};
use cosmic_text::{
    Attrs, Buffer, CacheKey, CacheKeyFlags, Family, FontSystem, Metrics, Shaping, SwashCache, SwashContent, Wrap,
};
use vramp_files::open_regular;

use super::LettersError;

static EMBEDDED: &[u8] = include_bytes!("../../assets/DejaVuSans.ttf");

/// The name under which the chosen font is loaded, so that no other font matches.
const CHOSEN: &str = "vramp chosen";

/// Limit for a font file; the largest font files in use, with all Chinese characters, have some 100 MB.
const MOST_FONT_BYTES: u64 = 512 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GlyphKey(CacheKey);

/// A placed glyph. Its origin is `x` to the right of the start of the run, and `y` below the baseline of the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shaped {
    pub(crate) key: GlyphKey,
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// A shaped line of text. The first glyph need not belong to the first character.
#[derive(Debug, Clone, Default)]
pub(crate) struct ShapedRun {
    pub(crate) glyphs: Vec<Shaped>,
    pub(crate) advance: f64,
    pub(crate) right_to_left: bool,
}

/// The coverage of a glyph, row by row, and the offset of the upper left corner of the mask from the origin of the
/// glyph.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mask {
    pub(crate) left: i32,
    pub(crate) up: i32,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) coverage: Vec<u8>,
}

/// The fonts of one handler.
pub(crate) struct Fonts {
    system: FontSystem,
    scaler: SwashCache,
    /// Line height of the chosen font at size 1.
    line: f64,
    looked: bool,
}

impl Fonts {
    pub(crate) fn embedded() -> Fonts {
        let mut db = Database::new();
        let id = choose(&mut db, Source::Binary(Arc::new(EMBEDDED))).expect("the embedded font is valid");
        Fonts::of(db, id).expect("the embedded font is valid")
    }

    /// The font of a file, or the embedded font if there is no path. Characters that the file lacks come from the
    /// embedded font.
    pub(crate) fn of_file(path: Option<&str>) -> Result<Fonts, LettersError> {
        let Some(path) = path else { return Ok(Fonts::embedded()) };
        let no_font = |problem: String| LettersError::NoFont { path: path.to_owned(), problem };
        let unreadable = |error| LettersError::Unreadable { path: path.to_owned(), error };
        let found = fs::metadata(Path::new(path)).map_err(unreadable)?;
        if !found.is_file() {
            return Err(no_font("not a file".to_owned()));
        }
        if found.len() > MOST_FONT_BYTES {
            return Err(no_font(format!("{} bytes long, more than {MOST_FONT_BYTES}", found.len())));
        }
        let mut bytes = Vec::new();
        let font = open_regular(Path::new(path)).map_err(unreadable)?;
        font.take(MOST_FONT_BYTES).read_to_end(&mut bytes).map_err(unreadable)?;
        let count = bytes.len();
        let other = || {
            no_font(if count == 0 { "empty".to_owned() } else { format!("{count} bytes long, but not a valid font") })
        };
        let mut db = Database::new();
        let id = choose(&mut db, Source::Binary(Arc::new(bytes))).ok_or_else(other)?;
        db.load_font_source(Source::Binary(Arc::new(EMBEDDED)));
        Fonts::of(db, id).ok_or_else(other)
    }

    /// `None` if the font cannot be used.
    fn of(db: Database, id: fontdb::ID) -> Option<Fonts> {
        // The locale decides which of several fonts draws Chinese characters, so the locale must be the same on every
        // machine.
        let mut system = FontSystem::new_with_locale_and_db("en-US".to_owned(), db);
        let font = system.get_font(id, Weight::NORMAL)?;
        let metrics = font.metrics();
        let height = f64::from(metrics.ascent) - f64::from(metrics.descent) + f64::from(metrics.leading);
        let line = height / f64::from(metrics.units_per_em);
        // A font without a line height gets a usual line height.
        let line = if line.is_finite() && line > 0.0 { line } else { 1.2 };
        Some(Fonts { system, scaler: SwashCache::new(), line, looked: false })
    }

    /// The distance between two baselines in pixels.
    pub(crate) fn line_px(&self, size_px: u32) -> f64 {
        self.line * f64::from(size_px)
    }

    /// Shapes text without line breaks.
    pub(crate) fn shape(&mut self, text: &str, size_px: u32) -> ShapedRun {
        let (run, missing) = self.shape_once(text, size_px);
        if !missing || self.looked {
            return run;
        }
        self.looked = true;
        self.system.db_mut().load_system_fonts();
        self.shape_once(text, size_px).0
    }

    /// A shaped run, and whether characters are missing in the fonts.
    fn shape_once(&mut self, text: &str, size_px: u32) -> (ShapedRun, bool) {
        let size = size_px as f32;
        let mut buffer = Buffer::new_empty(Metrics::new(size, size));
        buffer.set_wrap(Wrap::None);
        buffer.set_text(text, &Attrs::new().family(Family::Name(CHOSEN)), Shaping::Advanced, None);
        buffer.shape_until_scroll(&mut self.system, false);
        let (mut run, mut missing) = (ShapedRun::default(), false);
        for laid in buffer.layout_runs() {
            // The left end of a right-to-left line may be anywhere, so it is moved to the start of the run.
            let left = laid.glyphs.iter().map(|glyph| glyph.x).fold(f32::INFINITY, f32::min);
            run.right_to_left |= laid.rtl;
            for glyph in laid.glyphs {
                let key = CacheKey::new(
                    glyph.font_id,
                    glyph.glyph_id,
                    glyph.font_size,
                    (0.0, 0.0),
                    glyph.font_weight,
                    CacheKeyFlags::empty(),
                );
                missing |= glyph.glyph_id == 0;
                run.glyphs.push(Shaped {
                    key: GlyphKey(key.0),
                    x: run.advance + f64::from(glyph.x - left) + f64::from(glyph.x_offset * size),
                    y: f64::from(glyph.y) - f64::from(glyph.y_offset * size),
                });
            }
            let right = laid.glyphs.iter().map(|glyph| glyph.x + glyph.w).fold(f32::NEG_INFINITY, f32::max);
            run.advance += f64::from((right - left).max(0.0));
        }
        (run, missing)
    }

    /// The coverage of a glyph; an empty mask if the glyph has no pixels. The coverage of a coloured glyph is its
    /// opacity.
    pub(crate) fn mask(&mut self, key: GlyphKey) -> Mask {
        let Some(image) = self.scaler.get_image_uncached(&mut self.system, key.0) else { return Mask::default() };
        let (width, height) = (image.placement.width, image.placement.height);
        let coverage: Vec<u8> = match image.content {
            SwashContent::Mask => image.data,
            SwashContent::Color => image.data.chunks_exact(4).map(|pixel| pixel[3]).collect(),
            SwashContent::SubpixelMask => image.data.chunks_exact(4).map(|pixel| pixel[1]).collect(),
        };
        if coverage.len() as u64 != u64::from(width) * u64::from(height) {
            return Mask::default();
        }
        Mask { left: image.placement.left, up: image.placement.top, width, height, coverage }
    }
}

/// Loads a font, or the first font of a collection, under the name [`CHOSEN`]. The weight, style and stretch of the
/// font are set to normal, because text requests normal values and would not match a font with other values.
fn choose(db: &mut Database, source: Source) -> Option<fontdb::ID> {
    let ids = db.load_font_source(source);
    let mut face = db.face(*ids.first()?)?.clone();
    ids.iter().for_each(|id| db.remove_face(*id));
    face.families = vec![(CHOSEN.to_owned(), Language::English_UnitedStates)];
    face.weight = Weight::NORMAL;
    face.style = Style::Normal;
    face.stretch = fontdb::Stretch::Normal;
    Some(db.push_face_info(face))
}
