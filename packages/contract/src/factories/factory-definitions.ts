/** API schemas of factory runs and of the definition of factories by files. */
import { z } from 'zod';
import { maxDefinitionBytes, maxDefinitionFiles, maxPromptBytes } from '../limits.ts';
import { WaitingAfterChange } from '../runs/acceptances.ts';
import { atMostBytes } from '../runs/run-request.ts';
import { RunState } from '../runs/states.ts';
import { NonBlank, Text, Timestamp, Uuid, webAddressPattern } from '../wire/primitives.ts';
import { UserProfile } from '../wire/profiles.ts';
import { DefinitionVariables } from './definition-variables.ts';
import { faultCodes } from './fault-codes.ts';

const Ticket = NonBlank.refine(atMostBytes(256), { error: 'must be at most 256 bytes of UTF-8' }).meta({
  maxLength: 256,
});

export const DispatchRequest = z
  .object({
    prompt: NonBlank.refine(atMostBytes(maxPromptBytes), { error: 'must be at most 1 MB of UTF-8' })
      .meta({ maxLength: maxPromptBytes })
      .describe('Work for the foreman; at most 1 MB of UTF-8'),
    title: Text.max(500)
      .optional()
      .describe('Title of the run and its task. Default: first line of the prompt, cut at 80 characters'),
    ticket_ref: Ticket.optional().describe(
      'The ticket as `SOURCE:ID`, such as linear:BILL-12, or only its id, at most 256 bytes. Absent: a new one of the source `adhoc`. The metadata of the run has ticket_source and ticket_id',
    ),
    ticket_url: Ticket.regex(new RegExp(webAddressPattern), {
      error: 'must be an address that begins with https:// or http://',
    })
      .meta({ pattern: webAddressPattern })
      .optional()
      .describe('Address of the ticket, at most 256 bytes; metadata of the run'),
  })
  .meta({ id: 'DispatchRequest', description: 'Work for the foreman of a factory' });
export type DispatchRequest = z.infer<typeof DispatchRequest>;

export const DispatchResponse = z
  .object({
    run_id: Uuid.describe('Id of the run'),
    run_url: z.string().describe('Page of the run'),
    state: RunState,
    factory_uid: z.string().describe('UID of the factory'),
    foreman_agent: z.string().describe('Name of the agent of the factory that got the work'),
    ticket_ref: z.string().describe('The ticket as `SOURCE:ID`, or the id alone if the request has no source'),
  })
  .meta({ id: 'DispatchResponse', description: 'The new run' });
export type DispatchResponse = z.infer<typeof DispatchResponse>;

export const FactoryFileInput = z
  .object({
    path: Text.describe('Path relative to the folder with factory.yaml, with / between folders'),
    content: Text.describe('Text of the file'),
  })
  .meta({ id: 'FactoryFile', description: 'A file of a definition' });

export const ApplyDefinitionRequest = z
  .object({
    files: z
      .array(FactoryFileInput)
      .min(1)
      .max(maxDefinitionFiles)
      .describe(
        `All files of the definition, at most ${maxDefinitionFiles} files, with at most ${maxDefinitionBytes / 1024 / 1024} MB together`,
      ),
    variables: DefinitionVariables.optional().describe(
      'Values of variables that `variables.yaml` declares. The others keep the value that an earlier apply was given, or have their default',
    ),
    dry_run: z.boolean().default(false).describe('True: everything is checked and planned, and nothing is changed'),
    expected_version: z
      .int()
      .min(0)
      .optional()
      .describe('Version for which the plan was made, 0 for none; any other version is answered with 409. Absent: any'),
  })
  .meta({ id: 'ApplyDefinitionRequest', description: 'The definition of a factory' });
export type ApplyDefinitionRequest = z.infer<typeof ApplyDefinitionRequest>;

const FactoryThing = z
  .enum(['factory', 'agent', 'automation', 'webhook', 'runner', 'environment', 'skill'])
  .meta({ id: 'FactoryThing', description: 'Kind of a thing that a definition defines' });

const FactoryAction = z
  .enum(['create', 'change', 'delete'])
  .meta({ id: 'FactoryAction', description: 'Effect of an apply on a thing' });

