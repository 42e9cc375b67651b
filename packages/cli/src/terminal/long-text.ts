/** Shortens long texts for a terminal: the first lines, the size of the cut part, and the last lines. */
import { leftOutMark } from '@runyard/contract/wire/left-out';

/**
 * Returns the lines of a text. If the text has more than `max` lines, returns only `max` lines with a mark for the omitted lines. Two
 * thirds of the returned lines are the first lines of the text, and the others are its last lines.
 */
export function linesAround(text: string, max: number): string[] {
  const lines = text.trimEnd().split('\n');
  if (lines.length <= max) return lines;
  const head = Math.ceil((max * 2) / 3);
  const tail = lines.length - (max - head);
  const missing = lines.slice(head, tail);
  const bytes = Buffer.byteLength(missing.join('\n')) + 1;
  return [...lines.slice(0, head), leftOutMark(bytes, missing.length), ...lines.slice(tail)];
}

/** Returns the last `count` lines of a text. A last line without a newline also counts as a line. */
export function lastLines(text: string, count: number): string {
  if (count === 0) return '';
  let at = text.endsWith('\n') ? text.length - 1 : text.length;
  for (let found = 0; found < count; found += 1) {
    if (at === 0) return text;
    at = text.lastIndexOf('\n', at - 1);
    if (at === -1) return text;
  }
  return text.slice(at + 1);
}
