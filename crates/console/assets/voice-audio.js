// Microphone and speaker of voice.js: PCM16 in and out, without any knowledge of the protocol.

const INPUT_RATE = 16000;
const OUTPUT_RATE = 24000;
/** What the server takes. */
const RATES = [8000, 16000, 24000, 48000];
const FRAME_MS = 40;
const PLAYED_INTERVAL_MS = 250;
const LOOP_TIMEOUT_MS = 3000;

/** An error with a code, as the event `error` has it. */
export class VoiceError extends Error {
  constructor(code, message) {
    super(message);
    this.name = 'VoiceError';
    this.code = code;
  }
}

/** The microphone as frames of PCM16. */
export class Microphone {
  static async open({ deviceId, worklet }, onFrame) {
    const microphone = new Microphone();
    const audio = { echoCancellation: true, noiseSuppression: true, autoGainControl: true, channelCount: 1 };
    if (deviceId) audio.deviceId = { exact: deviceId };
    try {
      microphone.stream = await navigator.mediaDevices.getUserMedia({ audio });
    } catch (error) {
      throw microphoneError(error);
    }
    try {
      await microphone.#connect(worklet, onFrame);
    } catch (error) {
      microphone.close();
      throw error;
    }
    return microphone;
  }

  async #connect(worklet, onFrame) {
    const source = this.#createSource();
    this.rate = this.context.sampleRate;
    if (!RATES.includes(this.rate)) {
      throw new VoiceError('unsupported', `This browser records at ${this.rate} Hz only; use ${RATES.join(', ')} Hz.`);
    }
    await addWorklet(this.context, worklet);
    const processorOptions = { frameSamples: (this.rate * FRAME_MS) / 1000 };
    this.node = new AudioWorkletNode(this.context, 'toolwright-microphone', { numberOfOutputs: 0, processorOptions });
    this.node.port.onmessage = ({ data }) => onFrame(data.pcm, data.level);
    source.connect(this.node);
    await this.context.resume();
  }

  /** Browsers that do not resample a microphone record at the rate of the device. */
  #createSource() {
    this.context = new AudioContext({ sampleRate: INPUT_RATE });
    try {
      return this.context.createMediaStreamSource(this.stream);
    } catch {
      this.context.close();
      this.context = new AudioContext();
      return this.context.createMediaStreamSource(this.stream);
    }
  }

  close() {
    this.node?.port.postMessage({ type: 'end' });
    for (const track of this.stream.getTracks()) track.stop();
    if (this.context && this.context.state !== 'closed') this.context.close();
  }
}

function microphoneError(error) {
  if (error.name === 'NotFoundError') return new VoiceError('microphone_missing', 'No microphone was found.');
  if (error.name === 'NotAllowedError') {
    return new VoiceError('microphone_denied', 'The browser does not allow the microphone: allow it for this page.');
  }
  return new VoiceError('unsupported', `The microphone cannot be opened: ${error.message}`);
}

async function addWorklet(context, url) {
  try {
    await context.audioWorklet.addModule(url);
  } catch (error) {
    throw new VoiceError('worklet', `${url} cannot be loaded: ${error.message}`);
  }
}

/** Plays PCM16 and knows how much of each item has been heard. */
export class Speaker {
  static async open({ worklet }, onPlayed) {
    const speaker = new Speaker(onPlayed);
    try {
      await speaker.#connect(worklet);
    } catch (error) {
      speaker.close();
      throw error;
    }
    return speaker;
  }

  constructor(onPlayed) {
    this.onPlayed = onPlayed;
    this.rate = OUTPUT_RATE;
    this.context = new AudioContext({ sampleRate: OUTPUT_RATE });
    this.isDrained = true;
    this.wasSpeaking = false;
    this.lastReport = 0;
    /** Items in the order of their audio, by run: `{ item, begin, end }` in samples of the run. */
    this.runs = [[]];
    /** The number of the first of `runs`. */
    this.firstRun = 0;
    this.queued = 0;
  }

