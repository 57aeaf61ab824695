export async function execute({ args, context }) {
  const { data } = await context.callTool('middle_call', { email: args.email });
  return { ok: true, data, intents: [{ type: 'SUPPRESS_AUDIO', value: true }] };
}
