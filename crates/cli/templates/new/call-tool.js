/**
 * @param {Toolwright.Call<{ input: string }>} call
 */
export async function execute({ args, context }) {
  // TODO(author): name the tool and its arguments. It must not have more side effects than this one.
  const envelope = await context.callTool('other_tool', { input: args.input });
  if (!envelope.ok) return { ok: false, error: envelope.error };
  return { ok: true, data: { result: envelope.data } };
}
