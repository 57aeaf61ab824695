// The web's globals that few handlers use: evaluated at the first access; knows the host only through `native`.
const RANDOM = 4;
const ENCODE = 5;
const DECODE = 6;

export function make(native, setTimeout) {
  return {
    crypto: makeCrypto(native),
    structuredClone: makeClone(),
    fixClock,
    ...makeText(native),
    ...makeSignals(setTimeout),
    ...makeAddresses(native),
  };
}

function makeCrypto(native) {
  return {
    getRandomValues(array) {
      if (!ArrayBuffer.isView(array) || array instanceof Float32Array || array instanceof Float64Array) {
        throw new TypeError('getRandomValues: an integer typed array is needed');
      }
      if (array.byteLength > 65536) {
        throw new DOMException('getRandomValues: at most 65536 bytes at a time', 'QuotaExceededError');
      }
      new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(native(RANDOM, array.byteLength));
      return array;
    },
    randomUUID() {
      const bytes = native(RANDOM, 16);
      bytes[6] = (bytes[6] & 0x0f) | 0x40;
      bytes[8] = (bytes[8] & 0x3f) | 0x80;
      const text = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
      return text.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
    },
  };
}

/** For tests: a Date with a fixed current time. */
function fixClock(now) {
  const RealDate = Date;
  const place = (target, name, value) =>
    Object.defineProperty(target, name, { value, writable: true, configurable: true, enumerable: false });
  function FixedDate(...parts) {
    if (new.target === undefined) return new RealDate(now).toString();
    return Reflect.construct(RealDate, parts.length === 0 ? [now] : parts, new.target);
  }
  FixedDate.prototype = RealDate.prototype;
  place(FixedDate, 'now', { now: () => now }.now);
  place(FixedDate, 'parse', RealDate.parse);
  place(FixedDate, 'UTC', RealDate.UTC);
  Object.defineProperty(FixedDate, 'name', { value: 'Date', configurable: true });
  place(RealDate.prototype, 'constructor', FixedDate);
  place(globalThis, 'Date', FixedDate);
}

function makeText(native) {
  class TextEncoder {
    get encoding() {
      return 'utf-8';
    }
    encode(text = '') {
      return native(ENCODE, String(text));
    }
  }
  class TextDecoder {
    #fatal;
    #ignoreBOM;
    constructor(label = 'utf-8', { fatal = false, ignoreBOM = false } = {}) {
      if (!/^\s*(utf-?8|unicode-1-1-utf-8)\s*$/i.test(label)) {
        throw new RangeError(`TextDecoder: ${label} is not supported`);
      }
      this.#fatal = Boolean(fatal);
      this.#ignoreBOM = Boolean(ignoreBOM);
    }
    get encoding() {
      return 'utf-8';
    }
    get fatal() {
      return this.#fatal;
    }
    get ignoreBOM() {
      return this.#ignoreBOM;
    }
    decode(input = new Uint8Array()) {
      const bytes = ArrayBuffer.isView(input)
        ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength)
        : new Uint8Array(input);
      return native(DECODE, bytes, this.#fatal, this.#ignoreBOM);
    }
  }
  return { TextEncoder, TextDecoder };
}