export const FactoryChange = z
  .object({
    kind: FactoryThing,
    name: z.string().describe('Name of the thing'),
    action: FactoryAction,
    members: z
      .array(
        z
          .object({
            member: z.string().describe('Name of the member, such as agentDefaults.model'),
            before: z.unknown().optional().describe('Present value; absent: none. Secrets are not shown'),
            after: z.unknown().optional().describe('New value; absent: none. Secrets are not shown'),
          })
          .meta({ id: 'FactoryMemberChange', description: 'A member that changes' }),
      )
      .optional()
      .describe('Members that change, if the action is change'),
  })
  .meta({ id: 'FactoryChange', description: 'A difference between two states of a factory' });
export type FactoryChange = z.infer<typeof FactoryChange>;

export const FactoryNotice = z
  .object({
    file: z.string().describe('Path of the file'),
    line: z.int().describe('Line, from 1'),
    column: z.int().describe('Column, from 1'),
    message: z.string().describe('Part without an effect on this service'),
    suggestion: z.string().optional().describe('Name that was probably meant'),
  })
  .meta({ id: 'FactoryNotice', description: 'Part of a definition without an effect on this service' });

export const DefinitionProblem = z
  .object({
    automation: z.string().describe('Name of the automation in the files'),
    message: z.string().describe('Why it does not fire, such as a webhook that is disabled'),
  })
  .meta({ id: 'DefinitionProblem', description: 'An enabled automation that does not fire although it is stored' });
export type DefinitionProblem = z.infer<typeof DefinitionProblem>;

export const definitionProblems = z
  .array(DefinitionProblem)
  .describe('Why enabled automations of the definition do not fire. The definition is applied in spite of them');

const drift = z
  .array(FactoryChange)
  .describe('Differences from the last applied definition, as the changes that revert them');

export const ApplyDefinitionResponse = z
  .object({
    version: z.int().describe('Version of the definition that is stored now; 0: none'),
    dry_run: z.boolean().describe('True: nothing was changed'),
    changes: z.array(FactoryChange).describe('Differences to the definition that was stored before'),
    drift,
    notices: z.array(FactoryNotice).describe('Parts that are stored without an effect, at most 100'),
    problems: definitionProblems,
    waiting: WaitingAfterChange.optional(),
  })
  .meta({ id: 'ApplyDefinitionResponse', description: 'Changes of an apply or of its dry run' });
export type ApplyDefinitionResponse = z.infer<typeof ApplyDefinitionResponse>;

export const FactoryDefinitionItem = z
  .object({
    version: z.int().describe('Version, which each apply increases by one'),
    files: z.array(FactoryFileInput).describe('The files as they were applied, by path'),
    variables: DefinitionVariables,
    applied_at: Timestamp.describe('When it was applied, RFC 3339 in UTC'),
    commit: z
      .string()
      .optional()
      .describe('Commit that the files are from; absent: they were not applied from a repository'),
    applied_by: UserProfile.optional().meta({
      description:
        'Person who applied it last. An automation acts as the person whose apply created it or changed it last',
    }),
    drift,
    notices: z.array(FactoryNotice).describe('Parts of the definition that are stored but have no effect, at most 100'),
  })
  .meta({ id: 'FactoryDefinitionItem', description: 'The definition that was applied last' });
export type FactoryDefinitionItem = z.infer<typeof FactoryDefinitionItem>;

/** `POST /factory/{factoryUid}/definition/plan`. */
export const PlanDefinitionRequest = z
  .object({ files: ApplyDefinitionRequest.shape.files, variables: ApplyDefinitionRequest.shape.variables })
  .meta({ id: 'PlanDefinitionRequest', description: 'The files of a definition to plan' });
export type PlanDefinitionRequest = z.infer<typeof PlanDefinitionRequest>;

/** `POST /factory-files/apply`. */
export const CreateFromFilesRequest = z
  .object({
    files: ApplyDefinitionRequest.shape.files,
    variables: ApplyDefinitionRequest.shape.variables,
    dry_run: ApplyDefinitionRequest.shape.dry_run,
  })
  .meta({ id: 'CreateFromFilesRequest', description: 'The definition of a new factory' });
export type CreateFromFilesRequest = z.infer<typeof CreateFromFilesRequest>;

