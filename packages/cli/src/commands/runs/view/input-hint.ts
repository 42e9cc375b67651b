import { harmlessLine } from '../../../terminal/harmless.ts';

/** Returns the main argument of a tool call: its path, pattern or URL, or else its JSON. */
export function inputHint(input: unknown): string {
  if (input === undefined || input === null) return '';
  if (typeof input === 'string') return harmlessLine(input, 100);
  if (typeof input === 'object') {
    for (const name of [
      'path',
      'file_path',
      'pattern',
      'url',
      'query',
      'text',
      'message',
      'reason',
      'title',
    ] as const) {
      const value = (input as Readonly<Record<string, unknown>>)[name];
      if (typeof value === 'string') return harmlessLine(value, 100);
    }
  }
  return harmlessLine(JSON.stringify(input), 100);
}
