/** Stored secrets. Runs may use their values, but no answer of the service contains a value. */
import { z } from 'zod';
import { maxSecretAgents, maxSecretBytes, maxSecretsOfRun, minSecretCharacters, minSecretLength } from '../limits.ts';
import { secretScopes } from '../wire/choices.ts';
import { NonBlank, Text, Timestamp } from '../wire/primitives.ts';
import { isVariableName } from '../wire/variable-names.ts';

/** Name of a secret. By default, the variable with the secret has the same name. */
export const SecretName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,99}$/, {
  error: 'must be 1 to 100 characters of [A-Za-z0-9_], and not begin with a digit',
});

/** Variables that control how programs of the sandbox start and work. A secret cannot replace them. */
const reservedVariable =
  /^(?:RUNYARD_.*|LD_.*|DYLD_.*|NODE_OPTIONS|PATH|HOME|SHELL|PWD|IFS|ENV|BASH_ENV|TMPDIR|USER|LANG)$/;

/** Name of the environment variable that contains a secret. */
export const SecretVariable = SecretName.refine((name) => !reservedVariable.test(name) && isVariableName(name), {
  error: 'is a variable that the sandbox itself needs; choose another variable for the secret with "variable"',
});

/** How a sandbox gets a secret. */
export const SecretForm = z.enum(['variable', 'file']).meta({
  id: 'SecretForm',
  description:
    'variable: the environment variable holds the value. file: the environment variable holds the path of a file with the value; the file is not stored with the workspace',
});

/** Part of a run in which programs of the sandbox get a secret. */
export const SecretPhase = z.enum(['setup']).meta({
  id: 'SecretPhase',
  description:
    'setup: only the setup commands get the secret. Before the agent begins, Runyard ends the processes that the setup left, and searches the files that the setup wrote: if one contains the value, the run fails',
});

/** The name of a secret that the runs of a configuration or an environment get. */
export const SecretReference = z
  .looseObject({
    name: NonBlank.describe('Name of the secret'),
    variable: SecretVariable.optional().describe('Environment variable in the sandbox; absent: the name of the secret'),
    as: SecretForm.optional(),
    phase: SecretPhase.optional(),
  })
  .meta({ id: 'SecretReference', description: 'A secret that the sandbox of a run gets' });
export type SecretReference = z.infer<typeof SecretReference>;

/** The secrets of a run or an environment. */
export const SecretReferences = z.array(SecretReference).max(maxSecretsOfRun);

export const SecretScope = z.enum(secretScopes).meta({
  id: 'SecretScope',
  description:
    'personal: only runs of its owner may use it. team: runs of every person of the team and of the named agents may use it',
});
export type SecretScope = z.infer<typeof SecretScope>;

/** A stored secret without its value, which no answer contains. */
export const Secret = z
  .object({
    name: z.string().describe('Name with which runs and environments use it'),
    scope: SecretScope,
    agents: z
      .array(z.string())
      .optional()
      .describe('Service accounts whose runs may use it. Personal secrets have none'),
    created_at: Timestamp.describe('When it was first set, RFC 3339 in UTC'),
    updated_at: Timestamp.describe('When its value was last set, RFC 3339 in UTC'),
    last_used_at: Timestamp.optional().describe('When a sandbox last got it, RFC 3339 in UTC; absent: never'),
  })
  .meta({ id: 'Secret', description: 'A stored secret without its value' });
export type Secret = z.infer<typeof Secret>;

export const ListSecretsResponse = z
  .object({ secrets: z.array(Secret).describe('Secrets by name, without their values') })
  .meta({ id: 'ListSecretsResponse', description: 'Secrets that the caller may see' });

/** Returns true if a value is long enough for redaction. A shorter value would also match ordinary text. */
export const isFindable = (value: string): boolean =>
  value.trim().length >= minSecretLength && new Set(value.trim()).size >= minSecretCharacters;

const SecretValue = Text.refine((value) => Buffer.byteLength(value) <= maxSecretBytes, {
  error: `must be at most ${maxSecretBytes / 1024} KB of UTF-8`,
})
  .refine(isFindable, {
    error: `must have at least ${minSecretLength} characters, ${minSecretCharacters} of them different: a shorter value occurs in ordinary text by chance, so it could not be redacted in a run's output`,
  })
  .meta({
    minLength: minSecretLength,
    maxLength: maxSecretBytes,
    // White space at both ends of the value does not count. A pattern cannot require a number of different characters, so only the
    // description says how many there must be.
    pattern: String.raw`\S[\s\S]{${minSecretLength - 2},}\S`,
  });

export const PutSecretRequest = z
  .object({
    value: SecretValue.describe(
      `The value; it is never shown again. At least ${minSecretLength} characters, ${minSecretCharacters} of them different, at most ${maxSecretBytes / 1024} KB`,
    ),
    scope: SecretScope,
    agents: z
      .array(NonBlank.max(200))
      .max(maxSecretAgents)
      .optional()
      .describe(
        'Service accounts whose runs may use the secret; absent: unchanged, at first none. Only with the scope team',
      ),
  })
  .refine(({ scope, agents }) => scope === 'team' || agents === undefined, {
    error: 'belongs to a secret of the team',
    path: ['agents'],
  })
  .meta({
    id: 'PutSecretRequest',
    description: 'The value of a secret, and who may use it',
    allOf: [{ anyOf: [{ properties: { scope: { const: 'team' } } }, { not: { required: ['agents'] } }] }],
  });
export type PutSecretRequest = z.infer<typeof PutSecretRequest>;
