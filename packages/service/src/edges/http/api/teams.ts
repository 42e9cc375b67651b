import { maxInvitations, maxTeamsOfPerson } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { CreateTeamInvitationResponse, Team } from '@runyard/contract/teams';
import type { FastifyInstance } from 'fastify';
import { once } from '../../../platform/idempotency/once.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { createInvitation, listInvitations, withdrawInvitation } from '../../../team/access/people/invitations.ts';
import { changeRole, listMembers, type MemberRefusal, removeMember } from '../../../team/access/people/members.ts';
import { createTeam, listTeams, renameTeam } from '../../../team/access/people/own-teams.ts';
import { isUid } from '../../../team/access/teams/uid.ts';
import { addRoute } from '../server/add-route.ts';
import { answerWithKey } from '../server/answer-with-key.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { notFound, type Refusal, refuse } from '../server/problem.ts';
import { answerOnce } from '../server/repeatable.ts';

const aboveOwn = (): Refusal =>
  refuse('not_authorized', {
    detail: 'role: you cannot change a person whose role is above yours, or give a role above yours.',
  });

function refuseMember(reason: MemberRefusal): Refusal {
  switch (reason) {
    case 'not_found':
      return notFound('person in the team');
    case 'above_own':
      return aboveOwn();
    case 'last_owner':
      return refuse('conflict', { detail: 'It is the last owner of the team. Make another person an owner first.' });
    case 'operator':
      return refuse('conflict', { detail: "The operator's key of this service belongs to the person in this team." });
  }
}

function refuseInvitation(reason: 'above_own' | 'too_many'): Refusal {
  if (reason === 'above_own') return aboveOwn();
  return refuse('conflict', { detail: `A team has at most ${maxInvitations} invitations that wait; withdraw one.` });
}

/** Registers teams, their people and their invitations. Below `/teams/{teamUid}` the caller acts in that team, or gets 404. */
export function registerTeamRoutes(app: FastifyInstance, { db }: ServiceDeps): void {
  addRoute(app, routes.listTeams, async ({ principal }) => ({ teams: await listTeams(db, principal) }));

  addRoute(app, routes.createTeam, async ({ principal, body, once: asked }) => {
    const outcome = await once<Team, 'too_many'>(db, asked, async (tx) => {
      const made = await createTeam(tx, principal, body.name);
      return made === 'too_many' ? { kind: 'failed', failure: made } : { kind: 'done', response: made };
    });
    return answerOnce(outcome, () =>
      refuse('conflict', { detail: `A person is in at most ${maxTeamsOfPerson} teams; leave one.` }),
    );
  });

  addRoute(app, routes.updateTeam, async ({ principal, params, body }) =>
    params.teamUid === principal.teamUid ? await renameTeam(db, principal, body.name) : notFound('team'),
  );

  addRoute(app, routes.listTeamMembers, async ({ principal, params }) =>
    params.teamUid === principal.teamUid ? { members: await listMembers(db, principal.teamId) } : notFound('team'),
  );

  addRoute(app, routes.updateTeamMember, async ({ principal, params, body }) => {
    if (params.teamUid !== principal.teamUid) return notFound('team');
    if (!isUid(params.userUid)) return refuseMember('not_found');
    const outcome = await changeRole(db, principal, params.userUid, body.role);
    return typeof outcome === 'string' ? refuseMember(outcome) : outcome;
  });

  addRoute(app, routes.removeTeamMember, async ({ principal, params }) => {
    if (params.teamUid !== principal.teamUid) return notFound('team');
    if (!isUid(params.userUid)) return refuseMember('not_found');
    const outcome = await removeMember(db, principal, params.userUid);
    return outcome === 'removed' ? { success: true as const } : refuseMember(outcome);
  });

  addRoute(app, routes.listTeamInvitations, async ({ principal, params }) =>
    params.teamUid === principal.teamUid
      ? { invitations: await listInvitations(db, principal.teamId) }
      : notFound('team'),
  );

  addRoute(app, routes.createTeamInvitation, async (call) => {
    const { principal, params, body } = call;
    if (params.teamUid !== principal.teamUid) return notFound('team');
    return await answerWithKey<CreateTeamInvitationResponse, 'above_own' | 'too_many'>(db, call, {
      operation: 'invite',
      work: (tx) => createInvitation(tx, principal, body),
      refuseFailure: refuseInvitation,
    });
  });

  addRoute(app, routes.deleteTeamInvitation, async ({ principal, params }) => {
    if (params.teamUid !== principal.teamUid) return notFound('team');
    const { invitationId } = params;
    const wasThere = isUuid(invitationId) && (await withdrawInvitation(db, principal, invitationId));
    return wasThere ? { success: true as const } : notFound('invitation');
  });
}
