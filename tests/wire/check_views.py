#!/usr/bin/env python3
"""Check provider views of a tool set against the OFFICIAL SDKs' own types.

  check_views.py DIR [--only a,b] [--types-only] [--allow-missing] [--agree] [-v]

DIR holds  openai-chat.json openai-responses.json openai-realtime.json anthropic.json
           ollama.json gemini.json gemini-native.json mcp.json

Accepted top-level shapes (nothing else may surround the tools):
  openai-chat, openai-responses, anthropic, ollama : [tool...]  or {"tools":[tool...]}
  openai-realtime : the same, or a whole {"type":"session.update","session":{...}} event
  gemini, gemini-native : {"functionDeclarations":[...]}, [{"functionDeclarations":[...]}],
                          {"tools":[{"functionDeclarations":[...]}]}
  mcp : {"tools":[...]} (a tools/list result) or [tool...]

One line per provider:  ok|FAIL  provider  SDK==version  detail.    Exit 1 if any FAIL.
Two layers:
  types   the SDK's pydantic models / TypedDicts (TypeAdapter, strict, extra="forbid" for
          TypedDicts; google-genai models forbid extras themselves; mcp and ollama models
          silently drop unknown keys, so for those a round trip must lose nothing that the
          provider understands -- lost keys fail for mcp and are a note for ollama)
  limits  documented limits the types do not carry (names, counts, root type, strict subset,
          JSON Schema 2020-12 validity). Switched off by --types-only.
"""
import argparse, copy, importlib.metadata as md, json, os, re, sys, warnings

import pydantic
from pydantic import TypeAdapter


class Bad(Exception):
    pass


def short(e, root=""):
    """one readable line out of a pydantic ValidationError; prefer the most telling error"""
    errs = e.errors()
    order = {"extra_forbidden": 0, "missing": 1}
    errs.sort(key=lambda x: (order.get(x["type"], 2), len(x["loc"])))
    er = errs[0]
    loc = root + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in er["loc"])
    what = {"extra_forbidden": "unknown key", "missing": "required key missing"}.get(er["type"], er["msg"])
    more = f" (+{len(errs) - 1} more)" if len(errs) > 1 else ""
    return f"{loc.lstrip('.')}: {what}{more}"


def validate(T, value, where):
    try:
        return TypeAdapter(T).validate_python(value, strict=True, extra="forbid")
    except pydantic.ValidationError as e:
        raise Bad(short(e, where))


def tool_list(doc, key="tools"):
    if isinstance(doc, dict):
        extra = set(doc) - {key}
        if key not in doc:
            raise Bad(f'expected a list or an object with "{key}", got keys {sorted(doc)}')
        if extra:
            raise Bad(f"unexpected top-level keys {sorted(extra)}")
        doc = doc[key]
    if not isinstance(doc, list):
        raise Bad("expected a list of tools")
    if not doc:
        raise Bad("no tools")
    return doc


# ------------------------------------------------------------------ documented limits
NAME = {
    "openai": (r"[a-zA-Z0-9_-]{1,64}", "a-z A-Z 0-9 _ - , at most 64"),
    "anthropic": (r"[a-zA-Z0-9_-]{1,128}", "a-z A-Z 0-9 _ - , at most 128"),
    "gemini": (r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}", "starts with letter or _, then letters digits _ . : - , at most 64"),
    "mcp": (r"[A-Za-z0-9._-]{1,128}", "A-Z a-z 0-9 _ - . , at most 128 (SEP-986)"),
    "ollama": (r".+", "non-empty"),
}
MAX_TOOLS = {"openai": 128}
# openai (npm) lib/transform: keywords strict mode cannot express
OPENAI_STRICT_UNSUPPORTED = {
    "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef", "allOf", "contains",
    "contentEncoding", "contentMediaType", "contentSchema", "dependentRequired", "dependentSchemas", "dependencies",
    "else", "if", "maxContains", "maxProperties", "minContains", "minProperties", "not", "oneOf",
    "patternProperties", "prefixItems", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties", "uniqueItems"}
# anthropic (PyPI) transform_schema: everything else ends up in the description
ANTHROPIC_STRICT_OK = {"$defs", "$ref", "type", "anyOf", "allOf", "enum", "const", "description", "title",
                       "properties", "required", "additionalProperties", "format", "items", "minItems"}
ANTHROPIC_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}

ONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
       "unevaluatedItems", "unevaluatedProperties")
