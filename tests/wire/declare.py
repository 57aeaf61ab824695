#!/usr/bin/env python3
"""Turns a corpus of tools (JSON lines) into projects with declared tools, so many that every provider takes them.

  declare.py CORPUS FIELD DIR     writes DIR/0, DIR/1, ... each with toolwright.toml and more.json
"""
import json, os, sys

GROUP = 110

corpus, field, target = sys.argv[1:]
tools, names = [], set()
for number, line in enumerate(open(corpus, encoding="utf-8")):
    row = json.loads(line)
    name = row.get("name", f"schema_{number}")
    if name in names:
        continue
    names.add(name)
    # The arguments of a tool are an object, whatever the schema was written for.
    parameters = {key: value for key, value in row[field].items() if key != "items"} | {"type": "object"}
    tools.append({
        "name": name, "description": row.get("description") or name, "type": "function", "parameters": parameters,
        "implementation": {"type": "mock", "mock_response": None},
    })
for number in range(0, len(tools), GROUP):
    folder = os.path.join(target, str(number // GROUP))
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "more.json"), "w", encoding="utf-8") as file:
        json.dump({"tools": tools[number:number + GROUP]}, file)
    with open(os.path.join(folder, "toolwright.toml"), "w", encoding="utf-8") as file:
        file.write('[tools]\ndeclared = ["more.json"]\n')
