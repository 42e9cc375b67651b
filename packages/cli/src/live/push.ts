import { harmlessLine } from './harmless.ts';

/** Returns the text of a `git_push`: the repository, and each branch with its result. */
export function pushText({ repository, branches }: Readonly<Record<string, unknown>>): string {
  const texts = (Array.isArray(branches) ? branches : []).map((each: unknown) => {
    const { branch, result, reason } = Object(each) as Record<string, unknown>;
    return `${branch} ${result}${reason === undefined ? '' : ` (${reason})`}`;
  });
  return harmlessLine(`${repository}: ${texts.join(', ')}`, 300);
}
