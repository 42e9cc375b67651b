import type { Command } from 'commander';
import { type Context, processContext } from '../../context/context.ts';
import { connect } from '../../service/connect.ts';
import { teamParams } from '../../service/named.ts';
import { isConfirmed } from '../../terminal/confirm.ts';
import { harmlessLine } from '../../terminal/harmless.ts';

/**
 * Removes a person from the team. The person's keys of this team stop working at once. Then asks whether to delete the agent keys and
 * worker pools that the person has made. Without a terminal, prints these keys and pools with the commands that delete them.
 */
async function removeUser(
  context: Context,
  userUid: string,
  options: { readonly deleteAgentKeys?: true; readonly deletePools?: true },
): Promise<void> {
  const client = connect(context);
  const params = { ...(await teamParams(client)), userUid };
  const removed = await client.removeTeamMember({
    params,
    query: {
      agent_keys: options.deleteAgentKeys ? 'delete' : 'keep',
      worker_pools: options.deletePools ? 'delete' : 'keep',
    },
  });
  context.out(`${userUid} is removed\n`);
  const ownedThings = [
    {
      areDeleted: options.deleteAgentKeys,
      what: 'agent keys that the person made; other people may have copies',
      things: removed.agent_keys.map(({ uid, name }) => ({ id: uid, text: `${uid} ${harmlessLine(name)}` })),
      command: 'keys delete',
      end: (uid: string) => client.deleteKey({ params: { uid } }),
    },
    {
      areDeleted: options.deletePools,
      what: 'pools of workers that the person owns',
      things: removed.worker_pools.map((name) => ({ id: name, text: name })),
      command: 'workers delete',
      end: (poolName: string) => client.deleteWorkerPool({ params: { poolName } }),
    },
  ];
  for (const { areDeleted, what, things, command, end } of ownedThings) {
    if (things.length === 0) continue;
    context.out(
      `${areDeleted ? 'deleted' : 'there are'} ${what}:\n${things.map(({ text }) => `  ${text}\n`).join('')}`,
    );
    if (areDeleted) continue;
    if (!process.stdin.isTTY) context.report(`they stay; delete one with bin/runyard ${command} ID`);
    else if (await isConfirmed('Delete them? [y/N] ')) for (const { id } of things) await end(id);
  }
}

/** Declares `remove` of `users`. */
export function declareRemove(users: Command): void {
  users
    .command('remove')
    .description("remove a person; the person's keys of the team stop working at once")
    .argument('<user>', 'id of a person, from runyard users')
    .option('--delete-agent-keys', 'delete also the agent keys that the person made (default: ask)')
    .option('--delete-pools', 'delete also the pools of workers that the person owns (default: ask)')
    .action((user, options) => removeUser(processContext(), user, options));
}
