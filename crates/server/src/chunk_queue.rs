//! The chunks of a streamed response that its client has not read yet. Their number of bytes is limited, so that a slow
//! client holds little memory.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Maximum size of the queue. A larger chunk is queued only alone.
const MAX_QUEUED_BYTES: u32 = 1 << 20;
/// Overhead that is counted for each chunk.
const CHUNK_OVERHEAD_BYTES: usize = 64;

/// The space of a chunk in the queue, released when the chunk is taken out.
type QueueSpace = OwnedSemaphorePermit;

/// The receiving end: the chunks of a response's body.
pub(crate) type Chunks = mpsc::UnboundedReceiver<(Bytes, QueueSpace)>;

/// The sending end. Cloning shares the queue.
#[derive(Debug, Clone)]
pub(crate) struct ChunkSender {
    chunks: mpsc::UnboundedSender<(Bytes, QueueSpace)>,
    room: Arc<Semaphore>,
}

/// The client is gone, or the queue is full.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotQueued;

pub(crate) fn channel() -> (ChunkSender, Chunks) {
    let (sender, chunks) = mpsc::unbounded_channel();
    let room = Arc::new(Semaphore::new(MAX_QUEUED_BYTES as usize));
    (ChunkSender { chunks: sender, room }, chunks)
}

impl ChunkSender {
    /// Queues a chunk if there is room for it.
    pub fn try_send(&self, chunk: Bytes) -> Result<(), NotQueued> {
        let room = Arc::clone(&self.room).try_acquire_many_owned(size_of(&chunk));
        let room = room.map_err(|_| NotQueued)?;
        self.chunks.send((chunk, room)).map_err(|_| NotQueued)
    }

    /// Queues a chunk, once there is room for it.
    pub async fn send(&self, chunk: Bytes) -> Result<(), NotQueued> {
        let room = Arc::clone(&self.room).acquire_many_owned(size_of(&chunk)).await;
        let room = room.map_err(|_| NotQueued)?;
        self.chunks.send((chunk, room)).map_err(|_| NotQueued)
    }

    /// Resolves when the client is gone.
    pub async fn closed(&self) {
        self.chunks.closed().await;
    }
}

fn size_of(chunk: &Bytes) -> u32 {
    let bytes = chunk.len().saturating_add(CHUNK_OVERHEAD_BYTES);
    u32::try_from(bytes).unwrap_or(u32::MAX).min(MAX_QUEUED_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(bytes: usize) -> Bytes {
        Bytes::from(vec![b'x'; bytes])
    }

    #[tokio::test]
    async fn the_queue_holds_a_limited_number_of_bytes() {
        let (sender, mut chunks) = channel();
        let mut queued = 0;
        while sender.try_send(chunk(100_000)).is_ok() {
            queued += 100_000;
        }
        assert_eq!(queued, 1_000_000);
        assert!(sender.try_send(chunk(1)).is_ok(), "a small chunk still fits");
        drop(chunks.recv().await);
        assert!(sender.try_send(chunk(100_000)).is_ok());
        while sender.try_send(Bytes::new()).is_ok() {
            queued += 1;
        }
        assert!(queued < 1_100_000, "empty chunks count, too");
    }

    #[tokio::test]
    async fn a_larger_chunk_waits_until_the_queue_is_empty() {
        let (sender, mut chunks) = channel();
        sender.try_send(chunk(1)).unwrap();
        let large = chunk(3 * MAX_QUEUED_BYTES as usize);
        assert_eq!(sender.try_send(large.clone()), Err(NotQueued));
        let received = async { chunks.recv().await.map(|(chunk, _room)| chunk.len()) };
        assert_eq!(tokio::join!(sender.send(large.clone()), received), (Ok(()), Some(1)));
        assert_eq!(chunks.recv().await.unwrap().0.len(), large.len());
    }

    #[tokio::test]
    async fn a_waiting_sender_learns_that_its_client_is_gone() {
        let (sender, chunks) = channel();
        sender.try_send(chunk(MAX_QUEUED_BYTES as usize)).unwrap();
        let waiting = tokio::spawn(async move { sender.send(chunk(1)).await });
        tokio::task::yield_now().await;
        drop(chunks);
        assert_eq!(waiting.await.unwrap(), Err(NotQueued));
    }
}