MANY = ("anyOf", "oneOf", "allOf", "prefixItems")
MAPS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")


def walk(s, path=""):
    """every subschema (objects only) with its path"""
    if not isinstance(s, dict):
        return
    yield s, path
    for k in ONE:
        if isinstance(s.get(k), dict):
            yield from walk(s[k], f"{path}.{k}")
    for k in MANY:
        for i, x in enumerate(s.get(k) or []):
            yield from walk(x, f"{path}.{k}[{i}]")
    for k in MAPS:
        if isinstance(s.get(k), dict):
            for n, x in s[k].items():
                yield from walk(x, f"{path}.{k}.{n}")


def check_names(names, fam):
    rx, text = NAME[fam]
    for n in names:
        if not isinstance(n, str) or not re.fullmatch(rx, n):
            raise Bad(f"name {n!r}: must be {text}")
    dup = sorted({n for n in names if names.count(n) > 1})
    if dup:
        raise Bad(f"duplicate tool names {dup}")
    if len(names) > MAX_TOOLS.get(fam, 10 ** 9):
        raise Bad(f"{len(names)} tools, limit {MAX_TOOLS[fam]}")


def check_json_schema(schema, where):
    """root object + valid JSON Schema 2020-12 (catches OBJECT/INTEGER leaking out of the native view)"""
    if not isinstance(schema, dict):
        raise Bad(f"{where}: schema must be an object")
    if schema.get("type") != "object":
        raise Bad(f'{where}: root type must be "object", is {schema.get("type")!r}')
    try:
        import jsonschema
        jsonschema.Draft202012Validator.check_schema(schema)
    except ImportError:
        pass
    except Exception as e:                       # jsonschema.SchemaError
        loc = ".".join(str(p) for p in getattr(e, "absolute_path", []))
        raise Bad(f"{where}{'.' + loc if loc else ''}: not JSON Schema 2020-12: {getattr(e, 'message', e)}"[:300])
    for s, p in walk(schema):
        req = s.get("required")
        props = s.get("properties")
        if isinstance(req, list) and isinstance(props, dict):
            ghost = [r for r in req if r not in props]
            if ghost:
                raise Bad(f"{where}{p}.required names unknown properties {ghost}")


def openai_strict(schema, where):
    from openai.lib._pydantic import _ensure_strict_json_schema
    if "anyOf" in schema:
        raise Bad(f"{where}: strict: root may not be anyOf")
    for s, p in walk(schema):
        bad = sorted(set(s) & OPENAI_STRICT_UNSUPPORTED)
        if bad:
            raise Bad(f"{where}{p}: strict: unsupported keyword {bad}")
        if s.get("type") == "object" or "properties" in s:
            if s.get("additionalProperties") is not False:
                raise Bad(f"{where}{p}: strict: additionalProperties must be false")
            miss = [k for k in s.get("properties") or {} if k not in (s.get("required") or [])]
            if miss:
                raise Bad(f"{where}{p}: strict: every property must be required, missing {miss} (use a null type for optional)")
    fixed = _ensure_strict_json_schema(copy.deepcopy(schema), path=(), root=copy.deepcopy(schema))
    canon = lambda o: ({k: (sorted(v) if k == "required" and isinstance(v, list) else canon(v)) for k, v in o.items()
                        if not (k == "required" and v == [])}
                       if isinstance(o, dict) else [canon(x) for x in o] if isinstance(o, list) else o)
    if canon(fixed) != canon(schema):
        raise Bad(f"{where}: strict: the SDK would still rewrite this schema")


def anthropic_strict(schema, where):
    for s, p in walk(schema):
        bad = sorted(set(s) - ANTHROPIC_STRICT_OK)
        if bad:
            raise Bad(f"{where}{p}: strict: unsupported keyword {bad}")
        if s.get("type") == "object" and s.get("additionalProperties") is not False:
            raise Bad(f"{where}{p}: strict: additionalProperties must be false")
        if s.get("minItems", 0) not in (0, 1):
            raise Bad(f"{where}{p}: strict: minItems may only be 0 or 1")
        if "format" in s and s["format"] not in ANTHROPIC_FORMATS:
            raise Bad(f"{where}{p}: strict: unsupported format {s['format']!r}")


