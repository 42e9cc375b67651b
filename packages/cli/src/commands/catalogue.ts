/** Lists of what runs can name: language models and environments. */
import type { Environment } from '@runyard/contract/environments';
import type { Model } from '@runyard/contract/models';
import { connect } from '../api.ts';
import type { Context } from '../context.ts';
import { formatUsd } from '../live/amounts.ts';
import type { Column } from '../live/columns.ts';
import { printList } from '../live/list.ts';
import { formatAgo } from '../live/times.ts';

/** Lists the models that runs can name; with `all`, also those that lack something, such as the key of their provider. */
export async function listModels(
  context: Context,
  options: { readonly json?: true; readonly all?: true },
): Promise<void> {
  const found = await connect(context).listModels();
  const columns: Column<Model>[] = [
    { header: 'MODEL', text: ({ id }) => id },
    {
      header: 'STATUS',
      text: (model) => statusOf(model, found.default_model_id),
      paint: (model, colours) => (model.disable_reason ? colours.yellow : colours.green),
    },
    { header: 'PROVIDER', text: ({ provider }) => (provider === 'UNKNOWN' ? '' : provider.toLowerCase()) },
    {
      header: '$ IN/OUT PER M',
      align: 'right',
      text: ({ cost }) =>
        cost ? `${formatUsd(cost.input_usd_per_mtok)} / ${formatUsd(cost.output_usd_per_mtok)}` : '',
    },
    { header: 'NAME', flexible: true, text: ({ display_name }) => display_name },
  ];
  const rows = found.models.filter(({ disable_reason }) => options.all || disable_reason === undefined);
  printList(context, { columns, rows, json: found, none: 'no model can be used' }, options);
  const left = found.models.length - rows.length;
  if (left > 0 && !options.json)
    context.report(
      `${left} more models cannot be used yet, most because no key is set; --all lists them with the reason`,
    );
}

function statusOf({ id, disable_reason }: Model, defaultId: string): string {
  switch (disable_reason) {
    case undefined:
      return id === defaultId ? 'default' : 'ready';
    case 'ADMIN_DISABLED':
      return 'no key set';
    case 'PROVIDER_OUTAGE':
      return 'provider outage';
    case 'OUT_OF_REQUESTS':
      return 'out of requests';
    case 'REQUIRES_UPGRADE':
      return 'requires upgrade';
  }
}

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
  const none = 'no environments; create one with POST /agent/environments';
  printList(context, { columns, rows: found.environments, json: found, none }, options);
}
