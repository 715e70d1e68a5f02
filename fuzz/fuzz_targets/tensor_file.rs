//! Any bytes are accepted as a tensor file or refused. Tensors of an accepted file are inside the file, other readers
//! read the same values, and the header is written back the same.

#![no_main]
#![allow(dead_code, reason = "only the modules of the reader are compiled here, without tensors and devices")]

#[path = "../../crates/tensor/src/store/files/header.rs"]
mod header;
#[path = "../../crates/tensor/src/store/files/kinds.rs"]
mod kinds;

use header::{Header, HeaderError};
use libfuzzer_sys::fuzz_target;
use safetensors::SafeTensors;

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    // Again with a header length that fits, which few mutations produce.
    if let Some((length, rest)) = bytes.split_first_chunk::<8>() {
        let fits = u64::from_le_bytes(*length) % (rest.len() as u64 + 1);
        check(&[&fits.to_le_bytes()[..], rest].concat());
    }
});

fn read(bytes: &[u8]) -> Result<Header, HeaderError> {
    Header::read(bytes.len() as u64, |at, into: &mut [u8]| {
        into.copy_from_slice(&bytes[at as usize..][..into.len()]);
        Ok(())
    })
}

fn check(bytes: &[u8]) {
    let header = match read(bytes) {
        Ok(header) => header,
        Err(error) => {
            let _ = error.to_string();
            return;
        }
    };
    let values = &bytes[header.values_at as usize..];
    let claimed: u64 =
        header.spans.values().map(|span| values[span.start as usize..span.end as usize].len() as u64).sum();
    assert_eq!(claimed, values.len() as u64);

    let again = read(&[&header.to_bytes(), values].concat()).expect("what is written is read");
    assert_eq!(again.spans, header.spans);

    if header.spans.values().all(|span| kinds::bits(&span.kind).is_some()) {
        let other = SafeTensors::deserialize(bytes).expect("others take what we take");
        assert_eq!(other.len(), header.spans.len());
        for (name, span) in &header.spans {
            let tensor = other.tensor(name).expect("others find it");
            assert_eq!(tensor.data(), &values[span.start as usize..span.end as usize]);
        }
    }
}
