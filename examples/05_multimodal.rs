//! Lesson 5: your own shader between ops. Which text belongs to which image?
//!
//! Two models would give embeddings of different lengths; here the embeddings are made up. All embeddings are projected
//! into one space and compared there, and only the answer is read back.
//!
//! `cargo run --release --example 05_multimodal`

use vramp::tensor::{Context, DType, Reduction, Tensor, TensorError};

const TEXTS: [&str; 3] = ["a dog on a beach", "a red car", "two cats asleep"];
const PICTURES: [&str; 4] = ["cats.png", "beach.png", "street.png", "sofa.png"];

/// The meaning of each text in four dimensions: animal, vehicle, outside, at rest. `SEEN` has that of each image.
const SAID: [[f32; 4]; 3] = [[0.9, 0.0, 0.8, 0.1], [0.0, 1.0, 0.4, 0.2], [1.0, 0.0, 0.0, 0.9]];
const SEEN: [[f32; 4]; 4] = [[1.0, 0.0, 0.1, 0.8], [0.8, 0.0, 0.9, 0.2], [0.1, 0.9, 0.5, 0.1], [0.2, 0.0, 0.0, 1.0]];

/// Computes the similarity of every text with every image, and the nearest text for each image. Each workgroup computes
/// one image.
const COSINE: &str = "
@group(0) @binding(0) var<storage, read> texts: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> pictures: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> similarity: array<f32>;
@group(0) @binding(3) var<storage, read_write> nearest: array<u32>;

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) id: vec3<u32>) {
    let count = arrayLength(&texts);
    for (var text = 0u; text < count; text++) {
        let cosine = dot(texts[text], pictures[id.x]);
        similarity[id.x * count + text] = cosine;
        if cosine > similarity[id.x * count + nearest[id.x]] { nearest[id.x] = text; }
    }
}
";

pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (context, why) = Context::open();
    println!("{why}");

    // The models' output: embeddings of 8 or 12 numbers. The first four are the meaning, the others mean nothing.
    let texts = embeddings(&context, &SAID, 8)?;
    let pictures = embeddings(&context, &SEEN, 12)?;

    // Project texts and images into one space and scale them to length 1, all on the GPU without a readback.
    let texts = normalised(&texts.matmul(&projection(&context, 8)?)?)?;
    let pictures = normalised(&pictures.matmul(&projection(&context, 12)?)?)?;

    // Our own shader computes the similarity. It is compiled once, and its outputs are tensors like any others.
    let (similarity, nearest) = if context.device().is_some() {
        let inputs = [("texts", DType::F32), ("pictures", DType::F32)];
        let outputs = [("similarity", DType::F32), ("nearest", DType::U32)];
        let cosine = context.shader("cosine", COSINE, &inputs, &outputs)?;
        let shapes: [(&str, &[usize]); 2] =
            [("similarity", &[PICTURES.len(), TEXTS.len()]), ("nearest", &[PICTURES.len()])];
        let grid = [PICTURES.len() as u32, 1, 1];
        let made = cosine.run(&[("texts", &texts), ("pictures", &pictures)], &shapes, &[], Some(grid))?;
        (made[0].1.clone(), made[1].1.clone())
    } else {
        // Shaders need a device; ops do not.
        let similarity = pictures.matmul_as(&texts, false, true)?;
        let nearest = similarity.argmax(-1)?;
        (similarity, nearest)
    };
    let shares = similarity.mul(10.0)?.softmax(-1)?;

    assert_eq!(context.transfers().host_reads, 0, "nothing was read so far");
    let (shares, nearest): (Vec<f32>, Vec<u32>) = (shares.read()?, nearest.read()?);
    for (at, picture) in PICTURES.iter().enumerate() {
        let text = nearest[at] as usize;
        println!("{picture}: {} ({:.0} %)", TEXTS[text], 100.0 * shares[at * TEXTS.len() + text]);
    }
    assert_eq!(nearest, [2, 0, 1, 2]);
    println!("{:?}", context.transfers());
    Ok(())
}

/// Embeddings of `length` numbers: the meaning, followed by numbers that mean nothing.
fn embeddings(context: &Context, meanings: &[[f32; 4]], length: usize) -> Result<Tensor, TensorError> {
    let noise = |at: usize| ((at * 37 % 17) as f32 - 8.0) / 10.0;
    let rows = meanings.iter().enumerate();
    let values: Vec<f32> = rows
        .flat_map(|(row, meaning)| meaning.iter().copied().chain((4..length).map(move |at| noise(row * length + at))))
        .collect();
    context.tensor(&values, &[meanings.len(), length])
}

/// Stands for a learned projection, which keeps the meaning and nearly nothing of the other numbers.
fn projection(context: &Context, length: usize) -> Result<Tensor, TensorError> {
    let weight = |from: usize, to: usize| if from == to { 1.0 } else { 0.01 * ((from + to) % 3) as f32 };
    let values: Vec<f32> = (0..length).flat_map(|from| (0..4).map(move |to| weight(from, to))).collect();
    context.tensor(&values, &[length, 4])
}

/// Scales rows to length 1.
fn normalised(rows: &Tensor) -> Result<Tensor, TensorError> {
    let lengths = rows.lazy().square().reduce(Reduction::Sum, -1, true).sqrt();
    rows.lazy().div(lengths).run()
}
