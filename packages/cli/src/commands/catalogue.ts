/** Lists the environments that runs can name. */
import type { Environment } from '@runyard/contract/environments/environments';
import { connect } from '../api.ts';
import type { Context } from '../context.ts';
import type { Column } from '../live/columns.ts';
import { printList } from '../live/list.ts';
import { formatAgo } from '../live/times.ts';

/** Lists the environments, the one that was changed last first. */
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
