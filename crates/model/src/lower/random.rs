//! The Mersenne Twister (MT19937), which ONNX's own results of dropout in training are based on.

const WORDS: usize = 624;
const SHIFT: usize = 397;

pub(super) struct Random {
    state: Vec<u32>,
    at: usize,
}

impl Random {
    pub(super) fn seeded(seed: u32) -> Random {
        let mut state = vec![seed; WORDS];
        for at in 1..WORDS {
            let before = state[at - 1];
            state[at] = 1_812_433_253_u32.wrapping_mul(before ^ (before >> 30)).wrapping_add(at as u32);
        }
        Random { state, at: WORDS }
    }

    fn refill(&mut self) {
        for at in 0..WORDS {
            let joined = (self.state[at] & 0x8000_0000) | (self.state[(at + 1) % WORDS] & 0x7fff_ffff);
            let twist = if joined & 1 == 1 { 0x9908_b0df } else { 0 };
            self.state[at] = self.state[(at + SHIFT) % WORDS] ^ (joined >> 1) ^ twist;
        }
        self.at = 0;
    }

    fn next_word(&mut self) -> u32 {
        if self.at == WORDS {
            self.refill();
        }
        let mut word = self.state[self.at];
        self.at += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    /// The next number from 0 to below 1, of 53 bits.
    pub(super) fn next_unit(&mut self) -> f64 {
        let (high, low) = (self.next_word() >> 5, self.next_word() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_numbers_of_the_reference_seed_are_those_of_its_authors() {
        let mut random = Random::seeded(5489);
        assert_eq!(
            [random.next_word(), random.next_word(), random.next_word()],
            [3_499_211_612, 581_869_302, 3_890_346_734]
        );
    }
}
