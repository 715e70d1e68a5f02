//! Names of files for names of tensors.
//!
//! Owns the way there and, where there is one, back.
//! Does not look at the disk.
//!
//! Always: two names of tensors whose files have plain names have different ones, on disks that take `A` for `a` too;
//! every file name is safe anywhere, whatever is in the tensor's name. Names that are too long for that end in a number
//! made of the whole name: should two such be equal, the tensor's name in the file tells them apart.

use std::fmt::Write as _;

/// How every file of a tensor starts, so that no name is one that a system keeps for itself (`con`, `..`).
const PREFIX: &str = "t-";
const SUFFIX: &str = ".safetensors";
/// The longest name between the two: file systems take 255 bytes.
const MAX_BYTES: usize = 200;
/// What stays of a longer one, before the number.
const START_BYTES: usize = 160;

/// The name of the file that a tensor is in.
pub(super) fn encoded(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' => plain.push(char::from(byte)),
            byte => write!(plain, "_{byte:02x}").expect("a String takes everything"),
        }
    }
    if plain.len() > MAX_BYTES {
        plain.truncate(START_BYTES);
        write!(plain, "~{:032x}", number(name)).expect("a String takes everything");
    }
    format!("{PREFIX}{plain}{SUFFIX}")
}

/// Whether a file is one of ours.
pub(super) fn is_ours(file: &str) -> bool {
    inner(file).is_some()
}

/// The tensor that a file is named for; none for a shortened name, which only the file itself knows.
pub(super) fn decoded(file: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = inner(file)?.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'_' => {
                let digits = [char::from(rest.next()?), char::from(rest.next()?)];
                bytes.push((digits[0].to_digit(16)? * 16 + digits[1].to_digit(16)?) as u8);
            }
            byte => bytes.push(byte),
        }
    }
    // What is spelt in another way than `encoded` does it is not one of its names.
    String::from_utf8(bytes).ok().filter(|name| encoded(name) == file)
}

fn inner(file: &str) -> Option<&str> {
    file.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)
}

/// FNV-1a of 128 bits: the same on every machine and in every version, which is all that is asked of it.
fn number(name: &str) -> u128 {
    const START: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    name.bytes().fold(START, |number, byte| (number ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_lead_to_files_that_are_safe_anywhere() {
        assert_eq!(encoded("encoder.layer-1.weight"), "t-encoder.layer-1.weight.safetensors");
        assert_eq!(encoded("../Ä\0"), "t-.._2f_c3_84_00.safetensors");
        assert_ne!(encoded("A_b"), encoded("a_b"));
        let long = "界".repeat(400);
        assert_eq!((encoded(&long).len(), decoded(&encoded(&long))), (2 + 160 + 33 + 12, None));
        assert_ne!(encoded(&long), encoded(&format!("{long}a")));
        assert_eq!(decoded("t-a_5F.safetensors"), None, "not as we spell it");
    }

    #[test]
    fn the_number_is_the_published_one() {
        assert_eq!(number(""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(number("a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }

    proptest! {
        #[test]
        fn every_file_leads_back_to_its_tensor(name in "\\PC{0,60}|[ -~]{0,66}|[aA_/.~0-9]{0,66}") {
            let file = encoded(&name);
            prop_assert!(file.len() <= 214 && file.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/'));
            prop_assert_eq!(&file.to_lowercase(), &file);
            if !file.contains('~') {
                prop_assert_eq!(decoded(&file), Some(name));
            }
        }
    }
}
