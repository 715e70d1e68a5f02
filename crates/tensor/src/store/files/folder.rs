//! A folder that a store keeps its tensors in, from one run to the next.
//!
//! Owns one file per tensor, the quota, and who goes when it is reached: the least recently used.
//! Does not hold values: what is got is an open file, which stays good whatever happens to the folder.
//!
//! Always: after a put, the files take no more than the quota; a tensor that is replaced counts once; a put that fails,
//! at whatever point, costs no other tensor its place: those that make room are set aside, and removed when the new
//! file has its name. A process that is killed in a put may leave more than the quota, until the next put. While a file
//! is written it is there besides the old ones: the disk needs room for the quota and one tensor.
//!
//! Processes may share a folder. Writers take turns by a lock on the file `lock`; readers need none, since files are
//! only ever renamed into place and removed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use super::aside::{self, Aside};
use super::error::FileError;
use super::file::{FileTensor, TensorBytes, TensorFile};
use super::file_name::{decoded, encoded};
use super::shelf::{FolderContents, ShelfFile};
use super::temporary::{OF_A_PUT, settle, sync_folder_of};
use super::write::{WritePlan, heading};
use crate::ops::dtype::DType;
use crate::ops::shape::Shape;

/// A folder of named tensors.
#[derive(Debug)]
pub struct TensorFolder {
    path: PathBuf,
    quota_bytes: u64,
    /// Held while anything is written: by the mutex within this process, by the lock among all.
    lock: Mutex<File>,
    /// The last use that we know of.
    newest: Mutex<SystemTime>,
}

/// What a put came to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PutOutcome {
    /// Bytes of its file.
    pub file_bytes: u64,
    /// Tensors that were removed for it, least recently used first; a file that nobody can read by its file's name.
    pub evicted: Vec<String>,
    /// What tells this put from every other, of any process: it stands in the file's metadata, as `put`.
    pub mark: String,
}

/// A tensor in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderTensor {
    /// Its name.
    pub name: String,
    /// Its type.
    pub dtype: DType,
    /// Its shape.
    pub shape: Shape,
    /// Bytes of its file.
    pub file_bytes: u64,
    /// When it was last put or got.
    pub last_use: SystemTime,
}

/// A file in the folder that cannot be read.
#[derive(Debug, Clone, PartialEq)]
pub struct CorruptFile {
    /// Which file.
    pub path: PathBuf,
    /// The tensor that it was, if its name says.
    pub name: Option<String>,
    /// What is wrong with it.
    pub problem: FileError,
}

/// What is in the folder.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Listing {
    /// Tensors, least recently used first.
    pub kept: Vec<FolderTensor>,
    /// What cannot be read, and takes room all the same.
    pub corrupt: Vec<CorruptFile>,
    /// What all files take.
    pub file_bytes: u64,
}