  async #connect(worklet) {
    await addWorklet(this.context, worklet);
    const options = { numberOfInputs: 0, outputChannelCount: [1] };
    this.node = new AudioWorkletNode(this.context, 'toolwright-speaker', options);
    this.node.port.onmessage = ({ data }) => this.#count(data);
    await this.context.resume();
    // Echo cancellation only knows sound that comes from a peer connection: playback goes through a local one.
    const destination = this.context.createMediaStreamDestination();
    this.loop = await openLoop(destination.stream);
    if (!this.loop) {
      this.node.connect(this.context.destination);
      return;
    }
    this.node.connect(destination);
    this.element = new Audio();
    this.element.srcObject = this.loop.stream;
    await this.element.play();
  }

  get items() {
    return this.runs.at(-1);
  }

  /** Something is played, or more of it is to come: audio may arrive no faster than it is played. */
  get isSpeaking() {
    return !this.isDrained || this.items.at(-1)?.end === null;
  }

  beginItem(item) {
    this.endItem();
    this.items.push({ item, begin: this.queued, end: null, isReported: false });
  }

  /** All audio of the last item has come. */
  endItem() {
    const last = this.items.at(-1);
    if (!last || last.end !== null) return;
    last.end = this.queued;
    // Playback may have been faster than this message.
    if (this.isDrained) this.#reportFinished([last], this.queued);
  }

  play(pcm) {
    this.queued += pcm.byteLength / 2;
    this.isDrained = false;
    if (this.element) this.element.muted = false;
    this.node.port.postMessage({ type: 'audio', pcm }, [pcm]);
  }

  /** Silence at once: the element still holds what the loop has buffered. */
  flush() {
    if (this.element) this.element.muted = true;
    this.runs.push([]);
    this.queued = 0;
    this.isDrained = true;
    this.node.port.postMessage({ type: 'flush' });
  }

  #count({ run, samples, level, isFlushed }) {
    const items = this.runs[run - this.firstRun];
    const current = items.findLast(({ begin }) => begin < samples);
    this.#reportFinished(items, samples, current);
    if (run === this.firstRun + this.runs.length - 1) this.isDrained = samples >= this.queued;
    const isAtEnd = current?.end === samples;
    if (isAtEnd) current.isReported = true;
    const isDue = isFlushed || isAtEnd || performance.now() - this.lastReport >= PLAYED_INTERVAL_MS;
    if (isDue) this.lastReport = performance.now();
    const ms = current ? this.#milliseconds(Math.min(samples, current.end ?? samples) - current.begin) : 0;
    this.onPlayed({ item: current?.item ?? null, ms, isFlushed, isDrained: this.isDrained, level, isDue });
    if (isFlushed) {
      this.runs.shift();
      this.firstRun += 1;
    }
  }

  #milliseconds(samples) {
    return Math.floor((samples * 1000) / this.rate);
  }

  /** Items before the current one have been played to their end. */
  #reportFinished(items, samples, current) {
    for (const item of items) {
      if (item === current || item.isReported || item.end === null || item.end > samples) continue;
      item.isReported = true;
      const ms = this.#milliseconds(item.end - item.begin);
      this.onPlayed({ item: item.item, ms, isFlushed: false, isDrained: this.isDrained, level: 0, isDue: true });
    }
  }

  close() {
    this.node?.port.postMessage({ type: 'end' });
    this.loop?.close();
    if (this.element) this.element.srcObject = null;
    if (this.context.state !== 'closed') this.context.close();
  }
}

/** Sends a stream from one peer connection to another in this page. `null` if the two cannot connect. */
async function openLoop(stream) {
  const [from, to] = [new RTCPeerConnection(), new RTCPeerConnection()];
  const close = () => [from, to].forEach((peer) => peer.close());
  try {
    from.onicecandidate = ({ candidate }) => candidate && to.addIceCandidate(candidate);
    to.onicecandidate = ({ candidate }) => candidate && from.addIceCandidate(candidate);
    const received = new Promise((resolve) => (to.ontrack = ({ streams }) => resolve(streams[0])));
    const connected = new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error('no connection')), LOOP_TIMEOUT_MS);
      to.onconnectionstatechange = () => {
        if (to.connectionState !== 'connected') return;
        clearTimeout(timer);
        resolve();
      };
    });
    for (const track of stream.getTracks()) from.addTrack(track, stream);
    await from.setLocalDescription();
    await to.setRemoteDescription(from.localDescription);
    await to.setLocalDescription();
    await from.setRemoteDescription(to.localDescription);
    await connected;
    return { stream: await received, close };
  } catch {
    close();
    return null;
  }
}
