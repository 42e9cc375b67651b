import { claimableSources, type RunSourceType } from '@runyard/contract/runs/states';
import type { RequestOrigin } from '../../../platform/serving/served-route.ts';
import type { Principal } from '../../../team/access/keys/principal.ts';

/**
 * Returns the source of a run that a request creates: the one that it names, if the owner of its key may name that. Otherwise the
 * User-Agent identifies the `runyard` command, and all other clients are the API.
 */
export function sourceOf(
  { userAgent, apiSource }: Pick<RequestOrigin, 'userAgent' | 'apiSource'>,
  { creator }: { readonly creator: Pick<Principal['creator'], 'kind'> },
): RunSourceType {
  const claimed = claimableSources[creator.kind].find((source) => source === apiSource?.toUpperCase());
  return claimed ?? (userAgent?.startsWith('runyard-cli') ? 'CLI' : 'API');
}
