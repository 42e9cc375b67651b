import { STATUS_CODES } from 'node:http';

/** Names of JSON members that hold the text of an error. If an error has several of these members, the first name in this list is used. */
const textMembers = ['message', 'msg', 'detail', 'details', 'error', 'errors', 'description', 'reason'] as const;
const maxDepth = 6;
const maxTexts = 3;

/**
 * Adds the texts in an error's JSON to `texts`. If a text belongs to a member of the request (`loc` of FastAPI), adds the path of this
 * member.
 */
function collect(value: unknown, texts: string[], depth: number): void {
  if (depth > maxDepth || texts.length >= maxTexts) return;
  if (typeof value === 'string') {
    if (value.trim() !== '') texts.push(value.trim());
    return;
  }
  if (Array.isArray(value)) {
    for (const each of value) collect(each, texts, depth + 1);
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  const members = value as Readonly<Record<string, unknown>>;
  const name = textMembers.find((each) => members[each] !== undefined && members[each] !== null);
  if (name === undefined) return;
  const before = texts.length;
  collect(members[name], texts, depth + 1);
  const place = Array.isArray(members.loc) ? members.loc.map(String).join('.') : '';
  if (place !== '' && texts.length > before) texts[before] = `${place}: ${texts[before]}`;
}

/** Returns the text of an error answer whose format the SDK does not know; undefined if the answer has no text. */
export function providerText(body: string | undefined): string | undefined {
  const text = body?.trim() ?? '';
  if (text === '') return undefined;
  try {
    const texts: string[] = [];
    collect(JSON.parse(text), texts, 0);
    return texts.length === 0 ? text : texts.join('; ');
  } catch {
    return text.startsWith('<') ? undefined : text;
  }
}

const statusTexts: ReadonlySet<string> = new Set(Object.values(STATUS_CODES).filter((text) => text !== undefined));

/** Returns true if a message is empty or only the name of an HTTP status, such as `Unprocessable Entity`. */
export const isStatusText = (message: string): boolean => message.trim() === '' || statusTexts.has(message.trim());
