import type { CreateKeyRequest } from '@runyard/contract/keys';
import { connect } from '../api.ts';
import type { Context } from '../context.ts';
import { harmlessJson, harmlessLine } from '../live/harmless.ts';

/** Lists the API keys of the caller's team, without their raw text. */
export async function listKeys(context: Context, options: { readonly json?: true }): Promise<void> {
  const { keys } = await connect(context).listKeys();
  if (options.json) {
    context.out(`${harmlessJson({ keys })}\n`);
    return;
  }
  for (const key of keys) {
    const expires = key.expires_at ? `expires ${key.expires_at.slice(0, 10)}` : 'never expires';
    const used = key.last_used_at ? `used ${key.last_used_at.slice(0, 16).replace('T', ' ')}` : 'never used';
    context.out(
      `${key.uid}  ${key.kind.padEnd(8)}  ${key.prefix}…${key.last_four}  ${expires}  ${used}  ${harmlessLine(key.name)}\n`,
    );
  }
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
