//! Audio in messages: 16-bit little-endian PCM, mono; base64 for the providers.

use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use base64::engine::{DecodePaddingMode, general_purpose};

/// Standard alphabet; padding is optional.
const STANDARD: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// The URL-safe alphabet, which the JSON form of protocol buffers permits.
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

pub(crate) fn encode_base64(pcm: &[u8]) -> String {
    general_purpose::STANDARD.encode(pcm)
}

/// Decodes either alphabet. Cuts off half a sample at the end.
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let mut pcm = STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text)).ok()?;
    pcm.truncate(pcm.len() & !1);
    Some(pcm)
}

pub(crate) fn samples(pcm: &[u8]) -> impl Iterator<Item = i16> {
    pcm.as_chunks::<2>().0.iter().map(|bytes| i16::from_le_bytes(*bytes))
}

/// The root mean square, from 0 to 1.
pub(crate) fn level(pcm: &[u8]) -> f64 {
    let count = pcm.len() / 2;
    if count == 0 {
        return 0.0;
    }
    let sum: f64 = samples(pcm).map(|sample| f64::from(sample) * f64::from(sample)).sum();
    (sum / count as f64).sqrt() / f64::from(i16::MAX)
}

/// The length of audio in milliseconds.
pub(crate) const fn milliseconds(bytes: u64, rate: u32) -> u64 {
    bytes * 1000 / (2 * rate as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audio_is_read_in_both_alphabets_with_and_without_padding() {
        let pcm = [0xfb, 0xff, 0xfe, 0x01];
        for text in ["+//+AQ==", "-__-AQ==", "+//+AQ", "-__-AQ"] {
            assert_eq!(decode_base64(text), Some(pcm.to_vec()), "{text}");
        }
        assert_eq!(encode_base64(&pcm), "+//+AQ==");
        assert_eq!(decode_base64("AQID"), Some(vec![1, 2]), "half a sample is cut off");
        assert_eq!(decode_base64("not base64!"), None);
    }

    #[test]
    fn the_level_is_the_root_mean_square() {
        let square: Vec<u8> =
            (0..100).flat_map(|n| if n % 2 == 0 { 3276_i16 } else { -3276 }.to_le_bytes()).collect();
        assert!((level(&square) - 0.1).abs() < 1e-3);
        assert_eq!(level(&[]).to_bits(), 0.0_f64.to_bits());
        assert_eq!(milliseconds(4800, 24_000), 100);
    }
}
