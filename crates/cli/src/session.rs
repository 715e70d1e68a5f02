//! From options to a session: where and how a graph is to run.
//!
//! Owns the translation of every shared option, the search for a profile, and the adapter that options name.
//! Does not decide: the library does, and opens what a run needs.
//!
//! Always: `--cpu` lists no adapter; what options name exactly is taken or refused, never replaced.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use anyhow::anyhow;
use vramp::gpu::{Backend, Choice, Device};
use vramp::plan::{Graph, Profile, Space};
use vramp::runtime::Kinds;
use vramp::{Session, calibrate, machine};

use crate::args::{DeviceWord, Wishes};
use crate::failure::Failure;
use crate::input::read_file;

/// A session with everything that was asked for but the figures.
pub(crate) fn of<'a>(wishes: &Wishes, graph: &'a Graph, kinds: &'a Kinds) -> Result<Session<'a>, Failure> {
    let mut session = as_wished(wishes, Session::of(graph, kinds));
    for (name, space) in placements(wishes)? {
        session = session.place(name, space);
    }
    Ok(session)
}

/// This session with everything that was asked for but figures and the places of single handlers.
pub(crate) fn as_wished<'a>(wishes: &Wishes, session: Session<'a>) -> Session<'a> {
    let mut session = session.strict(wishes.strict).fusion(!wishes.no_fusion);
    session = session.on_loss(wishes.on_loss.unwrap_or_default()).lose_device_at(&wishes.lose_device_at);
    if wishes.cpu {
        session = session.only(Space::Cpu);
    } else if wishes.gpu {
        session = session.only(Space::Gpu);
    }
    if let Some(threads) = wishes.threads {
        session = session.threads(threads as usize);
    }
    if let Some(in_flight) = wishes.in_flight {
        session = session.in_flight(in_flight);
    }
    if let Some(batch) = wishes.batch {
        session = session.batch(batch);
    }
    if let Some(fps) = wishes.fps {
        session = session.pace(fps);
    }
    let memory = wishes.memory.unwrap_or_default();
    for (space, bytes) in [(Space::Cpu, memory.cpu_bytes), (Space::Gpu, memory.gpu_bytes)] {
        session = bytes.map_or(session.clone(), |bytes| session.memory_bytes(space, bytes));
    }
    session.choice(choice(wishes))
}

/// As `of`, with the figures of this machine: it may list adapters.
pub(crate) fn on_this_machine<'a>(wishes: &Wishes, graph: &'a Graph, kinds: &'a Kinds) -> Result<Session<'a>, Failure> {
    let session = of(wishes, graph, kinds)?;
    if let Some(word) = &wishes.profile {
        return Ok(session.profile(find_profile(word)?));
    }
    Ok(session)
}

/// The figures of the adapter that a run would take, as far as it is remembered, and what there is to say about it; no
/// driver is asked.
pub(crate) fn remembered_figures(wishes: &Wishes) -> Result<Option<(Profile, Option<String>)>, Failure> {
    if wishes.cpu
        && let Some(known) = calibrate::known(None)
    {
        return Ok(Some((known.profile, None)));
    }
    let Some(known) = machine::known_adapters() else { return Ok(None) };
    match choice(wishes).chosen_of(&known) {
        Ok(chosen) => Ok(Some((calibrate::figures_of(Some(&chosen.adapter)), chosen.doubt))),
        Err(why) if insists(wishes) => Err(Failure::NoPlan(why.into())),
        Err(why) => Ok(Some((calibrate::figures_of(None), Some(format!("{why}; everything would run on the cpu"))))),
    }
}

/// The device that a run would open, where it is there; none with `--cpu`. Where nobody insists on one, the reason for
/// having none comes instead.
pub(crate) fn open_device(wishes: &Wishes) -> Result<Result<Device, String>, Failure> {
    if wishes.cpu {
        return Ok(Err("--cpu opens none".to_owned()));
    }
    match choice(wishes).open() {
        Ok(device) => Ok(Ok(device)),
        Err(why) if insists(wishes) => Err(Failure::NoPlan(why.into())),
        Err(why) => Ok(Err(why.to_string())),
    }
}

/// Whether options ask for a device, so that doing without it would be wrong.
pub(crate) fn insists(wishes: &Wishes) -> bool {
    let on_gpu = wishes.place.iter().any(|(_, space)| *space == Space::Gpu);
    wishes.gpu || wishes.backend.is_some() || wishes.device.is_some() || on_gpu
}

/// The adapter that options name or describe; any where they do neither.
pub(crate) fn choice(wishes: &Wishes) -> Choice {
    let mut choice = named_choice(wishes.backend, wishes.device.as_ref()).prefer(wishes.prefer.unwrap_or_default());
    if let Some(bytes) = wishes.min_memory {
        choice = choice.least_memory_bytes(bytes);
    }
    if let Some(percent) = wishes.max_load {
        choice = choice.most_load_percent(percent);
    }
    choice
}

/// The adapter of this API and name; any where none is given.
pub(crate) fn named_choice(backend: Option<Backend>, device: Option<&DeviceWord>) -> Choice {
    let mut choice = machine::choose();
    if let Some(backend) = backend {
        choice = choice.backend(backend);
    }
    match device {
        None => {}
        Some(DeviceWord::At(index)) => choice = choice.index(*index),
        Some(DeviceWord::Named(part)) => choice = choice.named(part),
    }
    choice
}

/// The placements asked for, no handler in two places at once.
fn placements(wishes: &Wishes) -> Result<BTreeMap<&str, Space>, Failure> {
    let mut placed = BTreeMap::new();
    for (name, space) in &wishes.place {
        if placed.insert(name.as_str(), *space).is_some_and(|before| before != *space) {
            return Err(Failure::Wrong(anyhow!(
                "--place puts `{name}` on the cpu and on the gpu; give one of the two"
            )));
        }
    }
    Ok(placed)
}

/// The file of a profile; none for one that ships.
pub(crate) fn profile_file(word: &OsStr) -> Option<&Path> {
    let ships = word.to_str().is_some_and(|word| word.starts_with("shipped:"));
    (!ships).then(|| Path::new(word))
}

/// A profile from a file, or one that ships.
pub(crate) fn find_profile(word: &OsStr) -> Result<Profile, Failure> {
    if let Some(class) = word.to_str().and_then(|w| w.strip_prefix("shipped:")) {
        return shipped(class);
    }
    let path = Path::new(word);
    if path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        let name = path.display();
        return Err(Failure::Wrong(anyhow!("--profile {name}: it is a pipe or a device; give a file")));
    }
    let text = read_file(path)?;
    Profile::read(&path.display().to_string(), &text).map_err(|error| Failure::Wrong(error.into()))
}

/// A profile that ships.
pub(crate) fn shipped(class: &str) -> Result<Profile, Failure> {
    Profile::shipped(class).ok_or_else(|| {
        let names = Profile::SHIPPED.join(", ");
        Failure::Wrong(anyhow!("--profile shipped:{class}: there is no such profile; shipped are {names}"))
    })
}
