/** Manages environments, and the people of other teams who use them: guests, and those who have the link. */
import type { EnvironmentGuest, OwnEnvironmentInvitation } from '@runyard/contract/environments/environment-guests';
import type { CreateEnvironmentRequest } from '@runyard/contract/environments/environments';
import { connect } from '../api.ts';
import type { Context } from '../context.ts';
import { jsonFrom } from '../json-file.ts';
import type { Column } from '../live/columns.ts';
import { harmlessJson, harmlessLine } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { formatAgo } from '../live/times.ts';

interface Printing {
  readonly json?: true;
}

/** Shows an environment as JSON. */
export async function showEnvironment(context: Context, uid: string): Promise<void> {
  context.out(`${harmlessJson(await connect(context).getEnvironment({ params: { uid } }))}\n`);
}

/** Creates an environment from the JSON of a request, and prints its UID. */
export async function createEnvironment(context: Context, file: string): Promise<void> {
  const body = jsonFrom(file) as CreateEnvironmentRequest;
  context.out(`${(await connect(context).createEnvironment({ body })).uid}\n`);
}

/** Replaces the configuration of an environment by the JSON of a request. */
export async function updateEnvironment(context: Context, uid: string, file: string): Promise<void> {
  const body = jsonFrom(file) as CreateEnvironmentRequest;
  await connect(context).updateEnvironment({ params: { uid }, body });
  context.out(`${uid} is changed\n`);
}

/** Deletes an environment; runs that use it keep what they have. */
export async function deleteEnvironment(context: Context, uid: string): Promise<void> {
  await connect(context).deleteEnvironment({ params: { uid } });
  context.out(`${uid} is deleted\n`);
}

/** Lists the guests of an environment, first accepted first, and the invitations that wait. */
export async function listGuests(context: Context, uid: string, options: Printing): Promise<void> {
  const found = await connect(context).listEnvironmentGuests({ params: { uid } });
  const now = Date.now();
  const columns: Column<EnvironmentGuest>[] = [
    { header: 'PERSON', text: ({ user }) => user.uid },
    { header: 'ACCEPTED', text: ({ granted_at }) => formatAgo(granted_at, now), raw: ({ granted_at }) => granted_at },
    { header: 'NAME', flexible: true, text: ({ user }) => user.display_name ?? '' },
  ];
  const none = `no guests; invite one with: bin/runyard environments guests invite ${uid} PERSON`;
  printList(context, { columns, rows: found.guests, json: found, none }, options);
  if (options.json) return;
  for (const { id, user_uid, email } of found.invitations)
    context.report(`invited: ${harmlessLine(user_uid ?? email ?? '')} (invitation ${id})`);
}

/** Invites a person of another team, by UID or address. */
export async function inviteGuest(context: Context, uid: string, person: string, options: Printing): Promise<void> {
  const body = person.includes('@') ? { email: person } : { user_uid: person };
  const made = await connect(context).inviteEnvironmentGuest({ params: { uid }, body });
  context.out(options.json ? `${harmlessJson(made)}\n` : `${made.id}\n`);
  const send =
    body.email === undefined ? '' : `; send the id to ${harmlessLine(body.email)}: no list shows it to the person`;
  context.report(`the person sees the environment after: bin/runyard environments invitations accept ID${send}`);
}

/** Withdraws an invitation. */
export async function withdrawGuest(context: Context, uid: string, guestInvitationId: string): Promise<void> {
  await connect(context).withdrawEnvironmentInvitation({ params: { uid, guestInvitationId } });
  context.out(`${guestInvitationId} is withdrawn\n`);
}

/** Lists the invitations of the caller to environments of other teams. */
export async function listInvitations(context: Context, options: Printing): Promise<void> {
  const found = await connect(context).listEnvironmentInvitations();
  const columns: Column<OwnEnvironmentInvitation>[] = [
    { header: 'INVITATION', text: ({ id }) => id },
    { header: 'FROM', text: ({ invited_by, team_name }) => [invited_by, team_name].filter(Boolean).join(', ') },
    {
      header: 'ENVIRONMENT',
      flexible: true,
      text: ({ environment_name, environment_uid }) => environment_name ?? environment_uid,
    },
  ];
  printList(context, { columns, rows: found.invitations, json: found, none: 'no invitations' }, options);
}

/** Accepts or declines an invitation of the caller. */
export async function answerInvitation(
  context: Context,
  guestInvitationId: string,
  isAccepted: boolean,
): Promise<void> {
  const client = connect(context);
  const params = { guestInvitationId };
  if (isAccepted) await client.acceptEnvironmentInvitation({ params });
  else await client.declineEnvironmentInvitation({ params });
  context.out(`${guestInvitationId} is ${isAccepted ? 'accepted' : 'declined'}\n`);
}

/** Ends the access of the caller to an environment of another team. */
export async function leaveEnvironment(context: Context, uid: string): Promise<void> {
  await connect(context).leaveEnvironment({ params: { uid } });
  context.out(`you are no guest of ${uid}\n`);
}

/** Removes a guest. */
export async function removeGuest(context: Context, uid: string, userUid: string): Promise<void> {
  await connect(context).removeEnvironmentGuest({ params: { uid, userUid } });
  context.out(`${userUid} is no guest of ${uid}\n`);
}

/** Lets every person who has the uid use the environment, and prints its link. */
export async function shareEnvironment(context: Context, uid: string, options: Printing): Promise<void> {
  const shared = await connect(context).shareEnvironment({ params: { uid } });
  context.out(options.json ? `${harmlessJson(shared)}\n` : `${shared.url}\n`);
  context.report('every person who has the uid may use the environment now, with a personal key');
}

/** Ends the sharing by link, and removes everyone who opened the environment by the link. */
export async function unshareEnvironment(context: Context, uid: string): Promise<void> {
  await connect(context).unshareEnvironment({ params: { uid } });
  context.out(`${uid} is not shared\n`);
}
