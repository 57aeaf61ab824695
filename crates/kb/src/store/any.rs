//! The back ends behind one type: one arm each.

use std::collections::BTreeMap;
use std::path::Path;

use super::postgres::{Options, Postgres};
use super::{Backend, Digest, Embedded, Error, Found, Known, Maker, Result, Search, Stats, Write};
use crate::record::{Key, Record};

/// A knowledge base of any kind.
#[derive(Debug)]
pub enum Store {
    Embedded(Embedded),
    Postgres(Box<Postgres>),
}

impl Store {
    /// Opens what an address names: `dir:PATH` or `postgres://…`. A database is reached with the first call.
    pub fn open(url: &str) -> Result<Self> {
        match url.split_once(':') {
            Some(("dir", path)) if !path.is_empty() => Embedded::open(Path::new(path)).map(Self::Embedded),
            Some(("postgres" | "postgresql", _)) => {
                Postgres::new(url, Options::default()).map(|store| Self::Postgres(Box::new(store)))
            }
            // What is wrong is not quoted: there may be a password in it.
            _ => Err(Error::Unusable(
                "`kb.url` must be `dir:PATH`, such as `dir:.toolwright/kb`, or \
                 `postgres://USER:PASSWORD@HOST:5432/DATABASE`"
                    .to_owned(),
            )),
        }
    }

    fn back_end(&self) -> &dyn Backend {
        match self {
            Self::Embedded(store) => store,
            Self::Postgres(store) => &**store,
        }
    }
}

impl Backend for Store {
    fn search(&self, search: &Search<'_>) -> Result<Found> {
        self.back_end().search(search)
    }

    fn fetch(&self, keys: &[Key]) -> Result<Vec<Record>> {
        self.back_end().fetch(keys)
    }

    fn each(&self, visit: &mut dyn FnMut(Record) -> Result<()>) -> Result<()> {
        self.back_end().each(visit)
    }

    fn stats(&self) -> Result<Stats> {
        self.back_end().stats()
    }

    fn sources(&self) -> Result<BTreeMap<String, Digest>> {
        self.back_end().sources()
    }

    fn of_source(&self, source: &str) -> Result<Vec<Known>> {
        self.back_end().of_source(source)
    }

    fn maker(&self) -> Result<Option<Maker>> {
        self.back_end().maker()
    }

    fn without_vector(&self) -> Result<Vec<Key>> {
        self.back_end().without_vector()
    }

    fn write(&self) -> Result<Box<dyn Write + '_>> {
        self.back_end().write()
    }

    fn rebuild(&self) -> Result<()> {
        self.back_end().rebuild()
    }
}
