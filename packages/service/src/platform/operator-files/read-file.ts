/** Reads the YAML and JSON files that an operator names in settings. JSON is YAML too. */
import { readFile } from 'node:fs/promises';
import { plainMessage } from '@runyard/contract/wire/plain-message';
import { isNode, LineCounter, parseDocument } from 'yaml';
import type { z } from 'zod';

/** The content of a file, or one sentence for each fault. A sentence names the file and the line. */
export type OperatorFile<T> =
  | { readonly ok: true; readonly value: T; readonly lineOf: LineOf }
  | { readonly ok: false; readonly problems: string[] };

/** Returns `FILE, line N: PATH`, with the line of the member at the path. */
export type LineOf = (path: readonly PropertyKey[]) => string;

const maxBytes = 4 * 1024 * 1024;
/** Largest number of faults that are reported together. */
const maxProblems = 10;

/**
 * Reads the file that `setting` names and checks it against `schema`. Refuses aliases, because a few aliases can expand to a very large
 * value.
 */
export async function readOperatorFile<T extends z.ZodType>(
  setting: string,
  file: string,
  schema: T,
): Promise<OperatorFile<z.output<T>>> {
  let content: Buffer;
  try {
    content = await readFile(file);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
    return { ok: false, problems: [`${setting}: ${file} cannot be read (${code})`] };
  }
  if (content.byteLength > maxBytes) return { ok: false, problems: [`${setting}: ${file} is larger than 4 MB`] };
  const lines = new LineCounter();
  const document = parseDocument(content.toString('utf8'), { lineCounter: lines, prettyErrors: false });
  const syntax = document.errors.map(
    ({ message, pos }) => `${setting}: ${file}, line ${lines.linePos(pos[0]).line}: ${message.split('\n')[0]}`,
  );
  if (syntax.length > 0) return { ok: false, problems: syntax.slice(0, maxProblems) };
  const lineOf: LineOf = (path) => {
    for (let length = path.length; length >= 0; length -= 1) {
      const node: unknown = document.getIn(path.slice(0, length), true);
      if (isNode(node) && node.range)
        return `${file}, line ${lines.linePos(node.range[0]).line}: ${path.map(String).join('.') || 'the file'}`;
    }
    return `${file}: ${path.map(String).join('.') || 'the file'}`;
  };
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: 0 });
  } catch {
    return { ok: false, problems: [`${setting}: ${file}: aliases (*name) are not accepted; write the value out`] };
  }
  const parsed = schema.safeParse(value, { error: plainMessage });
  if (parsed.success) return { ok: true, value: parsed.data, lineOf };
  return {
    ok: false,
    problems: parsed.error.issues
      .slice(0, maxProblems)
      .map(({ path, message }) => `${setting}: ${lineOf(path)}: ${message}`),
  };
}
