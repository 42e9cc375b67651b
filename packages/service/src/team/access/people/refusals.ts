/** Makes refusals for the routes of this folder and for the sign-in of browsers. */
import { maxMembers, maxTeamsOfPerson } from '@runyard/contract/limits';
import { pausedCopy, type Refusal, refuse } from '../../../platform/serving/refusal.ts';
import type { AcceptRefusal } from './accept.ts';

/** Returns the refusal (409) of a change by hand in a team that rules manage. */
export const managedByRules = (): Refusal =>
  refuse('conflict', {
    detail:
      'Rules of single sign-on manage the people of this team: the operator of the service changes them in RUNYARD_OIDC_FILE, or the groups at the identity provider.',
  });

/** Returns the refusal for a person who cannot accept an invitation. */
export function refuseAccept(reason: AcceptRefusal): Refusal {
  switch (reason) {
    case 'unknown':
      return refuse('not_authorized', {
        detail: 'key: the invitation was used or withdrawn, has expired, or is unknown. Ask for a new one.',
      });
    case 'paused':
      return pausedCopy();
    case 'already_in_team':
      return refuse('conflict', { detail: 'You are in the team already; an administrator can change your role.' });
    case 'too_many_members':
      return refuse('conflict', { detail: `A team has at most ${maxMembers} people; one must be removed first.` });
    case 'too_many_teams':
      return refuse('conflict', { detail: `A person is in at most ${maxTeamsOfPerson} teams.` });
    case 'managed_by_rules':
      return managedByRules();
  }
}
