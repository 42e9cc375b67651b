import type { Command } from 'commander';
import { createFactory, deleteFactory, listFactories, showFactory } from './commands/factories.ts';
import { createContext } from './context.ts';

const asJson = ['--json', 'print JSON'] as const;
const factoryHelp = 'UID of the factory; bin/runyard factory list shows it';

/** Adds the commands that manage factories. */
export function addFactoryCommands(program: Command): void {
  const factory = program.command('factory').description('manage factories, and check the files that define one');
  const context = () => createContext(process.env);
  factory
    .command('list', { isDefault: true })
    .description('list the factories of the team')
    .option('--search <text>', 'only those with this text in name or alias')
    .option(...asJson)
    .action((options) => listFactories(context(), options));
  factory
    .command('create')
    .description('create a factory and print its UID')
    .argument('<name>', 'name of the factory')
    .option('--alias <alias>', 'short name, of which a team has each only once')
    .option('--description <text>', 'what it is for')
    .option(...asJson)
    .action((name, options) => createFactory(context(), name, options));
  factory
    .command('show')
    .description('show a factory as JSON')
    .argument('<uid>', factoryHelp)
    .action((uid) => showFactory(context(), uid));
  factory
    .command('delete')
    .description('delete a factory with its webhooks')
    .argument('<uid>', factoryHelp)
    .action((uid) => deleteFactory(context(), uid));
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
      const { validateFactory } = await import('./commands/factory.ts');
      validateFactory(createContext(process.env), folder, options);
    });
}
