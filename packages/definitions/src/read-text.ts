/** Decodes the files of a definition. */

import { type Position, start } from '@runyard/contract/factories/files/faults';
import { maxDefinitionFileBytes } from '@runyard/contract/limits';

export type ReadText =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly position: Position; readonly message: string };

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Returns the number of bytes of a file in UTF-8. */
export const bytesOf = (content: string | Uint8Array): number =>
  typeof content === 'string' ? Buffer.byteLength(content) : content.length;

/** Returns the text of a file with `\n` between its lines and without a byte order mark. Accepts only UTF-8. */
export function readText(content: string | Uint8Array): ReadText {
  if (bytesOf(content) > maxDefinitionFileBytes)
    return refuse(start, `is too large; a file has at most ${maxDefinitionFileBytes} bytes`);
  const raw = typeof content === 'string' ? content : decode(content);
  if (raw === undefined) return refuse(start, 'is not UTF-8 text; save it as UTF-8');
  const text = raw.replace(/^\ufeff/, '').replaceAll('\r\n', '\n');
  const nul = text.indexOf('\u0000');
  if (nul >= 0)
    return refuse(positionAt(text, nul), 'contains the NUL character (U+0000); it may be UTF-16: save it as UTF-8');
  if (!text.isWellFormed()) return refuse(start, 'contains half of a surrogate pair; save it as UTF-8');
  return { ok: true, text };
}

const refuse = (position: Position, message: string): ReadText => ({ ok: false, position, message });

function decode(content: Uint8Array): string | undefined {
  try {
    return decoder.decode(content);
  } catch {
    return undefined;
  }
}

/** Returns the line and column of an index in a text. */
export function positionAt(text: string, index: number): Position {
  const before = text.slice(0, index);
  return { line: before.split('\n').length, column: index - before.lastIndexOf('\n') };
}
