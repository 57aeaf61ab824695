// scripts/chat-clients fills in the port of the scripted model, which counts the runs.
export async function execute({ context }) {
  await context.http.fetch('http://127.0.0.1:{{PORT}}/run');
  return { ok: true, data: { t: 5 } };
}
