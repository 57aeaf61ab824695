//! API keys in one file: created, listed, revoked, and looked up by a running server.
//!
//! A key is `twk_<id>_<secret>`. The secret has 256 random bits, so a salted SHA-256 of it is stored; a slow hash
//! protects guessable secrets only. The file is replaced atomically, and read again when it changes.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolwright_contract::Principal;
use toolwright_contract::object::{self, ObjectOnly};
use toolwright_registry::hex;

/// The prefix of every key.
pub const PREFIX: &str = "twk_";

/// One key, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Key {
    pub id: String,
    /// The id of its principal.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<String>,
    salt: String,
    /// Hex of SHA-256 over salt and secret.
    hash: String,
    /// Seconds since 1970, like all times here.
    pub created_at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<i64>,
}

/// Why the key file cannot be used. The text is for the operator.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the keys in {0}: {1}")]
    Read(PathBuf, String),
    #[error("cannot write the keys in {0}: {1}")]
    Write(PathBuf, io::Error),
    #[error("there is no key `{0}`")]
    NoSuchKey(String),
    #[error("the system provides no random bytes: {0}")]
    NoRandomness(String),
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFileContents {
    #[serde(deserialize_with = "object::each")]
    keys: Vec<Key>,
}

/// The file of keys, which need not exist.
#[derive(Debug)]
pub struct KeyFile {
    path: PathBuf,
    cache: RwLock<Option<(FileVersion, Arc<Keys>)>>,
    /// When the file was last checked for changes, in seconds.
    checked_at: AtomicI64,
}

/// Modification time and size; `None` for a missing file.
type FileVersion = Option<(SystemTime, u64)>;

/// The keys of a file, by id.
#[derive(Debug, Default)]
pub struct Keys(HashMap<String, (Key, Arc<Principal>)>);

impl Keys {
    /// True when there are no keys, not even revoked ones.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The principal of a key that is valid at `now`, in seconds since 1970.
    pub fn principal(&self, token: &str, now: i64) -> Option<Arc<Principal>> {
        let (id, secret) = token.strip_prefix(PREFIX)?.split_once('_')?;
        let principal = self.principal_by_id(id, now)?;
        let (key, _) = self.0.get(id)?;
        equal_in_constant_time(hash(&key.salt, secret).as_bytes(), key.hash.as_bytes()).then_some(principal)
    }

    /// The principal of the key with this id, if it is valid at `now`; for a sign-in that has shown the secret before.
    pub(super) fn principal_by_id(&self, id: &str, now: i64) -> Option<Arc<Principal>> {
        let (key, principal) = self.0.get(id)?;
        let is_valid = key.revoked_at.is_none() && key.expires_at.is_none_or(|expires| now < expires);
        is_valid.then(|| Arc::clone(principal))
    }
}

