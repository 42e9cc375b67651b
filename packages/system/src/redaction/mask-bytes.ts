/** Masks known secrets in files: each byte becomes `*`, so that sizes and offsets do not change. */
import { redactForms, type TextRedactor } from './redactor.ts';
import { spellingsOf } from './spellings.ts';

export interface ByteMask {
  /** Masks the bytes of a whole file. */
  whole(bytes: Uint8Array): Buffer;
  /** Masks a file that arrives in pieces. */
  stream(body: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
}

const mask = (found: string): string => found.replaceAll(/[^\r\n]/g, '*');
/** Returns a text with one character for each byte. */
const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('latin1');
const bytesOf = (text: string): Buffer => Buffer.from(text, 'latin1');

async function* masked(redactor: TextRedactor, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let pending = '';
  for await (const bytes of body) {
    const piece = redactor.piece(pending, textOf(bytes));
    pending = piece.held;
    if (piece.text !== '') yield bytesOf(piece.text);
  }
  if (pending !== '') yield bytesOf(pending);
}

/** Creates a mask that hides these secrets in all forms that `createRedactor` finds. If there are no secrets, files do not change. */
export function createByteMask(secrets: readonly string[]): ByteMask {
  if (secrets.length === 0) return { whole: (bytes) => Buffer.from(bytes), stream: (body) => body };
  const forms = spellingsOf(secrets).map((form) => Buffer.from(form).toString('latin1'));
  const redactor = redactForms(forms, mask);
  return { whole: (bytes) => bytesOf(redactor.whole(textOf(bytes))), stream: (body) => masked(redactor, body) };
}