# ------------------------------------------------------------------ providers
def openai_chat(doc, o):
    from openai.types.chat import ChatCompletionFunctionToolParam
    ts = tool_list(doc)
    for i, t in enumerate(ts):
        validate(ChatCompletionFunctionToolParam, t, f"tools[{i}]")
    names = [t["function"]["name"] for t in ts]
    if o.limits:
        check_names(names, "openai")
        for i, t in enumerate(ts):
            f = t["function"]
            if "parameters" in f:
                w = f"tools[{i}].function.parameters"
                check_json_schema(f["parameters"], w)
                if f.get("strict"):
                    openai_strict(f["parameters"], w)
    return names, []


def openai_responses(doc, o):
    from openai.types.responses import FunctionToolParam
    ts = tool_list(doc)
    for i, t in enumerate(ts):
        validate(FunctionToolParam, t, f"tools[{i}]")
    names = [t["name"] for t in ts]
    if o.limits:
        check_names(names, "openai")
        for i, t in enumerate(ts):
            if t["parameters"] is not None:
                w = f"tools[{i}].parameters"
                check_json_schema(t["parameters"], w)
                if t.get("strict"):
                    openai_strict(t["parameters"], w)
    return names, []


def openai_realtime(doc, o):
    from openai.types.realtime import RealtimeFunctionToolParam, RealtimeSessionCreateRequestParam
    if isinstance(doc, dict) and doc.get("type") == "session.update":
        extra = set(doc) - {"type", "session", "event_id"}
        if extra:
            raise Bad(f"unknown key {sorted(extra)} in session.update")
        s = doc.get("session")
        if not isinstance(s, dict) or s.get("type") != "realtime":
            raise Bad('session.type: required, must be "realtime"')
        tools = s.get("tools")
        validate(RealtimeSessionCreateRequestParam, {k: v for k, v in s.items() if k != "tools"}, "session")
        ts = tool_list(tools)
    else:
        ts = tool_list(doc)
    for i, t in enumerate(ts):
        validate(RealtimeFunctionToolParam, t, f"tools[{i}]")
        for k in ("type", "name"):                 # optional in the type, useless without
            if k not in t:
                raise Bad(f"tools[{i}].{k}: required key missing")
    names = [t["name"] for t in ts]
    if o.limits:
        check_names(names, "openai")
        for i, t in enumerate(ts):
            if "parameters" in t:
                check_json_schema(t["parameters"], f"tools[{i}].parameters")
    return names, []


def anthropic(doc, o):
    from anthropic.types import ToolParam
    from anthropic.types.tool_param import InputSchemaTyped
    ts = tool_list(doc)
    for i, t in enumerate(ts):
        validate(ToolParam, t, f"tools[{i}]")
        try:                                        # ToolParam also admits any dict; insist on the typed form
            TypeAdapter(InputSchemaTyped).validate_python(t["input_schema"], strict=True)
        except pydantic.ValidationError as e:
            raise Bad(short(e, f"tools[{i}].input_schema"))
    names = [t["name"] for t in ts]
    if o.limits:
        check_names(names, "anthropic")
        for i, t in enumerate(ts):
            s, w = t["input_schema"], f"tools[{i}].input_schema"
            check_json_schema(s, w)
            top = sorted({"oneOf", "allOf", "anyOf"} & set(s))
            if top:
                raise Bad(f"{w}: {top} not allowed at the top level")
            for k in s.get("properties") or {}:
                if not re.fullmatch(r"[a-zA-Z0-9_.-]{1,64}", k):
                    raise Bad(f"{w}.properties: key {k!r} must match ^[a-zA-Z0-9_.-]{{1,64}}$")
            if t.get("strict"):
                anthropic_strict(s, w)
    return names, []


def lost(a, b, path=""):
    """keys present in a but gone in b"""
    if isinstance(a, dict):
        for k, v in a.items():
            p = f"{path}.{k}"
            if not isinstance(b, dict) or k not in b:
                yield p.lstrip(".")
            else:
                yield from lost(v, b[k], p)
    elif isinstance(a, list) and isinstance(b, list):
        for i, (x, y) in enumerate(zip(a, b)):
            yield from lost(x, y, f"{path}[{i}]")


# github.com/ollama/ollama api/types.go ToolFunctionParameters / ToolProperty (2026-08-21)
OLLAMA_TOP = {"type", "$defs", "items", "required", "properties"}
OLLAMA_PROP = {"anyOf", "type", "items", "description", "enum", "properties", "required"}


