/** Manages environments, and the people of other teams who use them: guests, and those who have the link. */
import type { EnvironmentGuest } from '@runyard/contract/environment-guests';
import type { CreateEnvironmentRequest } from '@runyard/contract/environments';
import { connect } from '../api.ts';
import type { Context } from '../context.ts';
import { jsonFrom } from '../json-file.ts';
import type { Column } from '../live/columns.ts';
import { harmlessJson } from '../live/harmless.ts';
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

/** Lists the guests of an environment, first admitted first. */
export async function listGuests(context: Context, uid: string, options: Printing): Promise<void> {
  const found = await connect(context).listEnvironmentGuests({ params: { uid } });
  const now = Date.now();
  const columns: Column<EnvironmentGuest>[] = [
    { header: 'PERSON', text: ({ user }) => user.uid },
    { header: 'ADMITTED', text: ({ granted_at }) => formatAgo(granted_at, now), raw: ({ granted_at }) => granted_at },
    { header: 'NAME', flexible: true, text: ({ user }) => user.display_name ?? '' },
  ];
  const none = `no guests; admit one with: bin/runyard environments guests add ${uid} PERSON-UID`;
  printList(context, { columns, rows: found.guests, json: found, none }, options);
}

/** Admits a person of another team. */
export async function addGuest(context: Context, uid: string, userUid: string, options: Printing): Promise<void> {
  const guest = await connect(context).admitEnvironmentGuest({ params: { uid, userUid } });
  if (options.json) context.out(`${harmlessJson(guest)}\n`);
  else context.out(`${userUid} may use ${uid}\n`);
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
