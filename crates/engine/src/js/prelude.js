// Evaluated while a realm is made, before the snapshot that all of its calls begin from: it may not ask the host for
// anything that belongs to a call, and what it makes costs a call nothing.
const { defineProperty, entries, freeze, values } = Object;
const RealError = Error;
const RealPromise = Promise;
const toWellFormed = String.prototype.toWellFormed;
const apply = Reflect.apply;
const CALL = 0;
const ELAPSED = 9;
const ORIGIN = 12;

let globals;
let signal;

function place(target, name, value, enumerable = false) {
  defineProperty(target, name, { value, writable: true, configurable: true, enumerable });
}

const NAMES = [
  'console', 'setTimeout', 'clearTimeout', 'crypto', 'TextEncoder', 'TextDecoder', 'URL', 'URLSearchParams',
  'structuredClone', 'AbortController', 'AbortSignal',
];

/** `make` makes the web's globals; `paths` are those of the host's functions in every call's context. */
export function install(native, make, paths) {
  globals = make(native);
  for (const name of NAMES) place(globalThis, name, globals[name]);
  place(Math, 'random', globals.random);
  place(globalThis, 'performance', makePerformance(native), true);
  signal = globals.contextSignal();
  return [settle, hostError, abort, fire, wellFormed, globals.fixClock, { args: undefined, context: makeContext(native, paths) }];
}

/** Counts from the beginning of the call. */
function makePerformance(native) {
  return {
    now: () => native(ELAPSED),
    get timeOrigin() {
      return native(ORIGIN);
    },
  };
}

/** The context of the call to come, without its data; those are added, and the object closed, when there is a call. */
function makeContext(native, paths) {
  const root = {};
  paths.forEach((path, index) => {
    const names = path.split('.');
    const last = names.pop();
    let target = root;
    for (const name of names) target = target[name] ??= {};
    target[last] = (...args) => native(CALL, index, args);
  });
  const context = {};
  for (const [name, value] of entries({ ...root, signal })) {
    defineProperty(context, name, { value: deepFreeze(value), enumerable: true });
  }
  return context;
}

function deepFreeze(value) {
  if ((typeof value === 'object' && value !== null) || typeof value === 'function') {
    freeze(value);
    for (const member of values(value)) deepFreeze(member);
  }
  return value;
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
  globals.fireAbort(signal, reason);
}

function fire(timer) {
  globals.fire(timer);
}

function wellFormed(text) {
  return apply(toWellFormed, text, []);
}
