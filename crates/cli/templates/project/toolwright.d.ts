// Written by `toolwright init` and `toolwright new`, so that editors know what handlers can use. Do not edit it: it is
// replaced when a newer version of Toolwright has other members. docs/reference/capabilities.md describes them.

declare namespace Toolwright {
  /** The argument of `execute`. `Args` are the arguments as `parameters` in schema.json describes them. */
  interface Call<Args = Record<string, any>> {
    readonly args: Readonly<Args>;
    readonly context: Context;
  }

  /** What `execute` returns. */
  type Result =
    | { ok: true; data: any; intents?: Intent[] }
    | {
        ok: false;
        error: {
          type: string;
          message: string;
          retryable?: boolean;
          partialSideEffects?: boolean;
          idempotencyRequired?: boolean;
          details?: any;
          suggestion?: string;
        };
      };

  type Intent = { type: string; [name: string]: any };
  type Mode = "text" | "voice";
  type Field = "snippet" | "full_text" | "metadata" | "sources" | "url";
  type Slot = { start: string; end: string; preferred: boolean };
  type Span = { start: number; end: number };
  type Envelope =
    | { ok: true; data: any; intents: Intent[]; meta: any }
    | { ok: false; error: { type: string; message: string; retryable: boolean; [name: string]: any }; meta: any };

  interface KbRecord {
    id: string;
    type: string;
    title: string;
    sourceType: string | null;
    lastUpdated: string | null;
    snippet?: string | null;
    fullText?: string | null;
    url?: string | null;
    metadata?: Record<string, any>;
    sources?: Array<{ type: string; name?: string; url?: string }>;
  }

  /** Everything that a handler can reach. A function rejects with an `Error` that has a `code`. */
  interface Context {
    readonly clientId: string;
    readonly mode: Mode;
    /** The id of this call, the same when it is replayed. Calls of other sessions may have the same id. */
    readonly executionId: string;
    /** Names this call to other services: the same when it is made again, and no other call has it, in any session. */
    readonly idempotencyKey: string;
    readonly tool: { readonly id: string; readonly version: string; readonly idempotent: boolean };
    /** The session when the call started. */
    readonly session: {
      readonly isActive: boolean;
      readonly toolsVersion: string;
      readonly mode: Mode;
      readonly state: Readonly<Record<string, any>>;
    };
    /** Aborted when the call is cancelled. */
    readonly signal: AbortSignal;
    readonly messaging: {
      /** Sends a message to the client. Needs `sideEffects: writes`. */
      send(message: { type: string; [name: string]: any }): Promise<void>;
    };
    readonly voice: {
      isActive(): boolean;
      endSession(options?: { after?: "current_turn" | "farewell_spoken" }): Promise<void>;
    };
    readonly audio: { suppress(value: boolean): Promise<void> };
    readonly audit: {
      /** Adds an event to the call's audit entry. */
      log(event: string, data?: any): void;
    };
    /** Reports how far the call is, from 0 to 1. */
    progress(fraction: number, message?: string): void;
    /** The knowledge base. Needs `sideEffects: read_only`. */
    readonly kb: {
      search(request: {
        query: string;
        namespace?: "studio" | "personal" | "public";
        filters?: { type?: string; tags?: string[]; date_range?: { start?: string; end?: string } };
        topK?: number;
        returnFields?: Field[];
        includeSnippets?: boolean;
      }): Promise<Array<KbRecord & { score: number }>>;
      get(request: { ids: string[]; returnFields?: Field[] }): Promise<{ records: KbRecord[]; notFound: string[] }>;
    };
    /** The calendar. Needs `sideEffects: read_only`, `commit` needs `writes`. */
    readonly calendar: {
      freeBusy(request: { attendees: string[]; start: string; end: string }): Promise<{
        busy: Record<string, Array<{ start: string; end: string }>>;
        unknownAttendees: string[];
      }>;
      propose(request: {
        title: string;
        attendees: string[];
        durationMinutes: number;
        preferredTimes: string[];
        windowStart: string;
        windowEnd: string;
        timezone: string;
      }): Promise<{ draftId: string | null; slots: Slot[]; unknownAttendees: string[]; expiresAt: string | null }>;
      getDraft(request: { draftId: string }): Promise<{
        draftId: string;
        title: string;
        attendees: string[];
        durationMinutes: number;
        timezone: string;
        slots: Slot[];
        status: "open" | "committed" | "expired";
        eventId: string | null;
        expiresAt: string;
      }>;
      commit(request: { draftId: string; slotIndex: number; note?: string; executionId: string }): Promise<{
        eventId: string;
        title: string;
        start: string;
        end: string;
        timezone: string;
        attendees: string[];
        conferenceUrl: string | null;
      }>;
    };
    /** Images. `draft` needs `sideEffects: read_only`, `generate` needs `writes`. */
    readonly images: {
      draft(request: {
        idea: string;
        style: "any" | "photo" | "illustration" | "watercolor" | "line_art" | "3d_render" | "flat_design";
        mood?: string;
        orientation: "square" | "landscape" | "portrait";
        avoid: string[];
        count: number;
      }): Promise<{ variants: Array<{ prompt: string; style: string }> }>;
      generate(request: {
        prompt: string;
        size: "1024x1024" | "1792x1024" | "1024x1792";
        count: number;
        quality: "standard" | "hd";
        executionId: string;
      }): Promise<{
        images: Array<{ url: string; width: number; height: number; mimeType: string; revisedPrompt?: string | null }>;
      }>;
    };
    /** Pure functions on texts. */
    readonly text: {
      extractContacts(text: string, options: { region: string }): Promise<{
        emails: Array<Span & { address: string; name: string | null }>;
        phones: Array<
          Span & { e164: string; raw: string; region: string | null; extension: string | null; name: string | null }
        >;
        urls: Array<Span & { url: string }>;
        profiles: Array<Span & { service: "linkedin" | "github"; handle: string; url: string; name: string | null }>;
      }>;
      formatDatetime(request: {
        instant: string;
        timezone: string;
        style: "iso" | "date" | "time" | "short" | "long" | "spoken";
        locale: "en-US" | "en-GB" | "de-DE" | "fr-FR" | "es-ES";
      }): Promise<{ formatted: string; iso: string; timezone: string; utcOffset: string; weekday: string }>;
      validateEmail(email: string): Promise<{
        valid: boolean;
        normalized: string | null;
        localPart: string | null;
        domain: string | null;
        reason: string | null;
        didYouMean: string | null;
      }>;
    };
    /** Requests to the hosts of `[tool.<id>.http] allow` in toolwright.toml. Needs `sideEffects: read_only`. */
    readonly http: {
      fetch(
        url: string,
        init?: { method?: string; headers?: Record<string, string>; body?: any; timeoutMs?: number },
      ): Promise<{
        status: number;
        ok: boolean;
        url: string;
        headers: Record<string, string>;
        body: string;
        json: any;
      }>;
    };
    /** Runs another tool through the same gates as a call by the model. */
    callTool(name: string, args?: Record<string, any>): Promise<Envelope>;
  }
}

