/** Credentials for image registries, from a file of the operator in the format of Docker's `config.json`. */
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { SandboxError } from '../../sandbox.ts';

/** Credentials for one registry. */
export interface RegistryCredentials {
  /** Value of the header `X-Registry-Auth` (docs.docker.com/reference/api/engine, "Authentication"). */
  readonly header: string;
  /** Texts that no message may contain. */
  readonly secrets: readonly string[];
}

const DockerConfig = z.object({
  auths: z
    .record(z.string(), z.object({ auth: z.string().optional(), identitytoken: z.string().optional() }))
    .optional(),
  credsStore: z.string().optional(),
  credHelpers: z.record(z.string(), z.string()).optional(),
});

/** `docker login` stores the credentials of Docker Hub under this name. */
const dockerHub = 'index.docker.io';

/** Returns the registry of a key in `auths`. The key may be a URL with a path. */
const registryOf = (key: string): string => key.replace(/^https?:\/\//, '').split('/', 1)[0] ?? '';

/**
 * Returns the credentials for a registry. Returns undefined if the setting names no file, or if the file has no credentials for this
 * registry. Rejects with a `SandboxError` that describes the fault without any content of the file.
 */
export async function readCredentials(
  file: string | undefined,
  registry: string,
): Promise<RegistryCredentials | undefined> {
  if (file === undefined) return undefined;
  const fault = (problem: string): SandboxError =>
    new SandboxError('prepare', 'registry_credentials', `RUNYARD_DOCKER_CONFIG of the worker: ${problem}`);
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw fault(`the file cannot be read (${error.code})`);
  });
  const parsed = DockerConfig.safeParse(jsonOf(text));
  if (!parsed.success) throw fault('the file is not in the format of Docker’s config.json');
  const { auths = {}, credsStore, credHelpers = {} } = parsed.data;
  const wanted = registry === 'docker.io' ? [registry, dockerHub] : [registry];
  const entry = Object.entries(auths).find(([key]) => wanted.includes(registryOf(key)))?.[1];
  if (entry?.auth === undefined || entry.auth === '') {
    if (entry === undefined && !wanted.some((name) => name in credHelpers)) return undefined;
    throw fault(
      `the credentials for ${registry} are kept by a program (${credHelpers[registry] ?? credsStore ?? 'unknown'}), which the worker does not start: write them into auths`,
    );
  }
  const decoded = Buffer.from(entry.auth, 'base64').toString();
  const colon = decoded.indexOf(':');
  if (colon <= 0) throw fault(`auths has no user and password for ${registry}`);
  const [username, password] = [decoded.slice(0, colon), decoded.slice(colon + 1).replace(/\0+$/, '')];
  const { identitytoken } = entry;
  const value = { username, password, serveraddress: registry, ...(identitytoken ? { identitytoken } : {}) };
  return {
    // Makes base64url with padding by hand, because engines ignore a header without padding, and Node's base64url has no padding.
    header: Buffer.from(JSON.stringify(value)).toString('base64').replaceAll('+', '-').replaceAll('/', '_'),
    secrets: [entry.auth, password, identitytoken ?? ''].filter((secret) => secret !== ''),
  };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
