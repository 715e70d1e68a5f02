//! The ledger agrees with a plain list of all actions, for random sequences of actions.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use vramp_tensor::{Ledger, LedgerError, MAX_NAME_BYTES, MemorySaving, MemoryTag, TensorEntry};

const GRACE: Duration = Duration::from_millis(50);
const TENSORS: [&str; 4] = ["a", "b", "a_b", "view"];
const MODELS: [&str; 4] = ["bert", "vit", "b_bert", "clip"];

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn entry(payload: u32, tag: u64, bytes: u64) -> TensorEntry<u32> {
    TensorEntry { payload, bytes, memory: MemoryTag { tag, bytes }, fingerprint: None }
}

/// A ledger with one tensor of 100 bytes that bert made and vit may use.
fn books() -> Ledger<u32> {
    let mut books = Ledger::new(GRACE);
    books.register("a", "bert", &["vit"], entry(1, 1, 100), false, ms(0)).unwrap();
    books
}

#[test]
fn a_name_is_one_tensor() {
    let mut books = books();
    let again = books.register("a", "vit", &[], entry(2, 2, 8), false, ms(1)).unwrap_err().to_string();
    assert_eq!(again, "`a` is already a tensor of bert; `replace` it, or choose another name");
    let nameless = books.register("", "vit", &[], entry(2, 2, 8), false, ms(1));
    assert_eq!(nameless, Err(LedgerError::Nameless { what: "tensor" }));
    let long = "n".repeat(MAX_NAME_BYTES + 1);
    let refused = books.register(&long, "vit", &[], entry(2, 2, 8), false, ms(1)).unwrap_err().to_string();
    assert!(refused.contains("513 bytes, more than the limit of 512"), "{refused}");
    assert_eq!(books.share("a", "bert", &[""]), Err(LedgerError::Nameless { what: "model" }));
    assert_eq!((books.names().count(), books.bytes()), (1, 100), "what was refused changed nothing");
}

#[test]
fn replacing_keeps_the_users_and_hands_back_the_old_values() {
    let mut books = books();
    books.acquire("a", "vit").unwrap();
    books.pin("a").unwrap();
    let stranger = books.replace("a", "vit", entry(2, 2, 8)).unwrap_err().to_string();
    assert_eq!(stranger, "`a` belongs to bert: vit may not replace or remove it; register another tensor instead");
    assert_eq!(books.replace("a", "bert", entry(2, 2, 8)).unwrap().payload, 1);
    assert_eq!((books.held("a", "vit"), books.holds("a"), books.is_pinned("a")), (1, 2, true));
    assert_eq!((books.get("a", "vit").unwrap().payload, books.bytes()), (2, 8), "a replaced tensor counts once");
}

#[test]
fn only_models_that_may_use_a_tensor_may_share_it() {
    let mut books = books();
    let refused = books.share("a", "clip", &["clip"]).unwrap_err().to_string();
    assert_eq!(
        refused,
        "`a` is not shared with clip: it belongs to bert, and 1 others may use it; `share` it with clip first"
    );
    assert!(matches!(books.acquire("a", "clip"), Err(LedgerError::NotShared { .. })));
    assert_eq!(
        books.share("a", "vit", &["clip", "vit", "bert"]),
        Ok(1),
        "a consumer may share; models that may use it already are not new"
    );
    assert_eq!(books.acquire("a", "clip"), Ok(1));
    assert_eq!(books.consumers("a").collect::<Vec<_>>(), ["clip", "vit"]);
    assert_eq!(books.share("b", "vit", &["clip"]), Err(LedgerError::Unknown { name: "b".into(), has: 1 }));
}

#[test]
fn what_was_acquired_twice_is_released_twice() {
    let mut books = books();
    books.release("a", "bert", ms(0)).unwrap();
    assert_eq!((books.acquire("a", "vit"), books.acquire("a", "vit")), (Ok(1), Ok(2)));
    assert_eq!(books.release("a", "vit", ms(10)), Ok(1));
    assert!(books.due(ms(1000)).is_empty());
    assert_eq!(books.release("a", "vit", ms(20)), Ok(0));
    let thrice = books.release("a", "vit", ms(30)).unwrap_err().to_string();
    assert_eq!(thrice, "`a`: vit does not hold it any more, after 2 acquires; release once per acquire");
    assert!(books.due(ms(69)).is_empty());
    assert_eq!(books.due(ms(70)).len(), 1, "the grace period counts from the last release that was one");
}

