// A client of the voice protocol (docs/reference/voice-protocol.md) for web pages. Knows no page: it reports by events.
//
//   import { VoiceClient } from './voice.js';
//   const voice = new VoiceClient({ url: '/voice' });       // pages of the console: their cookie authenticates
//   voice.addEventListener('transcript', ({ detail }) => …);
//   button.onclick = () => voice.start();                   // from a click: browsers allow sound only then
//
// new VoiceClient(options)
//   url          of the socket, relative or absolute; default '/voice'
//   worklet      URL of voice-worklet.js; default: beside this file, like voice-audio.js
//   key          an API key, or a function that returns one or a promise of one; without it the cookie authenticates
//   sessionId    an existing voice session to continue
//   clientId, language   as in `start`
//   deviceId     of the microphone; default: the browser's choice
//
// Methods: start() opens microphone, speaker and socket, and resolves when the server is ready (rejects with an Error
// whose `code` is one of those of the event `error`, or `blocked`). stop() ends the session, interrupt() the answer.
// confirm(id, approved) answers a question. say(text) sends typed input. setMuted(muted) turns the microphone off.
// Properties: state, sessionId, isMuted, transcript (a list of utterances, as in the event), tools and confirmations
// (Maps by id).
//
// Events, each a CustomEvent with a `detail`:
//   state         { state, reason? }: idle → connecting → ready ⇄ reconnecting → ending → idle; blocked → idle once
//                 the server no longer refuses this client. `reason` is that of `ended`, or the code of the error
//   transcript    { id, role, text, final, interrupted }: an utterance so far; the same `id` again replaces it
//   level         { input, output }: 0 to 1, about ten times a second
//   speaking      { isSpeaking }: an answer is being played
//   interrupted   { item, ms }: playback was cut after `ms` of the item
//   tool          { callId, tool, status: 'running' | 'ok' | 'failed', error? }
//   confirmation  { id, tool, args, preview, expiresAt, outcome?, by? }: a question; with `outcome` it is closed
//   message       { text } or { data }: left by a tool for the user, or sent by one
//   suppressed    { audio, transcript }
//   model         { isReconnecting }: the server replaces its connection to the model; the conversation goes on
//   countdown     { seconds, until, message? }: this client is blocked; once a second until 0
//   warning       { code, message }: the session goes on
//   error         { code, message }: the session is over. Codes of the protocol, and microphone_denied,
//                 microphone_missing, unsupported, worklet, connection, connection_lost

import { Microphone, Speaker, VoiceError } from './voice-audio.js';

export { VoiceError };

const PROTOCOL = 'toolwright.v1';
/** Microphone audio that waits for the network; what comes on top is dropped. */
const MAX_BUFFERED_MS = 2000;
const RESUMABLE = new Set([1001, 1005, 1006, 4401, 4429, 4500]);
const MAX_RETRY_DELAY_MS = 4000;
/** Errors after which the session goes on. */
const WARNINGS = new Set(['audio_dropped', 'unknown_confirmation', 'provider_error']);

export class VoiceClient extends EventTarget {
  #options;
  #socket = null;
  #microphone = null;
  #speaker = null;
  #resume = null;
  #graceMs = 0;
  #lastError = null;
  #utterances = { user: null, assistant: null };
  #levels = { input: 0, output: 0 };
  #farewell = false;
  #countdown = null;

  constructor(options = {}) {
    super();
    this.#options = { url: '/voice', worklet: new URL('./voice-worklet.js', import.meta.url), ...options };
    this.state = 'idle';
    this.sessionId = options.sessionId ?? null;
    this.isMuted = false;
    this.transcript = [];
    this.tools = new Map();
    this.confirmations = new Map();
  }

  async start() {
    if (this.state !== 'idle') throw new VoiceError('already_started', `the client is ${this.state}`);
    this.#setState('connecting');
    this.#farewell = false;
    try {
      this.#microphone = await Microphone.open(this.#options, (pcm, level) => this.#sendAudio(pcm, level));
      this.#refuseIfStopped();
      this.#speaker = await Speaker.open(this.#options, (played) => this.#report(played));
      this.#refuseIfStopped();
      await this.#connect();
    } catch (error) {
      const failure = error instanceof VoiceError ? error : new VoiceError('unsupported', error.message);
      if (this.state === 'connecting') this.#fail(failure);
      else this.#release();
      throw failure;
    }
  }

