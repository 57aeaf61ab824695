export async function execute({ args, context }) {
  const { data } = await context.callTool('validate_email', { email: args.email });
  return { ok: true, data };
}
