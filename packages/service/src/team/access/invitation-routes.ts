import { maxMembers, maxTeamsOfPerson } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import { type Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { type AcceptRefusal, acceptAsNewPerson, joinTeam } from './people/accept.ts';
import { serve } from './serve.ts';

function refuseAccept(reason: AcceptRefusal): Refusal {
  switch (reason) {
    case 'unknown':
      return refuse('not_authorized', {
        detail: 'key: the invitation was used or withdrawn, has expired, or is unknown. Ask for a new one.',
      });
    case 'already_in_team':
      return refuse('conflict', { detail: 'You are in the team already; an administrator can change your role.' });
    case 'too_many_members':
      return refuse('conflict', { detail: `A team has at most ${maxMembers} people; one must be removed first.` });
    case 'too_many_teams':
      return refuse('conflict', { detail: `A person is in at most ${maxTeamsOfPerson} teams.` });
  }
}

/** The two ways to accept an invitation. */
export const invitationRoutes = ({ db }: { readonly db: Database }): readonly ServedRoute[] => [
  serve(routes.acceptTeamInvitation, async ({ body, from }) => {
    const outcome = await acceptAsNewPerson(db, body, from);
    return typeof outcome === 'string' ? refuseAccept(outcome) : outcome;
  }),

  serve(routes.joinTeam, async ({ principal, body }) => {
    const outcome = await joinTeam(db, principal, body.key);
    return typeof outcome === 'string' ? refuseAccept(outcome) : outcome;
  }),
];
