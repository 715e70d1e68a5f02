//! From options to a session: where and how a graph is to run.
//!
//! Owns the translation of every shared option, the search for a profile, and the adapter that options name.
//! Does not decide and does not open: the library does.
//!
//! Always: `--cpu` lists no adapter; what options name exactly is taken or refused, never replaced.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use anyhow::anyhow;
use vramp::gpu::{Adapter, OpenError};
use vramp::plan::{Graph, Profile, Space};
use vramp::runtime::Kinds;
use vramp::{Prepared, Session, SessionError};

use crate::args::{DeviceWord, Wishes};
use crate::failure::Failure;
use crate::input::read_file;
use crate::page;

/// A session with everything that was asked for but the figures.
pub(crate) fn of<'a>(wishes: &Wishes, graph: &'a Graph, kinds: &'a Kinds) -> Result<Session<'a>, Failure> {
    let mut session = Session::of(graph, kinds).strict(wishes.strict).fusion(!wishes.no_fusion);
    if wishes.cpu {
        session = session.only(Space::Cpu);
    } else if wishes.gpu {
        session = session.only(Space::Gpu);
    }
    for (name, space) in placements(wishes)? {
        session = session.place(name, space);
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
    if let Some(backend) = wishes.backend {
        session = session.backend(backend);
    }
    match &wishes.device {
        None => {}
        Some(DeviceWord::At(index)) => session = session.device_at(*index),
        Some(DeviceWord::Named(part)) => session = session.device_named(part),
    }
    Ok(session)
}

/// As `of`, with the figures of this machine: it may list adapters.
pub(crate) fn on_this_machine<'a>(wishes: &Wishes, graph: &'a Graph, kinds: &'a Kinds) -> Result<Session<'a>, Failure> {
    let session = of(wishes, graph, kinds)?;
    if let Some(word) = &wishes.profile {
        return Ok(session.profile(find_profile(word)?));
    }
    if wishes.backend.is_none() && wishes.device.is_none() {
        return Ok(session);
    }
    // The class of the adapter that is named, not of the best one; a list that is remembered may be too old to hold it.
    let remembered = Session::known_adapters().and_then(|list| pick(wishes, &list).ok());
    let adapter = match remembered {
        Some(adapter) => adapter,
        None => pick(wishes, &Session::list_adapters()).map_err(|why| Failure::NoPlan(why.into()))?,
    };
    Ok(session.profile(Session::figures_of(Some(&adapter))))
}

/// Makes it ready. Where nobody insists on a device and the one that was planned with cannot be opened, the cpu does it.
pub(crate) fn prepare(session: &Session<'_>, wishes: &Wishes) -> Result<Prepared, Failure> {
    let insists = wishes.gpu || wishes.backend.is_some() || wishes.device.is_some();
    match session.prepare() {
        Err(SessionError::NoDevice(why)) if !insists && wishes.profile.is_none() => {
            // What is remembered was wrong, or the driver is: the next run should begin with the truth.
            Session::list_adapters();
            if !wishes.quiet {
                page::warning(&format!("{why}; everything runs on the cpu"));
            }
            Ok(session.clone().only(Space::Cpu).prepare()?)
        }
        answer => Ok(answer?),
    }
}

/// The figures of the adapter that a run would take, as far as it is remembered; no driver is asked.
pub(crate) fn remembered_figures(wishes: &Wishes) -> Result<Option<Profile>, Failure> {
    let Some(list) = Session::known_adapters() else { return Ok(None) };
    let adapter = pick(wishes, &list).map_err(|why| Failure::NoPlan(why.into()))?;
    Ok(Some(Session::figures_of(Some(&adapter))))
}

/// The adapter of a whole list that the options name: the first that fits, with numbers counted behind one backend.
fn pick(wishes: &Wishes, list: &[Adapter]) -> Result<Adapter, OpenError> {
    let behind: Vec<&Adapter> =
        list.iter().filter(|adapter| wishes.backend.is_none_or(|backend| adapter.backend == backend)).collect();
    if behind.is_empty() {
        let backends = wishes.backend.map_or_else(|| "any API".to_owned(), |backend| backend.to_string());
        return Err(OpenError::NoAdapter { backends });
    }
    let found = match &wishes.device {
        None => behind.first(),
        Some(DeviceWord::At(index)) => behind.get(*index),
        Some(DeviceWord::Named(part)) => {
            let part = part.to_lowercase();
            behind.iter().find(|adapter| adapter.name.to_lowercase().contains(&part))
        }
    };
    found.map(|adapter| (*adapter).clone()).ok_or_else(|| OpenError::NoSuchAdapter {
        wanted: match &wishes.device {
            Some(DeviceWord::At(index)) => format!("number {index}"),
            Some(DeviceWord::Named(part)) => format!("called `{part}`"),
            None => "the best".to_owned(),
        },
        found: behind.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    })
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

/// A profile from a file, or one that ships.
pub(crate) fn find_profile(word: &OsStr) -> Result<Profile, Failure> {
    if let Some(class) = word.to_str().and_then(|w| w.strip_prefix("shipped:")) {
        return shipped(class);
    }
    let path = Path::new(word);
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