def ollama_server_drops(params):
    out = [k for k in params if k not in OLLAMA_TOP]
    def prop(s, p):
        if not isinstance(s, dict):
            raise Bad(f"{p}: the Ollama server needs an object here, not {s!r}")
        out.extend(f"{p}.{k}" for k in s if k not in OLLAMA_PROP)
        t = s.get("type")
        if t is not None and not (isinstance(t, str) or (isinstance(t, list) and all(isinstance(x, str) for x in t))):
            raise Bad(f"{p}.type: string or list of strings")
        for n, x in (s.get("properties") or {}).items():
            prop(x, f"{p}.{n}")
        for i, x in enumerate(s.get("anyOf") or []):
            prop(x, f"{p}.anyOf[{i}]")
    for n, x in (params.get("properties") or {}).items():
        prop(x, n)
    return out


def ollama(doc, o):
    import ollama as ol
    ts = tool_list(doc)
    names, notes = [], []
    for i, t in enumerate(ts):
        w = f"tools[{i}]"
        try:
            m = ol.Tool.model_validate_json(json.dumps(t), strict=True)
        except pydantic.ValidationError as e:
            raise Bad(short(e, w))
        if not isinstance(t, dict) or t.get("type") != "function":
            raise Bad(f'{w}.type: must be "function"')
        f = t.get("function") or {}
        for k in ("name", "parameters"):
            if k not in f:
                raise Bad(f"{w}.function.{k}: required key missing")
        extra = (set(t) - {"type", "function", "items"}) | {f"function.{k}" for k in set(f) - {"name", "description", "parameters"}}
        if extra:
            raise Bad(f"{w}: unknown key {sorted(extra)}")
        names.append(f["name"])
        sub = ollama_server_drops(f["parameters"])
        if sub:
            notes.append(f"{f['name']}: server ignores {','.join(sub)}")
        sdk = [x for x in lost(t, m.model_dump(by_alias=True, exclude_none=True))]
        sdk = [x for x in sdk if x.split("properties.", 1)[-1] not in sub]
        if sdk and o.verbose:
            notes.append(f"{f['name']}: python client also drops {','.join(x.replace('function.parameters.', '') for x in sdk)}")
        if o.limits:
            check_json_schema(f["parameters"], f"{w}.function.parameters")
    if o.limits:
        check_names(names, "ollama")
    return names, notes


def gemini_tools(doc):
    if isinstance(doc, dict) and "functionDeclarations" in doc:
        ts = [doc]
    else:
        ts = tool_list(doc)
    return ts


def gemini_common(doc, o, native):
    from google.genai import types
    ts = gemini_tools(doc)
    names, notes = [], []
    for i, t in enumerate(ts):
        w = f"tools[{i}]"
        if not isinstance(t, dict) or "functionDeclarations" not in t:
            raise Bad(f'{w}: expected {{"functionDeclarations":[...]}}, got {sorted(t) if isinstance(t, dict) else type(t).__name__}')
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                m = types.Tool.model_validate_json(json.dumps(t), strict=True)
            except pydantic.ValidationError as e:
                raise Bad(short(e, w))
            except AttributeError as e:              # the SDK's enum code trips over a non-string, e.g. "type": [..]
                raise Bad(f"{w}: an enum field (type, behavior) is not a string: the SDK raises {e}")
        bad = [str(c.message) for c in caught if "is not a valid" in str(c.message)]
        if bad:                                      # the SDK only warns on unknown enum values
            raise Bad(f"{w}: {bad[0]}")
        for j, (f, fm) in enumerate(zip(t["functionDeclarations"], m.function_declarations)):
            wf = f"{w}.functionDeclarations[{j}]"
            if not f.get("name"):
                raise Bad(f"{wf}.name: required key missing")
            snake = [k for k in f if "_" in k]
            if snake:
                raise Bad(f"{wf}: snake_case keys {snake}; the wire form is camelCase")
            if "parameters" in f and "parametersJsonSchema" in f:
                raise Bad(f"{wf}: parameters and parametersJsonSchema are mutually exclusive")
            names.append(f["name"])
            if native:
                if "parametersJsonSchema" in f:
                    raise Bad(f"{wf}: native view must use parameters, not parametersJsonSchema")
                if "parameters" in f:
                    back = fm.parameters.model_dump(by_alias=True, exclude_none=True, mode="json")
                    if back != f["parameters"]:
                        diff = first_diff(f["parameters"], back)
                        raise Bad(f"{wf}.parameters{diff[0]}: {diff[1]!r} is not what the SDK would send ({diff[2]!r})")
            else:
                if "parameters" in f:
                    raise Bad(f"{wf}: this view must use parametersJsonSchema, not parameters")
    if not names:
        raise Bad("no tools")
    if o.limits:
        check_names(names, "gemini")
        for i, t in enumerate(ts):
            for j, f in enumerate(t["functionDeclarations"]):
                wf = f"tools[{i}].functionDeclarations[{j}]"
                if native and "parameters" in f:
                    check_native(f["parameters"], f"{wf}.parameters", root=True)
                    odd = sorted({k for x, _ in walk(f["parameters"]) for k in x} & {"additionalProperties", "defs", "ref"})
                    if odd:
                        notes.append(f"{f['name']}: {','.join(odd)} is in the SDK type but the Gemini API has refused it in parameters; leave it out")
                elif not native and "parametersJsonSchema" in f:
                    check_json_schema(f["parametersJsonSchema"], f"{wf}.parametersJsonSchema")
    return names, notes


