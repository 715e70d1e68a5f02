//! Weights that networks share: tensors of equal words in one context exist once, also if several models use them.
//!
//! The registry is of the whole process and keeps nothing alive. A network holds its constants; the last one to go frees
//! them. Words are equal if two hashes of 64 bits and
//! their number are equal.

use std::collections::BTreeMap;
use std::hash::Hasher as _;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use twox_hash::XxHash64;
use vramp_tensor::network::{ConstantShelf, WordKind};
use vramp_tensor::{Context, DType, Tensor, TensorError};

/// Hash and number of the words.
type Key = (u64, usize);

static SHARED: Mutex<BTreeMap<Key, Vec<Weak<SharedConstant>>>> = Mutex::new(BTreeMap::new());

/// A constant that networks share.
pub(crate) struct SharedConstant {
    key: Key,
    /// A second hash of the words, with another seed: 128 bits in total decide that words are equal.
    check: u64,
    tensor: Tensor,
}

impl Drop for SharedConstant {
    fn drop(&mut self) {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
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

fn hashed(words: &[u32], seed: u64) -> u64 {
    let mut hasher = XxHash64::with_seed(seed);
    hasher.write(bytemuck::cast_slice(words));
    hasher.finish()
}

impl ConstantShelf for Shelf {
    fn constant(&self, context: &Context, kind: WordKind, words: &[u32]) -> Result<Tensor, TensorError> {
        let dtype = match kind {
            WordKind::F32 => DType::F32,
            WordKind::I32 => DType::I32,
        };
        let (key, check) = ((hashed(words, 0), words.len()), hashed(words, 1));
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let known: Vec<Arc<SharedConstant>> =
            shared.get(&key).into_iter().flatten().filter_map(Weak::upgrade).collect();
        let is_same = |one: &&Arc<SharedConstant>| {
            let tensor = &one.tensor;
            one.check == check && tensor.dtype() == dtype && tensor.context().is(context) && !tensor.is_disposed()
        };
        let constant = match known.iter().find(is_same) {
            Some(found) => Arc::clone(found),
            None => {
                let tensor = context.tensor_from_bytes(bytemuck::cast_slice(words), &[words.len()], dtype)?;
                let made = Arc::new(SharedConstant { key, check, tensor });
                shared.entry(key).or_default().push(Arc::downgrade(&made));
                made
            }
        };
        // Dropping a constant locks the registry.
        drop(shared);
        drop(known);
        let tensor = constant.tensor.clone();
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).push(constant);
        Ok(tensor)
    }
}