function makeSignals(setTimeout) {
  const OPEN = Symbol('only the host makes signals');
  let fireAbort;
  class AbortSignal {
    #aborted = false;
    #reason;
    #listeners = [];
    onabort = null;
    constructor(key, reason) {
      if (key !== OPEN) throw new TypeError('Illegal constructor');
      this.#reason = reason;
    }
    static {
      fireAbort = (signal, reason) => signal.#fire(reason);
    }
    get aborted() {
      return this.#aborted;
    }
    get reason() {
      return this.#reason;
    }
    throwIfAborted() {
      if (this.#aborted) throw this.#reason;
    }
    addEventListener(type, listener, options) {
      if (type !== 'abort' || !listener || this.#listeners.some((entry) => entry.listener === listener)) return;
      this.#listeners.push({ listener, once: options?.once === true });
    }
    removeEventListener(type, listener) {
      this.#listeners = this.#listeners.filter((entry) => type !== 'abort' || entry.listener !== listener);
    }
    #fire(reason) {
      if (this.#aborted) return;
      this.#aborted = true;
      this.#reason = reason;
      const event = { type: 'abort', target: this, currentTarget: this };
      const listeners = this.#listeners;
      this.#listeners = [];
      if (typeof this.onabort === 'function') this.onabort(event);
      for (const { listener } of listeners) {
        if (typeof listener === 'function') listener.call(this, event);
        else listener.handleEvent(event);
      }
    }
    static abort(reason = new DOMException('This operation was aborted', 'AbortError')) {
      const signal = new AbortSignal(OPEN);
      signal.#fire(reason);
      return signal;
    }
    static timeout(delay) {
      const signal = new AbortSignal(OPEN);
      setTimeout(() => signal.#fire(new DOMException('The operation timed out', 'TimeoutError')), delay);
      return signal;
    }
    static any(signals) {
      const any = new AbortSignal(OPEN);
      for (const signal of signals) {
        if (signal.aborted) any.#fire(signal.reason);
        else signal.addEventListener('abort', () => any.#fire(signal.reason));
      }
      return any;
    }
  }
  class AbortController {
    #signal = new AbortSignal(OPEN);
    get signal() {
      return this.#signal;
    }
    abort(reason = new DOMException('This operation was aborted', 'AbortError')) {
      fireAbort(this.#signal, reason);
    }
  }
  const contextSignal = () => Object.freeze(new AbortSignal(OPEN, null));
  return { AbortController, AbortSignal, contextSignal, fireAbort };
}

function makeClone() {
  const refuse = (what) => {
    throw new DOMException(`${what} could not be cloned`, 'DataCloneError');
  };
  const errors = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
  function copy(value, seen) {
    if (typeof value === 'function') refuse(`The function ${value.name}`);
    if (typeof value === 'symbol') refuse('A symbol');
    if (typeof value !== 'object' || value === null) return value;
    if (seen.has(value)) return seen.get(value);
    const result = shell(value, seen);
    if (!seen.has(value)) seen.set(value, result);
    if (value instanceof Map) for (const [key, item] of value) result.set(copy(key, seen), copy(item, seen));
    else if (value instanceof Set) for (const item of value) result.add(copy(item, seen));
    else if (Array.isArray(value) || isPlain(value)) {
      for (const key of Object.keys(value)) define(result, key, copy(value[key], seen));
    }
    return result;
  }
  const define = (target, key, value) =>
    Object.defineProperty(target, key, { value, writable: true, configurable: true, enumerable: true });
  const isPlain = (value) => Object.prototype.toString.call(value) === '[object Object]';
  function shell(value, seen) {
    if (Array.isArray(value)) return new Array(value.length);
    if (value instanceof Date) return new Date(value.getTime());
    if (value instanceof RegExp) return new RegExp(value.source, value.flags);
    if (value instanceof Map) return new Map();
    if (value instanceof Set) return new Set();
    if (value instanceof ArrayBuffer) return value.slice(0);
    if (ArrayBuffer.isView(value)) {
      const length = value instanceof DataView ? value.byteLength : value.length;
      return new value.constructor(copy(value.buffer, seen), value.byteOffset, length);
    }
    if (value instanceof Error) {
      const made = new (errors[value.name] ?? Error)(value.message);
      if ('cause' in value) made.cause = copy(value.cause, seen);
      return made;
    }
    if (value instanceof Boolean || value instanceof Number || value instanceof String) return Object(value.valueOf());
    if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet) refuse('This object');
    return {};
  }
  return function structuredClone(value) {
    if (arguments.length === 0) throw new TypeError('structuredClone: one argument is needed');
    return copy(value, new Map());
  };
}
