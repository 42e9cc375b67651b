import { z } from 'zod';
import { maxDefinitionBytes, maxKeylessDefinitionBytes } from '../limits.ts';
import { sourceHeader } from '../runs/states.ts';
import { teamReads, teamWrites } from '../wire/access.ts';
import { DeleteResponse } from '../wire/bodies.ts';
import type { Route } from '../wire/route.ts';
import {
  CompareDefinitionVersionsQuery,
  DefinitionDiff,
  DefinitionVersionItem,
  ListDefinitionVersionsResponse,
  RollBackDefinitionRequest,
} from './definition-versions.ts';
import {
  ApplyDefinitionRequest,
  ApplyDefinitionResponse,
  CreateFromFilesRequest,
  CreateFromFilesResponse,
  DispatchRequest,
  DispatchResponse,
  FactoryDefinitionItem,
  FactoryFileSchema,
  FactoryFileSchemas,
  FactoryFileSchemaVersions,
  PlanDefinitionRequest,
  ValidateFactoryFilesRequest,
  ValidateFactoryFilesResponse,
} from './factory-definitions.ts';
import {
  FactorySource,
  FactorySync,
  SetFactorySourceRequest,
  SetFactorySourceResponse,
  SyncFactorySourceRequest,
} from './factory-sources.ts';

const factory = z.object({ factoryUid: z.string().meta({ description: 'UID of the factory' }) });
const noFactory = { 404: 'No such factory, or it belongs to another team' };
const sourcePath = '/factory/{factoryUid}/source';
const noSource = { 404: 'No such factory, it belongs to another team, or it has no source' };
const schemaVersion = z.object({
  schemaVersion: z.string().meta({ description: 'Version of the format: v1alpha1' }),
});
const definitionPath = '/factory/{factoryUid}/definition';
const version = factory.extend({ version: z.string().meta({ description: 'Number of the version' }) });
const noVersion = 'No such factory, or it belongs to another team, or it has no such version';

