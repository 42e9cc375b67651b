/**
 * Reads the file of RUNYARD_OIDC_FILE. It names identity providers, and rules that give people roles in teams by their groups at the
 * provider.
 */
import { readFile } from 'node:fs/promises';
import { roles } from '@runyard/contract/wire/access';
import { isLoopback } from '@runyard/system/address-rules';
import { z } from 'zod';
import { type OperatorFile, readOperatorFile } from '../../../platform/operator-files/read-file.ts';

const setting = 'RUNYARD_OIDC_FILE';

/** Parameters of the authorization request that the operator cannot set. */
const ownParameters = new Set([
  'client_id',
  'code_challenge',
  'code_challenge_method',
  'nonce',
  'redirect_uri',
  'request',
  'request_uri',
  'response_mode',
  'response_type',
  'scope',
  'state',
]);

/** Scopes of a provider without `scopes` in the file, as far as the provider publishes them. `openid` is always added. */
export const usualScopes: readonly string[] = ['profile', 'email', 'offline_access'];

/** Returns whether tokens may be sent to the URL, which must use TLS or lead to this machine. */
export function isSafeUrl(text: string): boolean {
  const url = URL.parse(text);
  return url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url));
}

const Provider = z
  .strictObject({
    id: z.string().regex(/^[a-z0-9][a-z0-9-]{0,39}$/, { error: 'must be 1 to 40 characters of a-z, 0-9 and -' }),
    name: z.string().trim().min(1).max(60),
    issuer: z.string().max(500).refine(isSafeUrl, { error: 'must be an https:// URL' }),
    client_id: z.string().min(1).max(500),
    client_secret: z.string().min(1).max(1000).optional(),
    client_secret_file: z.string().startsWith('/', { error: 'must be an absolute path' }).optional(),
    client_auth: z.enum(['client_secret_basic', 'client_secret_post']).default('client_secret_basic'),
    scopes: z
      .array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]+$/))
      .max(30)
      .optional(),
    parameters: z.record(z.string(), z.string().max(500)).default({}),
    groups_claim: z.string().min(1).max(200).default('groups'),
    timeout_seconds: z.number().min(1).max(60).default(10),
    clock_tolerance_seconds: z.number().int().min(0).max(300).default(30),
  })
  .refine((provider) => provider.client_secret === undefined || provider.client_secret_file === undefined, {
    error: 'has both client_secret and client_secret_file',
  })
  .refine(({ parameters }) => !Object.keys(parameters).some((name) => ownParameters.has(name)), {
    path: ['parameters'],
    error: 'names a parameter that Runyard sets',
  });

const Rule = z.strictObject({
  provider: z.string(),
  group: z.string().min(1).max(500),
  role: z.enum(roles),
});

const Team = z.strictObject({
  team: z.string().regex(/^[A-Za-z0-9]{22}$/, { error: 'must be the UID of a team: 22 characters of [A-Za-z0-9]' }),
  rules: z.array(Rule).min(1).max(200),
});

const File = z.strictObject({
  providers: z.array(Provider).min(1).max(20),
  teams: z.array(Team).max(1000).default([]),
  refresh_minutes: z.number().min(1).max(1440).default(15),
  unconfirmed_hours: z.number().min(1).max(720).default(24),
});

export type ProviderConfig = Omit<z.output<typeof Provider>, 'client_secret_file'>;
export type TeamRules = z.output<typeof Team>;
export type SignOnFile = Omit<z.output<typeof File>, 'providers'> & { readonly providers: readonly ProviderConfig[] };

/** Reads the file, and the secrets from the files that it names. Each problem contains the line and the fault. */
export async function readSignOnFile(file: string): Promise<OperatorFile<SignOnFile>> {
  const read = await readOperatorFile(setting, file, File);
  if (!read.ok) return read;
  const { lineOf, value } = read;
  const problems: string[] = [];
  const fault = (path: readonly PropertyKey[], message: string) =>
    void problems.push(`${setting}: ${lineOf(path)}: ${message}`);
  const isRepeated = (texts: readonly string[], index: number) => texts.indexOf(texts[index] ?? '') !== index;

  const ids = value.providers.map(({ id }) => id);
  const issuers = value.providers.map(({ issuer }) => issuer);
  const teams = value.teams.map(({ team }) => team);
  for (const index of ids.keys()) {
    if (isRepeated(ids, index)) fault(['providers', index, 'id'], 'another provider has this id');
    if (isRepeated(issuers, index)) fault(['providers', index, 'issuer'], 'another provider has this issuer');
  }
  for (const [index, { rules }] of value.teams.entries()) {
    if (isRepeated(teams, index)) fault(['teams', index, 'team'], 'the team is named twice');
    for (const [number, { provider }] of rules.entries())
      if (!ids.includes(provider)) fault(['teams', index, 'rules', number, 'provider'], 'no provider has this id');
  }
  const providers: ProviderConfig[] = [];
  for (const [index, { client_secret_file: secretFile, ...provider }] of value.providers.entries()) {
    const secret = secretFile === undefined ? provider.client_secret : await readSecret(secretFile);
    if (secretFile !== undefined && secret === undefined)
      fault(['providers', index, 'client_secret_file'], `${secretFile} cannot be read, or is empty`);
    providers.push({ ...provider, ...(secret === undefined ? {} : { client_secret: secret }) });
  }
  return problems.length > 0 ? { ok: false, problems } : { ok: true, lineOf, value: { ...value, providers } };
}

const readSecret = async (file: string): Promise<string | undefined> =>
  (await readFile(file, 'utf8').catch(() => '')).trim() || undefined;
