/** Commands about language models: their list, and the choices of the team. */
import { type ModelProviderAccess, ModelProviderName } from '@runyard/contract/team/model-providers';
import type { Model, TeamModelSettings } from '@runyard/contract/team/models';
import type { Command } from 'commander';
import { type Context, processContext } from '../../context/context.ts';
import { readSecretValue } from '../../input/input-file.ts';
import { addListWord, asJson } from '../../input/options.ts';
import { type Row, request } from '../../route-commands/row.ts';
import { connect } from '../../service/connect.ts';
import { formatUsd } from '../../terminal/amounts.ts';
import type { Column } from '../../terminal/columns.ts';
import { printList } from '../../terminal/list.ts';

/**
 * Lists the models that runs can name. With `all`, also lists models that cannot be used, and shows the known facts about each model.
 */
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
    ...(options.all
      ? [{ header: 'NOTES', sentence: true as const, text: (model: Model) => model.description ?? '' }]
      : []),
  ];
  const isListed = ({ disable_reason }: Model) => options.all || disable_reason !== 'ADMIN_DISABLED';
  const rows = found.models.filter(isListed);
  printList(context, { columns, rows, json: found, none: 'no model can be used' }, options);
  const hiddenCount = found.models.length - rows.length;
  if (hiddenCount > 0 && !options.json)
    context.report(
      `${hiddenCount} more models cannot be used, most because no key is set; --all lists them with the reason`,
    );
}

function statusOf({ id, disable_reason, description = '' }: Model, defaultId: string): string {
  switch (disable_reason) {
    case undefined:
      return id === defaultId ? 'default' : 'ready';
    case 'ADMIN_DISABLED':
      return description.startsWith('An administrator') ? 'disabled' : 'no key set';
    case 'PROVIDER_OUTAGE':
      return 'provider outage';
    case 'OUT_OF_REQUESTS':
      return 'out of requests';
    case 'REQUIRES_UPGRADE':
      return 'requires upgrade';
  }
}

const settingsLines = (now: TeamModelSettings): string[] => {
  const list = (ids: readonly string[]) => (ids.length === 0 ? 'none' : ids.join(', '));
  return [
    `default    ${now.default_model_id ?? 'the default of the service'}`,
    `fallbacks  ${list(now.fallback_model_ids)}`,
    `disabled   ${list(now.disabled_model_ids)}`,
  ];
};

function declareList(models: Command): void {
  models
    .option('--all', 'also models that cannot be used, with the reason')
    .option(...asJson)
    .action((options) => listModels(processContext(), options));
  addListWord(models, (options) => listModels(processContext(), options));
}

const sourceText = ({ source, setting }: ModelProviderAccess): string =>
  source === 'settings' ? setting : source === 'stored' ? 'stored' : 'none';

/** The commands of `models`. */
export const models: readonly Row[] = [
  declareList,
  request('updateModelSettings', 'default', 'choose the model of runs that do not name a model', {
    arguments: [
      {
        usage: '<model>',
        help: 'id of a model, or none: the default of the service',
        member: 'default_model_id',
        read: (model) => (model === 'none' ? null : model),
      },
    ],
    lines: settingsLines,
  }),
  request(
    'updateModelSettings',
    'fallbacks',
    'choose the models that replace a model during an outage of its provider, in the order of use; without an argument, no model',
    { arguments: [{ usage: '[models...]', member: 'fallback_model_ids' }], lines: settingsLines },
  ),
  request('updateModelSettings', 'disable', 'forbid models to runs of the team, at once', {
    arguments: [{ usage: '<models...>', member: 'disable' }],
    lines: settingsLines,
  }),
  request('updateModelSettings', 'enable', 'permit disabled models again', {
    arguments: [{ usage: '<models...>', member: 'enable' }],
    lines: settingsLines,
  }),
  request('listModelProviders', 'providers', 'list the providers with the source of their keys, for owners', {
    list: {
      of: 'providers',
      columns: [
        { header: 'PROVIDER', text: ({ provider }) => provider },
        { header: 'SOURCE', text: sourceText },
        { header: 'ENDPOINT', text: ({ endpoint }) => endpoint ?? '' },
        { header: 'KEY', text: ({ last_four }) => (last_four === undefined ? '' : `…${last_four}`) },
        { header: 'SET', ago: ({ set_at }) => set_at },
        { header: 'BY', text: ({ set_by }) => set_by?.display_name ?? '' },
        { header: 'NOTES', flexible: true, text: ({ problem }) => problem ?? '' },
      ],
      none: 'the service knows no providers',
    },
  }),
  request('putModelProvider', 'set-key', 'store the key of a provider, from standard input or a file, for all teams', {
    arguments: [{ usage: '<provider>', choices: ModelProviderName.options }],
    flags: {
      '--file <file>': { member: 'key', help: 'file with the key (default: standard input)', read: readSecretValue },
      '--base-url <url>': { member: 'base_url' },
    },
    lines: ({ provider, endpoint }) => `${provider} is set: requests go to ${endpoint ?? 'no endpoint'}`,
  }),
  request('testModelProvider', 'test', 'test with a request that costs nothing whether a provider accepts its key', {
    arguments: [{ usage: '<provider>', choices: ModelProviderName.options }],
    lines: ({ message }) => message,
  }),
  request('deleteModelProvider', 'delete-key', 'delete the stored key of a provider', {
    arguments: [{ usage: '<provider>', choices: ModelProviderName.options }],
    lines: (_, { provider }) => `the stored key of ${provider} is deleted`,
  }),
];
