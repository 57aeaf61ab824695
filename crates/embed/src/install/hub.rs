//! Downloads the model from the Hugging Face hub. An interrupted download is resumed.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use reqwest::{Client, StatusCode, header, redirect};

use super::{
    MODEL_FILES, MODEL_NAME, ModelFile, Progress, REVISION, cannot_write, partial_path, verify_and_rename,
    verify_checksum,
};
use crate::http_client::{build_client, build_runtime, error_chain};

/// The maximum time without receiving a byte.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Downloads every file that is missing.
pub(super) fn download_model(dir: &Path, hub: &str, progress: Progress<'_>) -> Result<(), String> {
    let client = build_client(READ_TIMEOUT, redirect::Policy::limited(10))?;
    let runtime = build_runtime()?;
    for file in &MODEL_FILES {
        if verify_checksum(&dir.join(file.name), file).is_err() {
            runtime.block_on(download_file(&client, dir, hub, file, progress))?;
            verify_and_rename(dir, file)?;
        }
    }
    Ok(())
}

async fn download_file(
    client: &Client,
    dir: &Path,
    hub: &str,
    file: &ModelFile,
    progress: Progress<'_>,
) -> Result<(), String> {
    let path = partial_path(dir, file);
    let partial = fs::metadata(&path).map_or(0, |metadata| metadata.len());
    if partial == file.size {
        return Ok(());
    }
    let url = format!("{}/{MODEL_NAME}/resolve/{REVISION}/{}", hub.trim_end_matches('/'), file.name);
    let mut request = client.get(&url);
    if (1..file.size).contains(&partial) {
        request = request.header(header::RANGE, format!("bytes={partial}-"));
    }
    let mut response = request.send().await.map_err(|error| format!("{url}: {}", error_chain(error)))?;
    let resumes = match response.status() {
        StatusCode::OK => false,
        StatusCode::PARTIAL_CONTENT => true,
        status => return Err(format!("{url} responded {status}")),
    };
    let cannot_write = |error| cannot_write(&path, error);
    let mut options = File::options();
    options.create(true).write(true).append(resumes).truncate(!resumes);
    let mut to = options.open(&path).map_err(cannot_write)?;
    let mut done = if resumes { partial } else { 0 };
    while done <= file.size
        && let Some(bytes) = response
            .chunk()
            .await
            .map_err(|error| format!("{url}: {}; run it again to resume", error_chain(error)))?
    {
        to.write_all(&bytes).map_err(cannot_write)?;
        done += bytes.len() as u64;
        progress(file.name, done, file.size);
    }
    if done < file.size {
        return Err(format!("{url} ended after {done} of {} bytes; run it again to resume", file.size));
    }
    Ok(())
}
