import type { GithubFilter } from '@runyard/contract/webhooks/github-events';
import type { EventSender } from '../../webhooks/ingest/sender.ts';

/** Returns why the sender of a matching event starts no run of a trigger; undefined if the sender may. */
export function faultOfSender({ trust, login }: EventSender, filter: GithubFilter | undefined): string | undefined {
  switch (trust) {
    case 'repository':
    case 'member':
      return undefined;
    case 'app':
      return `${login} is an app or a bot`;
    case 'outsider':
      // The filter has matched, so the association of the sender is one that it names.
      return filter?.associations?.in?.length
        ? undefined
        : `${login} has not linked the account with a member of the team, and the trigger names no associations`;
  }
}