#[test]
fn nothing_is_taken_that_is_held_pinned_or_just_used() {
    let mut books = books();
    let held = books.take("a", ms(100)).unwrap_err().to_string();
    assert_eq!(held, "`a` is in use: 1 models hold it 1 times; release it there first (`release_model`)");
    books.pin("a").unwrap();
    books.release("a", "bert", ms(100)).unwrap();
    assert_eq!(books.take("a", ms(900)), Err(LedgerError::Pinned { name: "a".into() }));
    books.unpin("a", ms(1000)).unwrap();
    let soon = books.take("a", ms(1049)).unwrap_err().to_string();
    assert_eq!(soon, "`a` was used 49 ms ago and is kept for 50 ms after its last use");
    let freed = books.take("a", ms(1050)).unwrap();
    assert_eq!((freed.payload, freed.last_of_its_memory, books.bytes()), (1, true, 0));
}

#[test]
fn a_view_outlives_the_name_it_was_made_from() {
    let mut books = books();
    let view = TensorEntry { bytes: 40, ..entry(2, 1, 100) };
    books.register("view", "vit", &[], view, false, ms(0)).unwrap();
    assert_eq!((books.bytes(), books.bytes_of_tensor("view")), (100, Some(40)));
    books.release("a", "bert", ms(0)).unwrap();
    let freed = books.take("a", ms(50)).unwrap();
    assert!(!freed.last_of_its_memory);
    assert_eq!(books.bytes(), 100, "the memory is still there");
}

#[test]
fn one_memory_has_one_size() {
    let mut books = books();
    let other = books.register("b", "vit", &[], entry(2, 1, 99), false, ms(0)).unwrap_err().to_string();
    assert_eq!(other, "`b`: memory 1 is registered with 100 bytes, not 99; use one tag per memory");
    let over = TensorEntry { bytes: 9, ..entry(2, 2, 8) };
    let over = books.register("b", "vit", &[], over, false, ms(0)).unwrap_err().to_string();
    assert_eq!(over, "`b` has 9 bytes, more than the 8 bytes of its memory");
}

#[test]
fn a_model_that_goes_says_what_it_gave_up() {
    let mut books = books();
    books.register("b", "vit", &["bert"], entry(2, 2, 30), false, ms(0)).unwrap();
    for _ in 0..3 {
        books.acquire("a", "vit").unwrap();
    }
    assert_eq!((books.bytes_of_model("vit"), books.bytes_of_model_alone("vit")), (130, 30));
    let gone = books.release_model("vit", ms(5));
    assert_eq!((gone.tensors, gone.holds, gone.idle_bytes), (2, 4, 30), "bert still holds the 100 bytes of `a`");
    assert!(matches!(books.acquire("a", "vit"), Err(LedgerError::NotShared { .. })), "it no longer shares");
    assert_eq!(books.release_model("vit", ms(6)), vramp_tensor::ModelReleased::default());
    assert_eq!(books.take_due(ms(55)).iter().map(|freed| freed.name.as_str()).collect::<Vec<_>>(), ["b"]);
}

#[test]
fn sharing_saves_what_models_would_need_apart() {
    let mut books: Ledger<u32> = Ledger::new(GRACE);
    for (at, model) in ["bert", "vit", "clip"].into_iter().enumerate() {
        books.register(model, model, &[], entry(0, at as u64, 400), false, ms(0)).unwrap();
    }
    books.register("embedding", "bert", &["vit", "clip"], entry(0, 9, 600), false, ms(0)).unwrap();
    assert_eq!(
        books.saving(),
        MemorySaving { shared_bytes: 1800, separate_bytes: 1800 },
        "a right to use is not a use"
    );
    books.acquire("embedding", "vit").unwrap();
    books.acquire("embedding", "clip").unwrap();
    let saving = books.saving();
    assert_eq!((saving.shared_bytes, saving.separate_bytes, saving.saved_bytes()), (1800, 3000, 1200));
    assert!((saving.fraction() - 0.4).abs() < 1e-9);
}

