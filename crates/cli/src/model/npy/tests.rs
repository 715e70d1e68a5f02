//! Headers as `NumPy` writes them, and headers that no program should write.

use std::path::PathBuf;

use super::*;

/// A file that is removed when this value is dropped.
struct Stored(PathBuf);

impl Stored {
    fn new(name: &str, bytes: &[u8]) -> Stored {
        let path = std::env::temp_dir().join(format!("vramp-npy-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Stored(path)
    }

    fn open(&self) -> Result<NpyFile, NpyError> {
        NpyFile::open(&self.0)
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A file of version 1 with this dictionary and these values.
fn npy(dictionary: &str, values: &[u8]) -> Vec<u8> {
    let length = (dictionary.len() as u16).to_le_bytes();
    [MAGIC.as_slice(), &[1, 0], &length, dictionary.as_bytes(), values].concat()
}

fn problem(name: &str, bytes: &[u8]) -> String {
    Stored::new(name, bytes).open().unwrap_err().to_string()
}

#[test]
fn what_is_written_is_read_again() {
    for (at, (dtype, lengths)) in [
        (OnnxType::F32, vec![]),
        (OnnxType::F32, vec![3]),
        (OnnxType::I64, vec![2, 3]),
        (OnnxType::Bool, vec![1, 2, 2]),
        (OnnxType::F16, vec![0, 4]),
        (OnnxType::U8, vec![1; 8]),
    ]
    .into_iter()
    .enumerate()
    {
        let bytes = dtype.bytes().unwrap() * lengths.iter().product::<usize>();
        let values: Vec<u8> = (0..bytes as u8).collect();
        let mut written = Vec::new();
        write(&mut written, dtype, &lengths, &values).unwrap();
        assert_eq!((written.len() - values.len()) % 64, 0, "the values are aligned");
        let stored = Stored::new(&format!("again-{at}"), &written);
        let file = stored.open().unwrap();
        assert_eq!((file.dtype(), file.lengths()), (dtype, lengths.as_slice()));
        assert_eq!(file.values().unwrap(), values);
    }
}

#[test]
fn a_written_header_is_the_one_that_numpy_writes() {
    let header = header::written(OnnxType::F32, &[1, 3, 224]);
    let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3, 224), }";
    assert_eq!(&header[..10], b"\x93NUMPY\x01\x00\x76\x00");
    assert_eq!(std::str::from_utf8(&header[10..]).unwrap().trim_end(), text);
    assert_eq!((header.len(), header.last()), (128, Some(&b'\n')));
    let text = |lengths: &[usize]| String::from_utf8_lossy(&header::written(OnnxType::I8, lengths)[10..]).into_owned();
    assert!(text(&[5]).contains("'|i1'") && text(&[5]).contains("(5,)") && text(&[]).contains("()"));
}

#[test]
fn all_versions_quotes_orders_and_spacings_are_read() {
    let dictionary = br#" { "shape" : ( 2L , 1 ), 'fortran_order':False,"descr":'<i4'}   "#;
    let length = (dictionary.len() as u32).to_le_bytes();
    for version in [2, 3] {
        let bytes = [MAGIC.as_slice(), &[version, 0], &length, dictionary, &[1, 0, 0, 0, 2, 0, 0, 0]].concat();
        let stored = Stored::new(&format!("version-{version}"), &bytes);
        let file = stored.open().unwrap();
        assert_eq!((file.dtype(), file.lengths()), (OnnxType::I32, [2, 1].as_slice()));
    }
}

#[test]
fn values_in_fortran_order_are_brought_into_c_order() {
    let header = "{'descr': '<u2', 'fortran_order': True, 'shape': (2, 3), }";
    let values: Vec<u8> = [0_u16, 3, 1, 4, 2, 5].iter().flat_map(|value| value.to_le_bytes()).collect();
    let stored = Stored::new("fortran", &npy(header, &values));
    let read = stored.open().unwrap().values().unwrap();
    let read: Vec<u16> = read.as_chunks().0.iter().map(|bytes| u16::from_le_bytes(*bytes)).collect();
    assert_eq!(read, [0, 1, 2, 3, 4, 5]);
    let cube: Vec<u8> = (0..24).collect();
    let ordered = order::from_fortran(&cube, &[2, 3, 4], 1).unwrap();
    assert_eq!((ordered[1], ordered[4], ordered[12]), (6, 2, 1), "the strides are 1, 2 and 6");
}

#[test]
fn the_place_of_a_value_has_an_index_for_each_axis() {
    assert_eq!(place_of(17, &[2, 3, 4]), [1, 1, 1]);
    assert_eq!(place_of(0, &[]), [0; 0]);
}

#[test]
fn wrong_files_are_named() {
    assert!(problem("empty", b"").starts_with("not a .npy file"));
    assert!(problem("picture", b"\x89PNG\r\n\x1a\n....").starts_with("not a .npy file"));
    assert!(problem("archive", b"PK\x03\x04 and more").starts_with("an archive of arrays (.npz)"));
    assert_eq!(
        problem("version", b"\x93NUMPY\x04\x00\x00\x00"),
        "version 4.0 of the .npy format; expected 1.0, 2.0 or 3.0"
    );
    assert_eq!(problem("short", b"\x93NUMPY\x01\x00\x76"), "the file ends after 9 bytes, inside its header");
    assert_eq!(problem("shorter", b"\x93NUMPY\x01\x00\x76\x00{'de"), "the file ends after 14 bytes, inside its header");
    let long = problem("long", b"\x93NUMPY\x02\x00\xff\xff\xff\xff{");
    assert_eq!(long, "the header has 4294967295 bytes, the limit is 65536");
}

#[test]
fn wrong_headers_are_refused_at_their_place() {
    let types = |descr: &str| npy(&format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (1,), }}"), &[0; 8]);
    assert!(problem("big", &types("'>f8'")).contains("newbyteorder"));
    assert!(problem("objects", &types("'|O'")).contains("`|O` are not plain numbers"));
    assert!(problem("complex", &types("'<c8'")).contains("`<c8` are not plain numbers"));
    assert!(problem("fields", &types("[('a', '<f4')]")).contains("expected a type in quotes"));
    let shapes = |shape: &str| {
        let dictionary = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
        problem("shape", &npy(&dictionary, &[0; 8]))
    };
    for wrong in ["(2)", "2", "(-1,)", "(1.5,)", "(99999999999999999999,)", "(2,", "(,)", "None", "(2, 'a')"] {
        assert!(shapes(wrong).starts_with("the header is malformed at byte "), "{wrong}: {}", shapes(wrong));
    }
    assert!(shapes("(4294967296, 4294967296, 2)").contains("more values than a computer can count"));
    assert_eq!(shapes("(3,)"), "[3] of f32 takes 12 bytes after the header, but the file has 8 there");
    assert_eq!(shapes("(1,)"), "[1] of f32 takes 4 bytes after the header, but the file has 8 there");
    assert!(shapes("(1152921504606846976, 2)").contains("takes 9223372036854775808 bytes"));
    for dictionary in [
        "",
        "{",
        "{}",
        "{'descr'}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': no, 'shape': (2,)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} + 1",
        "{'descr': '<f4",
    ] {
        let words = problem("dictionary", &npy(dictionary, &[0; 8]));
        assert!(words.starts_with("the header is malformed at byte "), "{dictionary}: {words}");
    }
}

#[test]
fn no_bytes_in_a_header_make_it_panic() {
    let good = npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 1), }", &[0; 8]);
    for end in 0..good.len() {
        let stored = Stored::new("cut", &good[..end]);
        assert!(stored.open().is_err(), "{end} bytes");
    }
    for at in 0..good.len() - 8 {
        for byte in [0, b'\'', b'(', b')', b'9', 0xff] {
            let mut changed = good.clone();
            changed[at] = byte;
            if let Ok(file) = Stored::new("changed", &changed).open() {
                assert_eq!(file.values().unwrap().len(), 8);
            }
        }
    }
}
