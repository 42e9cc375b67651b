/** Shortens long texts to a head and a tail, and cuts between lines. A mark between head and tail states the size of the omitted part. */
import { formatBytes } from './byte-size.ts';

/** Maximum number of bytes of `leftOutMark` together with the `…` of two cut lines. */
export const maxMarkBytes = 128;

/**
 * To cut between two lines, an incomplete line at the cut is dropped if it has at most this number of UTF-16 units. A longer line is
 * cut, and `…` marks the cut.
 */
const maxGivenUp = 4096;

/** Returns the mark of an omitted part, without a newline: `… 12,345 lines (1.2 MB) left out …`. */
export function leftOutMark(bytes: number, lines = 0): string {
  if (lines < 1) return `… ${formatBytes(bytes)} left out …`;
  return `… ${lines.toLocaleString('en-US')} ${lines === 1 ? 'line' : 'lines'} (${formatBytes(bytes)}) left out …`;
}

/** Counts the newlines of a text. */
export function countLines(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count += 1;
  return count;
}

/** Returns the text up to the end of its last whole line. If this would drop too much, returns the text unchanged. */
export function wholeLinesOfHead(text: string): string {
  const end = text.lastIndexOf('\n') + 1;
  return end > 0 && text.length - end <= maxGivenUp ? text.slice(0, end) : text;
}

/** The end of a text. `cutsLine` is true if the end begins in the middle of a line. */
export interface Tail {
  readonly text: string;
  readonly cutsLine: boolean;
}

/**
 * Returns the text from its first whole line on. If this would drop too much, returns the text unchanged. The given text may begin
 * with the newline of the line before it.
 */
export function wholeLinesOfTail(text: string): Tail {
  const start = text.indexOf('\n') + 1;
  return start > 0 && start < text.length && start <= maxGivenUp
    ? { text: text.slice(start), cutsLine: false }
    : { text, cutsLine: text !== '' };
}

/**
 * Joins head, mark and tail. Adds `…` to lines that were cut: the last line of a head without a final newline, and the first line of the
 * tail.
 */
export function joinAround(head: string, mark: string, tail: Tail): string {
  const end = head === '' || head.endsWith('\n') ? head : `${head}…\n`;
  return `${end}${mark}\n${tail.cutsLine ? '…' : ''}${tail.text}`;
}
