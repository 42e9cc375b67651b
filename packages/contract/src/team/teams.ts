import { z } from 'zod';
import { roles } from '../wire/access.ts';
import { DeleteResponse } from '../wire/bodies.ts';
import { NonBlank, Text, Timestamp } from '../wire/primitives.ts';
import { UserProfile } from '../wire/profiles.ts';
import { ApiKey, KeyLifetime } from './keys.ts';

/** The role of a member in API requests and answers. */
export const TeamRole = z.enum(roles).meta({
  id: 'TeamRole',
  description:
    '`viewer`: reads. `member`: also creates and changes runs and environments. `admin`: also manages people, agent keys and identities, and reads the audit log. `owner`: also manages administrators and owners',
});

const TeamName = NonBlank.max(200).describe('Name of the team, at most 200 characters');

/** A team as one of its members sees it. */
export const Team = z
  .object({
    uid: z.string().describe('UID of the team, 22 characters of [A-Za-z0-9], for the header X-Team-Uid'),
    name: z.string().describe('Name of the team'),
    role: TeamRole.describe('Role of the caller in the team'),
    is_current: z.boolean().describe('True: this request acts in the team'),
    created_at: Timestamp.describe('When the team was created, RFC 3339 in UTC'),
  })
  .meta({ id: 'Team', description: 'A team of the caller' });
export type Team = z.infer<typeof Team>;

export const ListTeamsResponse = z
  .object({ teams: z.array(Team).describe('Teams of the caller, oldest first; of an agent key: its team') })
  .meta({ id: 'ListTeamsResponse', description: 'Teams of the caller' });

export const TeamRequest = z
  .object({ name: TeamName })
  .meta({ id: 'TeamRequest', description: 'A team to create, or its new name' });

/** A person in a team. */
export const TeamMember = z
  .object({
    user: UserProfile.describe('The person'),
    role: TeamRole,
    joined_at: Timestamp.describe('When the person joined the team, RFC 3339 in UTC'),
    last_used_at: Timestamp.optional().meta({
      description: 'When a key that the person has in the team was last used, to the minute; absent: never',
    }),
  })
  .meta({ id: 'TeamMember', description: 'A person in a team' });
export type TeamMember = z.infer<typeof TeamMember>;

const TeamRule = z
  .object({
    provider: z.string().describe('Name of the identity provider'),
    group: z.string().describe('Group as the provider names it'),
    role: TeamRole.describe('Role of the people of the group. Of several rules the highest role counts'),
  })
  .meta({ id: 'TeamRule', description: 'A rule of single sign-on: a group has a role in the team' });
export type TeamRule = z.infer<typeof TeamRule>;

export const ListTeamMembersResponse = z
  .object({
    members: z.array(TeamMember).describe('People of the team, in the order of joining'),
    managed_by: z.enum(['hand', 'rules']).meta({
      id: 'TeamManagement',
      description:
        '`hand`: administrators invite people and change roles. `rules`: the groups of the identity provider decide, by the rules of the operator, and people cannot be changed by hand',
    }),
    rules: z.array(TeamRule).optional().describe('The rules, if they manage the team'),
  })
  .meta({ id: 'ListTeamMembersResponse', description: 'People of a team' });

export const UpdateTeamMemberRequest = z
  .object({ role: TeamRole.describe('New role; not above the role of the caller') })
  .meta({ id: 'UpdateTeamMemberRequest', description: 'The new role of a person' });

/** An invitation that nobody has used yet, without its key. */
export const TeamInvitation = z
  .object({
    id: z.string().describe('Id of the invitation, used to withdraw it'),
    role: TeamRole.describe('Role that the invited person gets'),
    note: z.string().optional().describe('Note about the invited person'),
    invited_by: UserProfile.describe('Person who created the invitation'),
    created_at: Timestamp.describe('When the invitation was made, RFC 3339 in UTC'),
    expires_at: Timestamp.describe('When the invitation ends, RFC 3339 in UTC'),
  })
  .meta({ id: 'TeamInvitation', description: 'An invitation that was not used yet, without its key' });
export type TeamInvitation = z.infer<typeof TeamInvitation>;