def first_diff(a, b, path=""):
    if isinstance(a, dict) and isinstance(b, dict):
        for k in list(a) + [k for k in b if k not in a]:
            if a.get(k) != b.get(k):
                return first_diff(a.get(k), b.get(k), f"{path}.{k}")
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            if x != y:
                return first_diff(x, y, f"{path}[{i}]")
    return path, a, b


def check_native(s, w, root=False):
    """what Schema's own field docs demand: which keyword belongs to which type"""
    t = s.get("type")
    if root and t != "OBJECT":
        raise Bad(f"{w}: root type must be OBJECT, is {t!r}")
    if t is None and not (set(s) & {"anyOf", "ref"}):
        raise Bad(f"{w}: type missing")
    if t == "TYPE_UNSPECIFIED":
        raise Bad(f"{w}: TYPE_UNSPECIFIED must not be used")
    only = {"items": "ARRAY", "minItems": "ARRAY", "maxItems": "ARRAY", "properties": "OBJECT", "required": "OBJECT",
            "minProperties": "OBJECT", "maxProperties": "OBJECT", "propertyOrdering": "OBJECT",
            "minLength": "STRING", "maxLength": "STRING", "pattern": "STRING"}
    for k, want in only.items():
        if k in s and t is not None and t != want:
            raise Bad(f"{w}.{k}: only for type {want}, type is {t}")
    for k in ("minimum", "maximum"):
        if k in s and t not in (None, "INTEGER", "NUMBER"):
            raise Bad(f"{w}.{k}: only for INTEGER or NUMBER, type is {t}")
    if t == "ARRAY" and "items" not in s:
        raise Bad(f"{w}: ARRAY needs items")
    if t == "OBJECT" and not s.get("properties"):
        raise Bad(f"{w}: OBJECT needs non-empty properties (the service answers 400); for no parameters leave parameters out")
    if "enum" in s and t not in (None, "STRING", "INTEGER", "NUMBER"):
        raise Bad(f"{w}.enum: type {t} cannot be an enum")
    if "format" in s:
        okf = {"INTEGER": {"int32", "int64", "enum"}, "NUMBER": {"float", "double", "enum"}}.get(t)
        if okf and s["format"] not in okf:
            raise Bad(f"{w}.format: {s['format']!r} not one of {sorted(okf)} for {t}")
    for n in s.get("properties") or {}:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", n):
            raise Bad(f"{w}.properties: parameter name {n!r}: letter or _ first, then letters digits _, at most 64")
    ghost = [r for r in s.get("required") or [] if r not in (s.get("properties") or {})]
    if ghost:
        raise Bad(f"{w}.required names unknown properties {ghost}")
    ghost = [r for r in s.get("propertyOrdering") or [] if r not in (s.get("properties") or {})]
    if ghost:
        raise Bad(f"{w}.propertyOrdering names unknown properties {ghost}")
    for n, x in (s.get("properties") or {}).items():
        check_native(x, f"{w}.properties.{n}")
    for i, x in enumerate(s.get("anyOf") or []):
        check_native(x, f"{w}.anyOf[{i}]")
    if isinstance(s.get("items"), dict):
        check_native(s["items"], f"{w}.items")


def gemini(doc, o):
    return gemini_common(doc, o, native=False)


def gemini_native(doc, o):
    return gemini_common(doc, o, native=True)


