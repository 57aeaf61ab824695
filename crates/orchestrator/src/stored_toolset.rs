//! A toolset as stores hold it: its snapshot as JSON, compressed.

use toolwright_registry::snapshot::Snapshot;
use toolwright_registry::toolset;

use crate::runtime::Runtime;

/// The largest snapshot that is stored, before compression.
const MAX_BYTES: usize = 64 << 20;

/// Why a toolset cannot be stored or restored. The text is for the operator.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("it has {0} bytes, more than {MAX_BYTES}")]
    TooLarge(usize),
    #[error("its content cannot be read: {0}")]
    Corrupt(String),
    #[error("the task that read it was cancelled")]
    Interrupted,
    #[error(transparent)]
    Toolset(#[from] toolset::Error),
}

/// The content that a store holds. Blocks: it reads the handlers that no call has used yet.
pub(crate) fn pack(runtime: &Runtime) -> Result<Vec<u8>, Error> {
    let snapshot = Snapshot::new(runtime.toolset(), runtime.sources());
    let text = serde_json::to_vec(&snapshot).map_err(|cause| Error::Corrupt(cause.to_string()))?;
    if text.len() > MAX_BYTES {
        return Err(Error::TooLarge(text.len()));
    }
    Ok(lz4_flex::compress_prepend_size(&text))
}

/// The stored toolset, with the engine, capabilities and native handlers of `current`. Blocks.
pub(crate) fn unpack(content: &[u8], current: &Runtime) -> Result<Runtime, Error> {
    let corrupt = |cause: &dyn std::fmt::Display| Error::Corrupt(cause.to_string());
    let (size, compressed) = lz4_flex::block::uncompressed_size(content).map_err(|error| corrupt(&error))?;
    if size > MAX_BYTES {
        return Err(Error::TooLarge(size));
    }
    let text = lz4_flex::decompress(compressed, size).map_err(|error| corrupt(&error))?;
    let snapshot: Snapshot = serde_json::from_slice(&text).map_err(|error| corrupt(&error))?;
    let (toolset, sources) = snapshot.into_toolset()?;
    Ok(current.with_toolset(toolset, sources))
}
