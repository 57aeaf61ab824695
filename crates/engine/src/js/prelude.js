// Evaluated in every fresh realm before anything else, so it stays small: what few handlers use lives in globals.js,
// which is loaded when one of its names is first touched.
const { defineProperty, freeze, values } = Object;
const RealError = Error;
const RealPromise = Promise;
const toWellFormed = String.prototype.toWellFormed;
const apply = Reflect.apply;
const CALL = 0;
const GLOBALS = 9;
const PATHS = 12;

let native;
let loaded = null;
let signal = null;
let abortReason = null;

function globals() {
  loaded ??= native(GLOBALS).make(native);
  return loaded;
}

function place(target, name, value) {
  defineProperty(target, name, { value, writable: true, configurable: true, enumerable: false });
}

function lazy(name) {
  defineProperty(globalThis, name, {
    configurable: true,
    get() {
      const value = globals()[name];
      place(globalThis, name, value);
      return value;
    },
    set(value) {
      place(globalThis, name, value);
    },
  });
}

/** Called once, while the realm is made ahead; it may not ask the host for anything that belongs to a call. */
export function install(nativeFunction) {
  native = nativeFunction;
  lazy('console');
  lazy('setTimeout');
  lazy('clearTimeout');
  lazy('crypto');
  lazy('TextEncoder');
  lazy('TextDecoder');
  lazy('URL');
  lazy('URLSearchParams');
  lazy('structuredClone');
  lazy('AbortController');
  lazy('AbortSignal');
  place(Math, 'random', { random: () => globals().random() }.random);
  return [prepare, settle, hostError, abort, fire, wellFormed];
}

/** Called once, when the realm gets its call and before any code of the handler runs. */
function prepare(data, names, now) {
  if (now !== null) globals().fixClock(now);
  const context = data !== null && typeof data === 'object' ? data : {};
  for (const value of values(context)) deepFreeze(value);
  for (const name of names) addFunctions(context, name);
  defineProperty(context, 'signal', { enumerable: true, get: contextSignal });
  return freeze(context);
}

/** A handler uses few of its functions: those under one name are made when that is first read. */
function addFunctions(context, name) {
  let made;
  defineProperty(context, name, { enumerable: true, get: () => (made ??= functionsUnder(name)) });
}

function functionsUnder(first) {
  const root = {};
  native(PATHS).forEach((path, index) => {
    const names = path.split('.');
    if (names[0] !== first) return;
    const last = names.pop();
    let target = root;
    for (const name of names) target = target[name] ??= {};
    target[last] = (...args) => native(CALL, index, args);
  });
  return deepFreeze(root[first]);
}

function deepFreeze(value) {
  if ((typeof value === 'object' && value !== null) || typeof value === 'function') {
    freeze(value);
    for (const member of values(value)) deepFreeze(member);
  }
  return value;
}

function contextSignal() {
  signal ??= globals().contextSignal(abortReason);
  return signal;
}

/** What a handler returned that is no promise itself may still be thenable. */
function settle(value) {
  return new RealPromise((resolve) => resolve(value));
}

function hostError(message, code) {
  const error = new RealError(message);
  place(error, 'code', code);
  return error;
}

function abort(reason) {
  abortReason = reason;
  if (signal !== null) globals().fireAbort(signal, reason);
}

function fire(timer) {
  globals().fire(timer);
}

function wellFormed(text) {
  return apply(toWellFormed, text, []);
}
