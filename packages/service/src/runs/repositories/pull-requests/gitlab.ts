/** https://docs.gitlab.com/api/merge_requests */
import { type AskApi, type AtHost, faultOf, saidBy, textOf, type Wanted } from './host.ts';

async function findOpen(ask: AskApi, project: string, wanted: Wanted): Promise<AtHost | undefined> {
  const { head, base, isBaseNamed } = wanted;
  const query = new URLSearchParams({ state: 'opened', source_branch: head });
  if (isBaseNamed) query.set('target_branch', base);
  const answer = await ask('GET', `${project}/merge_requests?${query}`);
  const fault = faultOf(answer, wanted);
  if (fault !== undefined) return fault;
  const url = textOf(Array.isArray(answer.json) ? answer.json[0] : undefined, 'web_url');
  return url === undefined ? undefined : { kind: 'open', url, isNew: false };
}

/** Opens a merge request at GitLab, or finds the open merge request of the branch. */
export async function openAtGitLab(ask: AskApi, wanted: Wanted): Promise<AtHost> {
  const { owner, repo, head, base, title, body, draft } = wanted;
  const project = `/projects/${encodeURIComponent(`${owner}/${repo}`)}`;
  const found = await findOpen(ask, project, wanted);
  if (found !== undefined) return found;
  // Check that the branch exists, because GitLab also opens merge requests for a branch that does not exist.
  const branch = await ask('GET', `${project}/repository/branches/${encodeURIComponent(head)}`);
  if (branch.status === 404)
    return { kind: 'not_found', message: `${owner}/${repo} has no branch ${head} at the code host. Push it first.` };
  const answer = await ask('POST', `${project}/merge_requests`, {
    source_branch: head,
    target_branch: base,
    title: draft ? `Draft: ${title}` : title,
    description: body,
  });
  const fault = faultOf(answer, wanted);
  if (fault !== undefined) return fault;
  const url = textOf(answer.json, 'web_url');
  if (answer.status === 201 && url !== undefined) return { kind: 'open', url, isNew: true };
  if (answer.status === 409) {
    // Another request has just opened a merge request for this branch.
    const other = await findOpen(ask, project, wanted);
    if (other !== undefined) return other;
  }
  const hostMessage = saidBy(answer.json) || `status ${answer.status}`;
  return { kind: 'conflict', message: `The code host opens no merge request for ${head}: ${hostMessage}` };
}
