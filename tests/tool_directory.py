"""Writes tools for the scripts that torment a server: scripts/soak and scripts/torture."""
import json

DOC = "".join(f"## {name}\n{text}\n" for name, text in [
    ("Summary", "For a test."), ("Preconditions", "None."), ("Postconditions", "None."), ("Invariants", "None."),
    ("Failure Modes", "None."), ("Examples", "None."), ("Common Mistakes", "None.")])


def write_tool(tools, name, handler, parameters, **fields):
    """A tool in its directory. `fields` are those of schema.json that differ from a harmless tool's."""
    folder = tools / name.replace("_", "-")
    folder.mkdir(parents=True)
    schema = {
        "toolId": name, "version": "1.0.0", "description": "For a test.", "category": "utility",
        "sideEffects": "none", "idempotent": True, "requiresConfirmation": False, "allowedModes": ["text"],
        "latencyBudgetMs": 200, "timeoutMs": 3000,
        "parameters": {"type": "object", "additionalProperties": False, "properties": parameters},
        **fields,
    }
    (folder / "schema.json").write_text(json.dumps(schema, indent=2))
    (folder / "doc_summary.md").write_text("For a test.\n")
    (folder / "doc.md").write_text(DOC)
    (folder / "handler.js").write_text(handler)
