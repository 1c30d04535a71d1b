//! The cluster on disk: an embedded transactional store behind the one in memory.
//!
//! redb is a copy-on-write B-tree in one file, written in Rust, with transactions that are either
//! on disk as a whole or not at all, whenever the power goes. The server stays the only reader:
//! it loads everything at the start and afterwards only writes, all changes that came together in
//! one transaction (group commit).

#[cfg(test)]
mod medium;
#[cfg(test)]
mod tests;

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use bytes::Bytes;
use redb::{Database, DatabaseError, Durability, ReadableDatabase, ReadableTable, TableDefinition};

use crate::private;
use crate::server::Server;
use crate::store::{Change, ChangeKind, Entry, ResourceId, Unsaved};

/// `resource/key` → revision and JSON.
const OBJECTS: TableDefinition<'_, &str, (u64, &[u8])> = TableDefinition::new("objects");
/// revision → what happened: kind of change, `resource/key`, JSON after, JSON before.
type HistoryRow<'a> = (u8, &'a str, &'a [u8], &'a [u8], u64);
const HISTORY: TableDefinition<'_, u64, HistoryRow<'_>> = TableDefinition::new("history");
/// Numbers: the latest revision, and per resource how far back the history goes.
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
const REVISION: &str = "revision";
const FILE: &str = "cluster.redb";

/// What a cluster's directory has in it: its objects, and the certificates of its server.
pub const FILES: [&str; 2] = [FILE, "pki"];

/// A cluster's file.
#[derive(Debug)]
pub struct Disk {
    database: Database,
    /// Resources by [`ResourceId`], as the file names them.
    resources: Vec<String>,
}

impl Disk {
    /// Opens the cluster in `directory`, which is made if it is not there. There are Secrets in it,
    /// so it is for its owner only.
    pub fn open(directory: &Path) -> Result<Self> {
        private::directory(directory, &FILES)?;
        let path = directory.join(FILE);
        let shown = path.display();
        if !path.try_exists().with_context(|| format!("cannot look at {shown}"))? {
            Self::create(directory, &path).with_context(|| format!("cannot make {shown}"))?;
        }
        let database = builder().create_file(private::open(&path)?).map_err(|error| {
            let why = match error {
                DatabaseError::DatabaseAlreadyOpen => "another picokube is using it",
                _ => "it is no cluster of picokube's, or was damaged",
            };
            anyhow::Error::new(error).context(format!("cannot open {shown}: {why}"))
        })?;
        Self::with_tables(database).with_context(|| format!("cannot write to {shown}"))
    }

