/** Manages factories. */
import type { Factory } from '@runyard/contract/factories/factories';
import type { Command } from 'commander';
import { connect } from '../api.ts';
import { type Context, processContext } from '../context.ts';
import type { Column } from '../live/columns.ts';
import { harmlessJson } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { allFactories, contextAndId } from '../named.ts';
import { asJson, factoryHelp } from '../options.ts';
import { declareValidate } from './factory.ts';
import { declareApply } from './factory-apply.ts';
import { declareSource } from './factory-source.ts';
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
  const createdFactory = await connect(context).createFactory({
    body: { name, ...(alias === undefined ? {} : { alias }), ...(description === undefined ? {} : { description }) },
  });
  context.out(json ? `${harmlessJson(createdFactory)}\n` : `${createdFactory.uid}\n`);
}

/** Shows a factory as JSON. */
async function showFactory(context: Context, factoryUid: string): Promise<void> {
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

/** Declares the command `factory`. */
export function declareFactory(factory: Command): void {
  factory
    .command('list', { isDefault: true })
    .description('list the factories of the team')
    .option('--search <text>', 'only factories with this text in name or alias')
    .option(...asJson)
    .action((options) => listFactories(processContext(), options));
  factory
    .command('create')
    .description('create a factory and print its UID')
    .argument('<name>', 'name of the factory')
    .option('--alias <alias>', 'short name, unique in the team')
    .option('--description <text>', 'purpose of the factory')
    .option(...asJson)
    .action((name, options) => createFactory(processContext(), name, options));
  factory
    .command('show')
    .description('show a factory as JSON')
    .argument('<uid>', factoryHelp)
    .action(async (uid) => showFactory(...(await contextAndId('factory', uid))));
  factory
    .command('delete')
    .description('delete a factory with its webhooks')
    .argument('<uid>', factoryHelp)
    .action(async (uid) => deleteFactory(...(await contextAndId('factory', uid))));
  declareValidate(factory);
  declareApply(factory);
  declareSource(factory);
  factory
    .command('run')
    .description('give work to the foreman of a factory, and print the id of the run')
    .argument('<uid>', factoryHelp)
    .argument('<prompt>', 'the work: a file, - for standard input, or the text itself')
    .option('--title <text>', 'title of the run')
    .option('--ticket-ref <ref>', 'name of the ticket, such as BILL-12')
    .option('--ticket-url <url>', 'address of the ticket')
    .option(...asJson)
    .action(async (uid, prompt, options) => dispatchFactory(...(await contextAndId('factory', uid)), prompt, options));
}
