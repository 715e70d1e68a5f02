//! Draws the media of the cookbook: a hot-air balloon over hills, at any hour of the day.
//!
//! Everything is computed from the size, the hour and the time, so that each run draws the same pictures.

/// RGB, each channel from 0 to 1.
type Color = [f64; 3];

/// Colours of the day: hour, top of the sky, horizon, nearest hill.
const DAY: [(f64, u32, u32, u32); 6] = [
    (5.0, 0x12_18_3a, 0x4b_3f_72, 0x0c_12_22),
    (7.0, 0x3c_4f_9a, 0xff_b0_7c, 0x2a_2b_45),
    (12.0, 0x2f_86_d6, 0xd2_ee_ff, 0x2c_6e_49),
    (16.0, 0x3f_8f_d2, 0xff_e6_b8, 0x35_70_45),
    (19.0, 0x4a_2c_6e, 0xff_7a_4d, 0x24_1c_3a),
    (21.5, 0x0a_0f_2c, 0x2a_33_6b, 0x07_0a_18),
];

/// The colour of the green screen.
const GREEN: u32 = 0x10_d6_28;
const CREAM: u32 = 0xfd_f1_d6;
const RED: u32 = 0xe0_3c_3c;

/// What is drawn into a picture.
#[derive(Clone, Copy)]
pub(super) struct Scene {
    pub(super) width: usize,
    pub(super) height: usize,
    /// The hour of the day, from 5 to 21.5.
    pub(super) hour: f64,
    /// Seconds, which move the balloon and the hills.
    pub(super) time: f64,
}

impl Scene {
    /// A scene in the size of the clips.
    pub(super) fn at(hour: f64, time: f64) -> Scene {
        Scene { width: super::recipe::WIDTH, height: super::recipe::HEIGHT, hour, time }
    }

    /// The landscape with the balloon. The pixels of all pictures are RGB, from the upper left.
    pub(super) fn landscape(self) -> Vec<u8> {
        self.draw(|colors, ridges, x, y| self.balloon(self.hills(colors, ridges, self.sky(colors, x, y), y), x, y))
    }

    /// The landscape without the balloon.
    pub(super) fn empty(self) -> Vec<u8> {
        self.draw(|colors, ridges, x, y| self.hills(colors, ridges, self.sky(colors, x, y), y))
    }

    /// The balloon and a green screen.
    pub(super) fn green_screen(self) -> Vec<u8> {
        self.draw(|_, _, x, y| self.balloon(color(GREEN), x, y))
    }

    /// Calls `shade` for each pixel with the colours of the hour, the ridges of the hills in this column, and x and y in
    /// units of the height.
    fn draw(self, shade: impl Fn([Color; 3], [f64; 4], f64, f64) -> Color) -> Vec<u8> {
        let unit = self.height as f64;
        let at = |pixel: usize| (pixel as f64 + 0.5) / unit;
        let (colors, mut pixels) = (self.colors(), Vec::with_capacity(self.width * self.height * 3));
        let ridges: Vec<[f64; 4]> = (0..self.width).map(|column| self.ridges(at(column))).collect();
        for row in 0..self.height {
            for (column, ridges) in ridges.iter().enumerate() {
                let color = shade(colors, *ridges, at(column), at(row));
                pixels.extend(color.map(|value| (value.clamp(0.0, 1.0) * 255.0).round() as u8));
            }
        }
        pixels
    }

    /// The colours of the hour: top of the sky, horizon, nearest hill.
    fn colors(self) -> [Color; 3] {
        let next = DAY.iter().position(|row| row.0 > self.hour).unwrap_or(DAY.len() - 1).max(1);
        let (from, to) = (DAY[next - 1], DAY[next]);
        let share = ((self.hour - from.0) / (to.0 - from.0)).clamp(0.0, 1.0);
        [(from.1, to.1), (from.2, to.2), (from.3, to.3)].map(|(from, to)| blend(color(from), color(to), share))
    }

    /// The width of the picture in units of its height.
    fn wide(self) -> f64 {
        self.width as f64 / self.height as f64
    }

