export async function execute({ args }) {
  return { ok: true, data: { note: args.note } };
}
