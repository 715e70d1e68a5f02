//! The folder in which a store keeps its tensors between runs: one file per tensor, within a quota.
//!
//! When the quota is reached, the least recently used tensors are evicted. `get` returns an open file, which stays
//! valid even if the file is replaced or removed.
//!
//! Invariants: after a put, the files are within the quota. A replaced tensor counts once. A failed put evicts no
//! tensor: files that make room are set aside, and removed only after the new file has its final name. A process killed
//! during a put may leave the folder over its quota until the next put. The old files stay while a new file is written,
//! so the disk needs room for the quota and the new file.
//!
//! Processes may share a folder. Writers take turns through a lock on the file `lock`. Readers need no lock, since
//! files are only renamed into place and removed.

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
    /// Held while writing. The mutex excludes other threads of this process, and the lock on the file excludes other
    /// processes.
    lock: Mutex<File>,
    /// The time of the latest use that this process knows of.
    newest: Mutex<SystemTime>,
}

/// The result of [`TensorFolder::put`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PutOutcome {
    pub file_bytes: u64,
    /// Evicted tensors, least recently used first. If the file name is shortened and the file is unreadable, the
    /// tensor's name is unknown, and the list has the path instead.
    pub evicted: Vec<String>,
    /// Identifies this put among the puts of all processes. The mark is stored in the file's metadata under `put`.
    pub mark: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderTensor {
    pub name: String,
    pub dtype: DType,
    pub shape: Shape,
    pub file_bytes: u64,
    /// The time of the last put or get.
    pub last_use: SystemTime,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CorruptFile {
    pub path: PathBuf,
    /// The tensor's name, if the file name gives it.
    pub name: Option<String>,
    pub problem: FileError,
}

/// The contents of a folder.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Listing {
    /// Tensors, least recently used first.
    pub kept: Vec<FolderTensor>,
    /// Unreadable files. They count towards the quota.
    pub corrupt: Vec<CorruptFile>,
    /// Bytes of all files.
    pub file_bytes: u64,
}

impl TensorFolder {
    /// Opens a folder, and creates the folder if it does not exist. A smaller quota than before takes effect with the
    /// next put.
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

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn quota_bytes(&self) -> u64 {
        self.quota_bytes
    }

