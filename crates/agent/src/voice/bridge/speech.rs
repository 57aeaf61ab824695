//! The model's speech: items of audio, and how much of each was sent and played.

use tokio::time::{Duration, Instant};

use crate::voice::pcm::{milliseconds, samples};

/// The audio item that is being sent, or was sent last.
#[derive(Debug)]
pub(super) struct Speech {
    rate: u32,
    pub item: Option<Item>,
    /// The rest of this turn is not sent to the client.
    pub is_cut: bool,
    /// Sum of the squared samples of this turn, for its level.
    squares: f64,
    count: u64,
}

/// One utterance of the model.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub id: String,
    /// The provider's id.
    pub provider_id: Option<String>,
    /// Duration that was sent to the client.
    pub bytes: u64,
    pub started: Instant,
    /// Its start was sent to the client.
    pub is_announced: bool,
    /// A part of it was suppressed.
    pub is_withheld: bool,
    /// Duration that the client reports as played.
    pub played_ms: u64,
    /// When the client reported that it had played all audio so far.
    pub caught_up_at: Option<Instant>,
    pub is_ended: bool,
    pub is_interrupted: bool,
}

impl Item {
    pub fn new(id: String, provider_id: Option<String>) -> Self {
        Self {
            id,
            provider_id,
            bytes: 0,
            started: Instant::now(),
            is_announced: false,
            is_withheld: false,
            played_ms: 0,
            caught_up_at: None,
            is_ended: false,
            is_interrupted: false,
        }
    }
}

impl Speech {
    pub const fn new(rate: u32) -> Self {
        Self { rate, item: None, is_cut: false, squares: 0.0, count: 0 }
    }

    pub const fn change_rate(&mut self, rate: u32) {
        self.rate = rate;
    }

    /// Adds audio of the model to the level of the turn.
    pub fn measure(&mut self, pcm: &[u8]) {
        self.squares += samples(pcm).map(|sample| f64::from(sample) * f64::from(sample)).sum::<f64>();
        self.count += (pcm.len() / 2) as u64;
    }

    /// The level of the turn, if it had audio. Resets the level for the next turn.
    pub fn take_level(&mut self) -> Option<f64> {
        let (squares, count) = (std::mem::take(&mut self.squares), std::mem::take(&mut self.count));
        (count > 0).then(|| (squares / count as f64).sqrt() / f64::from(i16::MAX))
    }

    pub fn length_ms(&self) -> u64 {
        self.item.as_ref().map_or(0, |item| milliseconds(item.bytes, self.rate))
    }

    /// When playback of the last item ends: as the client reports it, otherwise by its length.
    pub fn play_end(&self) -> Option<Instant> {
        let item = self.item.as_ref().filter(|item| !item.is_interrupted)?;
        let length = self.length_ms();
        if item.played_ms >= length {
            return Some(item.caught_up_at.unwrap_or(item.started));
        }
        Some(item.started + Duration::from_millis(length))
    }

    /// Whether the client is playing the model's speech.
    pub fn is_playing(&self) -> bool {
        self.play_end().is_some_and(|end| end > Instant::now())
    }

    /// The maximum duration of the last item that was played.
    pub fn heard_ms(&self) -> u64 {
        let Some(item) = &self.item else { return 0 };
        let elapsed = u64::try_from(item.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let heard = if item.played_ms > 0 { item.played_ms } else { elapsed };
        heard.min(self.length_ms())
    }

    /// Records the client's playback position. Returns true when the whole item was played.
    pub fn played(&mut self, id: &str, ms: u64) -> bool {
        let length = self.length_ms();
        match &mut self.item {
            Some(item) if item.id == id => {
                let was_behind = item.played_ms < length;
                item.played_ms = item.played_ms.max(ms.min(length));
                if was_behind && item.played_ms >= length {
                    item.caught_up_at = Some(Instant::now());
                }
                item.is_ended && item.played_ms >= length
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn playback_ends_when_the_client_reports_it_and_not_when_it_began() {
        let mut speech = Speech::new(24_000);
        let mut item = Item::new("i".to_owned(), None);
        item.bytes = 48_000;
        speech.item = Some(item);
        let began = Instant::now();
        assert_eq!(speech.play_end(), Some(began + Duration::from_secs(1)));
        tokio::time::advance(Duration::from_millis(900)).await;
        assert!(!speech.played("i", 1000), "more audio may follow");
        assert_eq!(speech.play_end(), Some(began + Duration::from_millis(900)));
        assert!(!speech.is_playing());
        tokio::time::advance(Duration::from_millis(100)).await;
        if let Some(item) = &mut speech.item {
            item.is_ended = true;
        }
        assert!(speech.played("i", 1000));
        assert_eq!(speech.play_end(), Some(began + Duration::from_millis(900)));
    }
}
