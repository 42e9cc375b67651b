/** Commands about language models: their list, and the choices of the team. */
import type { Model, UpdateTeamModelSettingsRequest } from '@runyard/contract/team/models';
import type { Command } from 'commander';
import { connect } from '../api.ts';
import { type Context, processContext } from '../context.ts';
import { formatUsd } from '../live/amounts.ts';
import type { Column } from '../live/columns.ts';
import { harmlessLine } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { addListWord, asJson } from '../options.ts';

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

async function change(context: Context, body: UpdateTeamModelSettingsRequest): Promise<void> {
  const now = await connect(context).updateModelSettings({ body });
  const list = (ids: readonly string[]) => (ids.length === 0 ? 'none' : ids.map((id) => harmlessLine(id)).join(', '));
  context.out(
    [
      `default    ${now.default_model_id === undefined ? 'the default of the service' : harmlessLine(now.default_model_id)}`,
      `fallbacks  ${list(now.fallback_model_ids)}`,
      `disabled   ${list(now.disabled_model_ids)}\n`,
    ].join('\n'),
  );
}

/** Chooses the team's default model; `none` chooses the default of the service. */
const chooseDefault = (context: Context, model: string): Promise<void> =>
  change(context, { default_model_id: model === 'none' ? null : model });

/** Chooses the team's fallbacks. */
const chooseFallbacks = (context: Context, ids: string[]): Promise<void> =>
  change(context, { fallback_model_ids: ids });

/** Disables or enables models for the team. */
const switchModels = (context: Context, how: 'disable' | 'enable', ids: string[]): Promise<void> =>
  change(context, { [how]: ids });

/** Declares the command `models`. */
export function declareModels(models: Command): void {
  models
    .option('--all', 'also models that cannot be used, with the reason')
    .option(...asJson)
    .action((options) => listModels(processContext(), options));
  addListWord(models, (options) => listModels(processContext(), options));
  models
    .command('default')
    .description('choose the model of runs that do not name a model')
    .argument('<model>', 'id of a model, or none: the default of the service')
    .action((model) => chooseDefault(processContext(), model));
  models
    .command('fallbacks')
    .description(
      'choose the models that replace a model during an outage of its provider, in the order of use; without an argument, no model',
    )
    .argument('[models...]')
    .action((ids) => chooseFallbacks(processContext(), ids));
  models
    .command('disable')
    .description('forbid models to runs of the team, at once')
    .argument('<models...>')
    .action((ids) => switchModels(processContext(), 'disable', ids));
  models
    .command('enable')
    .description('permit disabled models again')
    .argument('<models...>')
    .action((ids) => switchModels(processContext(), 'enable', ids));
}