#[test]
fn equal_values_of_two_models_are_an_opportunity_and_words_say_which() {
    let mut books: Ledger<u32> = Ledger::new(GRACE);
    let alike = |tag, bytes| TensorEntry { bytes: 64, fingerprint: Some(7), ..entry(0, tag, bytes) };
    books.register("bert/words", "bert", &[], alike(1, 64), false, ms(0)).unwrap();
    books.register("clip/words", "clip", &["vit"], alike(2, 256), false, ms(0)).unwrap();
    books
        .register("bert/again", "bert", &[], TensorEntry { fingerprint: Some(8), ..entry(0, 3, 64) }, false, ms(0))
        .unwrap();
    books
        .register("bert/thrice", "bert", &[], TensorEntry { fingerprint: Some(8), ..entry(0, 4, 64) }, true, ms(0))
        .unwrap();
    let [found] = &books.opportunities()[..] else { panic!("one: {:?}", books.opportunities()) };
    assert_eq!(
        (found.keep.as_str(), &found.instead_of[..], found.saves_bytes),
        ("bert/words", &["clip/words".into()][..], 256)
    );
    assert_eq!(found.share_with, ["clip", "vit"]);
    books.release("bert/thrice", "bert", ms(0)).unwrap();
    assert_eq!(
        books.recommendations(),
        [
            "`clip/words` and `bert/words` seem to hold the same values: share `bert/words` with clip, vit and save 256 \
             bytes",
            "`bert/thrice` is pinned but no model holds it: unpin it and free 64 bytes",
            "`clip/words` is shared with vit but was never acquired there: is it needed?",
        ]
    );

    // Following the advice saves the bytes it stated.
    let before = books.bytes();
    let (keep, saves) = (found.keep.clone(), found.saves_bytes);
    let kept = books.entry(&keep).unwrap().clone();
    books.replace("clip/words", "clip", kept).unwrap();
    assert_eq!(before - books.bytes(), saves);
    assert!(books.opportunities().is_empty());
}

#[test]
fn disposing_of_all_leaves_empty_books() {
    let mut books = books();
    books.pin("a").unwrap();
    assert_eq!(books.take_all().len(), 1);
    assert_eq!((books.bytes(), books.models().len(), books.saving()), (0, 0, MemorySaving::default()));
    books.register("a", "vit", &[], entry(3, 3, 1), false, ms(9)).unwrap();
}

// ---- against a list of actions

#[derive(Debug, Clone)]
enum Act {
    Register { tensor: usize, model: usize, to: Vec<usize>, tag: u64, pinned: bool, fingerprint: Option<u64> },
    Replace { tensor: usize, model: usize, tag: u64 },
    Share { tensor: usize, from: usize, to: Vec<usize> },
    Acquire { tensor: usize, model: usize },
    Release { tensor: usize, model: usize },
    ReleaseModel { model: usize },
    Pin { tensor: usize },
    Unpin { tensor: usize },
    Take { tensor: usize },
    Sweep,
}

fn act() -> impl Strategy<Value = Act> {
    let (tensor, model) = (0..TENSORS.len(), 0..MODELS.len());
    let to = proptest::collection::vec(0..MODELS.len(), 0..3);
    let mark = proptest::option::of(0..2_u64);
    prop_oneof![
        3 => (tensor.clone(), model.clone(), to.clone(), 0..5_u64, any::<bool>(), mark)
            .prop_map(|(tensor, model, to, tag, pinned, fingerprint)| Act::Register { tensor, model, to, tag, pinned, fingerprint }),
        1 => (tensor.clone(), model.clone(), 0..5_u64).prop_map(|(tensor, model, tag)| Act::Replace { tensor, model, tag }),
        2 => (tensor.clone(), model.clone(), to).prop_map(|(tensor, from, to)| Act::Share { tensor, from, to }),
        4 => (tensor.clone(), model.clone()).prop_map(|(tensor, model)| Act::Acquire { tensor, model }),
        4 => (tensor.clone(), model.clone()).prop_map(|(tensor, model)| Act::Release { tensor, model }),
        1 => model.prop_map(|model| Act::ReleaseModel { model }),
        1 => tensor.clone().prop_map(|tensor| Act::Pin { tensor }),
        2 => tensor.clone().prop_map(|tensor| Act::Unpin { tensor }),
        1 => tensor.prop_map(|tensor| Act::Take { tensor }),
        1 => Just(Act::Sweep),
    ]
}

/// Bytes of a memory: one size per tag, so that only the ledger's own checks refuse.
fn bytes_of(tag: u64) -> u64 {
    [0, 4, 100, 4096, 1 << 40][tag as usize]
}

