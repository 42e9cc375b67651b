import { Argument, type Command } from 'commander';
import { loadContext } from './load-context.ts';
import { wholeNumber } from './whole-number.ts';

const loadAccept = () => import('./commands/accept.ts');

/** The kinds of contents, as the contract has them: loading its schemas would delay every command. */
const kinds = [
  'environment',
  'agent_identity',
  'schedule',
  'automation',
  'definition',
  'mcp_server',
  'worker_pool',
] as const;

export function addAcceptCommand(program: Command): void {
  program
    .command('accept')
    .description('accept what somebody else wrote and your runs execute; without arguments, list what waits for you')
    .addArgument(new Argument('[kind]', 'kind of the content').choices(kinds))
    .argument('[uid]', 'its UID; of a definition, that of the factory')
    .option('--revision <number>', 'only this revision (default: the present one)', wholeNumber)
    .option('--yes', 'do not ask')
    .option('--json', 'print the list as JSON')
    .action(async (kind, uid, { json, ...options }) => {
      const commands = await loadAccept();
      if (kind === undefined) return await commands.listWaiting(await loadContext(), json ? { json } : {});
      if (uid === undefined) return program.error("error: missing required argument 'uid'");
      await commands.accept(await loadContext(), kind, uid, options);
    });
}
