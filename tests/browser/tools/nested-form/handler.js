export async function execute({ args }) {
  return { ok: true, data: { received: args } };
}
