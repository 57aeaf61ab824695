// Evaluated when a realm is created, before its call arrives. It must not use anything of the host that belongs to a call.
const { defineProperty, freeze } = Object;
const RealError = Error;
const RealPromise = Promise;
const toWellFormed = String.prototype.toWellFormed;
const apply = Reflect.apply;
const CALL = 0;
const ELAPSED = 9;
const ORIGIN = 12;
const WEB_GLOBALS = 13;

/** The globals of `web-globals.js`, which is evaluated at the first access to one of them. */
const LAZY_NAMES = [
  'crypto', 'TextEncoder', 'TextDecoder', 'URL', 'URLSearchParams', 'structuredClone', 'AbortController', 'AbortSignal',
];

/** Makes the globals of `web-globals.js`. */
let web;
/** Made at the first access. */
let signal;
/** Set when the call is aborted. */
let abortReason;

function place(target, name, value, enumerable = false) {
  defineProperty(target, name, { value, writable: true, configurable: true, enumerable });
}

/** `makeContext` is generated from the list of host functions. */
export function install(native) {
  const timers = makeTimers(native);
  let made;
  web = () => (made ??= native(WEB_GLOBALS)(native, timers.setTimeout));
  place(globalThis, 'console', makeConsole(native));
  place(globalThis, 'setTimeout', timers.setTimeout);
  place(globalThis, 'clearTimeout', timers.clearTimeout);
  for (const name of LAZY_NAMES) placeLazily(name);
  place(Math, 'random', makeRandom(native));
  place(globalThis, 'performance', makePerformance(native), true);
  const parameter = { args: undefined, context: makeContext(native) };
  const fixClock = (now) => web().fixClock(now);
  return [settle, hostError, abort, timers.fire, wellFormed, fixClock, freeze, parameter];
}

function placeLazily(name) {
  const get = () => {
    const value = web()[name];
    place(globalThis, name, value);
    return value;
  };
  defineProperty(globalThis, name, { get, set: (value) => place(globalThis, name, value), configurable: true });
}

function contextSignal() {
  if (signal === undefined) {
    signal = web().contextSignal();
    if (abortReason !== undefined) web().fireAbort(signal, abortReason);
  }
  return signal;
}

/** Counts from the start of the call. */
function makePerformance(native) {
  return {
    now: () => native(ELAPSED),
    get timeOrigin() {
      return native(ORIGIN);
    },
  };
}

/** Wraps a result that is not a promise but may be thenable. */
function settle(value) {
  return new RealPromise((resolve) => resolve(value));
}

/** `stack` is that of the call: an error of an asynchronous function is created long after it. */
function hostError(message, code, retryAfterMs, stack) {
  const error = new RealError(message);
  place(error, 'code', code);
  if (retryAfterMs !== undefined) place(error, 'retryAfterMs', retryAfterMs);
  if (stack !== undefined) place(error, 'stack', stack);
  return error;
}

function abort(reason) {
  abortReason = reason;
  // Without a signal there are no listeners.
  if (signal !== undefined) web().fireAbort(signal, reason);
}

function wellFormed(text) {
  return apply(toWellFormed, text, []);
}
