// Evaluated when a realm is created, before its call arrives. It must not use anything of the host that belongs to a call.
const { defineProperty, entries, freeze, hasOwn, preventExtensions, values } = Object;
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

/** `make` creates the web's globals; `paths` are the paths of the host functions in `context`. */
export function install(native, make, paths) {
  globals = make(native);
  for (const name of NAMES) place(globalThis, name, globals[name]);
  place(Math, 'random', globals.random);
  place(globalThis, 'performance', makePerformance(native), true);
  signal = globals.contextSignal();
  const context = makeContext(native, paths);
  const fillContext = (data) => addFrozen(context, data);
  return [settle, hostError, abort, fire, wellFormed, globals.fixClock, fillContext, { args: undefined, context }];
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

/** The context of a call without its data, which is added for each call. */
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

/** Adds the data of a call. Functions of the same name stay. */
function addFrozen(context, data) {
  for (const [name, value] of entries(data ?? {})) {
    if (!hasOwn(context, name)) defineProperty(context, name, { value: deepFreeze(value), enumerable: true });
  }
  preventExtensions(context);
}

function deepFreeze(value) {
  if ((typeof value === 'object' && value !== null) || typeof value === 'function') {
    freeze(value);
    for (const member of values(value)) deepFreeze(member);
  }
  return value;
}

/** Wraps a result that is not a promise but may be thenable. */
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
