//! Files that random pipelines read, in a temporary folder that is deleted on drop.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use vramp::Pipeline;
use vramp::plan::{Format, RunOptions, Size, Space};
use vramp::runtime::Registry;

use super::chance::Chance;

pub struct Files {
    folder: PathBuf,
    registry: Registry,
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

const PIXEL_FUNCTION: &str = "struct Settings { by: f32, // = 0.25\n}
fn pixel(c: vec4f, at: vec2f, frame: Frame, settings: Settings) -> vec4f {
    return vec4f(mix(c.rgb, c.brg, settings.by) + 0.1 * fract(at.x / 7.0), c.a);
}\n";

const CUBE: &str = "LUT_3D_SIZE 2\n0 0 0.1\n0.9 0 0\n0 1 0\n1 0.9 0.2\n0.1 0 1\n1 0.1 1\n0 1 0.8\n1 1 1\n";

impl Files {
    pub fn new() -> Files {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let own = format!("vramp-random-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(own);
        std::fs::create_dir_all(&folder).expect("a folder for pictures");
        Files { folder, registry: vramp::registry() }
    }

    /// A file that a handler of this kind can read.
    pub fn read_by(&self, kind: &str, chance: &mut Chance) -> String {
        match kind {
            "lut" => self.text("film.cube", CUBE),
            "wgsl" => self.text("swirl.wgsl", PIXEL_FUNCTION),
            _ => self.pictures(chance.pick(&[(1, 1), (9, 5), (40, 30)]), 1).replace('*', "0"),
        }
    }

    /// Writes `count` images of one size with alpha. Returns the pattern of their names.
    pub fn pictures(&self, (width, height): (u32, u32), count: usize) -> String {
        let stem = format!("{width}x{height}-{count}");
        let path = |name: &str| self.folder.join(format!("{stem}-{name}.png")).display().to_string();
        if !self.folder.join(format!("{stem}-0.png")).exists() {
            let alpha_from_red = "1,0,0,0,0,0,1,0,0,0,0,0,1,0,0,1,0,0,0,0.2";
            self.write(&format!(
                "pattern kind=noise seed={count} size={width}x{height} frames={count} ! colormatrix {alpha_from_red} ! \
                 png path={}",
                path("%d")
            ));
        }
        path("*")
    }

    /// Writes images of different sizes. Returns the pattern of their names.
    pub fn mixed_pictures(&self, chance: &mut Chance) -> String {
        let stem = format!("mixed{}", chance.below(3));
        let path = |name: &str| self.folder.join(format!("{stem}-{name}.png")).display().to_string();
        if !self.folder.join(format!("{stem}-0.png")).exists() {
            for (at, size) in ["17x9", "1x1", "40x31", "17x9"].iter().enumerate() {
                self.write(&format!(
                    "pattern kind=noise seed={at} size={size} frames=1 ! png path={}",
                    path(&at.to_string())
                ));
            }
        }
        path("*")
    }

    /// Writes a file of frames without a header. Returns its path.
    pub fn raw(&self, size: Size, format: Format, frames: u64, chance: &mut Chance) -> String {
        let path = self.folder.join(format!("{size}-{format}-{frames}.raw"));
        if !path.exists() {
            // Files have no padding between rows.
            let bytes: u64 = format.planes(size).map(|plane| plane.rows * plane.row_bytes).sum();
            std::fs::write(&path, chance.bytes(bytes * frames)).expect("there is room for a few frames");
        }
        path.display().to_string()
    }

    fn text(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        std::fs::write(&path, text).expect("there is room for a few lines");
        path.display().to_string()
    }

    fn write(&self, text: &str) {
        let spec = vramp::read(text, self.registry.catalog()).expect("it reads");
        let graph = self.registry.check(&spec).expect("a graph");
        let builder =
            Pipeline::from_graph(graph.clone()).registry(&self.registry).options(RunOptions::new().only(Space::Cpu));
        builder.build().expect("it is ready").run().expect("to its end");
    }
}