def mcp(doc, o):
    import mcp.types as mt
    from mcp.types import methods
    if isinstance(doc, list):
        doc = {"tools": doc}
    if not isinstance(doc, dict) or "tools" not in doc:
        raise Bad('expected {"tools":[...]}')
    try:
        m = mt.ListToolsResult.model_validate_json(json.dumps(doc), strict=True, by_alias=True, by_name=False)
        for i, t in enumerate(doc["tools"]):
            mt.Tool.model_validate_json(json.dumps(t), strict=True, by_alias=True, by_name=False)
        for ver, body in (("2025-11-25", doc),
                          ("2026-07-28", {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **doc})):
            try:
                methods.validate_server_result("tools/list", ver, body)
            except pydantic.ValidationError as e:
                raise Bad(f"[{ver}] " + short(e))
    except pydantic.ValidationError as e:
        raise Bad(short(e))
    back = m.model_dump(by_alias=True, exclude_none=True, mode="json")
    gone = list(lost(doc, back))
    if gone:
        raise Bad(f"unknown key(s) every client would drop: {', '.join(gone)}")
    names = [t["name"] for t in doc["tools"]]
    if not names:
        raise Bad("no tools")
    if o.limits:
        check_names(names, "mcp")
        for i, t in enumerate(doc["tools"]):
            check_json_schema(t["inputSchema"], f"tools[{i}].inputSchema")
            if "outputSchema" in t:
                check_json_schema(t["outputSchema"], f"tools[{i}].outputSchema")
    return names, []


PROVIDERS = {
    "openai-chat": (openai_chat, "openai"), "openai-responses": (openai_responses, "openai"),
    "openai-realtime": (openai_realtime, "openai"), "anthropic": (anthropic, "anthropic"),
    "ollama": (ollama, "ollama"), "gemini": (gemini, "google-genai"),
    "gemini-native": (gemini_native, "google-genai"), "mcp": (mcp, "mcp"),
}


def no_dup_keys(pairs):
    seen = {}
    for k, v in pairs:
        if k in seen:
            raise Bad(f"duplicate JSON key {k!r}")
        seen[k] = v
    return seen


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("dir")
    ap.add_argument("--only", help="comma-separated provider names")
    ap.add_argument("--types-only", dest="limits", action="store_false", help="skip the documented limits")
    ap.add_argument("--allow-missing", action="store_true", help="a missing file is skipped, not a failure")
    ap.add_argument("--agree", action="store_true", help="also fail if the files do not list the same tools in the same order")
    ap.add_argument("-v", "--verbose", action="store_true")
    o = ap.parse_args()
    want = o.only.split(",") if o.only else list(PROVIDERS)
    fails, ran, all_names = 0, 0, {}
    for p in want:
        if p not in PROVIDERS:
            ap.error(f"unknown provider {p}")
        fn, dist = PROVIDERS[p]
        ver = f"{dist}=={md.version(dist)}"
        path = os.path.join(o.dir, p + ".json")
        try:
            if not os.path.exists(path):
                if o.allow_missing:
                    print(f"skip  {p:17} {ver:22} no file")
                    continue
                raise Bad("file missing")
            try:
                with open(path, encoding="utf-8") as fh:
                    doc = json.load(fh, object_pairs_hook=no_dup_keys)
            except ValueError as e:
                raise Bad(f"not JSON: {e}")
            names, notes = fn(doc, o)
            ran += 1
            all_names[p] = names
            print(f"ok    {p:17} {ver:22} {len(names)} tool{'s' * (len(names) != 1)}" + (f"  note: {'; '.join(notes)}" if notes else ""))
        except Bad as e:
            fails += 1
            print(f"FAIL  {p:17} {ver:22} {e}")
        except Exception as e:                       # a crash must never pass for ok
            fails += 1
            print(f"FAIL  {p:17} {ver:22} checker error {type(e).__name__}: {e}")
    if o.agree and len(all_names) > 1:
        ref = next(iter(all_names))
        diff = [p for p, n in all_names.items() if n != all_names[ref]]
        if diff:
            fails += 1
            print(f"FAIL  same-tools        {'':22} {', '.join(diff)} differ from {ref}: {all_names[diff[0]]} vs {all_names[ref]}")
        else:
            print(f"ok    same-tools        {'':22} {len(all_names)} views list the same tools")
    if not ran and not fails:
        print("FAIL  nothing checked")
        fails = 1
    sys.exit(1 if fails else 0)


if __name__ == "__main__":
    main()
