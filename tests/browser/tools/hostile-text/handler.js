export async function execute({ args }) {
  return { ok: true, data: { text: args.text.repeat(args.repeat ?? 1), link: 'javascript:window.hacked="result"' } };
}
