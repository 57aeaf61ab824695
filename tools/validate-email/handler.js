/** Checks the form of an address with `context.text.validateEmail`. */
export async function execute({ args, context }) {
  const { email } = args;
  const checked = await context.text.validateEmail(email);
  return {
    ok: true,
    data: {
      email,
      valid: checked.valid,
      normalized: checked.normalized ?? null,
      local_part: checked.localPart ?? null,
      domain: checked.domain ?? null,
      reason: checked.reason ?? null,
      did_you_mean: checked.didYouMean ?? null,
    },
  };
}
