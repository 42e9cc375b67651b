/** Checks the references between the files of a definition. */

import type { FaultCode } from '@runyard/contract/factories/fault-codes';
import { type Faults, start } from '@runyard/contract/factories/files/faults';
import { pathOf } from '@runyard/contract/factories/files/layout';
import {
  type FileWithKeysNotAvailable,
  keysNotAvailable,
  notAvailableMessage,
} from '@runyard/contract/factories/files/not-available';
import { isAvailableProvider } from '@runyard/contract/factories/files/triggers';
import { type GithubEvent, type GithubFilterKey, isNotInPayload } from '@runyard/contract/webhooks/github-events';
import { makeSpelling } from '@runyard/contract/wire/spelling';
import type { DefinedAgent, DefinedAutomation, DefinedFactory, DefinedRunner, DefinedWebhook } from './definition.ts';
import type { ReadFile, ReadSkill } from './read-files.ts';
import { webhooksNamedBy } from './with-uids.ts';

/** Parts of a definition that refer to each other by name. */
export interface Checked {
  readonly factory: DefinedFactory | undefined;
  readonly agents: readonly DefinedAgent[];
  readonly automations: readonly DefinedAutomation[];
  readonly webhooks: readonly DefinedWebhook[];
  readonly runners: readonly DefinedRunner[];
  readonly skills: readonly ReadSkill[];
  readonly files: readonly ReadFile[];
}

type AddAt = (file: string, path: readonly (string | number)[], message: string, suggestion?: string) => void;

/**
 * Adds a fault for each reference to an agent, a runner or a file that does not exist, and a notice for each member that has no effect on
 * this service.
 */
export function checkReferences(checked: Checked, faults: Faults, notices: Faults): void {
  const { agents, automations, factory, runners, webhooks, files } = checked;
  const located = new Map(files.map((file) => [file.path, file.located]));
  const adder =
    (list: Faults, code?: FaultCode): AddAt =>
    (file, path, message, suggestion) =>
      list.add(file, located.get(file)?.valueAt(path) ?? start, message, suggestion, code);
  const fault = adder(faults, 'FF_INVALID_REFERENCE');
  checkForeman(agents, fault);
  checkSkills(checked, fault);
  const runnerOf = makeReference('runner', runners, fault);
  runnerOf('factory.yaml', ['agentDefaults', 'runner'], factory?.agentDefaults.runner);
  for (const { name, runner } of agents) runnerOf(pathOf.agent(name), ['runner'], runner);
  const agentOf = makeReference('agent', agents, fault);
  const webhookOf = makeReference('webhook', webhooks, fault);
  for (const { name, agent, runner, triggers } of automations) {
    agentOf(pathOf.automation(name), ['agent'], agent);
    runnerOf(pathOf.automation(name), ['runner'], runner);
    for (const [index, trigger] of triggers.entries())
      for (const [position, webhook] of webhooksNamedBy(trigger).entries())
        webhookOf(pathOf.automation(name), ['triggers', index, 'filter', 'webhooks', position], webhook);
  }
  noticeProviders(automations, adder(notices));
  noticeFilters(automations, adder(notices));
  noticeKeys(checked, adder(notices));
  noticePlatforms(runners, adder(notices));
}

function checkForeman(agents: readonly DefinedAgent[], fault: AddAt): void {
  const [first, ...others] = agents.filter(({ agentType }) => agentType === 'FOREMAN');
  if (first === undefined) {
    fault('factory.yaml', [], 'needs one agent with agentType: FOREMAN, such as agents/foreman/agent.md');
    return;
  }
  for (const { name } of others)
    fault(
      pathOf.agent(name),
      ['agentType'],
      `${pathOf.agent(first.name)} is the foreman already: a factory has exactly one`,
    );
}

function checkSkills({ agents, skills }: Checked, fault: AddAt): void {
  const paths = new Set(skills.map(({ path }) => path));
  const names = new Set(agents.map(({ name }) => name));
  const reported = new Set<string>();
  for (const { path, folder, agent } of skills) {
    if (reported.has(folder)) continue;
    reported.add(folder);
    if (!paths.has(`${folder}/SKILL.md`)) fault(path, [], `the skill ${folder} has no SKILL.md`);
    if (agent !== undefined && !names.has(agent)) fault(path, [], `the file ${pathOf.agent(agent)} does not exist`);
  }
}

function makeReference(
  kind: 'agent' | 'runner' | 'webhook',
  targets: readonly { readonly name: string }[],
  fault: AddAt,
) {
  const names = targets.map(({ name }) => name);
  const spelling = makeSpelling(names);
  return (file: string, path: readonly (string | number)[], name: string | null | undefined): void => {
    if (name === undefined || name === null || names.includes(name)) return;
    const suggestion = spelling.suggest(name);
    const hint = suggestion ? `; did you mean ${suggestion}?` : '';
    fault(file, path, `${path.join('.')}: there is no ${pathOf[kind](name)}${hint}`, suggestion);
  };
}

const providerSpelling = makeSpelling(['webhook', 'schedule', 'github', 'factory']);

function noticeProviders(automations: readonly DefinedAutomation[], notice: AddAt): void {
  for (const { name, triggers } of automations)
    for (const [index, { provider }] of triggers.entries()) {
      if (isAvailableProvider(provider)) continue;
      const suggestion = providerSpelling.suggest(provider);
      const hint = suggestion ? `; did you mean ${suggestion}?` : '';
      const message = `the provider ${provider} is not available on this service, so the trigger never fires${hint}`;
      notice(pathOf.automation(name), ['triggers', index, 'provider'], message, suggestion);
    }
}

function noticeFilters(automations: readonly DefinedAutomation[], notice: AddAt): void {
  for (const { name, triggers } of automations)
    for (const [index, { provider, event, ...trigger }] of triggers.entries()) {
      if (provider !== 'github' || !('filter' in trigger)) continue;
      for (const key of Object.keys(trigger.filter ?? {}))
        if (isNotInPayload(event as GithubEvent, key as GithubFilterKey))
          notice(
            pathOf.automation(name),
            ['triggers', index, 'filter', key],
            `GitHub's payload of ${event} does not have ${key}, so a filter on it never matches`,
          );
    }
}

function noticeKeys({ factory, agents, automations }: Checked, notice: AddAt): void {
  const noticeIn = (kind: FileWithKeysNotAvailable, file: string, members: unknown) => {
    for (const [key, reason] of Object.entries(keysNotAvailable[kind])) {
      const path = key.split('.');
      const value = path.reduce<unknown>((parent, part) => Reflect.get(Object(parent), part), members);
      if (value !== undefined && value !== null && value !== 'EXECUTOR')
        notice(file, path, notAvailableMessage(key, reason));
    }
  };
  noticeIn('factory', 'factory.yaml', factory);
  for (const agent of agents) noticeIn('agent', pathOf.agent(agent.name), agent);
  for (const automation of automations) noticeIn('automation', pathOf.automation(automation.name), automation);
}

function noticePlatforms(runners: readonly DefinedRunner[], notice: AddAt): void {
  for (const { name, platform } of runners)
    if (platform.os === 'macos')
      notice(
        pathOf.runner(name),
        ['platform', 'os'],
        'macos is not available on this service: runs with this runner are refused',
      );
    else if (platform.arch === 'aarch64')
      notice(
        pathOf.runner(name),
        ['platform', 'arch'],
        'aarch64 is not available on this service: runs with this runner are refused, unless workerHost names a worker of this kind',
      );
}
