//! Lesson 10: finding and drawing. `spot` finds the bright object in a picture with tensor ops and sends its position as
//! data. `boxes` draws a box there, and `tell` attaches the position to the picture as notes, which `text` shows. If the
//! handlers run on the GPU, the pictures stay there; of each frame, only the 32 bytes of data come to the host.
//!
//! `cargo run --release --example 10_detections`

use vramp::kernels::{PixelFn, RowArgs};
use vramp::plan::Content;
use vramp::plan::catalog::{Input, Output, PortMedia};
use vramp::prelude::*;
use vramp::tensor::{ChannelLayout, Context, Expr, ImageSpec, Reduction, Tensor, TensorError};

/// Half the side of a box, in pixels.
const HALF: f32 = 44.0;

/// Finds the centre of everything that is bright. Data is an array of f32: the kind (1 for detections), the number of
/// detections, and for each of them left, top, right, bottom, score and class.
#[derive(Default)]
struct Spot {
    constants: Option<Constants>,
}

struct Constants {
    /// The position of each column and of each row, computed once.
    columns: Tensor,
    rows: Tensor,
    heading: Tensor,
    around: Tensor,
    score_and_class: Tensor,
}

static SPOT: Entry = Entry {
    name: "spot",
    about: "finds the bright object in a picture",
    example: "pattern ! spot ! probe ! null",
    outputs: &[Output { media: PortMedia::Data { bytes: 8 * 4 }, ..Output::DATA }],
    kernel: KernelRule::None,
    ..Entry::FILTER
};

impl TensorHandler for Spot {
    fn start(&mut self, context: &Context, start: &mut StartContext<'_>) -> Result<(), TensorError> {
        let size = start.inputs()[0].as_ref().and_then(Content::frame).map_or(Size { width: 1, height: 1 }, |f| f.size);
        let steps = |count: u32| (0..count).map(|at| at as f32).collect::<Vec<f32>>();
        let (width, height) = (size.width as usize, size.height as usize);
        self.constants = Some(Constants {
            columns: context.tensor(&steps(size.width), &[1, width, 1])?,
            rows: context.tensor(&steps(size.height), &[height, 1, 1])?,
            heading: context.tensor(&[1.0_f32, 1.0], &[2])?,
            around: context.tensor(&[-HALF, -HALF, HALF, HALF], &[4])?,
            score_and_class: context.tensor(&[1.0_f32, 0.0], &[2])?,
        });
        Ok(())
    }

    fn process(&mut self, inputs: &[Tensor]) -> Result<Tensor, TensorError> {
        let Constants { columns, rows, heading, around, score_and_class } =
            self.constants.as_ref().expect("made at the start");
        let gray = ImageSpec { channels: "r".to_owned(), layout: ChannelLayout::Nhwc, ..ImageSpec::default() };
        let red = inputs[0].image_to_tensor(&gray)?;
        let red = red.reshape(&red.shape().lengths()[1..])?;
        let weight = red.lazy().sub(0.6).relu().run()?;
        let sum = weight.lazy().reduce_all(Reduction::Sum).add(1e-6).run()?;
        let centre =
            |positions: &Tensor| weight.lazy().mul(positions).reduce_all(Reduction::Sum).div(&sum).reshape(&[1]).run();
        let (x, y) = (centre(columns)?, centre(rows)?);
        let bounds = Expr::concat(&[x.lazy(), y.lazy(), x.lazy(), y.lazy()], 0).add(around);
        Expr::concat(&[heading.lazy(), bounds, score_and_class.lazy()], 0).run()
    }
}

