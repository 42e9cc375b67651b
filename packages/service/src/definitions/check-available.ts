import type { FactoryDefinition } from '@runyard/contract/factory-files/definition';
import { pathOf } from '@runyard/contract/factory-files/layout';
import type { FaultList } from './fault-list.ts';

/** Adds a fault for what the format has and this service cannot carry out, so that nothing is applied without effect. */
export function checkAvailable(definition: FactoryDefinition, faults: FaultList): void {
  const { factory, agents, automations, runners, skills } = definition;
  for (const { name } of runners)
    faults.add(pathOf.runner(name), [], 'runners are not available on this service; use environmentId and workerHost');
  for (const { path } of skills)
    if (path.endsWith('/SKILL.md'))
      faults.add(
        path,
        [],
        'skills in a definition are not available on this service; write it into the prompt of an agent',
      );
  const checkAuth = (file: string, base: readonly string[], harness: { readonly auth?: unknown } | undefined) => {
    if (harness?.auth === undefined || harness.auth === null) return;
    faults.add(file, [...base, 'harness', 'auth'], 'is not available on this service; list the secret in secrets');
  };
  checkAuth('factory.yaml', ['agentDefaults'], factory.agentDefaults.harness);
  for (const { name, harness } of agents) checkAuth(pathOf.agent(name), [], harness);
  for (const { name, harness } of automations) checkAuth(pathOf.automation(name), [], harness);
}