export const factoryRoutes = {
  dispatchFactory: {
    method: 'POST',
    path: '/factory/{factoryUid}/runs',
    tag: 'factories',
    summary: 'Give work to the foreman of a factory',
    description:
      "The run has the factory's agent_defaults and the configuration of the foreman. Its metadata has factory_uid, and the ticket. A task is created with it.",
    allow: teamWrites,
    params: factory,
    body: DispatchRequest,
    headers: sourceHeader,
    once: 'dispatchFactory',
    answer: { status: 200, description: 'The new run', schema: DispatchResponse },
    errors: {
      ...noFactory,
      400: 'A wrong value, or a configuration of the factory that no run can have',
      409: 'The Idempotency-Key was used with another request',
    },
  },
  getFactoryDefinition: {
    method: 'GET',
    path: definitionPath,
    tag: 'factories',
    summary: 'Read the definition of a factory, and its differences from the factory',
    allow: teamReads,
    params: factory,
    answer: { status: 200, description: 'The definition that was applied last', schema: FactoryDefinitionItem },
    errors: { 404: 'No such factory, or it belongs to another team, or no definition was applied' },
  },
  applyFactoryDefinition: {
    method: 'PUT',
    path: definitionPath,
    tag: 'factories',
    summary: 'Apply a definition to a factory, whole or not at all',
    description:
      'Creates, changes and deletes what files define. Webhooks and automations that were made without files stay. docs/factory-files.md describes the files.',
    // Not for agent keys, because a definition contains webhooks, which let external senders start agents.
    allow: { user: 'member' },
    params: factory,
    body: ApplyDefinitionRequest,
    // Twice the maximum size of the files, because a line end or a quote takes two bytes in JSON.
    bodyLimitBytes: 2 * maxDefinitionBytes,
    answer: {
      status: 200,
      description: 'The changes that were made, or would be made',
      schema: ApplyDefinitionResponse,
    },
    errors: {
      ...noFactory,
      400: 'A wrong value',
      409: 'The stored definition has another version than expected_version: plan again. Also if the factory takes its definition from a repository; a dry run is still answered in this case',
      422: 'The definition has faults: `errors` has file, line, column and message of each, at most 100. Nothing was changed',
    },
  },
  planFactoryDefinition: {
    method: 'POST',
    path: `${definitionPath}/plan`,
    tag: 'factories',
    summary: 'Plan a definition with the rights of a reader',
    description:
      'For programs that check a change before it is merged, with an agent key that is limited to `definition_plans`. A name of a thing that the caller may not see counts as missing. Names of secrets are only looked up for people. Values of secrets, and conflicts with things that no file defines, are only checked by an apply and its dry run.',
    allow: { ...teamReads, limited: 'definition_plans' },
    params: factory,
    body: PlanDefinitionRequest,
    bodyLimitBytes: 2 * maxDefinitionBytes,
    answer: { status: 200, description: 'The changes that an apply would make', schema: ApplyDefinitionResponse },
    errors: {
      ...noFactory,
      400: 'A wrong value',
      422: 'The definition has faults: `errors` has file, line, column and message of each, at most 100',
    },
  },
  createFactoryFromFiles: {
    method: 'POST',
    path: '/factory-files/apply',
    tag: 'factories',
    summary: 'Create a factory from its definition, whole or not at all',
    description:
      'The factory gets the name of the files. `PUT /factory/{factoryUid}/definition` applies later changes.',
    // Not for agent keys, because a definition contains webhooks, which let external senders start agents.
    allow: { user: 'member' },
    body: CreateFromFilesRequest,
    bodyLimitBytes: 2 * maxDefinitionBytes,
    answer: { status: 200, description: 'The new factory, or the plan', schema: CreateFromFilesResponse },
    errors: {
      400: 'A wrong value',
      409: 'The team has the largest number of factories, or the alias belongs to another factory',
      422: 'The definition has faults: `errors` has file, line, column and message of each, at most 100. Nothing was created',
    },
  },
  listDefinitionVersions: {
    method: 'GET',
    path: `${definitionPath}/versions`,
    tag: 'factories',
    summary: 'List the versions of the definition of a factory',
    allow: teamReads,
    params: factory,
    answer: { status: 200, description: 'The versions, newest first', schema: ListDefinitionVersionsResponse },
    errors: noFactory,
  },
  getDefinitionVersion: {
    method: 'GET',
    path: `${definitionPath}/versions/{version}`,
    tag: 'factories',
    summary: 'Read a version of the definition of a factory',
    allow: teamReads,
    params: version,
    answer: { status: 200, description: 'The version with its files', schema: DefinitionVersionItem },
    errors: { 404: noVersion },
  },
  compareDefinitionVersions: {
    method: 'GET',
    path: `${definitionPath}/versions/{version}/diff`,
    tag: 'factories',
    summary: 'Compare two versions of the definition of a factory',
    allow: teamReads,
    params: version,
    query: CompareDefinitionVersionsQuery,
    answer: { status: 200, description: 'The changes from one version to the other', schema: DefinitionDiff },
    errors: {
      404: noVersion,
      400: 'A wrong value',
      409: 'The files of a version were not kept, or this service cannot read their format any more',
    },
  },
  rollBackDefinition: {
    method: 'POST',
    path: `${definitionPath}/rollback`,
    tag: 'factories',
    summary: 'Apply an earlier version of the definition of a factory again',
    description:
      'Makes a new version with the files and variables of the earlier one. Its author is the caller, so people who have accepted the earlier version are asked again.',
    allow: { user: 'member' },
    params: factory,
    body: RollBackDefinitionRequest,
    answer: {
      status: 200,
      description: 'The changes that were made, or would be made',
      schema: ApplyDefinitionResponse,
    },
    errors: {
      404: noVersion,
      400: 'A wrong value',
      409: 'The stored definition has another version than expected_version, the files of the version were not kept, or the factory takes its definition from a repository',
      422: 'The earlier definition has faults now, such as a secret that was deleted. Nothing was changed',
    },
  },
  getFactorySource: {
    method: 'GET',
    path: sourcePath,
    tag: 'factories',
    summary: 'Read the repository that a factory takes its definition from, and its last sync',
    allow: teamReads,
    params: factory,
    answer: { status: 200, description: 'The source', schema: FactorySource },
    errors: noSource,
  },
  setFactorySource: {
    method: 'PUT',
    path: sourcePath,
    tag: 'factories',
    summary: 'Let a factory take its definition from a repository',
    description:
      'Reads the branch now, every poll_interval_seconds, and when a GitHub webhook of the factory receives a push to it. Each sync applies the files of one commit completely or not at all, as the person who configured the source. If a commit cannot be applied, the factory stays unchanged. While a factory has a source, definitions are not applied otherwise.',
    // Not for agent keys, because a definition contains webhooks, which let external senders start agents.
    allow: { user: 'member' },
    params: factory,
    body: SetFactorySourceRequest,
    answer: {
      status: 200,
      description: 'The source, and the outcome of its first sync, even if nothing could be applied',
      schema: SetFactorySourceResponse,
    },
    errors: { ...noFactory, 400: 'A wrong value, or a repository that is not on the code host of the service' },
  },
  deleteFactorySource: {
    method: 'DELETE',
    path: sourcePath,
    tag: 'factories',
    summary: 'Detach a factory from its repository',
    description: 'The last applied definition stays, and definitions can be applied by hand again.',
    allow: { user: 'member' },
    params: factory,
    answer: { status: 200, description: 'Detached', schema: DeleteResponse },
    errors: noSource,
  },
  syncFactorySource: {
    method: 'POST',
    path: `${sourcePath}/sync`,
    tag: 'factories',
    summary: 'Sync a factory with its repository now',
    description:
      'Applies the present commit, even if it was applied before, and so reverts changes that were made without files. The outcome is in the answer, with status 200 also where nothing could be applied.',
    allow: { user: 'member' },
    params: factory,
    body: SyncFactorySourceRequest.optional(),
    answer: { status: 200, description: 'The changes that the sync has made, or would make', schema: FactorySync },
    errors: {
      ...noSource,
      400: 'A wrong value',
      409: 'Another sync of the factory is at work; read the source for its outcome',
    },
  },
  validateFactoryFiles: {
    method: 'POST',
    path: '/factory-files/validate',
    tag: 'factories',
    summary: 'Check the files of a definition',
    description:
      'It does not check things of the team, such as environments and secrets: a dry run of an apply also checks these. Changes nothing.',
    allow: { ...teamReads, keylessBytes: maxKeylessDefinitionBytes, limited: 'definition_plans' },
    body: ValidateFactoryFilesRequest,
    bodyLimitBytes: 2 * maxDefinitionBytes,
    answer: { status: 200, description: 'The faults', schema: ValidateFactoryFilesResponse },
    errors: { 400: 'A wrong value' },
  },
  listFactoryFileSchemas: {
    method: 'GET',
    path: '/factory-files/schemas',
    tag: 'factories',
    summary: 'List the versions of the format of definition files',
    allow: { anyone: 'always' },
    answer: { status: 200, description: 'The versions', schema: FactoryFileSchemaVersions },
    tagged: true,
  },
  getFactoryFileSchemas: {
    method: 'GET',
    path: '/factory-files/schemas/{schemaVersion}',
    tag: 'factories',
    summary: 'Read the JSON Schemas of definition files',
    allow: { anyone: 'always' },
    params: schemaVersion,
    answer: { status: 200, description: 'A schema for each kind of file', schema: FactoryFileSchemas },
    errors: { 404: 'No such version' },
    tagged: true,
  },
  getFactoryFileSchema: {
    method: 'GET',
    path: '/factory-files/schemas/{schemaVersion}/{document}',
    tag: 'factories',
    summary: 'Read the JSON Schema of a kind of file',
    description: 'For editors, as the schema of a file.',
    allow: { anyone: 'always' },
    params: schemaVersion.extend({
      document: z.string().meta({ description: 'Name of the schema, such as factory.schema.json' }),
    }),
    answer: { status: 200, description: 'The schema', schema: FactoryFileSchema },
    errors: { 404: 'No such version, or no such schema' },
    tagged: true,
  },
} as const satisfies Record<string, Route>;
