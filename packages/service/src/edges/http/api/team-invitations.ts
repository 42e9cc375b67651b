import { maxMembers, maxTeamsOfPerson } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { type AcceptRefusal, acceptAsNewPerson, joinTeam } from '../../../team/access/people/accept.ts';
import { addRoute } from '../server/add-route.ts';
import { originOf } from '../server/authorize.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { type Refusal, refuse } from '../server/problem.ts';

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

/** Registers the two ways to accept an invitation. */
export function registerTeamInvitationRoutes(app: FastifyInstance, { db }: ServiceDeps): void {
  addRoute(app, routes.acceptTeamInvitation, async ({ body, request }) => {
    const outcome = await acceptAsNewPerson(db, body, originOf(request));
    return typeof outcome === 'string' ? refuseAccept(outcome) : outcome;
  });

  addRoute(app, routes.joinTeam, async ({ principal, body }) => {
    const outcome = await joinTeam(db, principal, body.key);
    return typeof outcome === 'string' ? refuseAccept(outcome) : outcome;
  });
}
