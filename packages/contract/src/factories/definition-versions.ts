/** API schemas of the kept versions of definitions. */
import { z } from 'zod';
import { maxDefinitionVersionBytes, maxDefinitionVersions } from '../limits.ts';
import { Timestamp } from '../wire/primitives.ts';
import { UserProfile } from '../wire/profiles.ts';
import { DefinitionVariables } from './definition-variables.ts';
import { FactoryChange, FactoryFileInput } from './factory-definitions.ts';

export const DefinitionVersion = z
  .object({
    version: z.int().describe('Number of the version'),
    applied_at: Timestamp.describe('When it was applied, RFC 3339 in UTC'),
    applied_by: UserProfile,
    commit: z.string().optional().describe('Commit that the files are from; absent: they are not from a repository'),
    rolled_back_to: z
      .int()
      .optional()
      .describe('Of a rollback: the earlier version whose files were applied again. Absent in other versions'),
    variables: DefinitionVariables,
    file_bytes: z.int().describe('Bytes of all files'),
    is_kept: z
      .boolean()
      .describe(
        `False: its files have more than ${maxDefinitionVersionBytes / 1024 / 1024} MB, so they are not kept, and the version cannot be applied again`,
      ),
  })
  .meta({ id: 'DefinitionVersion', description: 'A version of the definition of a factory' });
export type DefinitionVersion = z.infer<typeof DefinitionVersion>;

export const DefinitionVersionItem = DefinitionVersion.extend({
  files: z.array(FactoryFileInput).optional().describe('The files as they were applied, by path; absent: not kept'),
}).meta({ id: 'DefinitionVersionItem', description: 'A version of the definition of a factory, with its files' });
export type DefinitionVersionItem = z.infer<typeof DefinitionVersionItem>;

export const ListDefinitionVersionsResponse = z
  .object({
    versions: z
      .array(DefinitionVersion)
      .describe(`The last versions, newest first, at most ${maxDefinitionVersions}. Older ones are deleted`),
  })
  .meta({ id: 'ListDefinitionVersionsResponse', description: 'The versions of the definition of a factory' });

export const CompareDefinitionVersionsQuery = z.object({
  from: z
    .int()
    .min(0)
    .max(2_147_483_647)
    .optional()
    .describe('Version to compare with, 0 for none; default: the version before'),
});

export const DefinitionDiff = z
  .object({
    from: z.int().describe('Version before the changes; 0: none'),
    to: z.int().describe('Version after the changes'),
    changes: z.array(FactoryChange).describe('Changes that lead from one version to the other'),
  })
  .meta({ id: 'DefinitionDiff', description: 'The differences between two versions of a definition' });
export type DefinitionDiff = z.infer<typeof DefinitionDiff>;

export const RollBackDefinitionRequest = z
  .object({
    version: z.int().min(1).max(2_147_483_647).describe('Version whose files and variables are applied again'),
    dry_run: z.boolean().default(false).describe('True: everything is checked and planned, and nothing is changed'),
    expected_version: z
      .int()
      .min(0)
      .optional()
      .describe('Version for which the plan was made; any other version is answered with 409. Absent: any'),
  })
  .meta({ id: 'RollBackDefinitionRequest', description: 'The version to go back to' });
export type RollBackDefinitionRequest = z.infer<typeof RollBackDefinitionRequest>;
