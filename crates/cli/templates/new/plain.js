/**
 * @param {Toolwright.Call<{ input: string }>} call
 */
export async function execute({ args, context }) {
  // TODO(author): make the result. `context` has everything that a tool may reach.
  return { ok: true, data: { input: args.input } };
}
