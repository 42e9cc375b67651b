import { type Command, InvalidArgumentError } from 'commander';
import { loadContext, loadNamed } from './load-context.ts';

const loadFactories = () => import('./commands/factories.ts');
const loadFactory = () => import('./commands/factory.ts');
const loadFactoryApply = () => import('./commands/factory-apply.ts');
const loadFactorySource = () => import('./commands/factory-source.ts');

const asJson = ['--json', 'print JSON'] as const;
/** Explains the exit codes of the commands that show a plan. */
const planCodes = `
Exit code: 0 applied, or nothing would change; 1 faults, or not confirmed; 2 with --dry-run: something would change;
without it: the files cannot be read, or there is no terminal to ask at; 3 with --strict: an automation does not fire.`;
const strict = ['--strict', 'exit with 3 if an automation does not fire; it is applied all the same'] as const;
const factoryHelp = 'UID, alias or name of the factory; bin/runyard factory list shows them';

/** Adds the commands that manage factories. */
export function addFactoryCommands(program: Command): void {
  const factory = program.command('factory').description('manage factories, and check the files that define one');
  factory
    .command('list', { isDefault: true })
    .description('list the factories of the team')
    .option('--search <text>', 'only those with this text in name or alias')
    .option(...asJson)
    .action(async (options) => (await loadFactories()).listFactories(await loadContext(), options));
  factory
    .command('create')
    .description('create a factory and print its UID')
    .argument('<name>', 'name of the factory')
    .option('--alias <alias>', 'short name, of which a team has each only once')
    .option('--description <text>', 'purpose of the factory')
    .option(...asJson)
    .action(async (name, options) => (await loadFactories()).createFactory(await loadContext(), name, options));
  factory
    .command('show')
    .description('show a factory as JSON')
    .argument('<uid>', factoryHelp)
    .action(async (uid) => (await loadFactories()).showFactory(...(await loadNamed('factory', uid))));
  factory
    .command('delete')
    .description('delete a factory with its webhooks')
    .argument('<uid>', factoryHelp)
    .action(async (uid) => (await loadFactories()).deleteFactory(...(await loadNamed('factory', uid))));
  factory
    .command('validate')
    .description('check the definition files of a folder, without a service')
    .argument('<folder>', 'folder with factory.yaml')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nEach fault is a line: file:line:column: message. docs/factory-files.md describes the files.\nExit code: 0 no faults, 1 faults, 2 the folder cannot be read.',
    )
    .action(async (folder, options) => {
      const { validateFactory } = await loadFactory();
      validateFactory(await loadContext(), folder, options);
    });
  factory
    .command('apply')
    .description('show the changes that the definition files of a folder make in a factory, ask, and apply them')
    .argument('<folder>', 'folder with factory.yaml')
    .option(
      '--factory <factory>',
      'factory to apply them to, by UID, alias or name; default: the one with their alias or name',
    )
    .option('--dry-run', 'only show; exit with 2 if something would change')
    .option(...strict)
    .option('-y, --yes', 'do not ask')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      `\nThe definition is applied whole or not at all. Each fault is a line: file:line:column: message.\n${planCodes}`,
    )
    .action(async (folder, options) => {
      const { applyFactory } = await loadFactoryApply();
      await applyFactory(await loadContext(), folder, options);
    });
  factory
    .command('export')
    .description('write the definition files of a factory into a new folder')
    .argument('<folder>', 'new or empty folder')
    .requiredOption('--factory <factory>', factoryHelp)
    .action(async (folder, options) => {
      const { exportFactory } = await loadFactoryApply();
      await exportFactory(await loadContext(), folder, options);
    });
  addSourceCommands(factory);
  factory
    .command('run')
    .description('give work to the foreman of a factory, and print the id of the run')
    .argument('<uid>', factoryHelp)
    .argument('<prompt>', 'the work: a file, - for standard input, or the text itself')
    .option('--title <text>', 'title of the run')
    .option('--ticket-ref <ref>', 'name of the ticket, such as BILL-12')
    .option('--ticket-url <url>', 'address of the ticket')
    .option(...asJson)
    .action(async (uid, prompt, options) =>
      (await loadFactories()).dispatchFactory(...(await loadNamed('factory', uid)), prompt, options),
    );
}

function toSeconds(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError('It must be a whole number of seconds.');
  return Number(text);
}

/** Adds the commands that manage the repository of a factory. */
function addSourceCommands(factory: Command): void {
  const source = factory
    .command('source')
    .description('manage the git repository that a factory takes its definition from');
  source
    .command('set')
    .description('show the changes that a repository makes in a factory, ask, and let the factory follow it')
    .argument('<uid>', factoryHelp)
    .argument('<repository>', 'owner/repo on the code host of the service, or its URL there')
    .option('--branch <name>', 'branch; default: the default branch')
    .option('--folder <path>', 'folder with factory.yaml; default: the root')
    .option('--every <seconds>', 'seconds between two looks at the branch, 60 to 86400; default 300', toSeconds)
    .option('--dry-run', 'only show; exit with 2 if something would change')
    .option(...strict)
    .option('-y, --yes', 'do not ask')
    .option(...asJson)
    .addHelpText('after', planCodes)
    .action(async (uid, repository, options) => {
      const { setFactorySource } = await loadFactorySource();
      await setFactorySource(...(await loadNamed('factory', uid)), repository, options);
    });
  source
    .command('show')
    .description('show the repository of a factory, the commit in force, and the last sync with its faults')
    .argument('<uid>', factoryHelp)
    .option(...asJson)
    .action(async (uid, options) => {
      const { showFactorySource } = await loadFactorySource();
      await showFactorySource(...(await loadNamed('factory', uid)), options);
    });
  source
    .command('sync')
    .description('apply the present commit now, and revert changes that were made without files')
    .argument('<uid>', factoryHelp)
    .option('--dry-run', 'only show; exit with 2 if something would change')
    .option(...strict)
    .option(...asJson)
    .addHelpText('after', planCodes)
    .action(async (uid, options) => {
      const { syncFactorySource } = await loadFactorySource();
      await syncFactorySource(...(await loadNamed('factory', uid)), options);
    });
  source
    .command('remove')
    .description('detach a factory from its repository; its definition stays')
    .argument('<uid>', factoryHelp)
    .action(async (uid) => {
      const { removeFactorySource } = await loadFactorySource();
      await removeFactorySource(...(await loadNamed('factory', uid)));
    });
}