export const CreateFromFilesResponse = ApplyDefinitionResponse.extend({
  factory_uid: z.string().optional().describe('UID of the new factory; absent: dry run'),
}).meta({ id: 'CreateFromFilesResponse', description: 'The new factory, or the plan of a dry run' });
export type CreateFromFilesResponse = z.infer<typeof CreateFromFilesResponse>;

/** `POST /factory-files/validate`. */
export const ValidateFactoryFilesRequest = z
  .object({ files: ApplyDefinitionRequest.shape.files, variables: ApplyDefinitionRequest.shape.variables })
  .meta({ id: 'ValidateFactoryFilesRequest', description: 'Files of a definition to check' });
export type ValidateFactoryFilesRequest = z.infer<typeof ValidateFactoryFilesRequest>;

const ValidationTier = z
  .enum(['checked', 'not_run'])
  .meta({ id: 'ValidationTier', description: '`not_run`: the files have faults that come first' });

export const ValidateFactoryFilesResponse = z
  .object({
    valid: z.boolean().describe('True: no fault was found. An apply can still find what depends on the team'),
    schema_version: z.string().describe('Version of the format'),
    diagnostics: z
      .array(
        z
          .object({
            code: z
              .enum(faultCodes)
              .meta({ id: 'FactoryFileDiagnosticCode', description: 'Kind of a fault of definition files' }),
            path: z.string().describe('Path of the file'),
            line: z.int().describe('Line, from 1'),
            column: z.int().describe('Column, from 1'),
            message: z.string().describe('What to change'),
            suggestion: z.string().optional().describe('Name that was probably meant'),
          })
          .meta({ id: 'FactoryFileDiagnostic', description: 'A fault of a definition' }),
      )
      .describe('Faults by file, line and column, at most 100'),
    deferred_resolutions: z
      .array(
        z
          .object({
            path: z.string().describe('Path of the file'),
            field: z.string().describe('Member of the file, such as agentDefaults.environmentId'),
            kind: z
              .enum(['environment', 'mcp_server', 'model', 'secret', 'webhook', 'worker_host'])
              .meta({ id: 'DeferredResolutionKind', description: 'Kind of the thing that a member names' }),
          })
          .meta({ id: 'DeferredResolution', description: 'A name whose thing was not looked up' }),
      )
      .describe('Names of things of the team that were not looked up; at most 1,000'),
    state_dependent_checks_not_run: z.array(z.string()).describe('Checks that only an apply does'),
    validation_scope: z
      .object({
        parser: ValidationTier,
        state_independent: ValidationTier,
        state_dependent: z.literal('not_checked').describe('References to things of the team are never checked here'),
      })
      .meta({ id: 'ValidationScope', description: 'Which checks were done' }),
    notices: z.array(FactoryNotice).describe('Parts that are stored without an effect on this service, at most 100'),
  })
  .meta({ id: 'ValidateFactoryFilesResponse', description: 'Result of a check of files' });
export type ValidateFactoryFilesResponse = z.infer<typeof ValidateFactoryFilesResponse>;

export const FactoryFileSchema = z
  .record(z.string(), z.unknown())
  .meta({ id: 'FactoryFileSchema', description: 'JSON Schema (draft 2020-12) of a kind of file' });

export const FactoryFileSchemaVersions = z
  .object({
    current_version: z.string().describe('Version that new definitions declare'),
    versions: z
      .array(
        z
          .object({
            schema_version: z.string().describe('Version of the format'),
            schema_url: z.string().describe('Path of its schemas'),
          })
          .meta({ id: 'FactoryFileSchemaVersion', description: 'A version of the format of definition files' }),
      )
      .describe('Versions that the service reads'),
  })
  .meta({ id: 'FactoryFileSchemaVersions', description: 'Versions of the format of definition files' });

export const FactoryFileSchemas = z
  .object({
    schema_version: z.string().describe('Version of the format'),
    documents: z
      .record(z.string(), FactoryFileSchema)
      .describe(
        'Schemas by name: factory, agent, automation, webhook, runner, environment and variables, each with .schema.json',
      ),
  })
  .meta({ id: 'FactoryFileSchemas', description: 'JSON Schemas of the files of a definition' });
