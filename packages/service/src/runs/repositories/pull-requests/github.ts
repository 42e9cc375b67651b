/** https://docs.github.com/en/rest/pulls/pulls. Forgejo and Gitea have the same API below `/api/v1`. */
import { type AskApi, type AtHost, faultOf, saidBy, textOf, type Wanted } from './host.ts';

/** Headers of each request. */
export const gitHubHeaders = { accept: 'application/vnd.github+json', 'x-github-api-version': '2022-11-28' } as const;

/** Returns whether a pull request is for this branch of the repository, and not for a branch with the same name in a fork. */
function isOf(its: unknown, { owner, repo, head }: Wanted): boolean {
  const place = textOf(Reflect.get(Object(its), 'repo'), 'full_name');
  return (
    textOf(its, 'ref') === head && (place ?? `${owner}/${repo}`).toLowerCase() === `${owner}/${repo}`.toLowerCase()
  );
}

async function findOpen(ask: AskApi, wanted: Wanted): Promise<AtHost | undefined> {
  const { owner, repo, head, base, isBaseNamed } = wanted;
  const query = new URLSearchParams({ state: 'open', head: `${owner}:${head}`, per_page: '100' });
  if (isBaseNamed) query.set('base', base);
  const answer = await ask('GET', `/repos/${owner}/${repo}/pulls?${query}`);
  const fault = faultOf(answer, wanted);
  if (fault !== undefined) return fault;
  const found = (Array.isArray(answer.json) ? answer.json : []).find(
    // Check each pull request, because a host that does not support the filter `head` lists all pull requests, including those of forks.
    (each) => isOf(Reflect.get(Object(each), 'head'), wanted),
  );
  const url = textOf(found, 'html_url');
  return url === undefined ? undefined : { kind: 'open', url, isNew: false };
}

/** Opens a pull request at GitHub, or finds the open pull request of the branch. */
export async function openAtGitHub(ask: AskApi, wanted: Wanted): Promise<AtHost> {
  const found = await findOpen(ask, wanted);
  if (found !== undefined) return found;
  const { owner, repo, head, base, title, body, draft } = wanted;
  const answer = await ask('POST', `/repos/${owner}/${repo}/pulls`, { title, head, base, body, draft });
  const fault = faultOf(answer, wanted);
  if (fault !== undefined) return fault;
  const url = textOf(answer.json, 'html_url');
  if (answer.status === 201 && url !== undefined) return { kind: 'open', url, isNew: true };
  const hostMessage = saidBy(answer.json);
  // Another request has just opened a pull request for this branch.
  if (/already exists/i.test(hostMessage)) {
    const other = await findOpen(ask, wanted);
    if (other !== undefined) return other;
  }
  const errors: unknown = Reflect.get(Object(answer.json), 'errors');
  const fields = (Array.isArray(errors) ? errors : []).map((each) => textOf(each, 'field'));
  if (fields.includes('head'))
    return { kind: 'not_found', message: `${owner}/${repo} has no branch ${head} at the code host. Push it first.` };
  if (fields.includes('base'))
    return { kind: 'not_found', message: `${owner}/${repo} has no branch ${base} to merge into.` };
  return {
    kind: 'conflict',
    message: `The code host opens no pull request for ${head}: ${hostMessage || `status ${answer.status}`}`,
  };
}
