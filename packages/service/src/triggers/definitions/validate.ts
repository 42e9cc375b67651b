/** Checks files of a definition without the team that they are for. */
import type {
  ValidateFactoryFilesRequest,
  ValidateFactoryFilesResponse,
} from '@runyard/contract/factories/factory-definitions';
import type { DefinitionFault } from '@runyard/contract/factories/files/faults';
import { schemaVersion } from '@runyard/contract/factories/files/json-schemas';
import { pathOf } from '@runyard/contract/factories/files/layout';
import type { FactoryDefinition } from '@runyard/definitions/definition';
import { readDefinition } from '@runyard/definitions/read-definition';
import type { Models } from '../../team/models/models.ts';
import { checkAutomations } from './apply-automations.ts';
import type { Execution } from './configs.ts';
import { makeFaultList } from './fault-list.ts';
import { noticesOf } from './notices.ts';

type Response = ValidateFactoryFilesResponse;
type Deferred = Response['deferred_resolutions'][number];

/** A skill of a hostile definition takes 100 ms to read, so only an apply reads skills. */
const notRun = ['environments', 'models', 'secrets', 'mcp_servers', 'webhooks', 'skills'];
const maxDeferred = 1_000;

/** Returns the faults of the files, and the names whose things were not looked up. Changes and reads nothing of a team. */
export function validateFiles(models: Models, files: ValidateFactoryFilesRequest['files']): Response {
  const read = readDefinition(files);
  if (!read.ok) return toResponse('FF_INVALID_FILE', read.faults, read.notices, []);
  const faults = makeFaultList(read);
  checkAutomations(read.definition, faults);
  return toResponse('FF_INVALID_AUTOMATION', faults.list(), noticesOf(models, read), deferredOf(read.definition));
}

function toResponse(
  code: Response['diagnostics'][number]['code'],
  faults: readonly DefinitionFault[],
  notices: readonly DefinitionFault[],
  deferred: readonly Deferred[],
): Response {
  return {
    valid: faults.length === 0,
    schema_version: schemaVersion,
    diagnostics: faults.map(({ file, ...fault }) => ({ code, path: file, ...fault })),
    deferred_resolutions: deferred.slice(0, maxDeferred),
    state_dependent_checks_not_run: notRun,
    validation_scope: {
      parser: 'checked',
      state_independent: code === 'FF_INVALID_FILE' ? 'not_run' : 'checked',
      state_dependent: 'not_checked',
    },
    notices: [...notices],
  };
}

/** Returns each name of a thing of the team, in the order of the files. */
function deferredOf({ factory, agents, automations, webhooks }: FactoryDefinition): Deferred[] {
  return [
    ...namesOf('factory.yaml', factory, ''),
    ...namesOf('factory.yaml', factory.agentDefaults, 'agentDefaults.'),
    ...agents.flatMap((agent) => namesOf(pathOf.agent(agent.name), agent, '')),
    ...automations.flatMap((automation) => {
      const path = pathOf.automation(automation.name);
      const ofTriggers = automation.triggers.flatMap(({ provider }, index) =>
        provider === 'webhook'
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
    ['environmentId', 'environment', members.environmentId],
    ['workerHost', 'worker_host', members.workerHost],
    ['secrets', 'secret', members.secrets?.length],
    ['mcpServers', 'mcp_server', Object.keys(members.mcpServers ?? {}).length],
  ];
  return names.flatMap(([field, kind, isNamed]) => (isNamed ? [{ path, field: base + field, kind }] : []));
}
