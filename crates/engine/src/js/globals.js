// The globals that nearly every handler uses, made with each realm; knows the host only through `native`.
const CONSOLE = 1;
const TIMER_SET = 2;
const TIMER_CLEAR = 3;
const RANDOM = 4;
const MAX_LINE = 4096;

function makeConsole(native) {
  const write = (level) => (...values) => native(CONSOLE, level, values.map(inspected).join(' ').slice(0, MAX_LINE));
  return {
    debug: write('debug'),
    log: write('info'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    trace: write('debug'),
    dir: write('info'),
    assert(condition, ...values) {
      if (!condition) write('error')('Assertion failed', ...values);
    },
  };
}

function inspected(value) {
  if (typeof value === 'string') return value;
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'function') return `[Function: ${value.name || 'anonymous'}]`;
  if (value instanceof Error) return value.stack ? `${value}\n${value.stack}` : String(value);
  if (typeof value !== 'object' || value === null) return String(value);
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

function makeTimers(native) {
  const waiting = new Map();
  return {
    setTimeout(callback, delay = 0, ...args) {
      if (typeof callback !== 'function') throw new TypeError('setTimeout: the callback must be a function');
      const id = native(TIMER_SET, Math.min(Math.max(Number(delay) || 0, 0), 2147483647));
      waiting.set(id, { callback, args });
      return id;
    },
    clearTimeout(id) {
      if (waiting.delete(id)) native(TIMER_CLEAR, id);
    },
    fire(id) {
      const timer = waiting.get(id);
      if (timer === undefined || !waiting.delete(id)) return;
      timer.callback(...timer.args);
    },
  };
}

/** sfc32, seeded at the first use. */
function makeRandom(native) {
  let state = null;
  const random = () => {
    state ??= new Uint32Array(native(RANDOM, 16).buffer);
    const sum = (((state[0] + state[1]) | 0) + state[3]) | 0;
    state[3] = state[3] + 1;
    state[0] = state[1] ^ (state[1] >>> 9);
    state[1] = state[2] + (state[2] << 3);
    state[2] = ((state[2] << 21) | (state[2] >>> 11)) + sum;
    return ((sum >>> 5) * 67108864 + (state[0] >>> 6)) / 9007199254740992;
  };
  return random;
}
