/** Manages environments, and the people of other teams who use them: guests, and people with the link. */
import type { EnvironmentGuest, OwnEnvironmentInvitation } from '@runyard/contract/environments/environment-guests';
import type { CreateEnvironmentRequest, Environment } from '@runyard/contract/environments/environments';
import type { Command } from 'commander';
import { connect } from '../api.ts';
import { type Context, processContext } from '../context.ts';
import { jsonFrom } from '../json-file.ts';
import type { Column } from '../live/columns.ts';
import { harmlessJson, harmlessLine } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { formatAgo } from '../live/times.ts';
import { contextAndId } from '../named.ts';
import { asJson } from '../options.ts';
import { reportWaiting } from './report-waiting.ts';

interface Printing {
  readonly json?: true;
}

/** Lists the environments, the most recently changed first. */
export async function listEnvironments(context: Context, options: { readonly json?: true }): Promise<void> {
  const found = await connect(context).listEnvironments();
  const now = Date.now();
  const columns: Column<Environment>[] = [
    { header: 'ENVIRONMENT', text: ({ uid }) => uid },
    { header: 'NAME', flexible: true, text: ({ config }) => config.name ?? '' },
    {
      header: 'UPDATED',
      text: ({ last_updated }) => formatAgo(last_updated, now),
      raw: ({ last_updated }) => last_updated,
    },
    {
      header: 'SETUP',
      text: ({ setup_failed }) => (setup_failed ? 'failed' : 'ok'),
      paint: ({ setup_failed }, colours) => (setup_failed ? colours.red : colours.green),
    },
    {
      header: 'REPOSITORIES',
      flexible: true,
      text: ({ config }) => (config.github_repos ?? []).map(({ owner, repo }) => `${owner}/${repo}`).join(', '),
    },
  ];
  const none = 'no environments; create one with: bin/runyard environments create FILE';
  printList(context, { columns, rows: found.environments, json: found, none }, options);
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
  const { waiting } = await connect(context).updateEnvironment({ params: { uid }, body });
  context.out(`${uid} is changed\n`);
  reportWaiting(context, waiting);
}

/** Deletes an environment; runs that use it keep their configuration. */
export async function deleteEnvironment(context: Context, uid: string): Promise<void> {
  await connect(context).deleteEnvironment({ params: { uid } });
  context.out(`${uid} is deleted\n`);
}

/** Lists the guests of an environment, and then the open invitations. The guest who accepted an invitation first comes first. */
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
  const invitation = await connect(context).inviteEnvironmentGuest({ params: { uid }, body });
  context.out(options.json ? `${harmlessJson(invitation)}\n` : `${invitation.id}\n`);
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

/** Allows every person who knows the UID of the environment to use it, and prints the link to the environment. */
export async function shareEnvironment(context: Context, uid: string, options: Printing): Promise<void> {
  const shared = await connect(context).shareEnvironment({ params: { uid } });
  context.out(options.json ? `${harmlessJson(shared)}\n` : `${shared.url}\n`);
  context.report('every person who has the uid may use the environment now, with a personal key');
}

/** Ends the sharing by link, and removes all people who got the environment through the link. */
export async function unshareEnvironment(context: Context, uid: string): Promise<void> {
  await connect(context).unshareEnvironment({ params: { uid } });
  context.out(`${uid} is not shared\n`);
}

const environmentFile = 'JSON file with the member config, - for standard input';
const environmentExample = `
For example:
  {"config": {"name": "Web", "github_repos": [{"owner": "octocat", "repo": "Hello-World"}],
   "setup_commands": ["cp Hello-World/README greeting.txt"],
   "services": [{"name": "redis", "command": "exec redis-server", "port": 6379},
                {"name": "postgres", "image": "postgres:17", "port": 5432, "env": {"POSTGRES_PASSWORD": "test"}}]}}
The API reference has all members of config.`;

/** Declares the command `environments`. */
export function declareEnvironments(environments: Command): void {
  environments
    .command('list', { isDefault: true })
    .description('list the environments of the team')
    .option(...asJson)
    .action((options) => listEnvironments(processContext(), options));
  environments
    .command('show')
    .description('show an environment as JSON')
    .argument('<environment>')
    .action(async (uid) => showEnvironment(...(await contextAndId('environment', uid))));
  environments
    .command('create')
    .description('create an environment, and print its UID')
    .argument('<file>', environmentFile)
    .addHelpText('after', environmentExample)
    .action((file) => createEnvironment(processContext(), file));
  environments
    .command('update')
    .description('replace the configuration of an environment')
    .argument('<environment>')
    .argument('<file>', environmentFile)
    .addHelpText('after', environmentExample)
    .action(async (uid, file) => updateEnvironment(...(await contextAndId('environment', uid)), file));
  environments
    .command('delete')
    .description('delete an environment; runs that use it continue unchanged')
    .argument('<environment>')
    .action(async (uid) => deleteEnvironment(...(await contextAndId('environment', uid))));
  environments
    .command('share')
    .description('allow every person with the link to use an environment')
    .argument('<environment>')
    .option(...asJson)
    .action(async (uid, options) => shareEnvironment(...(await contextAndId('environment', uid)), options));
  environments
    .command('unshare')
    .description('end the sharing by link, for everyone who opened it')
    .argument('<environment>')
    .action(async (uid) => unshareEnvironment(...(await contextAndId('environment', uid))));
  const guests = environments.command('guests').description('manage the guests of an environment');
  guests
    .command('list')
    .description('list the guests of an environment')
    .argument('<environment>')
    .option(...asJson)
    .action(async (uid, options) => listGuests(...(await contextAndId('environment', uid)), options));
  guests
    .command('invite')
    .description('invite a person of another team, who sees the environment after accepting')
    .argument('<environment>')
    .argument('<person>', 'UID, as in the profiles of answers, or address')
    .option(...asJson)
    .action(async (uid, person, options) => inviteGuest(...(await contextAndId('environment', uid)), person, options));
  guests
    .command('withdraw')
    .description('withdraw an invitation')
    .argument('<environment>')
    .argument('<invitation>')
    .action(async (uid, id) => withdrawGuest(...(await contextAndId('environment', uid)), id));
  guests
    .command('remove')
    .description('remove a guest')
    .argument('<environment>')
    .argument('<person-uid>')
    .action(async (uid, person) => removeGuest(...(await contextAndId('environment', uid)), person));
  const invitations = environments
    .command('invitations')
    .description('answer your invitations to environments of other teams');
  invitations
    .command('list', { isDefault: true })
    .description('list them')
    .option(...asJson)
    .action((options) => listInvitations(processContext(), options));
  invitations
    .command('accept')
    .description('accept an invitation; administrators of its team see your name')
    .argument('<invitation>')
    .action((id) => answerInvitation(processContext(), id, true));
  invitations
    .command('decline')
    .description('decline one')
    .argument('<invitation>')
    .action((id) => answerInvitation(processContext(), id, false));
  environments
    .command('leave')
    .description('leave an environment of another team')
    .argument('<environment>')
    .action((uid) => leaveEnvironment(processContext(), uid));
}
