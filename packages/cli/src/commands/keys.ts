import type { ApiKey, CreateKeyRequest } from '@runyard/contract/team/keys';
import { connect } from '../api.ts';
import type { Context } from '../context.ts';
import type { Column } from '../live/columns.ts';
import { harmlessJson, harmlessLine } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { formatAgo } from '../live/times.ts';

/** Lists the API keys of the caller's team, without their raw text. */
export async function listKeys(context: Context, options: { readonly json?: true }): Promise<void> {
  const { keys } = await connect(context).listKeys();
  const columns = keyColumns(Date.now());
  printList(context, { columns, rows: keys, json: { keys }, none: 'no keys' }, options);
}

function keyColumns(now: number): Column<ApiKey>[] {
  return [
    { header: 'KEY ID', text: ({ uid }) => uid },
    { header: 'KIND', text: ({ kind }) => kind },
    { header: 'KEY', text: ({ prefix, last_four }) => `${prefix}…${last_four}` },
    {
      header: 'EXPIRES',
      text: ({ expires_at }) => expires_at?.slice(0, 10) ?? 'never',
      raw: ({ expires_at }) => expires_at ?? '',
    },
    {
      header: 'USED',
      text: ({ last_used_at }) => (last_used_at ? formatAgo(last_used_at, now) : 'never'),
      raw: ({ last_used_at }) => last_used_at ?? '',
    },
    { header: 'NAME', flexible: true, text: ({ name }) => name },
  ];
}

/** Creates a key and shows it once. */
export async function createKey(
  context: Context,
  request: CreateKeyRequest,
  options: { readonly json?: true },
): Promise<void> {
  const created = await connect(context).createKey({ body: request });
  if (options.json) {
    context.out(`${harmlessJson(created)}\n`);
    return;
  }
  context.out(`${created.key}\n`);
  context.report(`key ${created.uid} (${harmlessLine(created.name)}); it is shown only now`);
}

/** Deletes a key; it stops working at once. */
export async function deleteKey(context: Context, uid: string): Promise<void> {
  await connect(context).deleteKey({ params: { uid } });
  context.out(`${uid} is deleted\n`);
}
