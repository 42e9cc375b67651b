/** The command `factory validate`, which checks the definition files of a factory. */
import path from 'node:path';
import type { DefinitionFault } from '@runyard/contract/factories/files/faults';
import type { FactoryDefinition } from '@runyard/definitions/definition';
import type { Command } from 'commander';
import { type Context, processContext } from '../../context/context.ts';
import { Failure } from '../../exits/failure.ts';
import { asJson } from '../../input/options.ts';
import { harmlessJson, harmlessLine } from '../../terminal/harmless.ts';
import { variableOption, variablesOf } from './variables.ts';

/** The parts of the context that the command needs. It needs no service. */
type Output = Pick<Context, 'out' | 'report'>;

/**
 * Checks the definition files of a folder without a service. Prints each fault in the form of a compiler message: `file:line:column:
 * message`.
 * @throws Failure with exit code 1 if the files have faults; 2 if the folder cannot be read
 */
export async function validateFactory(
  { out, report }: Output,
  folder: string,
  options: { readonly json?: true; readonly var?: readonly string[] },
): Promise<void> {
  const [{ readDefinition }, { readDefinitionFolder }] = await Promise.all([
    import('@runyard/definitions/read-definition'),
    import('./read-folder.ts'),
  ]);
  const read = readDefinition(readDefinitionFolder(folder), { given: variablesOf(options.var) });
  const faults = read.ok ? [] : read.faults;
  if (options.json) out(`${harmlessJson({ ok: read.ok, faults, notices: read.notices }, 2)}\n`);
  else {
    for (const fault of faults) out(`${lineOf(folder, fault, '')}\n`);
    for (const notice of read.notices) out(`${lineOf(folder, notice, 'notice: ')}\n`);
  }
  if (!read.ok) throw new Failure(`${count(faults.length, 'fault')} in the definition`);
  if (!options.json) report(summaryOf(read.definition));
}

function lineOf(folder: string, { file, line, column, message }: DefinitionFault, label: string): string {
  return harmlessLine(`${path.join(folder, file)}:${line}:${column}: ${label}${message}`, 1_000);
}

const count = (amount: number, thing: string): string => `${amount} ${thing}${amount === 1 ? '' : 's'}`;

function summaryOf({ factory, agents, automations, webhooks, runners, skills }: FactoryDefinition): string {
  const parts = [
    count(agents.length, 'agent'),
    count(automations.length, 'automation'),
    count(webhooks.length, 'webhook'),
    count(runners.length, 'runner'),
    count(skills.filter(({ path: file }) => file.endsWith('/SKILL.md')).length, 'skill'),
  ];
  return `the definition of ${harmlessLine(factory.name)} has no faults: ${parts.join(', ')}`;
}

/** Declares `validate` of `factory`. */
export function declareValidate(factory: Command): void {
  factory
    .command('validate')
    .description('check the definition files of a folder, without a service')
    .argument('<folder>', 'folder with factory.yaml')
    .option(...variableOption)
    .option(...asJson)
    .addHelpText(
      'after',
      '\nEach fault is a line: file:line:column: message. docs/factory-files.md describes the files.\nExit code: 0 no faults, 1 faults, 2 the folder cannot be read.',
    )
    .action((folder, options) => validateFactory(processContext(), folder, options));
}
