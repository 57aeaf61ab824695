// The two audio processors of voice.js, which run on the browser's audio thread: the microphone's samples in frames of
// PCM16, and a queue of PCM16 that is played. A file of its own, so that the page's policy needs no `blob:`.

/** Posts `{ pcm, level }` for every `frameSamples` samples; `level` is the root mean square, 0 to 1. */
class MicrophoneProcessor extends AudioWorkletProcessor {
  constructor({ processorOptions }) {
    super();
    this.frame = new Int16Array(processorOptions.frameSamples);
    this.filled = 0;
    this.energy = 0;
    this.isEnded = false;
    this.port.onmessage = ({ data }) => {
      if (data.type === 'end') this.isEnded = true;
    };
  }

  process([channels]) {
    for (const sample of channels[0] ?? []) {
      const limited = Math.max(-1, Math.min(1, sample));
      this.frame[this.filled++] = Math.round(limited * 32767);
      this.energy += limited * limited;
      if (this.filled === this.frame.length) this.post();
    }
    return !this.isEnded;
  }

  post() {
    const pcm = this.frame.buffer;
    this.port.postMessage({ pcm, level: Math.sqrt(this.energy / this.filled) }, [pcm]);
    this.frame = new Int16Array(this.filled);
    this.filled = 0;
    this.energy = 0;
  }
}

/**
 * Plays what it is sent: `{ type: 'audio', pcm }` appends, `{ type: 'flush' }` drops what has not been played and
 * begins the next run, `{ type: 'end' }` stops. Posts `{ run, samples, level, isFlushed }` about ten times a second
 * while it plays, when the queue has become empty, and at a flush; `samples` is what was played of the run.
 */
class SpeakerProcessor extends AudioWorkletProcessor {
  constructor() {
    super();
    this.isEnded = false;
    this.run = -1;
    this.beginRun();
    this.port.onmessage = ({ data }) => this.receive(data);
  }

  beginRun() {
    this.run += 1;
    this.queue = [];
    this.offset = 0;
    this.played = 0;
    this.energy = 0;
    this.unreported = 0;
  }

  receive(message) {
    if (message.type === 'audio') this.queue.push(new Int16Array(message.pcm));
    if (message.type === 'end') this.isEnded = true;
    if (message.type === 'flush') {
      this.report(true);
      this.beginRun();
    }
  }

  process(_inputs, [channels]) {
    const output = channels[0];
    let written = 0;
    while (written < output.length && this.queue.length > 0) {
      const sample = this.queue[0][this.offset++] / 32768;
      output[written++] = sample;
      this.energy += sample * sample;
      if (this.offset >= this.queue[0].length) {
        this.queue.shift();
        this.offset = 0;
      }
    }
    if (written > 0) this.count(written);
    return !this.isEnded;
  }

  count(written) {
    this.played += written;
    this.unreported += written;
    if (this.queue.length === 0 || this.unreported >= sampleRate / 10) this.report();
  }

  report(isFlushed = false) {
    const level = Math.sqrt(this.energy / Math.max(1, this.unreported));
    this.port.postMessage({ run: this.run, samples: this.played, level, isFlushed });
    this.unreported = 0;
    this.energy = 0;
  }
}

registerProcessor('toolwright-microphone', MicrophoneProcessor);
registerProcessor('toolwright-speaker', SpeakerProcessor);
