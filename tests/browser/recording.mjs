// A recording for the fake microphone: parts of silence, and of a sound that changes as speech does, so that the browser's
// noise suppression lets it pass.

import fs from 'node:fs';

const RATE = 16000;

/** Writes a WAV file of parts: `['speech' or 'silence', milliseconds]`. */
export function writeRecording(file, parts) {
  const samples = parts.flatMap(([kind, ms]) => {
    const length = (RATE * ms) / 1000;
    return Array.from({ length }, (_, at) => (kind === 'speech' ? speechSample(at / RATE) : 0));
  });
  const data = Buffer.alloc(samples.length * 2);
  samples.forEach((sample, at) => data.writeInt16LE(Math.round(sample * 32767), at * 2));
  fs.writeFileSync(file, Buffer.concat([header(data.length), data]));
}

/** Syllables of a voice whose pitch rises and falls: harmonics of 120 to 220 Hz, five syllables a second. */
function speechSample(seconds) {
  const pitch = 170 + 50 * Math.sin(seconds * 7);
  const syllable = 0.35 + 0.65 * Math.abs(Math.sin(seconds * Math.PI * 5));
  let sum = 0;
  for (let harmonic = 1; harmonic <= 12; harmonic += 1) {
    sum += Math.sin(2 * Math.PI * pitch * harmonic * seconds) / harmonic;
  }
  return 0.35 * syllable * sum;
}

function header(bytes) {
  const head = Buffer.alloc(44);
  head.write('RIFF', 0);
  head.writeUInt32LE(36 + bytes, 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(RATE, 24);
  head.writeUInt32LE(RATE * 2, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write('data', 36);
  head.writeUInt32LE(bytes, 40);
  return head;
}
