"""The project directory that the servers run: tools whose effects the service in `standins.py` counts. A release is a
directory with all tools; `current` is a link to one of them."""
import os
import subprocess

from tool_directory import write_tool

# The service counts the effect before it answers. `slow` is spent before and after it.
EFFECT = """
  const sleep = () => args.slow ? new Promise((done) => setTimeout(done, args.slow / 2)) : undefined;
  await sleep();
  const body = { key: args.key, tool: context.tool.id, value: args.value, release: RELEASE,
    executionId: context.executionId, idempotencyKey: context.idempotencyKey };
  const { json } = await context.http.fetch('%s/effect', { method: 'POST', body });
  await sleep();
  return { ok: true, data: { key: args.key, value: args.value, nonce: json.nonce, release: RELEASE%s } };
"""
LOOK = """
  const { json } = await context.http.fetch(`%s/look?key=${encodeURIComponent(args.key)}`);
  if (args.slow) await new Promise((done) => setTimeout(done, args.slow));
  return { ok: true, data: { key: args.key, value: args.value, nonce: json.nonce, release: RELEASE } };
"""
COMPOSE = """
  const inner = await context.callTool('note', { key: `${args.key}/inner`, value: args.value });
"""
TOOLS = {
    "note": {}, "put": {"idempotent": True}, "compose": {}, "pay": {"requiresConfirmation": True},
    "report": {"execution": "background"}, "render": {"execution": "background", "idempotent": True},
    "look": {"category": "retrieval", "sideEffects": "read_only", "idempotent": True},
}


def body_of(tool, service):
    if tool == "look":
        return LOOK % service
    if tool == "compose":
        inner = ", inner: inner.ok ? inner.data.nonce : inner.error.type"
        return COMPOSE + EFFECT % (service, inner)
    return EFFECT % (service, "")


def write_release(tools, service, release):
    parameters = {"key": {"type": "string"}, "value": {"type": "integer"}, "slow": {"type": "integer"}}
    for tool, own in TOOLS.items():
        fields = {"category": "action", "sideEffects": "writes", "idempotent": False, **own}
        if fields["sideEffects"] == "writes" and not fields.get("requiresConfirmation"):
            fields["allow"] = ["writes-unconfirmed"]
        handler = f"const RELEASE = {release};\nexport async function execute({{ args, context }}) {{" \
                  f"{body_of(tool, service)}}}\n"
        write_tool(tools, tool, handler, parameters, version=f"1.0.{release}", latencyBudgetMs=5000, timeoutMs=25000,
                   **fields)


class Project:
    def __init__(self, folder, binary, service):
        self.folder, self.binary, self.service = folder, binary, service
        host = service.removeprefix("http://")
        allowed = "".join(f'[tool.{tool}.http]\nallow = ["{host}"]\n' for tool in TOOLS)
        (folder / "toolwright.toml").write_text(
            f'[agent]\nprovider = "openai-chat"\nmodel = "scripted"\nbase_url = "{service}/v1"\n'
            "[confirmation]\nexpires_after_s = 604800\nmax_pending_per_session = 10000\n"
            "max_pending_per_principal = 60000\n[session]\nexpires_after_s = 604800\n"
            f"[server]\naccess_log = false\n{allowed}")
        self.artifact = folder / "current/tools/tool_registry.json"
        self.install(1)

    def install(self, release):
        """Builds a release, and makes it the current one in one step."""
        home = self.folder / f"releases/{release}"
        write_release(home / "tools", self.service, release)
        self.run("build", home / "tools")
        fresh = self.folder / "fresh"
        fresh.symlink_to(home)
        os.replace(fresh, self.folder / "current")

    def run(self, *arguments, code=0, env=None):
        """Runs a command of Toolwright; its output."""
        command = [self.binary, *map(str, arguments)]
        ended = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=300,
                               env={**os.environ, **(env or {})})
        if ended.returncode != code:
            raise RuntimeError(f"{' '.join(map(str, arguments))} ended with {ended.returncode}: "
                               f"{ended.stdout[-1000:]}{ended.stderr[-2000:]}")
        return ended.stdout
