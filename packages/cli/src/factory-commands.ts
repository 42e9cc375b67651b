import type { Command } from 'commander';
import { createContext } from './context.ts';

/** Adds the commands about factories that are defined by files. */
export function addFactoryCommands(program: Command): void {
  const factory = program.command('factory').description('work with the files that define a factory');
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