/// The model: plain lists. Rights and holds are pairs of a tensor and a model; a second hold is a second entry.
#[derive(Debug, Default)]
struct Plain {
    tensors: BTreeMap<&'static str, (u64, &'static str, Option<u64>)>,
    rights: BTreeSet<(&'static str, &'static str)>,
    holds: Vec<(&'static str, &'static str)>,
    pinned: BTreeSet<&'static str>,
    touched: BTreeMap<&'static str, Duration>,
}

impl Plain {
    fn may(&self, tensor: &str, model: &str) -> bool {
        self.rights.iter().any(|pair| *pair == (tensor, model))
    }

    fn due(&self, tensor: &str, now: Duration) -> bool {
        let held = self.holds.iter().any(|(held, _)| *held == tensor);
        self.tensors.contains_key(tensor)
            && !held
            && !self.pinned.contains(tensor)
            && now >= self.touched[tensor] + GRACE
    }

    fn forget(&mut self, tensor: &'static str) {
        self.tensors.remove(tensor);
        self.rights.retain(|(of, _)| *of != tensor);
        self.pinned.remove(tensor);
    }

    fn bytes(&self, wanted: impl Fn(&str) -> bool) -> u64 {
        let tags: BTreeSet<u64> =
            self.tensors.iter().filter(|(name, _)| wanted(name)).map(|(_, (tag, ..))| *tag).collect();
        tags.into_iter().map(bytes_of).sum()
    }

    /// Applies an action and returns whether it is allowed.
    fn act(&mut self, act: &Act, now: Duration) -> bool {
        match act {
            Act::Register { tensor, model, to, tag, pinned, fingerprint } => {
                let (tensor, model) = (TENSORS[*tensor], MODELS[*model]);
                if self.tensors.contains_key(tensor) {
                    return false;
                }
                self.tensors.insert(tensor, (*tag, model, *fingerprint));
                self.rights.extend(to.iter().map(|to| (tensor, MODELS[*to])).chain([(tensor, model)]));
                self.holds.push((tensor, model));
                if *pinned {
                    self.pinned.insert(tensor);
                }
                self.touched.insert(tensor, now);
            }
            Act::Replace { tensor, model, tag } => match self.tensors.get_mut(TENSORS[*tensor]) {
                Some((old, producer, fingerprint)) if *producer == MODELS[*model] => {
                    (*old, *fingerprint) = (*tag, None);
                }
                _ => return false,
            },
            Act::Share { tensor, from, to } => {
                if !self.may(TENSORS[*tensor], MODELS[*from]) {
                    return false;
                }
                self.rights.extend(to.iter().map(|to| (TENSORS[*tensor], MODELS[*to])));
            }
            Act::Acquire { tensor, model } => {
                if !self.may(TENSORS[*tensor], MODELS[*model]) {
                    return false;
                }
                self.holds.push((TENSORS[*tensor], MODELS[*model]));
            }
            Act::Release { tensor, model } => {
                let pair = (TENSORS[*tensor], MODELS[*model]);
                let Some(at) = self.holds.iter().position(|held| *held == pair) else { return false };
                self.holds.remove(at);
                self.touched.insert(pair.0, now);
            }
            Act::ReleaseModel { model } => {
                let model = MODELS[*model];
                for (tensor, _) in self.holds.iter().filter(|(_, of)| *of == model) {
                    self.touched.insert(tensor, now);
                }
                self.holds.retain(|(_, of)| *of != model);
                let tensors = &self.tensors;
                self.rights.retain(|(tensor, of)| *of != model || tensors[tensor].1 == model);
            }
            Act::Pin { tensor } => {
                if !self.tensors.contains_key(TENSORS[*tensor]) {
                    return false;
                }
                self.pinned.insert(TENSORS[*tensor]);
            }
            Act::Unpin { tensor } => {
                if self.pinned.remove(TENSORS[*tensor]) {
                    self.touched.insert(TENSORS[*tensor], now);
                }
                return self.tensors.contains_key(TENSORS[*tensor]);
            }
            Act::Take { tensor } => {
                if !self.due(TENSORS[*tensor], now) {
                    return false;
                }
                self.forget(TENSORS[*tensor]);
            }
            Act::Sweep => {
                let due: Vec<_> = TENSORS.into_iter().filter(|tensor| self.due(tensor, now)).collect();
                for tensor in due {
                    self.forget(tensor);
                }
            }
        }
        true
    }
}

