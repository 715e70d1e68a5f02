//! The WGSL of a convolution's tile: the lines that find positions, load, accumulate and store. They differ by tile and
//! by what is known of the channels; lengths are parameters.
//!
//! Invariants: positions and channels past the end are computed as copies of the last ones and not stored. Values
//! outside the input are loaded from its start and replaced by 0, so that no load has a branch.

use std::fmt::Write;

use super::conv::{ConvText, Sight};

const PARTS: [&str; 4] = ["x", "y", "z", "w"];

impl ConvText {
    /// The body of an entry point with a tile in registers.
    pub(super) fn registers(&self) -> String {
        let places = self.tile.places;
        let mut body = format!(
            "    let first = (block * 64u + local) * {places}u;
    if !is_there || first >= p.places {{ return; }}
    let col = first_col;\n"
        );
        self.constants(&mut body);
        for at in 0..places {
            let place = format!("first + {at}u");
            self.origin(&mut body, &at.to_string(), &place);
        }
        self.columns(&mut body);
        self.starts(&mut body);
        self.taps(&mut body);
        self.stores(&mut body);
        body
    }

    /// The body of an entry point with a tile in workgroup memory: 64 positions, 64 channels and 16 values along the
    /// sums. An invocation loads four values of x and of the weights in a round, and computes 4x4 results. The number
    /// of steps of a round is not constant, so that drivers keep the loop and compile faster.
    pub(super) fn shared(&self) -> String {
        let mut body = "    let across = local % 16u;
    let down = local / 16u;
    let first = block * 64u + down * 4u;
    let col = first_col + across * 4u;\n"
            .to_owned();
        self.constants(&mut body);
        self.origin(&mut body, "_own", "block * 64u + local / 4u");
        self.columns(&mut body);
        self.starts(&mut body);
        body.push_str("    for (var tap = p.tap_from; tap < select(0u, p.tap_to, is_there); tap += 1u) {\n");
        self.tap(&mut body, &["_own".to_owned()]);
        let is_in = if self.sight == Sight::Point { "true" } else { "is_in_own" };
        let _ = writeln!(
            body,
            "        for (var round = p.round_from; round < round_to; round += 4u) {{
            let x_round = round + local % 4u;
            let is_x = {is_in} && x_round < round_to;
            let x_value = x[select(0u, x_at_own + x_round, is_x)];
            let w_round = round * 4u + down;
            let is_w = w_round < round_to * 4u;
            let w_row = (group * p.taps + tap) * p.group_in * 4u + select(0u, w_round, is_w);
            let w_value = weights[w_row * p.fours + four0];
            workgroupBarrier();
            shared_x[local] = select(vec4<f32>(), x_value, is_x);
            shared_w[local] = select(vec4<f32>(), w_value, is_w);
            workgroupBarrier();
            for (var k = 0u; k < min(4u, round_to - round); k += 1u) {{"
        );
        for at in 0..4 {
            let _ = writeln!(body, "                let x{at} = shared_x[(down * 4u + {at}u) * 4u + k];");
        }
        for (channel, part) in PARTS.iter().enumerate() {
            let _ = writeln!(body, "                let w{channel} = shared_w[(k * 4u + {channel}u) * 16u + across];");
            for at in 0..4 {
                let _ =
                    writeln!(body, "                sum{at}_0 = fma(vec4<f32>(x{at}.{part}), w{channel}, sum{at}_0);");
            }
        }
        body.push_str("            }\n        }\n    }\n");
        self.stores(&mut body);
        body
    }

    fn fours(&self) -> usize {
        self.tile.channels / 4
    }

    /// The phase of a transposed convolution, and the settings of the window as vectors.
    fn constants(&self, body: &mut String) {
        if self.sight == Sight::Transposed {
            body.push_str(
                "    let phase_row = quotient(phase, p.stride_w);
    let phase_d = quotient(phase_row, p.stride_h);
    let phases = vec3<u32>(phase_d, phase_row - phase_d * p.stride_h, phase - phase_row * p.stride_w);
",
            );
        }
        if self.sight != Sight::Point {
            body.push_str(
                "    let stride = vec3<i32>(vec3<u32>(p.stride_d, p.stride_h, p.stride_w));
    let dilation = vec3<i32>(vec3<u32>(p.dilation_d, p.dilation_h, p.dilation_w));
    let pad = vec3<i32>(vec3<u32>(p.pad_d, p.pad_h, p.pad_w));
    let lengths = vec3<u32>(p.in_d, p.in_h, p.in_w);
",
            );
        }
    }

    /// The position of the row with this name, and what its first tap sees.
    fn origin(&self, body: &mut String, name: &str, place: &str) {
        let _ = writeln!(body, "    let place{name} = min({place}, p.places - 1u);");
        if self.sight == Sight::Point {
            let _ = writeln!(body, "    let x_at{name} = place{name} * p.pitch + group * p.group_in;");
            return;
        }
        let origin = if self.sight == Sight::Transposed { "" } else { " * stride - pad" };
        let _ = writeln!(
            body,
            "    let seen{name} = coordinates(place{name});
    let origin{name} = vec3<i32>(seen{name}.yzw){origin};
    let slice{name} = seen{name}.x * p.in_d;"
        );
    }

    /// The vectors of four output channels of the tile.
    fn columns(&self, body: &mut String) {
        body.push_str("    let four = col / 4u;\n");
        for four in 0..self.fours() {
            let _ = writeln!(body, "    let four{four} = min(four + {four}u, p.fours - 1u);");
        }
    }

    /// The sums before the first tap. The sums of an earlier dispatch are added when the results are stored.
    fn starts(&self, body: &mut String) {
        for four in 0..self.fours() {
            let start = if self.continues {
                "vec4<f32>()".to_owned()
            } else {
                format!("weights[p.bias_at + group * p.fours + four{four}]")
            };
            let _ = writeln!(body, "    let start{four} = {start};");
            for at in 0..self.tile.places {
                let _ = writeln!(body, "    var sum{at}_{four} = start{four};");
            }
        }
    }

    /// The loop over taps of a tile in registers.
    fn taps(&self, body: &mut String) {
        body.push_str("    for (var tap = p.tap_from; tap < p.tap_to; tap += 1u) {\n");
        let names: Vec<String> = (0..self.tile.places).map(|at| at.to_string()).collect();
        self.tap(body, &names);
        let _ = writeln!(
            body,
            "        var w_at = ((group * p.taps + tap) * p.group_in + p.round_from) * p.fours;
        for (var round = p.round_from; round < round_to; round += 1u) {{"
        );
        self.round(body);
        let _ = writeln!(body, "            w_at += p.fours;\n        }}\n    }}");
    }

    /// What a tap sees of the rows with these names, and the end of the rounds. A tap that hits no input position has
    /// no rounds: with a `continue` instead, Mesa 25 took more than 11 s to compile a tile of 8x8.
    fn tap(&self, body: &mut String, names: &[String]) {
        if self.sight == Sight::Point {
            body.push_str("        let round_to = p.round_to;\n");
            return;
        }
        body.push_str(
            "        let tap_row = quotient(tap, p.kernel_w);
        let tap_d = quotient(tap_row, p.kernel_h);
        let taps = vec3<i32>(vec3<u32>(tap_d, tap_row - tap_d * p.kernel_h, tap - tap_row * p.kernel_w)) * dilation;
",
        );
        if self.sight == Sight::Transposed {
            body.push_str(
                "        let ahead = vec3<i32>(phases) + pad - taps;
        let shift = ahead / stride;
        let round_to = select(p.round_from, p.round_to, all(shift * stride == ahead));
",
            );
        } else {
            body.push_str("        let shift = taps;\n        let round_to = p.round_to;\n");
        }
        for name in names {
            let _ = writeln!(
                body,
                "        let in{name} = vec3<u32>(origin{name} + shift);
        let is_in{name} = all(in{name} < lengths);
        let in_place{name} = ((slice{name} + in{name}.x) * p.in_h + in{name}.y) * p.in_w + in{name}.z;
        let x_at{name} = select(0u, in_place{name} * p.pitch + group * p.group_in, is_in{name});"
            );
        }
    }

    /// One round of the loop over input channels, one channel: software drivers load each component on its own, and ran
    /// slower with vectors of four channels, because the loop was longer.
    fn round(&self, body: &mut String) {
        for four in 0..self.fours() {
            let _ = writeln!(body, "            let w{four} = weights[w_at + four{four}];");
        }
        for at in 0..self.tile.places {
            let loaded = format!("x[x_at{at} + round]");
            let _ = if self.sight == Sight::Point {
                writeln!(body, "            let x{at} = {loaded};")
            } else {
                writeln!(body, "            let x{at} = select(0.0, {loaded}, is_in{at});")
            };
            for four in 0..self.fours() {
                let _ = writeln!(body, "            sum{at}_{four} = fma(vec4<f32>(x{at}), w{four}, sum{at}_{four});");
            }
        }
    }

    /// The stores of all results, in loops: a text with a copy of the finishing function for each result of an 8x8 tile
    /// took seconds to compile with Mesa 25. The number of rounds is not constant, so that drivers keep the loops.
    fn stores(&self, body: &mut String) {
        let (places, fours) = (self.tile.places, self.fours());
        let _ = writeln!(body, "    var sums_made: array<vec4<f32>, {}>;", places * fours);
        for at in 0..places {
            for four in 0..fours {
                let _ = writeln!(body, "    sums_made[{}] = sum{at}_{four};", at * fours + four);
            }
        }
        let row = if self.sight == Sight::Transposed {
            "let at = coordinates(first + i);
        let to = at.yzw * vec3<u32>(stride) + phases;
        let row = ((at.x * p.whole_d + to.x) * p.whole_h + to.y) * p.whole_w + to.z;
        let is_row = all(to < vec3<u32>(p.whole_d, p.whole_h, p.whole_w));"
        } else {
            "let row = first + i;
        let is_row = true;"
        };
        let _ = writeln!(
            body,
            "    let rows = select(0u, min({places}u, p.places - first), is_there && first < p.places);
    let fours = select(0u, min({fours}u, p.fours - four), four < p.fours);
    for (var i = 0u; i < rows; i += 1u) {{
        {row}
        for (var j = 0u; j < select(0u, fours, is_row); j += 1u) {{
            let made = sums_made[i * {fours}u + j];
            let channel = group * p.group_out + col + j * 4u;
            let out_at = row * p.channels + channel;"
        );
        let results = PARTS.iter().enumerate().map(|(part, name)| {
            let so_far = if self.continues { format!(" + sums[out_at + {part}u]") } else { String::new() };
            format!("finish(made.{name}{so_far}, row, channel + {part}u, out_at + {part}u)")
        });
        let results: Vec<String> = results.collect();
        if self.wide_out {
            let _ = writeln!(body, "            out[out_at / 4u] = vec4<f32>({});", results.join(", "));
        } else {
            for (part, result) in results.iter().enumerate() {
                let _ = writeln!(
                    body,
                    "            if col + j * 4u + {part}u < p.group_out {{ out[out_at + {part}u] = {result}; }}"
                );
            }
        }
        body.push_str("        }\n    }\n");
    }
}
