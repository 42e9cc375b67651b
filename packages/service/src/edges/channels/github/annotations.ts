/** Makes annotations of GitHub from the outputs of the checks of a run. */
import { plainLine, sanitize } from './sanitize.ts';

/** A check of a run that has ended. */
interface EndedCheck {
  readonly name: string;
  readonly state: string;
  readonly output: string;
}

export interface Annotation {
  readonly path: string;
  readonly start_line: number;
  readonly end_line: number;
  readonly annotation_level: 'failure';
  readonly title: string;
  readonly message: string;
}

/** Matches `src/a.ts:3:7 - words` and `src/a.ts(3,7): words`, as compilers, linters and tests print them. */
const place =
  /^\s*(?:\.\/)?([\w@+-][\w@+./-]{0,300}\.\w{1,10})(?::(\d{1,7})(?::\d+)?|\((\d{1,7}),\d+\))[\s:-]+([^\s:-].{0,2000})$/;

/** Returns an annotation for each line of the outputs of failed checks that names a file and a line, each only once. */
export function annotationsOf(checks: readonly EndedCheck[]): Annotation[] {
  const found = new Map<string, Annotation>();
  for (const { name, state, output } of checks) {
    if (state === 'passed') continue;
    for (const line of output.split('\n')) {
      const [, path, colon, paren, words] = place.exec(line) ?? [];
      const number = Number(colon ?? paren);
      if (path === undefined || words === undefined || path.includes('..') || number < 1) continue;
      const message = sanitize(words);
      const of = { path, start_line: number, end_line: number, annotation_level: 'failure', message } as const;
      found.set(JSON.stringify(of), { ...of, title: plainLine(name, 100) });
    }
  }
  return [...found.values()];
}
