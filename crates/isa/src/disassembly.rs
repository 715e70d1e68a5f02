//! Counts in a GPU's machine code: instructions by kind, and how often a wave runs them if the rounds of loops are
//! known.
//!
//! The compiler's own figures assume that an outer loop runs eight rounds and a loop in it four, that a wave enters three
//! of four branches that depend on the lane, and every second branch that does not. Here loops are found in the code, as
//! jumps back to a label, and get the rounds of the kernel. The outermost branch of a kernel tests for the end of the
//! frame, and all waves but the last enter it.

/// Instructions of one kind each, once as they stand in the code and once as a wave runs them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Counts {
    /// Vector arithmetic.
    pub(crate) vector: f64,
    /// Vector arithmetic that multiplies and adds.
    pub(crate) multiply_adds: f64,
    /// Cycles of vector arithmetic: two for a wave of 64 on 32 lanes, eight for what runs at a quarter of the rate.
    pub(crate) vector_cycles: f64,
    /// Scalar arithmetic, branches excepted.
    pub(crate) scalar: f64,
    pub(crate) branches: f64,
    /// Accesses to buffers by lanes.
    pub(crate) accesses: f64,
    /// Reads of uniforms and descriptors.
    pub(crate) scalar_reads: f64,
    /// Accesses to the memory of workgroups.
    pub(crate) shared: f64,
    /// Accesses to scratch memory, which holds spilled registers.
    pub(crate) scratch: f64,
}

/// Machine code in basic blocks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Code {
    blocks: Vec<Block>,
    /// The first and the last block of each loop, outer loops before those in them.
    loops: Vec<(usize, usize)>,
    /// The first and the last block of what a jump forward leaves out, and whether the jump depends on the lane.
    skipped: Vec<(usize, usize, bool)>,
}

#[derive(Debug, Clone, Default)]
struct Block {
    label: String,
    counts: Counts,
    /// The jumps of this block: the label, and whether the jump depends on the lane.
    jumps: Vec<(String, bool)>,
}

/// The chances with which the compiler assumes that a wave enters a branch.
const CHANCE_BY_LANE: f64 = 0.75;
const CHANCE_UNIFORM: f64 = 0.5;

/// Rounds that the compiler assumes for a loop inside of `outer` other loops.
fn assumed(outer: usize) -> f64 {
    match outer {
        0 => 8.0,
        1 => 4.0,
        _ => 2.0,
    }
}

impl Code {
    /// Reads the text that the driver calls `Assembly`: labels, and a line for each instruction. For GPUs that its
    /// disassembler does not know, the driver prints the same instructions in its own form: `results = NAME operands`.
    pub(crate) fn read(text: &str) -> Code {
        let mut blocks = vec![Block::default()];
        for line in text.lines() {
            let line = line.split([';', '/']).next().unwrap_or_default().trim();
            let label = line.strip_suffix(':').unwrap_or(line);
            if label.strip_prefix("BB").is_some_and(|number| number.parse::<u32>().is_ok()) {
                blocks.push(Block { label: label.to_owned(), ..Block::default() });
                continue;
            }
            let line = line.split_once(" = ").map_or(line, |(_, instruction)| instruction);
            let mut words = line.split([' ', '\t', ',']).filter(|word| !word.is_empty());
            let Some(name) = words.next() else { continue };
            let block = blocks.last_mut().expect("there is a first block");
            count(name, &mut block.counts);
            // The second half of a pair that issues together.
            if let Some((_, other)) = line.split_once("::") {
                count(other.split_whitespace().next().unwrap_or_default(), &mut block.counts);
                block.counts.vector_cycles -= 2.0;
            }
            if is_branch(name) {
                let target =
                    words.find_map(|word| word.strip_prefix("block:").or(word.starts_with("BB").then_some(word)));
                block.jumps.extend(target.map(|target| (target.to_owned(), name.contains("exec"))));
            }
        }
        let mut loops: Vec<(usize, usize)> = Vec::new();
        let mut forward = Vec::new();
        for (at, block) in blocks.iter().enumerate() {
            for (label, by_lane) in &block.jumps {
                let Some(to) = blocks.iter().position(|other| other.label == *label) else { continue };
                if to > at {
                    forward.push((at, to, *by_lane));
                    continue;
                }
                match loops.iter_mut().find(|(first, _)| *first == to) {
                    Some((_, last)) => *last = (*last).max(at),
                    None => loops.push((to, at)),
                }
            }
        }
        loops.sort_by_key(|(first, last)| (*first, std::cmp::Reverse(*last)));
        // A jump out of a loop ends the loop and leaves out nothing.
        let leaves =
            |at: usize, to: usize| loops.iter().any(|(first, last)| (*first..=*last).contains(&at) && to > *last);
        let inside = forward.into_iter().filter(|(at, to, _)| to - at > 1 && !leaves(*at, *to));
        let skipped = inside.map(|(at, to, by_lane)| (at + 1, to - 1, by_lane)).collect();
        Code { blocks, loops, skipped }
    }

