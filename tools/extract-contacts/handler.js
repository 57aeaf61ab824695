import { ToolError, ErrorType } from '../_core/error-types.js';

/** Finds contacts in a text; recognition itself is the host's, through `context.text`. */
export async function execute({ args, context }) {
  const { text, region = 'US' } = args;

  let found;
  try {
    found = await context.text.extractContacts(text, { region });
  } catch (error) {
    if (error?.code === 'INVALID_ARGUMENT') {
      throw new ToolError(ErrorType.VALIDATION, `The text cannot be read with region ${region}: ${error.message}`);
    }
    throw error;
  }

  const emails = distinct(found.emails, (email) => email.address);
  const phones = distinct(found.phones, (phone) => `${phone.e164};${phone.extension ?? ''}`);
  const urls = distinct(found.urls, (url) => url.url);
  const profiles = distinct(found.profiles, (profile) => profile.url);
  const total = emails.length + phones.length + urls.length + profiles.length;
  return { ok: true, data: { emails, phones, urls, profiles, total } };
}

/** Keeps the first of those with one key, in order. */
function distinct(items, key) {
  const seen = new Set();
  return items.filter((item) => !seen.has(key(item)) && seen.add(key(item)));
}