  /** `stop()` may come while microphone or speaker are being opened. */
  #refuseIfStopped() {
    if (this.state !== 'connecting') throw new VoiceError('stopped', 'The session was stopped.');
  }

  stop() {
    if (this.state === 'ready') this.#send({ type: 'stop' });
    else if (this.state !== 'idle' && this.state !== 'blocked') this.#finish('stopped');
  }

  interrupt() {
    this.#cutPlayback();
    this.#send({ type: 'interrupt' });
  }

  confirm(id, approved) {
    this.#send({ type: 'confirm', id, approved });
  }

  say(text) {
    this.#send({ type: 'text', text });
  }

  setMuted(muted) {
    this.isMuted = muted;
    this.#send({ type: 'mute', muted });
  }

  // The connection.

  /** Resolves with `ready`; rejects with the reason why it did not come. */
  async #connect() {
    const { url, key, clientId, language } = this.#options;
    const secret = typeof key === 'function' ? await key() : key;
    const address = new URL(url, location.href);
    address.protocol = address.protocol.replace('http', 'ws');
    const protocols = secret ? [PROTOCOL, `toolwright.key.${secret}`] : [PROTOCOL];
    const socket = new WebSocket(address, protocols);
    socket.binaryType = 'arraybuffer';
    this.#socket = socket;
    this.#lastError = null;
    const rates = { inputSampleRate: this.#microphone.rate, outputSampleRate: this.#speaker.rate };
    const session = this.#resume ?? (this.sessionId ? { sessionId: this.sessionId } : {});
    const start = { type: 'start', version: 1, clientId, language, ...session, ...rates };
    return new Promise((resolve, reject) => {
      socket.onopen = () => socket.send(JSON.stringify(start));
      socket.onmessage = ({ data }) => {
        if (socket !== this.#socket) return;
        if (data instanceof ArrayBuffer) this.#speaker.play(data);
        else this.#receive(JSON.parse(data), resolve);
      };
      socket.onclose = ({ code, reason }) => {
        if (socket !== this.#socket) return;
        this.#socket = null;
        const failure = this.#lastError ?? closeError(code, reason, this.state);
        reject(failure);
        this.#closed(code, failure);
      };
    });
  }

  #closed(code, failure) {
    if (this.state === 'ready' && RESUMABLE.has(code)) this.#reconnect();
    else if (code === 1000 || this.state === 'blocked') this.#finish('ended');
    else if (this.state === 'ready' || this.state === 'ending') this.#fail(failure);
    // While it connects, the promise of `#connect` carries the failure.
  }

  /** Takes the session up again, with growing pauses, within the server's grace time. */
  async #reconnect() {
    this.#setState('reconnecting');
    const deadline = performance.now() + this.#graceMs;
    for (let pause = 250; ; pause = Math.min(pause * 2, MAX_RETRY_DELAY_MS)) {
      try {
        return await this.#connect();
      } catch (failure) {
        if (this.state !== 'reconnecting') return undefined;
        const isFinal = failure.code !== 'connection' && failure.code !== 'connection_lost';
        if (isFinal || performance.now() + pause > deadline) return this.#fail(failure);
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
      if (this.state !== 'reconnecting') return undefined;
    }
  }

  #send(message) {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #sendAudio(pcm, level) {
    this.#levels.input = level;
    this.#emit('level', { ...this.#levels });
    if (this.state !== 'ready' || this.isMuted) return;
    const limit = (this.#microphone.rate * 2 * MAX_BUFFERED_MS) / 1000;
    if (this.#socket.bufferedAmount > limit) {
      this.#emit('warning', { code: 'audio_dropped', message: 'The network is too slow: audio was dropped.' });
    } else {
      this.#socket.send(pcm);
    }
  }

  // The messages of the server.

  #receive(message, resolveReady) {
    const handlers = {
      ready: () => this.#becomeReady(message, resolveReady),
      transcript: () => this.#addTranscript(message),
      audio_started: () => this.#speaker.beginItem(message.item),
      audio_ended: () => this.#speaker.endItem(),
      interrupted: () => this.#cutPlayback(),
      tool_started: () => this.#addTool({ ...message, status: 'running' }),
      tool_finished: () => this.#addTool({ ...message, status: message.ok ? 'ok' : 'failed' }),
      confirmation_requested: () => this.#addConfirmation(message),
      confirmation_decided: () => this.#closeConfirmation(message),
      message: () => this.#emit('message', 'text' in message ? { text: message.text } : { data: message.data }),
      suppressed: () => this.#emit('suppressed', { audio: message.audio, transcript: message.transcript }),
      reconnecting: () => this.#emit('model', { isReconnecting: true }),
      reconnected: () => this.#emit('model', { isReconnecting: false }),
      timeout: () => this.#block(message),
      ending: () => this.#end(message),
      ended: () => this.#finish(message.reason),
      error: () => this.#noteError(message),
    };
    handlers[message.type]?.();
  }

  #becomeReady(ready, resolve) {
    this.sessionId = ready.sessionId;
    this.#resume = { sessionId: ready.sessionId, resumeToken: ready.resumeToken };
    this.#graceMs = ready.graceSeconds * 1000;
    if (this.isMuted) this.#send({ type: 'mute', muted: true });
    this.#setState('ready');
    resolve(ready);
  }

  #addTranscript({ role, text, final, interrupted = false }) {
    let utterance = this.#utterances[role];
    if (!utterance) {
      utterance = { id: this.transcript.length, role, text: '', final: false, interrupted: false };
      this.transcript.push(utterance);
      this.#utterances[role] = utterance;
    }
    Object.assign(utterance, { text: final ? text : utterance.text + text, final, interrupted });
    if (final) this.#utterances[role] = null;
    this.#emit('transcript', { ...utterance });
  }

  #addTool({ callId, tool, status, error }) {
    const call = { callId, tool, status, ...(error && { error }) };
    this.tools.set(callId, call);
    this.#emit('tool', call);
  }

  #addConfirmation({ id, tool, args, preview, expiresAt }) {
    const question = { id, tool, args, preview, expiresAt };
    this.confirmations.set(id, question);
    this.#emit('confirmation', question);
  }

  #closeConfirmation({ id, outcome, by }) {
    const question = { ...this.confirmations.get(id), id, outcome, by };
    this.confirmations.delete(id);
    this.#emit('confirmation', question);
  }

  /** An error that ends the session is followed by a close code; the others are warnings. */
  #noteError({ code, message }) {
    if (WARNINGS.has(code)) this.#emit('warning', { code, message });
    else this.#lastError = new VoiceError(code, message);
  }

  #end({ farewell }) {
    if (this.state !== 'blocked') this.#setState('ending');
    this.#farewell = farewell;
    if (farewell && this.#speaker.isDrained) this.#reportFarewell();
  }

  #reportFarewell() {
    this.#farewell = false;
    this.#send({ type: 'farewell_played' });
  }

  /** Shows that the server refuses this client, until it does no longer. */
  #block({ seconds, until, message }) {
    const deadline = performance.now() + seconds * 1000;
    this.#setState('blocked', 'blocked');
    clearInterval(this.#countdown);
    const tick = () => {
      const left = Math.max(0, Math.ceil((deadline - performance.now()) / 1000));
      this.#emit('countdown', { seconds: left, until, ...(message && { message }) });
      if (left > 0) return;
      clearInterval(this.#countdown);
      this.#release();
      this.#setState('idle', 'blocked');
    };
    this.#countdown = setInterval(tick, 1000);
    tick();
  }

  // Playback.

  #cutPlayback() {
    this.#speaker?.flush();
  }

  /** What the speaker has played: an item and its milliseconds. */
  #report({ item, ms, isFlushed, isDrained, level, isDue }) {
    const { isSpeaking } = this.#speaker;
    this.#levels.output = isSpeaking ? level : 0;
    this.#emit('level', { ...this.#levels });
    if (item !== null && isDue) this.#send({ type: 'played', item, ms });
    if (isFlushed && item !== null) this.#emit('interrupted', { item, ms });
    if (isSpeaking !== this.#speaker.wasSpeaking) {
      this.#speaker.wasSpeaking = isSpeaking;
      this.#emit('speaking', { isSpeaking });
    }
    if (isDrained && this.#farewell) this.#reportFarewell();
  }

  // Ends.

  #fail(failure) {
    this.#emit('error', { code: failure.code, message: failure.message });
    this.#finish(failure.code);
  }

  #finish(reason) {
    this.#release();
    // The countdown of a block goes on.
    if (this.state !== 'idle' && this.state !== 'blocked') this.#setState('idle', reason);
  }

  #release() {
    this.#closeSocket();
    this.#microphone?.close();
    this.#speaker?.close();
    this.#microphone = this.#speaker = this.#resume = null;
    this.sessionId = this.#options.sessionId ?? null;
    this.#utterances = { user: null, assistant: null };
  }

  #closeSocket() {
    const socket = this.#socket;
    this.#socket = null;
    socket?.close(1000);
  }

  #setState(state, reason) {
    this.state = state;
    this.#emit('state', { state, ...(reason && { reason }) });
  }

  #emit(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

function closeError(code, reason, state) {
  if (code < 4000 && state === 'connecting') {
    return new VoiceError('connection', 'The server refuses the connection or cannot be reached.');
  }
  if (code < 4000) return new VoiceError('connection_lost', 'The connection to the server was lost.');
  return new VoiceError(`closed_${code}`, reason || `The server closed the connection with ${code}.`);
}