/// Draws the outline of a box, for CPU and GPU. The parameters are left, top, right and bottom.
static OUTLINE: PixelFn = PixelFn {
    name: "outline",
    wgsl: "fn outline(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {
        let low = vec2<i32>(int(k), int(k + 1u));
        let high = vec2<i32>(int(k + 2u), int(k + 3u));
        let inside = all(at >= low) && all(at <= high);
        let edge = any(at < low + vec2<i32>(3)) || any(at > high - vec2<i32>(3));
        return select(c, vec4<i32>(255, 160, 0, 255), inside && edge);
    }",
    words: 4,
    row: |args: &RowArgs<'_>, pixels: &mut [[u8; 4]]| {
        let [left, top, right, bottom] = [0, 1, 2, 3].map(|at| args.frame.words[at].cast_signed());
        let y = args.y.cast_signed();
        for (pixel, x) in pixels.iter_mut().zip(args.x.cast_signed()..) {
            let inside = x >= left && y >= top && x <= right && y <= bottom;
            let edge = x < left + 3 || y < top + 3 || x > right - 3 || y > bottom - 3;
            if inside && edge {
                *pixel = [255, 160, 0, 255];
            }
        }
    },
    ..PixelFn::PLAIN
};

/// Draws a box around the first detection. A pixel handler may have inputs of data besides its pictures.
struct Boxes;

static BOXES: Entry = Entry {
    name: "boxes",
    about: "draws a box around what was found",
    example: "pattern name=p ! boxes name=b ! null; p. ! spot ! b.data",
    inputs: &[Input::VIDEO, Input::DATA],
    ..Entry::FILTER
};

impl PixelHandler for Boxes {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Function(&OUTLINE)]
    }

    fn frame(&mut self, info: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        let found = info.data(1).and_then(|data| data.detections().next());
        let bounds = found.map_or([1, 1, 0, 0], |found| found.bounds.map(|at| at.round() as i32));
        give.part(&bounds.map(i32::cast_unsigned), &[]);
        Ok(Flow::Produced)
    }
}

/// Attaches the position to the picture as a note, which `text` can show. The pixels stay where they are.
struct Tell;

static TELL: Entry = Entry {
    name: "tell",
    about: "notes where the object is",
    example: "pattern name=p ! tell name=t ! null; p. ! spot ! t.data",
    inputs: &[Input::VIDEO, Input::DATA],
    kernel: KernelRule::None,
    ..Entry::FILTER
};

impl FrameHandler for Tell {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        if let Some(found) = call.input(1).and_then(|data| data.detections().next()) {
            call.note("x", f64::from((found.bounds[0] + HALF).round()))?;
            call.note("y", f64::from((found.bounds[1] + HALF).round()))?;
        }
        let Some(frame) = call.take(0) else { return Ok(Flow::Filtered) };
        call.send(0, frame);
        Ok(Flow::Produced)
    }

    fn leave_device(&mut self, _: &mut StartContext<'_>) -> bool {
        true // it does not touch the pixels
    }
}

/// The built-in handlers, `spot`, `boxes` and `tell`.
pub fn registry() -> Registry {
    let mut registry = vramp::registry();
    let names = "no built-in handler has one of these names";
    registry.add(&SPOT, |_| Ok(tensors(Spot::default()))).expect(names);
    registry.add(&BOXES, |_| Ok(Boxes)).expect(names);
    registry.add(&TELL, |_| Ok(Tell)).expect(names);
    registry
}

pub fn main() -> Result<(), Error> {
    let path = std::env::temp_dir().join("vramp-detections-%02d.png");
    let text = format!(
        "pattern kind=ball size=320x240 frames=40 label=false name=cam ! tell name=t ! boxes name=b ! \
         text \"{{meta.x}}, {{meta.y}}\" ! every n=39 ! png path={}
         cam. ! spot name=s ! t.data; s. ! b.data",
        path.display()
    );
    let mut pipeline = Pipeline::parse(text).registry(&registry()).build()?;
    println!("{}", pipeline.plan());
    let report = pipeline.run()?;
    let counters = report.counters;
    println!(
        "{} frames, {} downloads, {} bytes; {}",
        report.frames_in,
        counters.downloads,
        counters.transfer_bytes,
        path.display()
    );
    Ok(())
}