    /// The number of loops.
    pub(crate) fn loops(&self) -> usize {
        self.loops.len()
    }

    /// Instructions as they stand in the code.
    pub(crate) fn counts(&self) -> Counts {
        self.weighted(|_| 1.0)
    }

    /// Instructions that a wave runs by the compiler's assumptions.
    pub(crate) fn assumed(&self) -> Counts {
        self.weighted(|at| self.rounds(at, &[]) * self.entered(at, CHANCE_BY_LANE))
    }

    /// Instructions that a wave runs with these rounds of the loops, in the order of the code. After the last of the
    /// rounds comes the first again. Without rounds, the compiler's assumption stands.
    pub(crate) fn run(&self, rounds: &[u32]) -> Counts {
        self.weighted(|at| self.rounds(at, rounds) * self.entered(at, 1.0))
    }

    /// How often a block runs, by the loops around it.
    fn rounds(&self, at: usize, rounds: &[u32]) -> f64 {
        let around = |(number, (first, last)): (usize, &(usize, usize))| {
            (*first..=*last).contains(&at).then(|| {
                let outer = self.loops.iter().filter(|(a, b)| (a, b) != (first, last) && a <= first && b >= last);
                let own = rounds.get(number % rounds.len().max(1));
                own.map_or_else(|| assumed(outer.count()), |rounds| f64::from(*rounds))
            })
        };
        self.loops.iter().enumerate().filter_map(around).product()
    }

    /// The chance that a wave enters a block, by the branches around it; `outermost` is the chance of the outermost
    /// branch by lanes.
    fn entered(&self, at: usize, outermost: f64) -> f64 {
        let around = |is_by_lane: bool| {
            let of = |(first, last, by_lane): &&(usize, usize, bool)| {
                *by_lane == is_by_lane && (*first..=*last).contains(&at)
            };
            i32::try_from(self.skipped.iter().filter(of).count()).unwrap_or(i32::MAX)
        };
        let (by_lane, uniform) = (around(true), around(false));
        let outer = if by_lane > 0 { outermost } else { 1.0 };
        outer * CHANCE_BY_LANE.powi((by_lane - 1).max(0)) * CHANCE_UNIFORM.powi(uniform)
    }

    fn weighted(&self, weight: impl Fn(usize) -> f64) -> Counts {
        let mut sum = Counts::default();
        for (at, block) in self.blocks.iter().enumerate() {
            sum.add(&block.counts, weight(at));
        }
        sum
    }
}

impl Counts {
    fn add(&mut self, other: &Counts, weight: f64) {
        let Counts { vector, multiply_adds, vector_cycles, scalar, branches, accesses, scalar_reads, shared, scratch } =
            other;
        self.vector += weight * vector;
        self.multiply_adds += weight * multiply_adds;
        self.vector_cycles += weight * vector_cycles;
        self.scalar += weight * scalar;
        self.branches += weight * branches;
        self.accesses += weight * accesses;
        self.scalar_reads += weight * scalar_reads;
        self.shared += weight * shared;
        self.scratch += weight * scratch;
    }

    /// Instructions of all kinds.
    pub(crate) fn total(&self) -> f64 {
        let Counts { vector, scalar, branches, accesses, scalar_reads, shared, scratch, .. } = self;
        vector + scalar + branches + accesses + scalar_reads + shared + scratch
    }

    /// Cycles in which the busiest unit of a SIMD issues these instructions.
    pub(crate) fn issue_cycles(&self) -> f64 {
        [self.vector_cycles, self.scalar + self.branches, self.accesses + self.scratch, self.scalar_reads, self.shared]
            .into_iter()
            .fold(1.0, f64::max)
    }
}

fn is_branch(name: &str) -> bool {
    name == "s_branch" || name.starts_with("s_cbranch")
}

