/** Reads a factory from its definition files. If any file has a fault, returns no definition. */

import type { DefinitionVariables } from '@runyard/contract/factories/definition-variables';
import { AgentFile } from '@runyard/contract/factories/files/agent-file';
import { AutomationFile } from '@runyard/contract/factories/files/automation-file';
import { EnvironmentFile } from '@runyard/contract/factories/files/environment-file';
import { FactoryFile } from '@runyard/contract/factories/files/factory-file';
import {
  collectFaults,
  compare,
  type DefinitionFault,
  type Faults,
  type Position,
  start,
} from '@runyard/contract/factories/files/faults';
import { RunnerFile } from '@runyard/contract/factories/files/runner-file';
import { VariablesFile } from '@runyard/contract/factories/files/variables-file';
import { WebhookFile } from '@runyard/contract/factories/files/webhook-file';
import { parseUntrusted } from '@runyard/contract/wire/parse-untrusted';
import { plainMessage } from '@runyard/contract/wire/plain-message';
import type { z } from 'zod';
import { checkReferences } from './check-references.ts';
import type {
  DefinedAgent,
  DefinedAutomation,
  DefinedEnvironment,
  DefinedFactory,
  DefinedRunner,
  DefinedWebhook,
  FactoryDefinition,
} from './definition.ts';
import { describeIssues } from './describe-issues.ts';
import { toAgent, toAutomation, toEnvironment, toFactory, toRunner, toWebhook } from './normalise.ts';
import { type DefinitionFile, type ReadFile, readFiles } from './read-files.ts';
import { type GivenVariables, valuesOfVariables, withVariables } from './variables.ts';

export type ReadDefinition =
  | {
      readonly ok: true;
      readonly definition: FactoryDefinition;
      /** The value of each variable of the definition. */
      readonly variables: DefinitionVariables;
      /** Parts of the definition that are kept but have no effect on this service. */
      readonly notices: readonly DefinitionFault[];
      /** Returns the position of a member in a file. The service uses it to report faults that `readDefinition` cannot find. */
      readonly locate: (file: string, path: readonly (string | number)[]) => Position;
    }
  | {
      readonly ok: false;
      /** Sorted by file, line and column; at most 100. */
      readonly faults: readonly DefinitionFault[];
      readonly notices: readonly DefinitionFault[];
    };

/** Collects the parts of the definition whose files have no fault. */
interface Parts {
  factory: DefinedFactory | undefined;
  readonly agents: DefinedAgent[];
  readonly automations: DefinedAutomation[];
  readonly webhooks: DefinedWebhook[];
  readonly runners: DefinedRunner[];
  readonly environments: DefinedEnvironment[];
}

/**
 * Reads definition files: checks layout, YAML, every key and value, and the references between files. Files that do not belong to a
 * definition, such as README.md, are ignored. Time and memory are limited for any input. `values`: values of the variables that
 * `variables.yaml` declares; the others have their defaults.
 */
export function readDefinition(all: Iterable<DefinitionFile>, values: GivenVariables = {}): ReadDefinition {
  const faults = collectFaults();
  const notices = collectFaults();
  const { files: given, skills } = readFiles(all, faults, notices);
  const variables = readVariables(given, values, faults);
  // Without its variables, the definition would only have faults that are consequences.
  if (variables === 'faulty') return { ok: false, faults: faults.list(), notices: notices.list() };
  const files = given.map((file) =>
    file.placed.kind === 'variables'
      ? file
      : { ...file, located: withVariables(file.path, file.located, variables, faults) },
  );
  const parts: Parts = { factory: undefined, agents: [], automations: [], webhooks: [], runners: [], environments: [] };
  for (const file of files) readOne(file, parts, faults);
  if (!files.some(({ path }) => path === 'factory.yaml') && faults.count() === 0)
    faults.add('factory.yaml', start, 'is missing: every factory has this file', undefined, 'FF_MISSING_FACTORY');
  const { factory } = parts;
  // Does not check references if a file has faults, because these faults must be fixed first.
  if (faults.count() === 0) checkReferences({ ...parts, skills, files }, faults, notices);
  if (faults.count() > 0 || factory === undefined) return { ok: false, faults: faults.list(), notices: notices.list() };
  const byName = <T extends { readonly name: string }>(list: readonly T[]) =>
    list.toSorted((a, b) => compare(a.name, b.name));
  const located = new Map(files.map(({ path, located: each }) => [path, each]));
  return {
    ok: true,
    definition: {
      factory,
      agents: byName(parts.agents),
      automations: byName(parts.automations),
      webhooks: byName(parts.webhooks),
      runners: byName(parts.runners),
      environments: byName(parts.environments),
      skills: skills.map(({ path, text }) => ({ path, text })).toSorted((a, b) => compare(a.path, b.path)),
    },
    variables: variables ?? {},
    notices: notices.list(),
    locate: (file, path) => located.get(file)?.valueAt(path) ?? start,
  };
}

/** Returns the values of the variables; undefined if the definition has no `variables.yaml`. */
function readVariables(
  files: readonly ReadFile[],
  values: GivenVariables,
  faults: Faults,
): DefinitionVariables | undefined | 'faulty' {
  const file = files.find(({ placed }) => placed.kind === 'variables');
  const before = faults.count();
  const declared = file ? check(VariablesFile, file, faults) : undefined;
  const given = Object.keys(values.given ?? {});
  if (!file && given.length > 0)
    faults.add('variables.yaml', start, `is missing, and ${given[0]} has a value: the file declares the variables`);
  const found = declared && valuesOfVariables(declared, values, faults);
  return faults.count() > before ? 'faulty' : found;
}

function readOne(file: ReadFile, parts: Parts, faults: Faults): void {
  const { placed, body } = file;
  switch (placed.kind) {
    case 'factory': {
      const read = check(FactoryFile, file, faults);
      if (read) parts.factory = toFactory(read);
      return;
    }
    case 'agent': {
      const read = check(AgentFile, file, faults);
      if (read) parts.agents.push(toAgent(placed.name, body, read));
      return;
    }
    case 'automation': {
      const read = check(AutomationFile, file, faults);
      if (body === '')
        faults.add(
          file.path,
          file.bodyStart,
          'has no prompt: write it as text after the front matter',
          undefined,
          'FF_MISSING_REQUIRED',
        );
      else if (read) parts.automations.push(toAutomation(placed.name, body, read));
      return;
    }
    case 'webhook': {
      const read = check(WebhookFile, file, faults);
      if (read) parts.webhooks.push(toWebhook(placed.name, read));
      return;
    }
    case 'runner': {
      const read = check(RunnerFile, file, faults);
      if (read) parts.runners.push(toRunner(placed.name, read));
      return;
    }
    case 'environment': {
      const read = check(EnvironmentFile, file, faults);
      if (read) parts.environments.push(toEnvironment(placed.name, read));
    }
  }
}

function check<T>(schema: z.ZodType<T>, { path: file, located }: ReadFile, faults: Faults): T | undefined {
  // An empty file, or empty front matter, has no keys.
  const read = parseUntrusted(schema, located.value ?? {}, { error: plainMessage });
  if (read.success) return read.data;
  describeIssues({ file, located, faults }, read.error.issues);
  return undefined;
}