export const ListTeamInvitationsResponse = z
  .object({ invitations: z.array(TeamInvitation).describe('Invitations that can still be used, oldest first') })
  .meta({ id: 'ListTeamInvitationsResponse', description: 'Invitations of a team' });

/** Longest life of an invitation. */
const maxInvitationHours = 30 * 24;

export const CreateTeamInvitationRequest = z
  .object({
    role: TeamRole.describe('Role that the invited person gets; not above the role of the caller'),
    note: NonBlank.max(200).optional().describe('Note about the invited person, at most 200 characters'),
    expires_in_hours: z
      .int()
      .min(1)
      .max(maxInvitationHours)
      .default(7 * 24)
      .describe(`Hours until the invitation ends, at most ${maxInvitationHours}`),
  })
  .meta({ id: 'CreateTeamInvitationRequest', description: 'An invitation to make' });
export type CreateTeamInvitationRequest = z.infer<typeof CreateTeamInvitationRequest>;

export const CreateTeamInvitationResponse = TeamInvitation.extend({
  key: z.string().meta({ description: 'The key of the invitation, for one person. It is shown only once' }),
}).meta({ id: 'CreateTeamInvitationResponse', description: 'A new invitation, with its key' });
export type CreateTeamInvitationResponse = z.infer<typeof CreateTeamInvitationResponse>;

const InvitationKey = Text.min(1).max(200).describe('Key of the invitation');

export const ReadTeamInvitationRequest = z
  .object({ key: InvitationKey })
  .meta({ id: 'ReadTeamInvitationRequest', description: 'The key of an invitation' });

export const InvitationOffer = z
  .object({
    team_name: z.string().describe('Team to which the invitation leads'),
    role: TeamRole.describe('Role that the person gets'),
    invited_by: z.string().describe('Name of the person who made the invitation'),
    expires_at: Timestamp.describe('When the invitation ends, RFC 3339 in UTC'),
  })
  .meta({ id: 'InvitationOffer', description: 'What the person who accepts an invitation gets' });
export type InvitationOffer = z.infer<typeof InvitationOffer>;

export const AcceptTeamInvitationRequest = z
  .object({
    key: InvitationKey,
    display_name: NonBlank.max(200).describe('Name of the new person, at most 200 characters'),
    email: z.email().max(320).optional().describe('Email address of the new person'),
    expires_in: KeyLifetime.default('never').describe("How long the person's first key works"),
  })
  .meta({ id: 'AcceptTeamInvitationRequest', description: 'A new person who accepts an invitation' });
export type AcceptTeamInvitationRequest = z.infer<typeof AcceptTeamInvitationRequest>;

export const AcceptTeamInvitationResponse = z
  .object({
    team: Team,
    user: UserProfile.describe('The new person'),
    key: z.string().meta({ description: "The person's first personal key. It is shown only once" }),
    expires_at: Timestamp.optional().meta({ description: 'When the key ends; absent: never' }),
  })
  .meta({ id: 'AcceptTeamInvitationResponse', description: 'The new person, with the first key' });
export type AcceptTeamInvitationResponse = z.infer<typeof AcceptTeamInvitationResponse>;

export const JoinTeamRequest = z
  .object({ key: InvitationKey })
  .meta({ id: 'JoinTeamRequest', description: 'An invitation that the person of the key accepts' });

/** The choice between keeping and deleting the objects that a removed person made. */
export const StayOrGo = z
  .enum(['keep', 'delete'])
  .meta({ id: 'StayOrGo', description: 'Whether the things that a removed person made stay' });

export const RemoveTeamMemberResponse = DeleteResponse.extend({
  agent_keys: z.array(ApiKey).describe('Agent keys that the person made, including deleted ones'),
  worker_pools: z.array(z.string()).describe('Names of the worker pools that the person owns, including deleted ones'),
}).meta({
  id: 'RemoveTeamMemberResponse',
  description:
    'The person was removed. Agent keys that were not deleted still work for everyone who has a copy of them',
});
export type RemoveTeamMemberResponse = z.infer<typeof RemoveTeamMemberResponse>;
