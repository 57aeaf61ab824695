//! Converts between the sample rates of clients and models, by band-limited sinc interpolation.

use rubato::audioadapter_buffers::direct::SequentialSlice;
use rubato::{
    Async, FixedAsync, Resampler as _, SincInterpolationParameters, SincInterpolationType, WindowFunction,
};

use super::pcm::samples;

/// Converts the sample rate of a PCM stream. Frames may have any length.
pub(crate) struct Resampler(Option<Converter>);

struct Converter {
    resampler: Async<f32>,
    /// Samples that do not fill a chunk yet.
    waiting: Vec<f32>,
    /// Buffer for the output of one chunk.
    output: Vec<f32>,
}

impl std::fmt::Debug for Resampler {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Resampler").field(&self.0.is_some()).finish()
    }
}

impl Resampler {
    /// From one rate to another; equal rates are passed through.
    pub fn new(from: u32, to: u32) -> Self {
        if from == to {
            return Self(None);
        }
        let parameters = SincInterpolationParameters {
            sinc_len: 64,
            f_cutoff: None,
            oversampling_factor: 96,
            interpolation: SincInterpolationType::Linear,
            window: WindowFunction::BlackmanHarris2,
        };
        let ratio = f64::from(to) / f64::from(from);
        // 10 ms.
        let chunk = (from / 100).max(1) as usize;
        // Ratio and sizes are constants of the protocol, all of which are supported.
        let resampler = Async::new_sinc(ratio, 1.0, &parameters, chunk, 1, FixedAsync::Input).ok();
        Self(resampler.map(|resampler| {
            let output = vec![0.0; resampler.output_frames_max()];
            Converter { resampler, waiting: Vec::with_capacity(chunk), output }
        }))
    }

    /// Converts audio. Up to 10 ms are kept for the next frame.
    pub fn process(&mut self, pcm: Vec<u8>) -> Vec<u8> {
        match &mut self.0 {
            Some(converter) => converter.process(&pcm),
            None => pcm,
        }
    }

    /// The remaining samples at the end of an utterance.
    pub fn flush(&mut self) -> Vec<u8> {
        let Some(converter) = &mut self.0 else { return Vec::new() };
        if converter.waiting.is_empty() {
            return Vec::new();
        }
        let missing = converter.resampler.input_frames_next().saturating_sub(converter.waiting.len());
        converter.waiting.extend(std::iter::repeat_n(0.0, missing));
        converter.process(&[])
    }
}

impl Converter {
    fn process(&mut self, pcm: &[u8]) -> Vec<u8> {
        self.waiting.extend(samples(pcm).map(|sample| f32::from(sample) / 32_768.0));
        let mut output = Vec::new();
        loop {
            let needed = self.resampler.input_frames_next();
            if self.waiting.len() < needed {
                return output;
            }
            let length = self.output.len();
            let written = match (
                SequentialSlice::new(&self.waiting[..needed], 1, needed),
                SequentialSlice::new_mut(&mut self.output, 1, length),
            ) {
                (Ok(from), Ok(mut to)) => {
                    self.resampler.process_into_buffer(&from, &mut to, None).map_or(0, |(_, written)| written)
                }
                _ => 0,
            };
            self.waiting.drain(..needed);
            for sample in &self.output[..written] {
                let sample = (sample * 32_768.0).round().clamp(-32_768.0, 32_767.0) as i16;
                output.extend_from_slice(&sample.to_le_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::voice::pcm::level;

    fn tone(rate: u32, hertz: f64, seconds: f64) -> Vec<u8> {
        let count = (f64::from(rate) * seconds) as u32;
        let sample = |n: u32| {
            let phase = f64::from(n) / f64::from(rate) * hertz * std::f64::consts::TAU;
            (phase.sin() * 10_000.0) as i16
        };
        (0..count).flat_map(|n| sample(n).to_le_bytes()).collect()
    }

    /// In frames of an odd length.
    fn resample(from: u32, to: u32, pcm: &[u8]) -> Vec<u8> {
        let mut resampler = Resampler::new(from, to);
        let mut output: Vec<u8> =
            pcm.chunks(734).flat_map(|frame| resampler.process(frame.to_vec())).collect();
        output.extend(resampler.flush());
        output
    }

    #[test]
    fn length_and_level_of_speech_are_kept_between_all_rates() {
        for from in [8000, 16_000, 24_000, 48_000] {
            for to in [8000, 16_000, 24_000, 48_000] {
                let pcm = tone(from, 440.0, 1.0);
                let output = resample(from, to, &pcm);
                let seconds = output.len() as f64 / 2.0 / f64::from(to);
                assert!((seconds - 1.0).abs() < 0.012, "{from} → {to}: {seconds} s");
                assert!((level(&output) / level(&pcm) - 1.0).abs() < 0.03, "{from} → {to}");
            }
        }
    }

    #[test]
    fn tones_above_half_the_new_rate_are_removed() {
        let output = resample(24_000, 16_000, &tone(24_000, 11_000.0, 1.0));
        assert!(level(&output) < 0.01, "{}", level(&output));
    }
}
