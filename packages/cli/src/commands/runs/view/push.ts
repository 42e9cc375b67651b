import { harmlessLine } from '../../../terminal/harmless.ts';

/** Returns the text of an event `git_push`: the repository, and the result for each branch. */
export function pushText({ repository, branches }: Readonly<Record<string, unknown>>): string {
  const texts = (Array.isArray(branches) ? branches : []).map((each: unknown) => {
    const { branch, result, reason } = Object(each) as Record<string, unknown>;
    return `${branch} ${result}${reason === undefined ? '' : ` (${reason})`}`;
  });
  return harmlessLine(`${repository}: ${texts.join(', ')}`, 300);
}
