import { maxInvitations, maxTeamsOfPerson } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { Signer } from '../../platform/secrets/signer.ts';
import { notFound, type Refusal, refuse, wrongCursor } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import { listChanges } from './audit/list.ts';
import { acceptAsNewPerson, joinTeam } from './people/accept.ts';
import { createInvitation, listInvitations, readInvitation, withdrawInvitation } from './people/invitations.ts';
import { changeRole, listMembers, type MemberRefusal, removeMember } from './people/members.ts';
import { createTeam, listTeams, renameTeam } from './people/own-teams.ts';
import { managedByRules, refuseAccept } from './people/refusals.ts';
import { serve, serveOnce } from './serve.ts';
import type { SignOn } from './sign-on/sign-on.ts';
import { isUid } from './teams/uid.ts';

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
      return refuse('conflict', {
        detail: 'This person is the last owner of the team. Make another person an owner first.',
      });
    case 'operator':
      return refuse('conflict', { detail: "The operator's key of this service belongs to the person in this team." });
  }
}

function refuseInvitation(reason: 'above_own' | 'too_many'): Refusal {
  if (reason === 'above_own') return aboveOwn();
  return refuse('conflict', { detail: `A team has at most ${maxInvitations} invitations that wait; withdraw one.` });
}

interface TeamRouteDeps {
  readonly db: Database;
  readonly signOn: Pick<SignOn, 'isManagedByRules' | 'rulesOf'>;
}

/**
 * Routes for teams, and for the people and invitations of a team. With a path below `/teams/{teamUid}`, the caller acts in that team, or
 * gets 404 if the caller is not in it.
 */
export const teamRoutes = ({ db, signOn: { isManagedByRules, rulesOf } }: TeamRouteDeps): readonly ServedRoute[] => [
  serve(routes.listTeams, async ({ principal }) => ({ teams: await listTeams(db, principal) })),

  serveOnce(routes.createTeam, {
    work: async (tx, { principal, body }) => {
      const made = await createTeam(tx, principal, body.name);
      if (made !== 'too_many') return made;
      return refuse('conflict', { detail: `A person is in at most ${maxTeamsOfPerson} teams; leave one.` });
    },
  }),

  serve(routes.updateTeam, async ({ principal, params, body }) =>
    params.teamUid === principal.teamUid ? await renameTeam(db, principal, body.name) : notFound('team'),
  ),

  serve(routes.listTeamMembers, async ({ principal, params }) => {
    if (params.teamUid !== principal.teamUid) return notFound('team');
    const members = await listMembers(db, principal.teamId);
    const rules = rulesOf(params.teamUid);
    return rules === undefined
      ? { members, managed_by: 'hand' as const }
      : { members, managed_by: 'rules' as const, rules };
  }),

  serve(routes.updateTeamMember, async ({ principal, params, body }) => {
    if (params.teamUid !== principal.teamUid) return notFound('team');
    if (!isUid(params.userUid)) return refuseMember('not_found');
    if (isManagedByRules(params.teamUid)) return managedByRules();
    const outcome = await changeRole(db, principal, params.userUid, body.role);
    return typeof outcome === 'string' ? refuseMember(outcome) : outcome;
  }),

  serve(routes.removeTeamMember, async ({ principal, params, query }) => {
    if (params.teamUid !== principal.teamUid) return notFound('team');
    if (!isUid(params.userUid)) return refuseMember('not_found');
    if (isManagedByRules(params.teamUid)) return managedByRules();
    const ended = { agentKeys: query.agent_keys === 'delete', workerPools: query.worker_pools === 'delete' };
    const outcome = await removeMember(db, principal, params.userUid, ended);
    return typeof outcome === 'string' ? refuseMember(outcome) : outcome;
  }),

  serve(routes.listTeamInvitations, async ({ principal, params }) =>
    params.teamUid === principal.teamUid
      ? { invitations: await listInvitations(db, principal.teamId) }
      : notFound('team'),
  ),

  serveOnce(routes.createTeamInvitation, {
    keySealedFor: 'invite',
    check: async ({ principal, params: { teamUid } }) => {
      if (teamUid !== principal.teamUid) return notFound('team');
      return isManagedByRules(teamUid) ? managedByRules() : null;
    },
    work: async (tx, { principal, body }) => {
      const made = await createInvitation(tx, principal, body);
      return typeof made === 'string' ? refuseInvitation(made) : made;
    },
  }),

  serve(routes.deleteTeamInvitation, async ({ principal, params }) => {
    if (params.teamUid !== principal.teamUid) return notFound('team');
    const { invitationId } = params;
    const wasThere = isUuid(invitationId) && (await withdrawInvitation(db, principal, invitationId));
    return wasThere ? { success: true as const } : notFound('invitation');
  }),
];

/** The route that lists the audit log. */
export const auditRoutes = ({
  db,
  signing,
}: {
  readonly db: Database;
  readonly signing: Signer;
}): readonly ServedRoute[] => [
  serve(
    routes.listAuditEntries,
    async ({ principal, query }) => (await listChanges(db, signing, principal.teamId, query)) ?? wrongCursor(),
  ),
];

/** The routes for the person who has the key of an invitation. */
export const invitationRoutes = ({ db, signOn: { isManagedByRules } }: TeamRouteDeps): readonly ServedRoute[] => [
  serve(routes.readTeamInvitation, async ({ body }) => (await readInvitation(db, body.key)) ?? refuseAccept('unknown')),

  serve(routes.acceptTeamInvitation, async ({ body, from }) => {
    const outcome = await acceptAsNewPerson(db, body, isManagedByRules, from);
    return typeof outcome === 'string' ? refuseAccept(outcome) : outcome;
  }),

  serve(routes.joinTeam, async ({ principal, body }) => {
    const outcome = await joinTeam(db, principal, { key: body.key, isManagedByRules });
    return typeof outcome === 'string' ? refuseAccept(outcome) : outcome;
  }),
];
