//! Simulates a speaker: received audio is played in real time, and an interruption drops the rest.

use std::collections::VecDeque;

/// The played part of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaybackPosition {
    pub item: String,
    pub ms: u64,
}

#[derive(Debug)]
pub struct Playback {
    rate: u32,
    waiting: VecDeque<i16>,
    items: VecDeque<Item>,
    /// All played audio.
    pub heard: Vec<i16>,
}

#[derive(Debug)]
struct Item {
    id: String,
    received: usize,
    played: usize,
    is_complete: bool,
}

impl Playback {
    pub const fn new(rate: u32) -> Self {
        Self { rate, waiting: VecDeque::new(), items: VecDeque::new(), heard: Vec::new() }
    }

    pub fn begin(&mut self, item: String) {
        self.items.push_back(Item { id: item, received: 0, played: 0, is_complete: false });
    }

    /// Adds audio to the last item. Without an item it is dropped.
    pub fn add(&mut self, pcm: &[u8]) {
        let samples = pcm.as_chunks::<2>().0;
        if let Some(item) = self.items.back_mut() {
            item.received += samples.len();
            self.waiting.extend(samples.iter().map(|bytes| i16::from_le_bytes(*bytes)));
        }
    }

    /// All audio of the item was received.
    pub fn complete(&mut self, id: &str) {
        self.items.iter_mut().filter(|item| item.id == id).for_each(|item| item.is_complete = true);
    }

    pub fn is_silent(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Plays this many milliseconds. Returns the items that were played to their end.
    pub fn play(&mut self, ms: u64) -> Vec<PlaybackPosition> {
        let mut left = samples_of(self.rate, ms);
        let mut finished = Vec::new();
        while let Some(item) = self.items.front_mut() {
            let count = left.min(item.received - item.played);
            self.heard.extend(self.waiting.drain(..count));
            item.played += count;
            left -= count;
            if !item.is_complete || item.played < item.received {
                break;
            }
            finished.extend(self.items.pop_front().map(|item| item.played(self.rate)));
        }
        finished
    }

    /// The position in the item that is being played.
    pub fn current(&self) -> Option<PlaybackPosition> {
        self.items.front().filter(|item| item.played > 0).map(|item| item.played(self.rate))
    }

    /// Drops the audio that was not played. Returns the position of the interrupted item.
    pub fn drop_unheard(&mut self) -> Option<PlaybackPosition> {
        self.waiting.clear();
        let items = std::mem::take(&mut self.items);
        items.front().map(|item| item.played(self.rate))
    }
}

impl Item {
    fn played(&self, rate: u32) -> PlaybackPosition {
        let ms = u64::try_from(self.played).unwrap_or(u64::MAX).saturating_mul(1000) / u64::from(rate);
        PlaybackPosition { item: self.id.clone(), ms }
    }
}

/// The samples of this many milliseconds.
pub fn samples_of(rate: u32, ms: u64) -> usize {
    usize::try_from(u64::from(rate) * ms / 1000).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(item: &str, ms: u64) -> PlaybackPosition {
        PlaybackPosition { item: item.to_owned(), ms }
    }

    #[test]
    fn audio_is_heard_at_the_pace_of_the_clock() {
        let mut playback = Playback::new(1000);
        playback.begin("a".to_owned());
        playback.add(&[1, 0, 2, 0, 3, 0]);
        playback.complete("a");
        playback.begin("b".to_owned());
        playback.add(&[4, 0, 5, 0]);
        assert_eq!((playback.play(2), playback.current()), (Vec::new(), Some(played("a", 2))));
        assert_eq!(playback.play(2), [played("a", 3)]);
        assert_eq!((playback.current(), playback.is_silent()), (Some(played("b", 1)), false));
        assert_eq!(playback.drop_unheard(), Some(played("b", 1)));
        assert_eq!((playback.heard.as_slice(), playback.is_silent()), (&[1, 2, 3, 4][..], true));
        assert_eq!(playback.play(10), Vec::new());
    }
}