impl TensorFolder {
    /// Opens a folder, and makes it if it is not there. A quota that is smaller than before counts from the next put on.
    pub fn open(path: impl Into<PathBuf>, quota_bytes: u64) -> Result<TensorFolder, FileError> {
        let path = path.into();
        fs::create_dir_all(&path).map_err(|error| FileError::system("made", &path, &error))?;
        let place = path.join("lock");
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(&place);
        let lock = lock.map_err(|error| FileError::system("opened", &place, &error))?;
        let newest = Mutex::new(SystemTime::UNIX_EPOCH);
        let folder = TensorFolder { path, quota_bytes, lock: Mutex::new(lock), newest };
        {
            let _turn = folder.turn()?;
            folder.tidy()?;
        }
        Ok(folder)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The most that its files may take.
    pub fn quota_bytes(&self) -> u64 {
        self.quota_bytes
    }

    /// Keeps a tensor, in place of one of the same name, and removes others until all fit. It is on the disk then, which
    /// is what takes the time: 11 ms for 4 kB, where getting it takes 0.05.
    pub fn put(&self, tensor: &TensorBytes<'_>) -> Result<PutOutcome, FileError> {
        let path = self.place(tensor.name);
        let headings = [heading(tensor)];
        let mark = new_mark();
        let plan = WritePlan::new(&path, &headings, BTreeMap::from([(MARK.to_owned(), mark.clone())]))?;
        let (needed_bytes, quota_bytes) = (plan.file_bytes, self.quota_bytes);
        if needed_bytes > quota_bytes {
            let (path, name) = (self.path.clone(), tensor.name.to_owned());
            return Err(FileError::OverQuota { path, name, needed_bytes, quota_bytes });
        }
        let _turn = self.turn()?;
        self.tidy()?;
        // A file that cannot be read is replaced; one that another tensor rightly has is not.
        if let Err(other @ FileError::SameFile { .. }) = open_as(&path, tensor.name) {
            return Err(other);
        }
        let failed = |error| FileError::writing(&path, needed_bytes, &error);
        // Everything is on the disk before anything goes: a full disk costs nobody their tensor.
        let temporary = plan.fill(&path, OF_A_PUT, &headings, |_| Ok::<_, FileError>(Cow::Borrowed(tensor.bytes)))?;
        let mut shelf = FolderContents::look(&self.path)?;
        settle(&temporary, Some(self.use_after(shelf.newest()))).map_err(failed)?;
        shelf.places.retain(|place| place.path != path);
        let (aside, evicted) = self.make_room(&shelf, tensor.name, needed_bytes)?;
        // The one step that decides: before it nothing is gone, behind it nothing can fail but to reach the disk.
        temporary.persist(&path).map_err(|refused| failed(refused.into()))?;
        aside.remove();
        sync_folder_of(&path).map_err(failed)?;
        Ok(PutOutcome { file_bytes: needed_bytes, evicted, mark })
    }

    /// A tensor, which counts as its use; none if it is not there. It is in the file under the same name.
    pub fn get(&self, name: &str) -> Result<Option<TensorFile>, FileError> {
        let path = self.place(name);
        let file = match open_as(&path, name) {
            Err(FileError::NotThere { .. }) => return Ok(None),
            other => other?,
        };
        // Where that cannot be noted, say on a disk that turned read-only, the tensor can be had all the same.
        if let Ok(opened) = OpenOptions::new().append(true).open(&path) {
            let _ = opened.set_modified(self.use_after(None));
        }
        Ok(Some(file))
    }

    /// Removes a tensor, readable or not. Says whether it was there.
    pub fn remove(&self, name: &str) -> Result<bool, FileError> {
        let path = self.place(name);
        let _turn = self.turn()?;
        // It may be set aside, by one who was killed: it would come back.
        self.tidy()?;
        match open_as(&path, name) {
            Err(FileError::NotThere { .. }) => Ok(false),
            Err(other @ FileError::SameFile { .. }) => Err(other),
            _ => remove(&path),
        }
    }

    /// Removes everything that is no tensor of this folder, and says what that was. What only the system keeps us from
    /// reading stays: it may well be whole.
    pub fn remove_corrupt(&self) -> Result<Vec<CorruptFile>, FileError> {
        let _turn = self.turn()?;
        self.tidy()?;
        let mut corrupt = self.list()?.corrupt;
        corrupt.retain(|file| matches!(file.problem, FileError::Malformed { .. } | FileError::OtherTensor { .. }));
        for file in &corrupt {
            remove(&file.path)?;
        }
        Ok(corrupt)
    }

    /// What is in the folder. Does not count as a use.
    pub fn list(&self) -> Result<Listing, FileError> {
        let shelf = FolderContents::look(&self.path)?;
        let mut listing = Listing { file_bytes: shelf.bytes(), ..Listing::default() };
        for place in shelf.places {
            match kept(&place) {
                Ok(kept) => listing.kept.push(kept),
                // Removed since we looked.
                Err(FileError::NotThere { .. }) => listing.file_bytes -= place.bytes,
                Err(problem) => {
                    listing.corrupt.push(CorruptFile { name: named(&place.path), path: place.path, problem });
                }
            }
        }
        Ok(listing)
    }

    /// Sets the least recently used aside until this much fits besides; says who they are.
    fn make_room(
        &self,
        shelf: &FolderContents,
        name: &str,
        needed_bytes: u64,
    ) -> Result<(Aside, Vec<String>), FileError> {
        let mut taken = shelf.bytes();
        let (mut aside, mut evicted) = (Aside::default(), Vec::new());
        for place in &shelf.places {
            if taken + needed_bytes <= self.quota_bytes {
                break;
            }
            let name = named(&place.path).or_else(|| kept(place).ok().map(|kept| kept.name));
            // One that somebody holds cannot be taken away everywhere: the next may be.
            if aside.add(&place.path) {
                taken -= place.bytes;
                evicted.push(name.unwrap_or_else(|| place.path.display().to_string()));
            }
        }
        if taken + needed_bytes <= self.quota_bytes {
            return Ok((aside, evicted));
        }
        let (path, quota_bytes) = (self.path.clone(), self.quota_bytes);
        Err(FileError::NoRoom { path, name: name.to_owned(), needed_bytes, quota_bytes, stuck_bytes: taken })
    }

    /// Removes what puts never finished and gives back what was set aside. It is nobody's turn but ours: whoever began it
    /// was killed. What cannot be removed is in nobody's way, and stays until somebody can.
    fn tidy(&self) -> Result<(), FileError> {
        let shelf = FolderContents::look(&self.path)?;
        self.use_after(shelf.newest());
        shelf.aside.iter().for_each(|other| aside::put_back(other));
        for unfinished in &shelf.unfinished {
            let _ = remove(unfinished);
        }
        Ok(())
    }

    /// Now, or later than every use before if the clock was set back meanwhile.
    fn use_after(&self, seen: Option<SystemTime>) -> SystemTime {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let before = seen.map_or(*newest, |seen| seen.max(*newest));
        *newest = SystemTime::now().max(before + Duration::from_micros(1));
        *newest
    }

    fn place(&self, name: &str) -> PathBuf {
        self.path.join(encoded(name))
    }

    /// Waits until nobody else writes here.
    fn turn(&self) -> Result<WriterLock<'_>, FileError> {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        lock.lock().map_err(|error| FileError::system("locked", &self.path.join("lock"), &error))?;
        Ok(WriterLock(lock))
    }
}

