//! Names of tensors in a store: every accepted name can be written to a file and read back unchanged.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::path::PathBuf;

use proptest::prelude::*;
use vramp_tensor::{Context, LedgerError, Store, StoreError};

/// A folder for one test, removed afterwards.
struct Room(PathBuf);

impl Room {
    fn new(name: &str) -> Room {
        let path = std::env::temp_dir().join(format!("vramp-names-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Room(path)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_one_name_that_files_keep_for_themselves_is_refused_wherever_a_tensor_gets_one() {
    let store = Store::builder().context(&Context::on_host()).build().unwrap();
    store.register("a", &[4], &[1.0_f32; 4], "m", &[]).unwrap();
    let refused = StoreError::Books(LedgerError::Reserved { name: "__metadata__".to_owned() });
    assert_eq!(store.register("__metadata__", &[1], &[1_u8], "m", &[]), Err(refused.clone()));
    assert_eq!(store.view(("a", "m"), ("__metadata__", "m"), 0, None), Err(refused.clone()));
    assert_eq!(store.elementwise(("a", "m"), ("__metadata__", "m"), None), Err(refused.clone()));
    assert_eq!(
        refused.to_string(),
        "a tensor cannot be called `__metadata__`, which is reserved in files of tensors; choose another name"
    );
    store.register("b", &[1], &[1_u8], "__metadata__", &[]).unwrap();
    assert_eq!(store.names(), ["a", "b"], "models may be called so");
}

#[test]
fn a_name_that_would_be_refused_is_so_before_anything_is_computed_for_it() {
    let store = Store::builder().context(&Context::on_host()).build().unwrap();
    store.register("a", &[4], &[1.0_f32; 4], "m", &[]).unwrap();
    let computed = std::cell::Cell::new(0);
    let long = "n".repeat(vramp_tensor::MAX_NAME_BYTES + 1);
    for name in ["", "__metadata__", &long] {
        let refused = store.compute(&[("a", "m")], (name, "m"), |of| {
            computed.set(computed.get() + 1);
            of[0].relu()
        });
        assert!(matches!(refused, Err(StoreError::Books(_))), "{refused:?}");
    }
    assert_eq!(computed.get(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    #[test]
    fn whatever_is_registered_is_persisted_and_loaded(
        name in "\\PC{1,30}|[\0-\x7f]{1,200}|[a-z_]{500,512}|__metadata__|t-.*|\\.\\.?/?|con|nul",
    ) {
        let room = Room::new("registered");
        let store = Store::builder().context(&Context::on_host()).folder(&room.0, 1 << 20).build().unwrap();
        if store.register(&name, &[2], &[7_u8, 9], "m", &[]).is_ok() {
            store.persist(&name).unwrap();
            store.unregister(&name, "m").unwrap();
            store.load(&name, "n").unwrap();
            prop_assert_eq!(store.tensor(&name, "n").unwrap().read::<u8>().unwrap(), [7, 9]);
        }
    }
}
