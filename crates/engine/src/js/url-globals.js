// URL and URLSearchParams; the host parses and serializes, by the URL standard.
const URL_PARSE = 7;
const URL_SET = 8;
const FORM_PARSE = 10;
const FORM_WRITE = 11;
const PARTS = [
  'href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'hash',
];

function makeAddresses(native) {
  let attach;
  class URLSearchParams {
    #pairs = [];
    #changed = null;
    constructor(init = '') {
      if (typeof init === 'object' && init !== null) {
        const pairs = typeof init[Symbol.iterator] === 'function' ? [...init] : Object.entries(init);
        this.#pairs = pairs.map((pair) => {
          const [key, value, ...rest] = pair;
          if (value === undefined || rest.length > 0) throw new TypeError('URLSearchParams: pairs are needed');
          return [String(key), String(value)];
        });
      } else {
        this.#pairs = native(FORM_PARSE, String(init).replace(/^\?/, ''));
      }
    }
    static {
      attach = (params, changed) => {
        params.#changed = changed;
        return (text) => {
          params.#pairs = native(FORM_PARSE, text.replace(/^\?/, ''));
        };
      };
    }
    #update(pairs) {
      this.#pairs = pairs;
      if (this.#changed !== null) this.#changed(this.toString());
    }
    get size() {
      return this.#pairs.length;
    }
    append(name, value) {
      this.#update([...this.#pairs, [String(name), String(value)]]);
    }
    delete(name, value) {
      const kept = ([key, held]) => key !== String(name) || (value !== undefined && held !== String(value));
      this.#update(this.#pairs.filter(kept));
    }
    get(name) {
      return this.#pairs.find(([key]) => key === String(name))?.[1] ?? null;
    }
    getAll(name) {
      return this.#pairs.filter(([key]) => key === String(name)).map(([, value]) => value);
    }
    has(name, value) {
      return this.#pairs.some(([key, held]) => key === String(name) && (value === undefined || held === String(value)));
    }
    set(name, value) {
      const first = this.#pairs.findIndex(([key]) => key === String(name));
      if (first < 0) return this.append(name, value);
      const kept = this.#pairs.filter(([key], index) => key !== String(name) || index === first);
      this.#update(kept.map((pair) => (pair[0] === String(name) ? [pair[0], String(value)] : pair)));
    }
    sort() {
      this.#update([...this.#pairs].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
    }
    forEach(callback, self) {
      for (const [key, value] of this) callback.call(self, value, key, this);
    }
    *entries() {
      for (let index = 0; index < this.#pairs.length; index += 1) yield [...this.#pairs[index]];
    }
    *keys() {
      for (const [key] of this.entries()) yield key;
    }
    *values() {
      for (const [, value] of this.entries()) yield value;
    }
    [Symbol.iterator]() {
      return this.entries();
    }
    toString() {
      return native(FORM_WRITE, this.#pairs);
    }
  }

  class URL {
    #parts;
    #params = null;
    #refresh = null;
    constructor(address, base) {
      this.#parts = native(URL_PARSE, String(address), base === undefined ? null : String(base));
      if (this.#parts === null) throw new TypeError(`Invalid URL: ${String(address).slice(0, 200)}`);
    }
    static canParse(address, base) {
      return native(URL_PARSE, String(address), base === undefined ? null : String(base)) !== null;
    }
    static parse(address, base) {
      return URL.canParse(address, base) ? new URL(address, base) : null;
    }
    static {
      PARTS.forEach((part, index) => {
        const accessor = {
          configurable: true,
          enumerable: true,
          get() {
            return this.#parts[index];
          },
        };
        if (part !== 'origin') {
          accessor.set = function set(value) {
            this.#change(part, String(value));
          };
        }
        Object.defineProperty(URL.prototype, part, accessor);
      });
    }
    #change(part, value) {
      const parts = native(URL_SET, this.#parts[0], part, value);
      if (parts === null) {
        if (part === 'href') throw new TypeError('Invalid URL');
        return;
      }
      this.#parts = parts;
      if (this.#refresh !== null) this.#refresh(this.#parts[9]);
    }
    get searchParams() {
      if (this.#params === null) {
        this.#params = new URLSearchParams(this.#parts[9]);
        this.#refresh = attach(this.#params, (text) => {
          this.#parts = native(URL_SET, this.#parts[0], 'search', text) ?? this.#parts;
        });
      }
      return this.#params;
    }
    toString() {
      return this.#parts[0];
    }
    toJSON() {
      return this.#parts[0];
    }
  }
  return { URL, URLSearchParams };
}
