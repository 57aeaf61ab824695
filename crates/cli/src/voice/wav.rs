//! WAV files: read as mono PCM16 whatever their format, written as that.

use std::path::Path;

use hound::{SampleFormat, WavReader, WavSpec, WavWriter};

use crate::output::Failure;

/// The format that the server takes.
const RATES: [u32; 4] = [8000, 16000, 24000, 48000];
const CONVERT: &str = "convert it: ffmpeg -i IN -ar 16000 -ac 1 -c:a pcm_s16le OUT.wav";

/// Mono audio.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    pub rate: u32,
    pub samples: Vec<i16>,
}

impl Recording {
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let unreadable = |error: hound::Error| {
            let help = match error {
                hound::Error::IoError(_) => "name a WAV file that exists and can be read with --wav",
                _ => CONVERT,
            };
            Failure::new(format!("cannot read {shown}: {error}"), help)
        };
        let mut reader = WavReader::open(path).map_err(unreadable)?;
        let WavSpec { channels, sample_rate: rate, bits_per_sample: bits, sample_format } = reader.spec();
        if !RATES.contains(&rate) {
            let message =
                format!("{shown} has {rate} samples a second; 8000, 16000, 24000 or 48000 are allowed");
            return Err(Failure::usage(message, CONVERT));
        }
        let samples: Result<Vec<i16>, _> = match sample_format {
            SampleFormat::Int => {
                reader.samples::<i32>().map(|sample| sample.map(|n| to_pcm16(n, bits))).collect()
            }
            SampleFormat::Float => reader.samples::<f32>().map(|sample| sample.map(float_to_pcm16)).collect(),
        };
        let samples = to_mono(&samples.map_err(unreadable)?, channels.into());
        if samples.is_empty() {
            return Err(Failure::usage(format!("{shown} has no samples"), "record something"));
        }
        Ok(Self { rate, samples })
    }

    #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
    pub fn seconds(&self) -> f64 {
        self.samples.len() as f64 / f64::from(self.rate)
    }

    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let spec = WavSpec {
            channels: 1,
            sample_rate: self.rate,
            bits_per_sample: 16,
            sample_format: SampleFormat::Int,
        };
        let written = WavWriter::create(path, spec).and_then(|mut writer| {
            self.samples.iter().try_for_each(|sample| writer.write_sample(*sample))?;
            writer.finalize()
        });
        written.map_err(|error| {
            let message = format!("cannot write {}: {error}", path.display());
            Failure::new(message, "name a file in a directory that exists with --out")
        })
    }
}

/// Converts an integer sample with this many bits.
fn to_pcm16(sample: i32, bits: u16) -> i16 {
    let scaled = if bits > 16 { sample >> (bits - 16) } else { sample << (16 - bits) };
    saturate(scaled)
}

fn float_to_pcm16(sample: f32) -> i16 {
    #[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
    let scaled = (sample * 32767.0).round() as i32;
    saturate(scaled)
}

fn saturate(sample: i32) -> i16 {
    i16::try_from(sample).unwrap_or(if sample < 0 { i16::MIN } else { i16::MAX })
}

/// The mean of the channels.
fn to_mono(samples: &[i16], channels: usize) -> Vec<i16> {
    let mean = |frame: &[i16]| {
        let sum: i64 = frame.iter().copied().map(i64::from).sum();
        let count = i64::try_from(frame.len()).unwrap_or(1);
        i16::try_from(sum / count).unwrap_or_default()
    };
    samples.chunks_exact(channels.max(1)).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_every_format_become_mono_pcm16() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("in.wav");
        let spec = |bits_per_sample, sample_format| WavSpec {
            channels: 2,
            sample_rate: 16000,
            bits_per_sample,
            sample_format,
        };
        let mut writer = WavWriter::create(&path, spec(24, SampleFormat::Int)).unwrap();
        [256_000, 512_000, -256, 0].into_iter().for_each(|n| writer.write_sample::<i32>(n).unwrap());
        writer.finalize().unwrap();
        assert_eq!(Recording::read(&path).unwrap().samples, [1500, 0]);
        let mut writer = WavWriter::create(&path, spec(32, SampleFormat::Float)).unwrap();
        [1.0, 1.0, -2.0, -2.0].into_iter().for_each(|n| writer.write_sample::<f32>(n).unwrap());
        writer.finalize().unwrap();
        assert_eq!(Recording::read(&path).unwrap().samples, [32767, -32768]);
    }

    #[test]
    fn what_is_written_is_read_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out.wav");
        let recording = Recording { rate: 24000, samples: vec![1, -2, 3] };
        recording.write(&path).unwrap();
        assert_eq!(Recording::read(&path).unwrap(), recording);
    }
}