    /// Makes an empty cluster under another name, and gives it its own when all of it is on the disk: the
    /// power may go meanwhile, and half a file is none.
    fn create(directory: &Path, path: &Path) -> Result<()> {
        let fresh = tempfile::Builder::new().prefix(".picokube-").tempfile_in(directory)?;
        drop(Self::with_tables(builder().create_file(fresh.as_file().try_clone()?)?)?);
        fresh.as_file().sync_all()?;
        match fresh.persist_noclobber(path) {
            Ok(_) => private::sync_directory(directory),
            // Somebody else was faster. Whether it is still at it is seen when the file is opened.
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error.error.into()),
        }
    }

    /// The same on a disk that is none.
    #[cfg(test)]
    fn on(backend: impl redb::StorageBackend) -> Result<Self> {
        Self::with_tables(builder().create_with_backend(backend)?)
    }

    fn with_tables(database: Database) -> Result<Self> {
        let transaction = database.begin_write()?;
        transaction.open_table(OBJECTS)?;
        transaction.open_table(HISTORY)?;
        transaction.open_table(NUMBERS)?;
        transaction.commit()?;
        let resources = crate::api::kind::stored().map(|kind| kind.qualified_resource()).collect();
        Ok(Self { database, resources })
    }

    /// Fills an empty server with what was kept.
    pub fn load(&self, server: &mut Server) -> Result<()> {
        let transaction = self.database.begin_read()?;
        let store = server.store_mut();
        for row in transaction.open_table(OBJECTS)?.iter()? {
            let (path, object) = row?;
            let (revision, json) = object.value();
            // A resource that this version does not serve stays where it is.
            if let Some((id, key)) = self.split(path.value()) {
                store.restore(id, entry(key, revision, json)?);
            }
        }
        let history = transaction.open_table(HISTORY)?;
        for row in history.iter()? {
            let (revision, row) = row?;
            let (kind, path, json, before, before_revision) = row.value();
            let Some((id, key)) = self.split(path) else { continue };
            let kind = match kind {
                0 => ChangeKind::Added,
                1 => ChangeKind::Modified,
                _ => ChangeKind::Deleted,
            };
            // The current version is already there and is shared, not held twice.
            let current = store.get(id, key).filter(|e| e.revision == revision.value()).cloned();
            let new = match current {
                Some(entry) => entry,
                None => Arc::new(entry(key, revision.value(), json)?),
            };
            let previous = match before {
                [] => None,
                json => Some(Arc::new(entry(key, before_revision, json)?)),
            };
            store.restore_history(id, Change { kind, entry: new, previous });
        }
        for row in transaction.open_table(NUMBERS)?.iter()? {
            let (name, number) = row?;
            if name.value() == REVISION {
                store.restore_revision(number.value());
            } else if let Some((id, "")) = self.split(name.value()) {
                store.restore_compacted(id, number.value());
            }
        }
        Ok(())
    }

    /// Writes changes; when this returns they survive a power cut. `compacted` has, per resource,
    /// how far back its history goes.
    pub fn save(&mut self, unsaved: &Unsaved, revision: u64, compacted: &[u64]) -> Result<()> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        {
            let mut objects = transaction.open_table(OBJECTS)?;
            let mut history = transaction.open_table(HISTORY)?;
            let mut numbers = transaction.open_table(NUMBERS)?;
            for (id, change) in &unsaved.changes {
                let path = self.path(*id, &change.entry.key);
                let json: &[u8] = &change.entry.json;
                if change.kind == ChangeKind::Deleted {
                    objects.remove(path.as_str())?;
                } else {
                    objects.insert(path.as_str(), (change.entry.revision, json))?;
                }
                let (before, before_revision): (&[u8], u64) = match &change.previous {
                    Some(previous) => (&previous.json, previous.revision),
                    None => (&[], 0),
                };
                let kind = match change.kind {
                    ChangeKind::Added => 0,
                    ChangeKind::Modified => 1,
                    ChangeKind::Deleted => 2,
                };
                let row = (kind, path.as_str(), json, before, before_revision);
                history.insert(change.entry.revision, row)?;
            }
            for revision in &unsaved.forgotten {
                history.remove(revision)?;
            }
            if !unsaved.forgotten.is_empty() {
                for (id, revision) in compacted.iter().enumerate() {
                    let name = self.path(ResourceId(id as u16), "");
                    numbers.insert(name.as_str(), revision)?;
                }
            }
            numbers.insert(REVISION, revision)?;
        }
        transaction.commit()?;
        Ok(())
    }

    fn path(&self, id: ResourceId, key: &str) -> String {
        let resource = self.resources.get(usize::from(id.0)).map_or("", String::as_str);
        format!("{resource}/{key}")
    }

    fn split<'a>(&self, path: &'a str) -> Option<(ResourceId, &'a str)> {
        let (resource, key) = path.split_once('/')?;
        let id = self.resources.iter().position(|name| name == resource)?;
        Some((ResourceId(id as u16), key))
    }
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(16 << 20);
    builder
}

fn entry(key: &str, revision: u64, json: &[u8]) -> Result<Entry> {
    let object = serde_json::from_slice(json)
        .with_context(|| format!("the object {key} at version {revision} is damaged"))?;
    Ok(Entry::from_parts(key.into(), revision, Bytes::copy_from_slice(json), &object))
}
