/**
 * @param {Toolwright.Call<{ text: string, count_spaces: boolean }>} call
 */
export async function execute({ args }) {
  const words = args.text.split(/\s+/).filter(Boolean);
  const counted = args.count_spaces ? args.text : words.join('');
  return { ok: true, data: { words: words.length, characters: [...counted].length } };
}