/// Under which key of its metadata a file has the mark of its put.
const MARK: &str = "put";

/// A mark that no put has had: the time, the process and a count, in as many digits each time.
fn new_mark() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{:016x}{:08x}{count:08x}", since.as_nanos() as u64, std::process::id())
}

/// The mark of the put that a file is from; none of one that no folder wrote.
pub(crate) fn mark_of(file: &TensorFile) -> Option<&str> {
    file.metadata().get(MARK).map(String::as_str)
}

/// The turn of one writer.
struct WriterLock<'a>(MutexGuard<'a, File>);

impl Drop for WriterLock<'_> {
    fn drop(&mut self) {
        // It fails only where the system lost the lock by itself.
        let _ = self.0.unlock();
    }
}

/// Opens a file that should hold this tensor and no other.
fn open_as(path: &Path, name: &str) -> Result<TensorFile, FileError> {
    let file = TensorFile::open(path)?;
    match file.names().collect::<Vec<_>>()[..] {
        [held] if held == name => return Ok(file),
        [held] if leads_to(held, path) => {
            return Err(FileError::SameFile { path: path.to_owned(), wants: name.to_owned(), has: held.to_owned() });
        }
        _ => {}
    }
    Err(FileError::OtherTensor { path: path.to_owned(), wants: name.to_owned(), has: file.names().len() })
}

fn kept(place: &ShelfFile) -> Result<FolderTensor, FileError> {
    let file = TensorFile::open(&place.path)?;
    // The file says its name; that the name leads there is what makes it the folder's.
    let [name] = file.names().collect::<Vec<_>>()[..] else { return Err(stranger(place, &file)) };
    if !leads_to(name, &place.path) {
        return Err(stranger(place, &file));
    }
    let FileTensor { dtype, shape, .. } = file.tensor(name)?;
    Ok(FolderTensor { name: name.to_owned(), dtype, shape, file_bytes: place.bytes, last_use: place.last_use })
}

fn stranger(place: &ShelfFile, file: &TensorFile) -> FileError {
    let wants = named(&place.path).unwrap_or_else(|| "a tensor of a long name".to_owned());
    FileError::OtherTensor { path: place.path.clone(), wants, has: file.names().len() }
}

fn leads_to(name: &str, path: &Path) -> bool {
    path.file_name().is_some_and(|file| file == encoded(name).as_str())
}

fn named(path: &Path) -> Option<String> {
    decoded(path.file_name()?.to_str()?)
}

/// Removes a file; says whether it was there.
fn remove(path: &Path) -> Result<bool, FileError> {
    match fs::remove_file(path).map_err(|error| FileError::system("removed", path, &error)) {
        Ok(()) => Ok(true),
        Err(FileError::NotThere { .. }) => Ok(false),
        Err(other) => Err(other),
    }
}