declare module "*/error-types.js" {
  type Kind =
    | "VALIDATION" | "NOT_FOUND" | "INTERNAL" | "SESSION_INACTIVE" | "TRANSIENT" | "PERMANENT" | "CONFLICT" | "AUTH"
    | "RATE_LIMIT";
  export const ErrorType: { readonly [K in Kind]: K };
  type IntentKind = "END_VOICE_SESSION" | "SUPPRESS_AUDIO" | "SUPPRESS_TRANSCRIPT" | "SET_PENDING_MESSAGE";
  export const IntentType: { readonly [K in IntentKind]: K };
  /** Thrown by a handler: becomes the `error` of the envelope. */
  export class ToolError extends Error {
    constructor(
      type: string,
      message: string,
      options?: {
        retryable?: boolean;
        partialSideEffects?: boolean;
        idempotencyRequired?: boolean;
        details?: any;
      },
    );
    readonly type: string;
    readonly retryable: boolean;
    readonly partialSideEffects: boolean;
  }
}

// Globals beyond those of the language.
declare const console: { [K in "debug" | "log" | "info" | "warn" | "error"]: (...values: any[]) => void };
declare function setTimeout(run: (...args: any[]) => void, milliseconds?: number, ...args: any[]): number;
declare function clearTimeout(id: number): void;
declare function queueMicrotask(run: () => void): void;
declare function structuredClone<T>(value: T): T;
declare const performance: { now(): number; readonly timeOrigin: number };
declare const crypto: { randomUUID(): string; getRandomValues<T extends ArrayBufferView>(array: T): T };
declare class TextEncoder {
  encode(text?: string): Uint8Array;
}
declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  decode(bytes?: ArrayBufferView | ArrayBuffer): string;
}
declare class URLSearchParams {
  constructor(init?: string | Record<string, string> | Iterable<[string, string]>);
  append(name: string, value: string): void;
  delete(name: string): void;
  get(name: string): string | null;
  getAll(name: string): string[];
  has(name: string): boolean;
  set(name: string, value: string): void;
  toString(): string;
  [Symbol.iterator](): IterableIterator<[string, string]>;
}
declare class URL {
  constructor(url: string, base?: string | URL);
  href: string;
  readonly origin: string;
  protocol: string;
  host: string;
  hostname: string;
  port: string;
  pathname: string;
  search: string;
  hash: string;
  username: string;
  password: string;
  readonly searchParams: URLSearchParams;
  toString(): string;
}
declare class AbortSignal {
  readonly aborted: boolean;
  readonly reason: any;
  throwIfAborted(): void;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}
declare class AbortController {
  readonly signal: AbortSignal;
  abort(reason?: any): void;
}
declare class DOMException extends Error {
  constructor(message?: string, name?: string);
  readonly code: number;
}
