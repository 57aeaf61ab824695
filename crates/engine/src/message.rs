//! The messages between the server and its worker processes: a length of four bytes, then JSON.
use std::io;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    call::{HostError, HostFunction, Level},
    failure::Failure,
    program::Source,
};

/// The bytes of a message's length.
pub(crate) const HEADER_BYTES: usize = 4;
/// Conversion of values allows less; this bounds the recursion of the decoder.
const MAX_DEPTH: usize = 300;

/// From the server to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToWorker {
    /// The handler that this worker serves from now on. The first message.
    Load(Vec<Source>),
    Call(CallInput),
    HostResult {
        id: u32,
        result: HostResult,
    },
    /// The caller has its failure. The handler's abort listeners run, then the worker exits.
    Abort(String),
}

/// The data of a call that the handler sees, and the limits that the worker checks itself.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CallInput {
    pub args: Value,
    pub context: Value,
    pub now: Option<i64>,
    pub seed: Option<u64>,
    pub cpu_micros: u64,
    pub memory_bytes: usize,
    pub stack_bytes: usize,
    pub output_bytes: usize,
}

/// From a worker to the server.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromWorker {
    /// The realm of the next call is made.
    Ready,
    HostCall {
        id: u32,
        function: usize,
        args: Vec<Value>,
    },
    Console(Level, String),
    Done {
        result: Result<Value, Failure>,
        /// Whether the worker can serve another call.
        reusable: bool,
    },
}

/// The first message to a spawner.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SpawnerConfig {
    pub functions: Vec<HostFunction>,
}

/// The result of a host call.
pub(crate) type HostResult = Result<Value, HostError>;

/// Appends a message to a buffer.
pub(crate) fn encode(message: &impl Serialize, buffer: &mut Vec<u8>) -> io::Result<()> {
    let start = buffer.len();
    buffer.extend([0; HEADER_BYTES]);
    serde_json::to_writer(&mut *buffer, message)?;
    let length = u32::try_from(buffer.len() - start - HEADER_BYTES).map_err(io::Error::other)?;
    buffer[start..start + HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// The length of the message at the start of a buffer, header included; `None` if the header is not complete.
pub(crate) fn encoded_length(buffer: &[u8]) -> Option<usize> {
    let header = buffer.first_chunk::<HEADER_BYTES>()?;
    Some(u32::from_le_bytes(*header) as usize + HEADER_BYTES)
}

/// Decodes a message without its header.
pub(crate) fn decode<T: DeserializeOwned>(text: &[u8]) -> io::Result<T> {
    if !is_shallow(text) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is nested too deeply"));
    }
    let mut decoder = serde_json::Deserializer::from_slice(text);
    decoder.disable_recursion_limit();
    Ok(T::deserialize(&mut decoder)?)
}

/// Whether the brackets outside of strings nest less deep than the limit.
fn is_shallow(text: &[u8]) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_deep_message_is_refused_and_a_deep_value_is_not() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(decode::<Value>(nested(MAX_DEPTH).as_bytes()).is_ok());
        assert!(decode::<Value>(nested(MAX_DEPTH + 1).as_bytes()).is_err());
        assert_eq!(decode::<Value>(br#""\"[[[[""#).unwrap(), json!("\"[[[["));
    }

    #[test]
    fn a_message_has_its_length_before_it() {
        let mut buffer = vec![7];
        encode(&FromWorker::Ready, &mut buffer).unwrap();
        assert_eq!(encoded_length(&buffer[1..]), Some(buffer.len() - 1));
        assert_eq!(encoded_length(&buffer[1..3]), None);
    }
}
