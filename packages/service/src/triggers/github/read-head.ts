/** Finds the head of the pull request on which the runs of an event work. */
import type { RunCheckout } from '../../runs/runs/read/checkout.ts';
import { type AskDeps, askForPlace } from './ask-place.ts';
import { readPlace } from './places.ts';
import { type AppEvent, headOf } from './read-event.ts';

/** `away`: GitHub does not answer now. `refused`: GitHub does not show the pull request, so nothing may start. */
export type FoundCheckout =
  | { readonly kind: 'found'; readonly checkout: RunCheckout | undefined }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'away' };

/** Asks GitHub if the event does not name the head. */
export async function findCheckout(
  deps: AskDeps,
  { head: named, place, repository }: AppEvent,
  placeId: string | undefined,
): Promise<FoundCheckout> {
  if (named === null || place === null || repository === null) return { kind: 'found', checkout: undefined };
  const head = named === 'unknown' ? await askForHead(deps, placeId) : named;
  if (head !== null && 'kind' in head) return head;
  if (head === null) return { kind: 'found', checkout: undefined };
  const [owner = '', repo = ''] = repository.name.split('/');
  return {
    kind: 'found',
    checkout: { owner, repo, number: place.number, commit: head.commit, is_fork: head.isFork },
  };
}

async function askForHead(deps: AskDeps, placeId: string | undefined) {
  const place = placeId === undefined ? null : await readPlace(deps.db, placeId);
  if (place === null) return { kind: 'away' } as const;
  const path = `/repos/${place.repository}/pulls/${place.number}`;
  const answer = await askForPlace(deps, place, { pull_requests: 'read' }, { method: 'GET', path });
  switch (answer.kind) {
    case 'ok':
      return headOf(answer.body, place.repository_id);
    case 'refused':
      return {
        kind: 'refused',
        reason: `GitHub does not show the pull request ${place.number} to the App (${answer.status}), so the commit is unknown`,
      } as const;
    case 'limited':
    case 'unavailable':
      return { kind: 'away' } as const;
  }
}
