/** Reads and writes lines of git's wire protocol: https://git-scm.com/docs/protocol-common#_pkt_line_format */

/** The content of a line, or one of the marks between lines. */
export type PktLine = Buffer | 'flush' | 'delimiter' | 'end';

const marks = ['flush', 'delimiter', 'end'] as const;

/** Writes lines of text and marks. */
export function writePktLines(lines: readonly (string | (typeof marks)[number])[]): Buffer {
  const parts = lines.map((line) => {
    const mark = (marks as readonly string[]).indexOf(line);
    if (mark >= 0) return `000${mark}`;
    return `${(Buffer.byteLength(line) + 5).toString(16).padStart(4, '0')}${line}\n`;
  });
  return Buffer.from(parts.join(''));
}

/** Thrown if an answer does not follow the protocol. */
export class NotGit extends Error {}

/** Reads lines. The lines share the memory of `bytes`. Throws `NotGit`. */
export function* readPktLines(bytes: Buffer): Generator<PktLine> {
  for (let at = 0; at < bytes.length; ) {
    const head = bytes.toString('latin1', at, at + 4);
    const length = /^[0-9a-f]{4}$/i.test(head) ? Number.parseInt(head, 16) : -1;
    const mark = marks[length];
    if (mark !== undefined) {
      at += 4;
      yield mark;
      continue;
    }
    if (length < 4 || at + length > bytes.length) throw new NotGit('a line has a wrong length');
    yield bytes.subarray(at + 4, at + length);
    at += length;
  }
}

/** Returns the text of a line, without a line feed at the end. */
export const lineText = (line: Buffer): string => line.toString('utf8').replace(/\n$/, '');