    fn sky(self, [top, horizon, _]: [Color; 3], x: f64, y: f64) -> Color {
        let sky = blend(top, horizon, (y / 0.8).clamp(0.0, 1.0).powf(1.4));
        let day = (self.hour - 6.0) / 13.5;
        let (sun_x, sun_y) = (self.wide() * (0.12 + 0.76 * day), 0.78 - 0.62 * (std::f64::consts::PI * day).sin());
        let square = (x - sun_x).powi(2) + (y - sun_y).powi(2);
        // Farther away, the glow is less than a level.
        if square > 0.2 {
            return sky;
        }
        let glow = blend(sky, color(0xff_e9_b0), 0.55 * (-square / 0.03).exp());
        blend(glow, color(0xff_f7_dc), edge(0.062 - square.sqrt(), self.height))
    }

    /// How far below the upper edge each of the four hills begins, the farthest first.
    fn ridges(self, x: f64) -> [f64; 4] {
        [0.0, 1.0, 2.0, 3.0].map(|layer: f64| {
            let depth = layer / 3.0;
            let at = x + self.time * (0.01 + 0.06 * depth) + layer * 7.3;
            let wide = (0.10 - 0.03 * depth) * (at * (1.7 + 0.4 * depth)).sin();
            0.62 + 0.11 * depth - wide - 0.035 * (at * 5.1 + 1.0).sin() - 0.012 * (at * 13.7).sin()
        })
    }

    fn hills(self, [_, horizon, near]: [Color; 3], ridges: [f64; 4], behind: Color, y: f64) -> Color {
        let mut seen = behind;
        for (ridge, depth) in ridges.into_iter().zip([0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0]) {
            let cover = edge(y - ridge, self.height);
            if cover == 0.0 {
                continue;
            }
            let hill = blend(horizon, near, 0.25 + 0.75 * depth);
            let lit = blend(hill, near, ((y - ridge) * 1.2).clamp(0.0, 0.5));
            seen = blend(seen, lit, cover);
        }
        seen
    }

    fn balloon(self, behind: Color, x: f64, y: f64) -> Color {
        let (center_x, center_y) = (self.wide() * (0.30 + 0.11 * self.time), 0.37 - 0.03 * (self.time * 1.9).sin());
        let (dx, dy) = (x - center_x, y - center_y);
        if dx.abs() > 0.19 || !(-0.19..0.36).contains(&dy) {
            return behind;
        }
        let radius = 0.17;
        // Below its middle, the envelope narrows to the basket.
        let narrow = if dy > 0.0 { 1.0 - 0.62 * (dy / 0.23).min(1.0).powi(2) } else { 1.0 };
        let envelope = if dy > 0.0 { (radius * narrow - dx.abs()).min(0.21 - dy) } else { radius - dx.hypot(dy) };
        let across = (dx / (radius * narrow)).clamp(-1.0, 1.0);
        let stripe = (across.asin() * 4.0 / std::f64::consts::PI * 1.75 + 20.5).floor() as i64;
        let cloth = color(if stripe % 2 == 0 { CREAM } else { RED });
        let shaded = blend(cloth, [0.10, 0.02, 0.12], (0.10 + 0.34 * across + 0.6 * dy).clamp(0.0, 0.55));
        let ropes = (0.0035 - (dx.abs() - 0.052 + 0.12 * (dy - 0.21)).abs()).min((dy - 0.20).min(0.275 - dy));
        let seen = blend(behind, color(0x3a_26_1c), edge(ropes, self.height));
        let basket = (0.045 - dx.abs()).min((dy - 0.27).min(0.335 - dy));
        let wicker = blend(color(0x8a_55_2c), color(0x5b_34_18), ((dy - 0.27) / 0.065).clamp(0.0, 1.0));
        let seen = blend(seen, wicker, edge(basket, self.height));
        blend(seen, shaded, edge(envelope, self.height))
    }
}

fn color(rgb: u32) -> Color {
    [16, 8, 0].map(|shift| f64::from(rgb >> shift & 0xff) / 255.0)
}

fn blend(from: Color, to: Color, share: f64) -> Color {
    [0, 1, 2].map(|channel| from[channel] + (to[channel] - from[channel]) * share)
}

/// How much of a pixel lies inside a shape whose border is `inside` away, in units of the height.
fn edge(inside: f64, height: usize) -> f64 {
    (inside * height as f64 + 0.5).clamp(0.0, 1.0)
}