    /// Stores a tensor, replaces the tensor's old file, and evicts other tensors until all files fit. Returns after the
    /// data is on disk. Waiting for the disk takes most of the time: a put of 4 kB takes 11 ms, and a get takes 0.05
    /// ms.
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
        // An unreadable file is replaced. The file of another tensor whose name maps to the same path is not.
        if let Err(other @ FileError::SameFile { .. }) = open_as(&path, tensor.name) {
            return Err(other);
        }
        let failed = |error| FileError::writing(&path, needed_bytes, &error);
        // The whole new file is written before any other file is set aside, so a full disk evicts no tensor.
        let temporary = plan.fill(&path, OF_A_PUT, &headings, |_| Ok::<_, FileError>(Cow::Borrowed(tensor.bytes)))?;
        let mut shelf = FolderContents::look(&self.path)?;
        settle(&temporary, Some(self.use_after(shelf.newest()))).map_err(failed)?;
        shelf.places.retain(|place| place.path != path);
        let (aside, evicted) = self.make_room(&shelf, tensor.name, needed_bytes)?;
        // The commit point: before this line nothing is removed; after this line only the sync to disk can fail.
        temporary.persist(&path).map_err(|refused| failed(refused.into()))?;
        aside.remove();
        sync_folder_of(&path).map_err(failed)?;
        Ok(PutOutcome { file_bytes: needed_bytes, evicted, mark })
    }

    /// Opens the file of a tensor. Inside the file, the tensor has the same name. Counts as a use. `None` if the folder
    /// does not have the tensor.
    pub fn get(&self, name: &str) -> Result<Option<TensorFile>, FileError> {
        let path = self.place(name);
        let file = match open_as(&path, name) {
            Err(FileError::NotThere { .. }) => return Ok(None),
            other => other?,
        };
        // If the use cannot be recorded, for example on a read-only disk, the tensor can still be read.
        if let Ok(opened) = OpenOptions::new().append(true).open(&path) {
            let _ = opened.set_modified(self.use_after(None));
        }
        Ok(Some(file))
    }

    /// Removes a tensor, whether or not its file is readable. Returns whether the tensor existed.
    pub fn remove(&self, name: &str) -> Result<bool, FileError> {
        let path = self.place(name);
        let _turn = self.turn()?;
        // A killed process may have set the file aside. `tidy` restores it, so that the file is removed below and does
        // not reappear later.
        self.tidy()?;
        match open_as(&path, name) {
            Err(FileError::NotThere { .. }) => Ok(false),
            Err(other @ FileError::SameFile { .. }) => Err(other),
            _ => remove(&path),
        }
    }

    /// Removes all files that are malformed or do not hold exactly the tensor that their name stands for. Returns a
    /// description of each removed file. Files that cannot be read for other reasons stay, because they may be intact.
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

    /// The contents of the folder. Does not count as a use.
    pub fn list(&self) -> Result<Listing, FileError> {
        let shelf = FolderContents::look(&self.path)?;
        let mut listing = Listing { file_bytes: shelf.bytes(), ..Listing::default() };
        for place in shelf.places {
            match kept(&place) {
                Ok(kept) => listing.kept.push(kept),
                // Removed since the folder was listed.
                Err(FileError::NotThere { .. }) => listing.file_bytes -= place.bytes,
                Err(problem) => {
                    listing.corrupt.push(CorruptFile { name: named(&place.path), path: place.path, problem });
                }
            }
        }
        Ok(listing)
    }

    /// Sets the least recently used files aside until the new file fits. Returns these files and the names of their
    /// tensors.
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
            // Some systems cannot rename a file that another process has open. In that case, try the next file.
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

    /// Removes unfinished files and restores files that were set aside. The caller has the writer lock, so the
    /// processes that left these files were killed. Files that cannot be removed do no harm, and the next writer tries
    /// again.
    fn tidy(&self) -> Result<(), FileError> {
        let shelf = FolderContents::look(&self.path)?;
        self.use_after(shelf.newest());
        shelf.aside.iter().for_each(|other| aside::put_back(other));
        for unfinished in &shelf.unfinished {
            let _ = remove(unfinished);
        }
        Ok(())
    }

    /// The current time, or a time just after the last use if the clock was set back.
    fn use_after(&self, seen: Option<SystemTime>) -> SystemTime {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let before = seen.map_or(*newest, |seen| seen.max(*newest));
        *newest = SystemTime::now().max(before + Duration::from_micros(1));
        *newest
    }

    fn place(&self, name: &str) -> PathBuf {
        self.path.join(encoded(name))
    }

    /// Waits for the writer lock.
    fn turn(&self) -> Result<WriterLock<'_>, FileError> {
        let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        lock.lock().map_err(|error| FileError::system("locked", &self.path.join("lock"), &error))?;
        Ok(WriterLock(lock))
    }
}

/// The metadata key of a file's mark.
const MARK: &str = "put";

/// A mark that no other put has. The mark consists of the time, the process id and a counter, and has a constant
/// length.
fn new_mark() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{:016x}{:08x}{count:08x}", since.as_nanos() as u64, std::process::id())
}

/// The mark of the put that wrote a file. `None` for files not written by a folder.
pub(crate) fn mark_of(file: &TensorFile) -> Option<&str> {
    file.metadata().get(MARK).map(String::as_str)
}

struct WriterLock<'a>(MutexGuard<'a, File>);

impl Drop for WriterLock<'_> {
    fn drop(&mut self) {
        // Fails only if the system has already dropped the lock.
        let _ = self.0.unlock();
    }
}

/// Opens a file that should hold exactly this tensor.
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
    // The name is in the file. The file belongs to the folder only if that name maps to the file's path.
    let [name] = file.names().collect::<Vec<_>>()[..] else { return Err(stranger(place, &file)) };
    if !leads_to(name, &place.path) {
        return Err(stranger(place, &file));
    }
    let FileTensor { dtype, shape, .. } = file.tensor(name)?;
    Ok(FolderTensor { name: name.to_owned(), dtype, shape, file_bytes: place.bytes, last_use: place.last_use })
}

fn stranger(place: &ShelfFile, file: &TensorFile) -> FileError {
    let wants = named(&place.path).unwrap_or_else(|| "a tensor with a long name".to_owned());
    FileError::OtherTensor { path: place.path.clone(), wants, has: file.names().len() }
}

fn leads_to(name: &str, path: &Path) -> bool {
    path.file_name().is_some_and(|file| file == encoded(name).as_str())
}

fn named(path: &Path) -> Option<String> {
    decoded(path.file_name()?.to_str()?)
}

/// Removes a file. Returns whether the file existed.
fn remove(path: &Path) -> Result<bool, FileError> {
    match fs::remove_file(path).map_err(|error| FileError::system("removed", path, &error)) {
        Ok(()) => Ok(true),
        Err(FileError::NotThere { .. }) => Ok(false),
        Err(other) => Err(other),
    }
}
