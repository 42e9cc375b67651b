/** Largest number of characters of a text, and of entries of a list, in the first round; each further round halves both. */
const firstText = 16_384;
const firstList = 512;

function cut(value: unknown, maxText: number, maxList: number): unknown {
  if (typeof value === 'string') return value.length <= maxText ? value : `${value.slice(0, maxText)}…`;
  if (Array.isArray(value)) return value.slice(0, maxList).map((each) => cut(each, maxText, maxList));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, cut(each, maxText, maxList)]));
}

/**
 * Returns a payload as JSON of at most `maxBytes` bytes, with shorter texts and lists. Events of GitHub may have 25 MB, for example a push of
 * thousands of commits. Automations compare the whole payload; their runs and the log get this one.
 */
export function shrink(payload: unknown, maxBytes: number): Buffer {
  for (let maxText = firstText, maxList = firstList; maxText >= 16; maxText /= 2, maxList /= 2) {
    const json = Buffer.from(JSON.stringify(cut(payload, maxText, Math.max(1, Math.floor(maxList)))));
    if (json.length <= maxBytes) return json;
  }
  return Buffer.from(JSON.stringify({ runyard: 'the payload is too large to be stored' }));
}