impl KeyFile {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), cache: RwLock::default(), checked_at: AtomicI64::new(i64::MIN) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The current keys. The file is checked for changes at most once a second.
    pub fn current(&self) -> Result<Arc<Keys>, Error> {
        let now = super::now();
        let cached = || self.cache.read().unwrap_or_else(PoisonError::into_inner).clone();
        let before = cached();
        if let Some((_, keys)) = &before
            && self.checked_at.swap(now, Ordering::Relaxed) == now
        {
            return Ok(Arc::clone(keys));
        }
        let version = self.file_version()?;
        if let Some((known, keys)) = before
            && known == version
        {
            return Ok(keys);
        }
        let principal =
            |key: &Key| Principal { id: key.name.clone(), org: key.org.clone(), roles: key.roles.clone() };
        let keys =
            self.list()?.into_iter().map(|key| (key.id.clone(), (key.clone(), Arc::new(principal(&key)))));
        let keys = Arc::new(Keys(keys.collect()));
        *self.cache.write().unwrap_or_else(PoisonError::into_inner) = Some((version, Arc::clone(&keys)));
        self.checked_at.store(now, Ordering::Relaxed);
        Ok(keys)
    }

    /// The id in a key.
    pub(super) fn id_of(token: &str) -> &str {
        token.strip_prefix(PREFIX).and_then(|rest| rest.split('_').next()).unwrap_or_default()
    }

    /// The principal of a valid key. For an unknown key the file is checked again: it may be new.
    pub(super) fn principal(&self, token: &str, now: i64) -> Result<Option<Arc<Principal>>, Error> {
        let keys = self.current()?;
        let id = Self::id_of(token);
        if keys.0.contains_key(id) {
            return Ok(keys.principal(token, now));
        }
        self.checked_at.store(i64::MIN, Ordering::Relaxed);
        Ok(self.current()?.principal(token, now))
    }

    /// All keys, oldest first.
    pub fn list(&self) -> Result<Vec<Key>, Error> {
        let text = match fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.unreadable(error)),
        };
        let ObjectOnly::<KeyFileContents>(contents) =
            serde_json::from_str(&text).map_err(|error| self.unreadable(error))?;
        Ok(contents.keys)
    }

    /// Creates a key of a principal. The returned token is shown once and stored nowhere.
    pub fn create(&self, principal: Principal, expires_at: Option<i64>) -> Result<(Key, String), Error> {
        let (id, salt, secret) = (random::<6>()?, random::<16>()?, random::<32>()?);
        let key = Key {
            hash: hash(&salt, &secret),
            id,
            name: principal.id,
            org: principal.org,
            roles: principal.roles,
            salt,
            created_at: super::now(),
            expires_at,
            revoked_at: None,
        };
        self.change(|keys| {
            keys.push(key.clone());
            Ok(())
        })?;
        let token = format!("{PREFIX}{}_{secret}", key.id);
        Ok((key, token))
    }

    /// Revokes a key, given its id or the whole token. Running servers notice within a second.
    pub fn revoke(&self, id: &str) -> Result<Key, Error> {
        let id = id.strip_prefix(PREFIX).map_or(id, |rest| rest.split('_').next().unwrap_or(rest));
        let now = super::now();
        self.change(|keys| {
            let key = keys.iter_mut().find(|key| key.id == id);
            let key = key.ok_or_else(|| Error::NoSuchKey(id.to_owned()))?;
            key.revoked_at.get_or_insert(now);
            Ok(key.clone())
        })
    }

    /// Changes the file atomically, under a lock.
    fn change<T>(&self, change: impl FnOnce(&mut Vec<Key>) -> Result<T, Error>) -> Result<T, Error> {
        let failed = |error| Error::Write(self.path.clone(), error);
        let parent = self.path.parent().filter(|directory| !directory.as_os_str().is_empty());
        let directory = parent.unwrap_or(Path::new("."));
        fs::create_dir_all(directory).map_err(failed)?;
        let mut lock_name = self.path.file_name().unwrap_or_default().to_owned();
        lock_name.push(".lock");
        let lock = fs::File::create(directory.join(lock_name)).map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut keys = self.list()?;
        let outcome = change(&mut keys)?;
        let replace = || {
            // Only its owner can read a temporary file.
            let mut file = tempfile::NamedTempFile::new_in(directory)?;
            serde_json::to_writer_pretty(&mut file, &KeyFileContents { keys })?;
            file.as_file().sync_all()?;
            Ok(file.persist(&self.path)?)
        };
        replace().map_err(failed)?;
        Ok(outcome)
    }

    fn file_version(&self) -> Result<FileVersion, Error> {
        match fs::metadata(&self.path) {
            Ok(about) => Ok(Some((about.modified().map_err(|error| self.unreadable(error))?, about.len()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.unreadable(error)),
        }
    }

    fn unreadable(&self, error: impl std::fmt::Display) -> Error {
        Error::Read(self.path.clone(), error.to_string())
    }
}

fn hash(salt: &str, secret: &str) -> String {
    hex(&Sha256::new().chain_update(salt).chain_update(secret).finalize())
}

pub(crate) fn random<const N: usize>() -> Result<String, Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| Error::NoRandomness(error.to_string()))?;
    Ok(hex(&bytes))
}

/// Compares in constant time.
pub(super) fn equal_in_constant_time(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (tempfile::TempDir, KeyFile) {
        let dir = tempfile::tempdir().unwrap();
        let file = KeyFile::new(dir.path().join("state/keys.json"));
        (dir, file)
    }

    fn staff(name: &str) -> Principal {
        Principal { id: name.to_owned(), org: None, roles: vec!["staff".to_owned()] }
    }

    #[test]
    fn a_key_is_valid_until_it_is_revoked_or_expires() {
        let (_dir, file) = file();
        assert!(file.current().unwrap().is_empty());
        let (key, token) = file.create(staff("mira"), None).unwrap();
        let (_, brief) = file.create(staff("brief"), Some(100)).unwrap();
        let fresh = || KeyFile::new(file.path()).current().unwrap();
        assert_eq!(fresh().principal(&token, 50).unwrap().id, "mira");
        assert!(fresh().principal(&brief, 99).is_some() && fresh().principal(&brief, 100).is_none());
        let tampered = format!("{}0", &token[..token.len() - 1]);
        let tampered = if tampered == token { format!("{}1", &token[..token.len() - 1]) } else { tampered };
        for wrong in
            [tampered.as_str(), "", "twk_", "twk_a_b", &token[..token.len() - 1], &format!("{token}0")]
        {
            assert!(fresh().principal(wrong, 50).is_none(), "{wrong}");
        }
        file.revoke(&key.id).unwrap();
        assert!(fresh().principal(&token, 50).is_none());
        assert!(matches!(file.revoke("unknown"), Err(Error::NoSuchKey(_))));
        assert!(!fresh().is_empty(), "a revoked key still counts as a key");
    }

    #[test]
    fn the_secret_is_not_stored_and_the_file_is_private() {
        let (dir, file) = file();
        let (_, token) = file.create(staff("mira"), None).unwrap();
        let text = fs::read_to_string(file.path()).unwrap();
        let secret = token.rsplit('_').next().unwrap();
        assert!(secret.len() == 64 && !text.contains(secret));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(file.path()).unwrap().permissions().mode() & 0o777, 0o600);
        }
        drop(dir);
    }

    #[test]
    fn an_invalid_file_does_not_open_the_server() {
        let (_dir, file) = file();
        fs::create_dir_all(file.path().parent().unwrap()).unwrap();
        fs::write(file.path(), "{").unwrap();
        assert!(file.current().is_err());
        assert!(!super::super::Auth::new(file, None).is_open());
    }
}
