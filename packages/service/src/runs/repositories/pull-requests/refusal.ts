import { type Refusal, refuse, tooBusy } from '../../../platform/serving/refusal.ts';
import type { OpenedPullRequest } from './open.ts';

/** Returns the answer to a run whose request was not carried out at the code host. */
export function refusalOfHost({ kind, message }: Exclude<OpenedPullRequest, { kind: 'open' }>): Refusal {
  switch (kind) {
    case 'refused':
      return refuse('not_authorized', { detail: message });
    case 'not_found':
      return refuse('resource_not_found', { detail: message });
    case 'conflict':
      return refuse('conflict', { detail: message });
    case 'busy':
      return tooBusy(message);
    case 'unavailable':
      return refuse('resource_unavailable', { status: 503, detail: message });
  }
}
