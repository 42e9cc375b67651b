/** Manages factories. */
import type { Factory } from '@runyard/contract/factories/factories';
import { allFactories } from '../all-factories.ts';
import { connect } from '../api.ts';
import type { Context } from '../context.ts';
import type { Column } from '../live/columns.ts';
import { harmlessJson } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { readPrompt } from './read-prompt.ts';

type Json = { readonly json?: true };

/** Lists the factories of the team. */
export async function listFactories(context: Context, options: Json & { readonly search?: string }): Promise<void> {
  const factories = await allFactories(connect(context), options.search);
  const columns: Column<Factory>[] = [
    { header: 'FACTORY', text: ({ uid }) => uid },
    { header: 'ALIAS', text: ({ alias }) => alias ?? '' },
    { header: 'NAME', flexible: true, text: ({ name }) => name },
  ];
  const none = 'no factories; create one with: bin/runyard factory create NAME';
  printList(context, { columns, rows: factories, json: { factories }, none }, options);
}

/** Creates a factory and prints its UID. */
export async function createFactory(
  context: Context,
  name: string,
  { alias, description, json }: Json & { readonly alias?: string; readonly description?: string },
): Promise<void> {
  const made = await connect(context).createFactory({
    body: { name, ...(alias === undefined ? {} : { alias }), ...(description === undefined ? {} : { description }) },
  });
  context.out(json ? `${harmlessJson(made)}\n` : `${made.uid}\n`);
}

/** Shows a factory as JSON. */
export async function showFactory(context: Context, factoryUid: string): Promise<void> {
  context.out(`${harmlessJson(await connect(context).getFactory({ params: { factoryUid } }))}\n`);
}

/** Deletes a factory with its webhooks. */
export async function deleteFactory(context: Context, factoryUid: string): Promise<void> {
  await connect(context).deleteFactory({ params: { factoryUid } });
  context.out(`${factoryUid} is deleted\n`);
}

/** Gives work to the foreman of a factory and prints the id of the run. */
export async function dispatchFactory(
  context: Context,
  factoryUid: string,
  prompt: string,
  options: Json & { readonly title?: string; readonly ticketRef?: string; readonly ticketUrl?: string },
): Promise<void> {
  const { title, ticketRef: ticket_ref, ticketUrl: ticket_url, json } = options;
  const run = await connect(context).dispatchFactory({
    params: { factoryUid },
    body: {
      prompt: readPrompt(prompt),
      ...(title === undefined ? {} : { title }),
      ...(ticket_ref === undefined ? {} : { ticket_ref }),
      ...(ticket_url === undefined ? {} : { ticket_url }),
    },
  });
  context.out(json ? `${harmlessJson(run)}\n` : `${run.run_id}\n`);
}
