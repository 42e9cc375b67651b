import { type Position, start } from '@runyard/contract/factories/files/faults';

export type FrontMatter =
  | {
      readonly ok: true;
      readonly yaml: string;
      /** Lines of the file before the first line of `yaml`. */
      readonly linesBefore: number;
      /** The text behind the front matter, without blank lines around it. */
      readonly body: string;
      /** Position at which the body begins, or would begin. */
      readonly bodyStart: Position;
    }
  | { readonly ok: false; readonly position: Position; readonly message: string };

const fence = /^---[ \t]*$/;

/**
 * Splits a Markdown file whose first line is `---`. The front matter must be YAML: a language after the first fence, such as `---js`,
 * is refused, because other readers run it as code.
 */
export function splitFrontMatter(text: string): FrontMatter {
  const lines = text.split('\n');
  const first = lines[0] ?? '';
  if (!fence.test(first)) {
    const message = /^---[^-\s]/.test(first)
      ? 'must begin with a line of --- alone: the front matter is YAML, and no other language is read'
      : 'must begin with front matter: a line of ---, YAML, and a line of ---';
    return { ok: false, position: start, message };
  }
  const end = lines.findIndex((line, index) => index > 0 && fence.test(line));
  if (end < 0) return { ok: false, position: start, message: 'must close the front matter with a line of ---' };
  const body = lines.slice(end + 1);
  const blank = body.findIndex((line) => line.trim() !== '');
  return {
    ok: true,
    yaml: lines.slice(1, end).join('\n'),
    linesBefore: 1,
    body: body
      .join('\n')
      .replace(/^(?:[^\S\n]*\n)+/, '')
      .trimEnd(),
    bodyStart: { line: end + 2 + Math.max(0, blank), column: 1 },
  };
}
