import { z } from 'zod';
import { maxInvitations, maxMembers, maxTeamsOfPerson } from '../limits.ts';
import { administrators, operatorOnly, teamReads } from '../wire/access.ts';
import { DeleteResponse } from '../wire/bodies.ts';
import type { Route } from '../wire/route.ts';
import {
  AcceptTeamInvitationRequest,
  AcceptTeamInvitationResponse,
  CreateTeamInvitationRequest,
  CreateTeamInvitationResponse,
  InvitationOffer,
  JoinTeamRequest,
  ListTeamInvitationsResponse,
  ListTeamMembersResponse,
  ListTeamsResponse,
  ReadTeamInvitationRequest,
  RemoveTeamMemberResponse,
  StayOrGo,
  Team,
  TeamMember,
  TeamRequest,
  UpdateTeamMemberRequest,
} from './teams.ts';

const team = z.object({ teamUid: z.string().meta({ description: 'UID of the team' }) });
const member = team.extend({ userUid: z.string().meta({ description: 'UID of the person' }) });
const invitation = team.extend({ invitationId: z.string().meta({ description: 'Id of the invitation' }) });
const noTeam = { 404: 'No such team, or you are not in it' };
const aboveOwn = 'The role is above yours';
const byRules = 'rules of single sign-on manage the team';
const badInvitation = 'The invitation was used or withdrawn, has expired, or is unknown';

