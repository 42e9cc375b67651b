import type { FactoryDefinition } from '@runyard/contract/factory-files/definition';
import { pathOf } from '@runyard/contract/factory-files/layout';
import type { FaultList } from './fault-list.ts';

/**
 * Adds a fault for each feature of the format that this service cannot carry out, so that nothing is applied without
 * effect.
 */
export function checkAvailable(definition: FactoryDefinition, faults: FaultList): void {
  const { factory, agents, automations, runners } = definition;
  for (const { name, platform } of runners) {
    if (platform.os === 'macos')
      faults.add(pathOf.runner(name), ['platform', 'os'], 'no worker of this service runs macos');
    else if (platform.arch === 'aarch64')
      faults.add(
        pathOf.runner(name),
        ['platform', 'arch'],
        'cannot be chosen on this service: leave it out, and name a worker of this kind with workerHost',
      );
  }
  const checkAuth = (file: string, base: readonly string[], harness: { readonly auth?: unknown } | undefined) => {
    if (harness?.auth === undefined || harness.auth === null) return;
    faults.add(file, [...base, 'harness', 'auth'], 'is not available on this service; list the secret in secrets');
  };
  checkAuth('factory.yaml', ['agentDefaults'], factory.agentDefaults.harness);
  for (const { name, harness } of agents) checkAuth(pathOf.agent(name), [], harness);
  for (const { name, harness } of automations) checkAuth(pathOf.automation(name), [], harness);
}
