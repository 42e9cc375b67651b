/** API schemas of the git repository from which a factory reads its definition. */
import { z } from 'zod';
import { NonBlank, Text, Timestamp } from '../wire/primitives.ts';
import { UserProfile } from '../wire/profiles.ts';
import { DefinitionVariables } from './definition-variables.ts';
import { definitionProblems, FactoryChange, FactoryNotice } from './factory-definitions.ts';

/** Seconds between two reads of a repository. */
export const sourcePolling = { least: 60, default: 300, most: 86_400 } as const;

/** Name of a branch that git cannot read as an option or a revision, in any argument. */
const branchName = /^[A-Za-z0-9_][A-Za-z0-9_./+@#-]{0,199}$/;
/** A relative path of plain parts: none is empty, `.` or `..`. */
const folderPath = /^[A-Za-z0-9_.-]+(\/[A-Za-z0-9_.-]+)*$/;

export const SetFactorySourceRequest = z
  .object({
    repository: NonBlank.max(500).describe('`owner/repo` on the code host of the service, or its URL there'),
    branch: z
      .string()
      .regex(branchName, { error: 'must be the name of a branch, without refs/heads/' })
      .refine((name) => !name.includes('..') && !name.startsWith('refs/'), {
        error: 'must be the name of a branch, without refs/heads/ and ..',
      })
      .optional()
      .describe('Branch; absent: the default branch of the repository'),
    folder: z
      .string()
      .max(200)
      .regex(folderPath, { error: 'must be a path such as factories/billing, without / at its ends' })
      .refine((path) => !path.split('/').some((part) => part === '.' || part === '..'), {
        error: 'must not have . or .. as a part; leave it out for the root of the repository',
      })
      .optional()
      .describe('Folder with factory.yaml; absent: the root of the repository'),
    poll_interval_seconds: z
      .int()
      .min(sourcePolling.least)
      .max(sourcePolling.most)
      .default(sourcePolling.default)
      .describe(
        `Seconds between two looks at the branch, ${sourcePolling.least} to ${sourcePolling.most}. A push webhook makes the service look at once`,
      ),
    variables: DefinitionVariables.optional().describe(
      'Values of the variables that `variables.yaml` in the repository declares, for this factory; each sync uses them. The others keep the values of earlier applies, or have their defaults. Everyone in the team can read them: no secrets',
    ),
    dry_run: z.boolean().default(false).describe('True: the repository is read and planned, and nothing is stored'),
    expected_commit: z
      .string()
      .regex(/^[0-9a-f]{40}$/, { error: 'must be the 40 hexadecimal digits of a commit' })
      .optional()
      .describe(
        'Commit of the plan that was looked at. If the branch has another commit now, or cannot be read, the outcome is superseded or unreadable, and no source is stored. Absent: any',
      ),
  })
  .meta({ id: 'SetFactorySourceRequest', description: 'The repository with the definition of a factory' });
export type SetFactorySourceRequest = z.infer<typeof SetFactorySourceRequest>;

export const SyncFactorySourceRequest = z
  .object({
    dry_run: z.boolean().default(false).describe('True: the repository is read and planned, and nothing is changed'),
  })
  .meta({ id: 'SyncFactorySourceRequest', description: 'A sync of a factory with its repository' });
export type SyncFactorySourceRequest = z.infer<typeof SyncFactorySourceRequest>;

const FactorySyncOutcome = z.enum(['applied', 'faulty', 'unreadable', 'not_allowed', 'failed', 'superseded']).meta({
  id: 'FactorySyncOutcome',
  description:
    'applied: the factory matches the definition in the commit. faulty: the definition has faults. unreadable: the repository cannot be read. not_allowed: the person who configured the source may no longer apply definitions. failed: the service could not apply it. superseded: meanwhile the source was changed or another process synced, or the branch has another commit than expected. All but applied changed nothing',
});
export type FactorySyncOutcome = z.infer<typeof FactorySyncOutcome>;

const FactorySyncFault = z
  .object({
    path: z.string().describe('Path of the file in the folder of the definition'),
    line: z.int().describe('Line, from 1'),
    column: z.int().describe('Column, from 1'),
    message: z.string().describe('The fault, and how to fix it'),
    suggestion: z.string().optional().describe('Name that was probably meant'),
  })
  .meta({ id: 'FactorySyncFault', description: 'A fault in a definition file of a repository' });
export type FactorySyncFault = z.infer<typeof FactorySyncFault>;

const commit = z.string().optional().describe('Commit that was read, 40 hexadecimal digits; absent: none was found');
const message = z.string().optional().describe('Why nothing was applied, if the outcome is not applied');
const errors = z
  .array(FactorySyncFault)
  .optional()
  .describe('Faults of the definition, at most 100, if the outcome is faulty');

export const FactorySync = z
  .object({
    outcome: FactorySyncOutcome,
    dry_run: z.boolean().describe('True: nothing was changed'),
    commit,
    message,
    errors,
    version: z.int().optional().describe('Version of the definition that is stored now, if the outcome is applied'),
    changes: z.array(FactoryChange).describe('Differences to the definition that was stored before'),
    drift: z.array(FactoryChange).describe('Changes that were made without files, which the sync reverts'),
    notices: z.array(FactoryNotice).describe('Parts that are stored without an effect, at most 100'),
    problems: definitionProblems,
  })
  .meta({ id: 'FactorySync', description: 'Changes of a sync or of its dry run' });
export type FactorySync = z.infer<typeof FactorySync>;

const LastFactorySync = z
  .object({
    outcome: FactorySyncOutcome,
    at: Timestamp.describe('When it ended, RFC 3339 in UTC'),
    commit,
    message,
    errors,
  })
  .meta({
    id: 'LastFactorySync',
    description: 'The last sync that applied a commit or could not. Syncs that found the same commit are not listed',
  });

export const FactorySource = z
  .object({
    repository: z.string().describe('owner/repo on the code host of the service'),
    url: z.string().describe('URL of the repository, without a credential'),
    branch: Text.optional().describe('Branch; absent: the default branch of the repository'),
    folder: Text.optional().describe('Folder with factory.yaml; absent: the root of the repository'),
    poll_interval_seconds: z.int().describe('Seconds between two looks at the branch'),
    variables: DefinitionVariables.describe('Values of variables that were set with the source'),
    set_by: UserProfile.describe('Person who set the source. Its definitions are read and applied as this person'),
    set_at: Timestamp.describe('When it was set, RFC 3339 in UTC'),
    applied_commit: z
      .string()
      .optional()
      .describe('Commit of the definition that is in force; absent: none was applied from a repository'),
    checked_at: Timestamp.optional().describe('When the branch was looked at last, RFC 3339 in UTC'),
    next_check_at: Timestamp.describe('When it is looked at next without a push, RFC 3339 in UTC'),
    last_sync: LastFactorySync.optional().describe('The last sync; absent: no sync has ended'),
  })
  .meta({ id: 'FactorySource', description: 'The repository with the definition of a factory' });
export type FactorySource = z.infer<typeof FactorySource>;

export const SetFactorySourceResponse = z
  .object({
    source: FactorySource.optional().describe('The stored source; absent: dry_run, and the factory has no source'),
    sync: FactorySync.describe('The first sync, or its plan'),
  })
  .meta({ id: 'SetFactorySourceResponse', description: 'A source that was set, and its first sync' });
export type SetFactorySourceResponse = z.infer<typeof SetFactorySourceResponse>;
