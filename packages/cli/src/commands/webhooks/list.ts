import type { Command } from 'commander';
import { type Context, processContext } from '../../context/context.ts';
import { asJson } from '../../input/options.ts';
import { connect } from '../../service/connect.ts';
import { allWebhooks } from '../../service/named.ts';
import type { Column } from '../../terminal/columns.ts';
import { printList } from '../../terminal/list.ts';

/** Lists the webhooks of the team. */
export async function listWebhooks(context: Context, options: { readonly json?: true }): Promise<void> {
  const webhooks = await allWebhooks(connect(context));
  const columns: Column<(typeof webhooks)[number]>[] = [
    { header: 'WEBHOOK', text: ({ uid }) => uid },
    { header: 'FACTORY', text: ({ factory_uid: uid }) => uid },
    {
      header: 'STATUS',
      text: ({ enabled }) => (enabled ? 'enabled' : 'disabled'),
      paint: ({ enabled }, colours) => (enabled ? colours.green : colours.yellow),
    },
    { header: 'SENDER', text: ({ auth_mode, signature_scheme }) => signature_scheme ?? auth_mode },
    { header: 'NAME', flexible: true, text: ({ name }) => name },
    { header: 'REASON', sentence: true, text: ({ disabled_reason: reason = '' }) => reason },
  ];
  const none = 'no webhooks; create one with: bin/runyard webhooks create FACTORY NAME';
  printList(context, { columns, rows: webhooks, json: { webhooks }, none }, options);
}

/** Declares `list` of `webhooks`. */
export function declareList(webhooks: Command): void {
  webhooks
    .command('list', { isDefault: true })
    .description('list the webhooks of the team')
    .option(...asJson)
    .action((options) => listWebhooks(processContext(), options));
}
