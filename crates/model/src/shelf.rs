//! Weights that networks share: tensors of equal words in one context exist once, also if several models use them.
//!
//! The registry is of the whole process and keeps nothing alive. A network holds its constants; the last one to go frees
//! them. On the host, words are compared. Those on a device cannot be; they count as equal if their number and two hashes
//! are, one of which has a key that no file knows.
//!
//! Invariant: no constant is dropped while the registry is locked, because dropping one locks it.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use twox_hash::XxHash64;
use vramp_tensor::network::{ConstantShelf, WordKind};
use vramp_tensor::{Context, DType, Tensor, TensorError};

/// Hash and number of the words.
type Key = (u64, usize);

static SHARED: Mutex<Registry> = Mutex::new(BTreeMap::new());

type Registry = BTreeMap<Key, Vec<Weak<SharedConstant>>>;

/// Held while a constant is looked up and made, so that two networks that are built at once share it.
static MAKING: Mutex<()> = Mutex::new(());

/// The key of the second hash.
static SECRET: LazyLock<RandomState> = LazyLock::new(RandomState::new);

fn registry() -> MutexGuard<'static, Registry> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A constant that networks share.
pub(crate) struct SharedConstant {
    key: Key,
    /// The hash with the secret key, for words on a device.
    check: Option<u64>,
    tensor: Tensor,
}

impl Drop for SharedConstant {
    fn drop(&mut self) {
        let mut shared = registry();
        if let Some(found) = shared.get_mut(&self.key) {
            found.retain(|one| one.strong_count() > 0);
            if found.is_empty() {
                shared.remove(&self.key);
            }
        }
    }
}

/// The constants of one network that is being built.
#[derive(Default)]
pub(crate) struct Shelf {
    taken: Mutex<Vec<Arc<SharedConstant>>>,
}

impl Shelf {
    /// What the network must hold as long as it lives.
    pub(crate) fn into_taken(self) -> Vec<Arc<SharedConstant>> {
        self.taken.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SharedConstant {
    /// Whether this is the constant with these words.
    fn is(&self, context: &Context, dtype: DType, words: &[u32], check: Option<u64>) -> bool {
        let tensor = &self.tensor;
        let is_alike = tensor.dtype() == dtype && tensor.context().is(context) && !tensor.is_disposed();
        let is_same = || match check {
            Some(check) => self.check == Some(check),
            None => tensor.read_bytes().is_ok_and(|bytes| bytes == bytemuck::cast_slice::<u32, u8>(words)),
        };
        is_alike && is_same()
    }
}

impl ConstantShelf for Shelf {
    fn constant(&self, context: &Context, kind: WordKind, words: &[u32]) -> Result<Tensor, TensorError> {
        let dtype = match kind {
            WordKind::F32 => DType::F32,
            WordKind::I32 => DType::I32,
        };
        let mut hasher = XxHash64::with_seed(0);
        hasher.write(bytemuck::cast_slice(words));
        let key = (hasher.finish(), words.len());
        let check = has_device(context).then(|| SECRET.hash_one(words));
        let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let known: Vec<Arc<SharedConstant>> =
            registry().get(&key).into_iter().flatten().filter_map(Weak::upgrade).collect();
        let constant = match known.iter().find(|one| one.is(context, dtype, words, check)) {
            Some(found) => Arc::clone(found),
            None => {
                let tensor = context.tensor_from_bytes(bytemuck::cast_slice(words), &[words.len()], dtype)?;
                let made = Arc::new(SharedConstant { key, check, tensor });
                registry().entry(key).or_default().push(Arc::downgrade(&made));
                made
            }
        };
        let tensor = constant.tensor.clone();
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).push(constant);
        Ok(tensor)
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn has_device(context: &Context) -> bool {
    context.device().is_some()
}

#[cfg(target_arch = "wasm32")]
fn has_device(_: &Context) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use vramp_tensor::HostPoolRules;

    use super::*;

    #[test]
    fn equal_words_are_one_tensor_and_words_with_an_equal_hash_are_not() {
        let context = Context::on_host();
        let (shelf, words) = (Shelf::default(), [1_u32, 2, 3]);
        let one = shelf.constant(&context, WordKind::I32, &words).unwrap();
        let bytes = context.memory().bytes();
        let two = shelf.constant(&context, WordKind::I32, &words).unwrap();
        assert_eq!((context.memory().bytes(), two.read::<i32>().unwrap()), (bytes, one.read::<i32>().unwrap()));
        // The same key with other words, as a collision would make it.
        let held = shelf.taken.lock().unwrap()[0].clone();
        assert!(held.is(&context, DType::I32, &words, None) && !held.is(&context, DType::I32, &[1, 2, 4], None));
        assert!(!held.is(&context, DType::F32, &words, None));
    }

    #[test]
    fn a_constant_that_finds_no_memory_leaves_the_registry_usable() {
        let words = vec![7_u32; 1000];
        let small = Context::builder().host_pool(HostPoolRules { budget_bytes: 100, ..Default::default() }).on_host();
        let other = Context::on_host();
        let shelf = Shelf::default();
        shelf.constant(&other, WordKind::I32, &words).unwrap();
        // The only other holder of the constant goes while the failing call has it.
        let waiting = std::thread::spawn(move || drop(shelf));
        assert!(Shelf::default().constant(&small, WordKind::I32, &words).is_err());
        waiting.join().unwrap();
        assert!(Shelf::default().constant(&other, WordKind::I32, &words).is_ok());
    }
}
