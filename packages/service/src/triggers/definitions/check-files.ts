/** The part of the check of definition files that runs in a thread. */

import type { DefinitionVariables } from '@runyard/contract/factories/definition-variables';
import type {
  ValidateFactoryFilesRequest,
  ValidateFactoryFilesResponse,
} from '@runyard/contract/factories/factory-definitions';
import type { DefinitionFault } from '@runyard/contract/factories/files/faults';
import { pathOf } from '@runyard/contract/factories/files/layout';
import type { FactoryDefinition } from '@runyard/definitions/definition';
import { readDefinition } from '@runyard/definitions/read-definition';
import { webhooksNamedBy } from '@runyard/definitions/with-uids';
import { checkAutomations } from './automation-members.ts';
import type { Execution } from './configs.ts';
import { makeFaultList } from './fault-list.ts';
import { type Noticed, toNoticed } from './notices.ts';

/** `kept`: values of variables that an earlier apply was given. */
export type FilesToCheck = ValidateFactoryFilesRequest & { readonly kept?: DefinitionVariables | undefined };
type Deferred = ValidateFactoryFilesResponse['deferred_resolutions'][number];

/** The result of the check. Automations are checked only if the files have no fault. */
export interface CheckedFiles extends Noticed {
  /** False: the files have faults that come before all other checks. */
  readonly isRead: boolean;
  readonly faults: readonly DefinitionFault[];
  /** The names in the files that refer to objects of a team. This check does not look whether the objects exist. */
  readonly deferred: readonly Deferred[];
}

const maxDeferred = 1_000;

export function checkFiles({ files, variables, kept }: FilesToCheck): CheckedFiles {
  const read = readDefinition(files, { given: variables, kept });
  if (!read.ok)
    return { isRead: false, faults: read.faults, notices: read.notices, named: [], schedules: [], deferred: [] };
  const faults = makeFaultList(read);
  checkAutomations(read.definition, faults);
  const deferred = deferredOf(read.definition).slice(0, maxDeferred);
  return { isRead: true, faults: faults.list(), ...toNoticed(read), deferred };
}

/** Returns each place in the files with a name that refers to an object of the team, in the order of the files. */
function deferredOf({ factory, agents, automations, webhooks }: FactoryDefinition): Deferred[] {
  return [
    ...namesOf('factory.yaml', factory, ''),
    ...namesOf('factory.yaml', factory.agentDefaults, 'agentDefaults.'),
    ...agents.flatMap((agent) => namesOf(pathOf.agent(agent.name), agent, '')),
    ...automations.flatMap((automation) => {
      const path = pathOf.automation(automation.name);
      const ofTriggers = automation.triggers.flatMap((trigger, index) =>
        trigger.provider === 'webhook' && webhooksNamedBy(trigger).length === 0
          ? [{ path, field: `triggers[${index}].filter.webhook_ids`, kind: 'webhook' as const }]
          : [],
      );
      return [...namesOf(path, automation, ''), ...ofTriggers];
    }),
    ...webhooks.map(({ name }) => ({ path: pathOf.webhook(name), field: 'secretName', kind: 'secret' as const })),
  ];
}

function namesOf(path: string, members: Execution, base: string): Deferred[] {
  const names: [field: string, kind: Deferred['kind'], isNamed: unknown][] = [
    ['model', 'model', members.model],
    ['harness.model', 'model', members.harness?.model],
    ['environment', 'environment', members.environment],
    ['environmentId', 'environment', members.environmentId],
    ['workerHost', 'worker_host', members.workerHost],
    ['secrets', 'secret', members.secrets?.length],
    ['mcpServers', 'mcp_server', Object.keys(members.mcpServers ?? {}).length],
  ];
  return names.flatMap(([field, kind, isNamed]) => (isNamed ? [{ path, field: base + field, kind }] : []));
}
