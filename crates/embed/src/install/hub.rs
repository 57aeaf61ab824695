//! The model from the Hugging Face hub. A download that was cut off goes on where it stopped.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use reqwest::{Client, StatusCode, header, redirect};

use super::{FILES, NAME, Pinned, Progress, REVISION, accept, check, part};
use crate::client::{build, runtime, told};

/// Without a byte for so long, a download is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Fetches every file that is not there yet.
pub(super) fn fetch(dir: &Path, hub: &str, progress: Progress<'_>) -> Result<(), String> {
    let client = build(PATIENCE, redirect::Policy::limited(10))?;
    let runtime = runtime()?;
    for file in &FILES {
        if check(&dir.join(file.name), file).is_err() {
            runtime.block_on(download(&client, dir, hub, file, progress))?;
            accept(dir, file)?;
        }
    }
    Ok(())
}

async fn download(
    client: &Client,
    dir: &Path,
    hub: &str,
    file: &Pinned,
    progress: Progress<'_>,
) -> Result<(), String> {
    let path = part(dir, file);
    let have = fs::metadata(&path).map_or(0, |found| found.len());
    if have == file.size {
        return Ok(());
    }
    let have = if have > file.size { 0 } else { have };
    let url = format!("{}/{NAME}/resolve/{REVISION}/{}", hub.trim_end_matches('/'), file.name);
    let mut request = client.get(&url);
    if have > 0 {
        request = request.header(header::RANGE, format!("bytes={have}-"));
    }
    let mut response = request.send().await.map_err(|error| format!("{url}: {}", told(error)))?;
    let goes_on = match response.status() {
        StatusCode::OK => false,
        StatusCode::PARTIAL_CONTENT => true,
        status => return Err(format!("{url} answers {status}")),
    };
    let write = |error: std::io::Error| format!("{} cannot be written: {error}", path.display());
    let mut to = OpenOptions::new()
        .create(true)
        .write(true)
        .append(goes_on)
        .truncate(!goes_on)
        .open(&path)
        .map_err(write)?;
    let mut done = if goes_on { have } else { 0 };
    while let Some(bytes) =
        response.chunk().await.map_err(|error| format!("{}; the next attempt goes on there", told(error)))?
    {
        to.write_all(&bytes).map_err(write)?;
        done += bytes.len() as u64;
        progress(file.name, done, file.size);
        if done > file.size {
            break;
        }
    }
    if done < file.size {
        return Err(format!(
            "{url} ended after {done} of {} bytes; the next attempt goes on there",
            file.size
        ));
    }
    Ok(())
}