/** Routes below `/teams/{teamUid}` act in that team; the header X-Team-Uid is not needed. */
export const teamRoutes = {
  listTeams: {
    method: 'GET',
    path: '/teams',
    tag: 'teams',
    summary: 'List your teams',
    allow: teamReads,
    answer: { status: 200, description: 'Teams of the caller', schema: ListTeamsResponse },
  },
  // Only the operator creates teams, because each team has its own limits and gets its own share of the machine.
  createTeam: {
    method: 'POST',
    path: '/teams',
    tag: 'teams',
    summary: 'Create a team',
    description: 'The caller becomes its owner, and invites others.',
    allow: operatorOnly,
    body: TeamRequest,
    once: 'createTeam',
    answer: { status: 201, description: 'Created', schema: Team },
    errors: { 409: `You are in ${maxTeamsOfPerson} teams, or the Idempotency-Key was used with another body` },
  },
  updateTeam: {
    method: 'PATCH',
    path: '/teams/{teamUid}',
    tag: 'teams',
    summary: 'Rename a team',
    allow: administrators,
    params: team,
    body: TeamRequest,
    answer: { status: 200, description: 'The team as it is now', schema: Team },
    errors: noTeam,
  },
  listTeamMembers: {
    method: 'GET',
    path: '/teams/{teamUid}/members',
    tag: 'teams',
    summary: 'List the people of a team',
    allow: { user: 'viewer' },
    params: team,
    answer: { status: 200, description: 'People and their roles', schema: ListTeamMembersResponse },
    errors: noTeam,
  },
  updateTeamMember: {
    method: 'PATCH',
    path: '/teams/{teamUid}/members/{userUid}',
    tag: 'teams',
    summary: 'Change the role of a person',
    description:
      'Neither the old nor the new role may be above yours. A team keeps at least one owner. A lower role ends the invitations that the person made.',
    allow: administrators,
    params: member,
    body: UpdateTeamMemberRequest,
    answer: { status: 200, description: 'The person as it is now', schema: TeamMember },
    errors: {
      403: aboveOwn,
      404: 'No such person in the team, or you are not in it',
      409: `It is the last owner of the team, or ${byRules}`,
    },
  },
  removeTeamMember: {
    method: 'DELETE',
    path: '/teams/{teamUid}/members/{userUid}',
    tag: 'teams',
    summary: 'Remove a person from a team',
    description:
      "The person's keys and browser sessions of the team, and the invitations that the person made, end at once. Keys that were made in other teams no longer work in this one. Agent keys and pools of workers that the person made stay, unless the query says otherwise; the answer lists them.",
    allow: administrators,
    params: member,
    query: z.object({
      agent_keys: StayOrGo.default('keep').describe('Whether the agent keys that the person made are kept or deleted'),
      worker_pools: StayOrGo.default('keep').describe(
        'Whether the pools of workers that the person owns are kept or deleted',
      ),
    }),
    answer: { status: 200, description: 'Removed', schema: RemoveTeamMemberResponse },
    errors: {
      403: aboveOwn,
      404: 'No such person in the team, or you are not in it',
      409: `It is the last owner of the team, or the operator of the service in the first team, or ${byRules}`,
    },
  },
  listTeamInvitations: {
    method: 'GET',
    path: '/teams/{teamUid}/invitations',
    tag: 'teams',
    summary: 'List the invitations that wait',
    allow: administrators,
    params: team,
    answer: { status: 200, description: 'Without their keys', schema: ListTeamInvitationsResponse },
    errors: noTeam,
  },
  createTeamInvitation: {
    method: 'POST',
    path: '/teams/{teamUid}/invitations',
    tag: 'teams',
    summary: 'Invite a person',
    description: `The key in the answer is shown once, lasts 7 days unless the body says otherwise, and is for one person. Its link is the base URL with /sign-in#invitation=KEY behind it; without a browser, the person sends the key to POST /team-invitations/accept, or, with an API key of their own, to POST /team-invitations/join. A team has at most ${maxMembers} people.`,
    // The person who accepts the invitation gets a key.
    allow: { ...administrators, session: 'recent' },
    params: team,
    body: CreateTeamInvitationRequest,
    once: 'createTeamInvitation',
    answer: { status: 201, description: 'Created', schema: CreateTeamInvitationResponse },
    errors: {
      ...noTeam,
      403: aboveOwn,
      409: `The team has ${maxInvitations} invitations, ${byRules}, or the Idempotency-Key was used with another body`,
    },
  },
  deleteTeamInvitation: {
    method: 'DELETE',
    path: '/teams/{teamUid}/invitations/{invitationId}',
    tag: 'teams',
    summary: 'Withdraw an invitation',
    allow: administrators,
    params: invitation,
    answer: { status: 200, description: 'Withdrawn', schema: DeleteResponse },
    errors: { 404: 'No such invitation in the team, or you are not in it' },
  },
  // The key of the invitation is the credential of this request. A page shows what the link offers before the person accepts it.
  readTeamInvitation: {
    method: 'POST',
    path: '/team-invitations/read',
    tag: 'teams',
    summary: 'Read what an invitation offers',
    description: 'Does not use the invitation.',
    allow: { anyone: 'always' },
    body: ReadTeamInvitationRequest,
    answer: { status: 200, description: 'Team, role and end', schema: InvitationOffer },
    errors: { 403: badInvitation },
  },
  // The key of the invitation is the credential of this request. The person who invited never sees the new API key.
  acceptTeamInvitation: {
    method: 'POST',
    path: '/team-invitations/accept',
    tag: 'teams',
    summary: 'Accept an invitation as a new person',
    description: 'The first personal key of the person is in this answer only.',
    allow: { anyone: 'always' },
    body: AcceptTeamInvitationRequest,
    answer: { status: 201, description: 'You are in the team', schema: AcceptTeamInvitationResponse },
    errors: { 403: badInvitation, 409: `The team has ${maxMembers} people, or ${byRules}` },
  },
  joinTeam: {
    method: 'POST',
    path: '/team-invitations/join',
    tag: 'teams',
    summary: 'Accept an invitation as the person of your key or session',
    description: 'Your personal keys work in the team from then on, with the header X-Team-Uid.',
    allow: { user: 'viewer' },
    body: JoinTeamRequest,
    answer: { status: 200, description: 'You are in the team', schema: Team },
    errors: {
      403: badInvitation,
      409: `You are in the team already, you are in ${maxTeamsOfPerson} teams, the team has ${maxMembers} people, or ${byRules}`,
    },
  },
} as const satisfies Record<string, Route>;
