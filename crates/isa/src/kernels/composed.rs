//! The kernels of pixels: every head and function, every pair of formats, fused chains, variants, and users' shaders.

use vramp::kernels::head::load_here::LOAD;
use vramp::kernels::own::Own;
use vramp::kernels::{Recipe, head, pixel};
use vramp::plan::{Format, Size, Variant};

use super::{Kernel, Work};

/// The frame of all rows.
pub(crate) const FRAME: Size = Size { width: 1920, height: 1080 };
/// The output of kernels that make a frame smaller.
pub(crate) const SMALLER: Size = Size { width: 1280, height: 720 };
/// The images of `compositor`, four of which fill a frame.
const PICTURES: usize = 3;

/// The variant of the shipped profiles of hardware.
const HARDWARE: Variant = Variant { workgroup: 64, pixels_per_invocation: 4, wide: true };

/// A recipe with the sizes for which its work is counted.
struct Row {
    name: String,
    recipe: Recipe,
    size: Size,
    variant: Variant,
}

impl Row {
    fn new(name: impl Into<String>, recipe: Recipe) -> Row {
        let size = match recipe.head.name {
            "bilinear" | "nearest" | "resample" | "crop" => SMALLER,
            "rotate" => Size { width: FRAME.height, height: FRAME.width },
            _ => FRAME,
        };
        Row { name: name.into(), recipe, size, variant: HARDWARE }
    }

    fn kernels(self) -> Vec<Kernel> {
        let Row { name, recipe, size, variant } = self;
        let shaders = recipe.shaders_as(&name, variant);
        let format = |stored: Option<&vramp::kernels::stored::StoredFormat>| stored.map_or(Format::Rgba8, |s| s.format);
        let source = if recipe.head.source { format(recipe.from).frame_bytes(FRAME) } else { 0 };
        let extra = |functions: &[vramp::kernels::Function], of: Size| {
            4 * of.pixels() * functions.iter().filter(|function| function.extra_input()).count() as u64
        };
        let made = format(recipe.into).frame_bytes(size);
        let covered = recipe.into.map_or(size.pixels(), |stored| stored.blocks(size));
        let after = extra(&recipe.after, size) + made;
        let before = extra(&recipe.before, FRAME) + source;
        // What a pass covers, in pixels, blocks or elements, and the bytes that it moves.
        let works = match recipe.head.first {
            None => vec![(covered, before + after)],
            Some(first) => {
                let kept = first.over.bytes(FRAME, size);
                let again = if first.source_again { source } else { 0 };
                vec![(first.over.size(FRAME, size).pixels(), before + kept), (covered, kept + again + after)]
            }
        };
        let passes = works.len();
        let each = shaders.into_iter().zip(works).enumerate();
        let named = each.map(|(pass, (shader, (covered, bytes)))| {
            let name = if passes == 1 { name.clone() } else { format!("{name}/{}", pass + 1) };
            let work = Work { workgroups: covered.div_ceil(u64::from(shader.per_workgroup)), bytes };
            Kernel::new(name, shader, Some(work))
        });
        named.collect()
    }
}

/// Every kernel of pixels.
pub(crate) fn composed() -> Vec<Kernel> {
    let mut rows = Vec::new();
    for head in head::ALL {
        let recipe = match head.name {
            "compositor" => Recipe::of_several(head, PICTURES),
            _ => Recipe::of(head),
        };
        rows.push(Row::new(head.name.trim_end_matches("_here"), recipe));
    }
    rows.extend(pixel::ALL.iter().map(|function| Row::new(function.name, Recipe::of(&LOAD).then(function))));
    rows.extend(chains());
    for from in Format::RANKED {
        for into in Format::RANKED {
            if from != into {
                let recipe = Recipe::of(&LOAD).reading(from).writing(into);
                rows.push(Row::new(format!("{from}-to-{into}"), recipe));
            }
        }
    }
    for variant in vramp::calibrate::variants(1024) {
        for (name, recipe) in tuned() {
            let Variant { workgroup, pixels_per_invocation: pixels, .. } = variant;
            rows.push(Row { variant, ..Row::new(format!("{name}@{workgroup}x{pixels}"), recipe) });
        }
    }
    let mut kernels: Vec<Kernel> = rows.into_iter().flat_map(Row::kernels).collect();
    kernels.extend(users());
    kernels
}

/// The kernels in which calibration compares variants.
fn tuned() -> [(&'static str, Recipe); 3] {
    [
        ("matrix", Recipe::of(&LOAD).then(&pixel::matrix::MATRIX)),
        ("flip", Recipe::of(&head::flip::FLIP)),
        ("blur", Recipe::of(&head::blur::BLUR)),
    ]
}

/// Kernels of several handlers.
fn chains() -> Vec<Row> {
    use pixel::{chromakey, curve, glyphs, gray, markers, matrix, overlay, table, threshold};
    let of = |functions: &[&'static vramp::kernels::PixelFn]| {
        functions.iter().fold(Recipe::of(&LOAD), |recipe, function| recipe.then(*function))
    };
    let demo = Recipe::of(&head::ball::BALL).then(&markers::MARKERS).then(&curve::CURVE).then(&glyphs::GLYPHS);
    // contrast, brightness, gamma, saturation, invert: neighbouring tables become one.
    let tables = [&table::TABLE, &table::TABLE, &table::TABLE, &matrix::MATRIX, &table::TABLE];
    vec![
        Row::new("demo", demo),
        Row::new("chain2", of(&[&table::TABLE, &matrix::MATRIX])),
        Row::new("chain3", of(&[&gray::GRAY, &threshold::THRESHOLD, &glyphs::GLYPHS])),
        Row::new("chain5", of(&tables).folded().recipe),
        Row::new(
            "chain5-mixed",
            of(&[&matrix::MATRIX, &table::TABLE, &chromakey::CHROMAKEY, &overlay::OVERLAY, &glyphs::GLYPHS]),
        ),
        Row::new("table-before-blur", Recipe::of(&head::blur::BLUR).before_head(&table::TABLE)),
        Row::new("matrix-before-median3", Recipe::of(&head::median3::MEDIAN3).before_head(&matrix::MATRIX)),
        Row::new("nv12-blur-i420", Recipe::of(&head::blur::BLUR).reading(Format::Nv12).writing(Format::I420)),
        Row::new("nv12-bilinear", Recipe::of(&head::bilinear::BILINEAR).reading(Format::Nv12)),
    ]
}

/// Users' shaders in vramp's wrapper: a pixel function and a whole kernel.
fn users() -> Vec<Kernel> {
    let texts = [
        ("user-vignette", include_str!("../../../../examples/shaders/vignette.wgsl")),
        ("user-ripple", include_str!("../../../../examples/shaders/ripple.wgsl")),
        ("user-box3", include_str!("../../../../examples/shaders/box3.wgsl")),
    ];
    let each = texts.into_iter().flat_map(|(name, text)| {
        let recipe = match Own::read(text).expect("tests run the examples") {
            Own::Pixel(function) => Recipe::of(&LOAD).then(&function),
            Own::Whole(kernel) => Recipe::whole(&kernel),
        };
        Row::new(name, recipe).kernels()
    });
    each.collect()
}
