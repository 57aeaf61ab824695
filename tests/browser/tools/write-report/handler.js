export async function execute({ args }) {
  return { ok: true, data: { report: `A report about ${args.topic}.` } };
}