/// Adds an instruction to the counts of its kind. Waits and hints are no work.
fn count(name: &str, counts: &mut Counts) {
    const HINTS: [&str; 9] = [
        "s_waitcnt",
        "s_wait_",
        "s_delay_alu",
        "s_nop",
        "s_clause",
        "s_endpgm",
        "s_code_end",
        "s_inst_prefetch",
        "s_sendmsg",
    ];
    const QUARTER: [&str; 12] = [
        "v_mul_lo_u32",
        "v_mul_lo_i32",
        "v_mul_hi_",
        "v_mad_u64",
        "v_mad_i64",
        "v_mad_co_u64",
        "v_rcp",
        "v_rsq",
        "v_sqrt",
        "v_exp",
        "v_log",
        "v_sin",
    ];
    if HINTS.iter().any(|hint| name.starts_with(hint)) {
    } else if is_branch(name) {
        counts.branches += 1.0;
    } else if name.starts_with("s_load") || name.starts_with("s_buffer_load") {
        counts.scalar_reads += 1.0;
    } else if name.starts_with("s_") {
        counts.scalar += 1.0;
    } else if name.starts_with("v_") {
        counts.vector += 1.0;
        counts.vector_cycles += if QUARTER.iter().any(|slow| name.starts_with(slow)) { 8.0 } else { 2.0 };
        let bare = name.trim_start_matches("v_").trim_start_matches("dual_").trim_start_matches("pk_");
        counts.multiply_adds += f64::from(u8::from(["fma", "mad", "dot"].iter().any(|word| bare.starts_with(word))));
    } else if name.starts_with("scratch_") {
        counts.scratch += 1.0;
    } else if name.starts_with("ds_") {
        counts.shared += 1.0;
    } else if ["buffer_", "tbuffer_", "global_", "flat_", "image_"].iter().any(|unit| name.starts_with(unit)) {
        counts.accesses += 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
BB0:
    s_load_dwordx4 s[4:7], s[2:3], 0x0        ; f4080101 fa000000
    v_lshlrev_b32_e32 v1, 2, v0               ; 34020082
    s_waitcnt lgkmcnt(0)                      ; bf8cc07f
    buffer_load_dword v2, v1, s[4:7], 0 offen ; e0301000 80010201
BB1:
    v_mul_lo_u32 v3, v2, v1                   ; d5690003
    s_add_i32 s0, s0, 1                       ; 81008100
    s_cbranch_scc1 BB3                        ; bf850000
BB2:
    v_dual_fmac_f32 v4, v5, v6 :: v_dual_mov_b32 v7, v8 ; c8
    s_cbranch_scc0 BB2                        ; bf840000
    s_branch BB1                              ; bf820000
BB3:
    ds_write_b32 v1, v2                       ; d8340000
    buffer_store_dword v3, v1, s[4:7], 0 offen
    s_endpgm                                  ; bf810000
";

    #[test]
    fn instructions_are_counted_by_kind() {
        let counts = Code::read(TEXT).counts();
        let expected = Counts {
            vector: 4.0,
            multiply_adds: 1.0,
            vector_cycles: 2.0 + 8.0 + 2.0,
            scalar: 1.0,
            branches: 3.0,
            accesses: 2.0,
            scalar_reads: 1.0,
            shared: 1.0,
            scratch: 0.0,
        };
        assert_eq!(counts, expected);
    }

    #[test]
    fn loops_run_their_rounds_and_the_compilers_without_any() {
        let code = Code::read(TEXT);
        assert_eq!(code.loops(), 2);
        // Once outside, 10 in the outer loop, 10 * 3 times two in the inner one.
        let vector = |rounds: &[u32]| code.run(rounds).vector as u64;
        assert_eq!(vector(&[10, 3]), 1 + 10 + 60);
        assert_eq!(vector(&[10]), 1 + 10 + 10 * 10 * 2);
        assert_eq!(vector(&[]), 1 + 8 + 8 * 4 * 2);
        assert_eq!(vector(&[0, 3]), 1);
        assert_eq!(code.assumed(), code.run(&[]), "a jump out of a loop is not a branch");
    }

    #[test]
    fn the_outermost_branch_is_entered_and_those_in_it_by_their_chance() {
        let text = "BB0:
 v_mov_b32 v0
 s_cbranch_execz BB5
BB1:
 v_mov_b32 v0
 s_cbranch_execz BB3
BB2:
 v_mov_b32 v0
BB3:
 s_cbranch_scc0 BB5
BB4:
 v_mov_b32 v0
BB5:
 v_mov_b32 v0
";
        let code = Code::read(text);
        let hundredths = |counts: Counts| (counts.vector * 10_000.0) as u64;
        assert_eq!(hundredths(code.run(&[])), 10_000 + 10_000 + 7_500 + 5_000 + 10_000);
        assert_eq!(hundredths(code.assumed()), 10_000 + 7_500 + 5_625 + 3_750 + 10_000);
    }

    #[test]
    fn the_drivers_own_form_is_read_too() {
        let text = "After lowering:\nACO shader stage: SW (CS)\nBB0\n/* logical preds: / kind: top-level, */\n\t \
            s4: %8:s[8-11] = s_load_dwordx4 %6:s[0-1], 0\nBB1\n\t v1: (precise)%31:v[3] = v_mul_lo_u32 %30:v[2], %18\n\t \
            s1: %12:s[4],  s1: %182:scc = s_add_u32 %11:s[4], 1\n\ts_cbranch_scc1 block:BB1\n\tbuffer_store_dword %1\n\
            \ts_endpgm\n";
        let code = Code::read(text);
        let counts = code.counts();
        let kinds = (counts.vector, counts.vector_cycles, counts.scalar, counts.scalar_reads, counts.accesses);
        assert_eq!(kinds, (1.0, 8.0, 1.0, 1.0, 1.0));
        assert_eq!((code.loops(), counts.branches), (1, 1.0));
    }

    #[test]
    fn code_without_jumps_has_no_loops() {
        let code = Code::read("BB0:\n    v_mov_b32_e32 v0, v1\n    s_cbranch_execz BB1\nBB1:\n    s_endpgm\n");
        assert_eq!((code.loops(), code.counts().vector, code.run(&[]).branches), (0, 1.0, 1.0));
    }
}
