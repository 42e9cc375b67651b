/** Test support: invites people through the API. */

import type { AcceptTeamInvitationResponse, CreateTeamInvitationResponse, Team } from '@runyard/contract/team/teams';
import type { Role } from '@runyard/contract/wire/access';
import type { RequestOptions, TestService } from './service.ts';

/** A person with a key of the team. */
export interface Person {
  readonly uid: string;
  readonly key: string;
}

/** Returns the UID of the team to which a key belongs. */
export async function teamUidOf(service: TestService, key = service.key): Promise<string> {
  const { body } = await service.request<{ teams: Team[] }>('GET', '/teams', { key });
  return body.teams.find(({ is_current }) => is_current)?.uid ?? '';
}

/** Creates an invitation to a team. Returns the key of the invitation. */
export async function invite(service: TestService, teamUid: string, role: Role, key = service.key): Promise<string> {
  const path = `/teams/${teamUid}/invitations`;
  const made = await service.request<CreateTeamInvitationResponse>('POST', path, { key, body: { role } });
  if (made.status !== 201) throw new Error(made.text);
  return made.body.key;
}

/** Invites a new person and accepts the invitation. Returns the person. */
export async function newPerson(service: TestService, teamUid: string, role: Role, key?: string): Promise<Person> {
  const body = { key: await invite(service, teamUid, role, key), display_name: `A ${role}` };
  const accepted = await service.request<AcceptTeamInvitationResponse>('POST', '/team-invitations/accept', {
    key: null,
    body,
  });
  if (accepted.status !== 201) throw new Error(accepted.text);
  return { uid: accepted.body.user.uid, key: accepted.body.key };
}

/** Makes a person a guest of an environment: sends the invitation as `inviter`, and accepts it as the guest. */
export async function admitGuest(
  service: TestService,
  environmentUid: string,
  guest: { readonly uid: string; readonly key: string },
  inviter: Pick<RequestOptions, 'key' | 'headers'> = {},
): Promise<void> {
  const invited = await service.request<{ id: string }>(
    'POST',
    `/agent/environments/${environmentUid}/guest-invitations`,
    {
      ...inviter,
      body: { user_uid: guest.uid },
    },
  );
  if (invited.status !== 201) throw new Error(invited.text);
  const accepted = await service.request('POST', `/environment-invitations/${invited.body.id}/accept`, {
    key: guest.key,
  });
  if (accepted.status !== 200) throw new Error(accepted.text);
}

/** Creates a team as the operator. Returns the UID of the team. */
export async function newTeam(service: TestService, name = 'Second'): Promise<string> {
  const made = await service.request<Team>('POST', '/teams', { body: { name } });
  if (made.status !== 201) throw new Error(made.text);
  return made.body.uid;
}