fn real(books: &mut Ledger<u32>, act: &Act, now: Duration) -> bool {
    let names = |of: &[usize]| of.iter().map(|at| MODELS[*at]).collect::<Vec<_>>();
    match act {
        Act::Register { tensor, model, to, tag, pinned, fingerprint } => {
            let entry = TensorEntry { fingerprint: *fingerprint, ..entry(0, *tag, bytes_of(*tag)) };
            books.register(TENSORS[*tensor], MODELS[*model], &names(to), entry, *pinned, now).is_ok()
        }
        Act::Replace { tensor, model, tag } => {
            books.replace(TENSORS[*tensor], MODELS[*model], entry(0, *tag, bytes_of(*tag))).is_ok()
        }
        Act::Share { tensor, from, to } => books.share(TENSORS[*tensor], MODELS[*from], &names(to)).is_ok(),
        Act::Acquire { tensor, model } => books.acquire(TENSORS[*tensor], MODELS[*model]).is_ok(),
        Act::Release { tensor, model } => books.release(TENSORS[*tensor], MODELS[*model], now).is_ok(),
        Act::ReleaseModel { model } => {
            let alone = books.bytes_of_model_alone(MODELS[*model]);
            books.release_model(MODELS[*model], now).idle_bytes == alone
        }
        Act::Pin { tensor } => books.pin(TENSORS[*tensor]).is_ok(),
        Act::Unpin { tensor } => books.unpin(TENSORS[*tensor], now).is_ok(),
        Act::Take { tensor } => books.take(TENSORS[*tensor], now).is_ok(),
        Act::Sweep => {
            let due = books.due(now).len();
            books.take_due(now).len() == due
        }
    }
}

proptest! {
    #[test]
    fn the_books_agree_with_the_list(steps in proptest::collection::vec((act(), 0..40_u64), 1..80)) {
        let (mut books, mut plain) = (Ledger::new(GRACE), Plain::default());
        let mut now = Duration::ZERO;
        for (act, wait) in steps {
            now += ms(wait);
            prop_assert_eq!(real(&mut books, &act, now), plain.act(&act, now), "{:?}", act);

            let due: BTreeSet<_> = books.due(now).into_iter().map(|due| due.name).collect();
            let wanted: BTreeSet<_> = TENSORS.into_iter().filter(|it| plain.due(it, now)).map(String::from).collect();
            prop_assert_eq!(due, wanted);
            prop_assert_eq!(books.bytes(), plain.bytes(|_| true));
            let mut separate = 0;
            for model in MODELS {
                for tensor in TENSORS {
                    let held = plain.holds.iter().filter(|pair| **pair == (tensor, model)).count() as u64;
                    prop_assert_eq!(books.held(tensor, model), held, "{} {}", tensor, model);
                    prop_assert_eq!(books.get(tensor, model).is_ok(), plain.may(tensor, model));
                }
                let bytes = plain.bytes(|name| plain.holds.contains(&(TENSORS[TENSORS.iter().position(|it| *it == name).unwrap()], model)));
                prop_assert_eq!(books.bytes_of_model(model), bytes);
                separate += bytes;
            }
            let shared = plain.bytes(|name| plain.holds.iter().any(|(held, _)| *held == name));
            prop_assert_eq!(books.saving(), MemorySaving { shared_bytes: shared, separate_bytes: separate });
        }

        // Each piece of advice, on a ledger of its own, saves what it states.
        for it in books.opportunities() {
            let mut books = books.clone();
            let before = books.bytes();
            let kept = books.entry(&it.keep).unwrap().clone();
            for name in &it.instead_of {
                let producer = books.producer(name).unwrap().to_owned();
                books.replace(name, &producer, kept.clone()).unwrap();
            }
            prop_assert_eq!(before - books.bytes(), it.saves_bytes);
        }

        // Everything that was acquired can be released, and then everything can be freed.
        for (tensor, model) in std::mem::take(&mut plain.holds) {
            prop_assert!(books.release(tensor, model, now).is_ok());
        }
        for tensor in TENSORS {
            prop_assert_eq!(books.holds(tensor), 0);
            let _ = books.unpin(tensor, now);
        }
        books.take_due(now + GRACE);
        prop_assert_eq!((books.names().count(), books.bytes()), (0, 0));
    }
}
