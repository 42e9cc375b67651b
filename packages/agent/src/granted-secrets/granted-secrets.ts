/** Passes the secrets of a run to the programs of the run, and removes the secrets from everything that the agent reports. */
import { join } from 'node:path';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { createRedactor, type Redactor } from '@runyard/system/redaction/redactor';
import { fs } from '../builtin-modules.ts';
import type { ServiceClient } from '../service/client.ts';

type Variables = Readonly<Record<string, string>>;

export interface GrantedSecrets {
  /**
   * Returns the environment variables with the task's secrets. The first call also writes the files of secrets that a program gets as a
   * file.
   */
  variablesOf(task: Pick<AgentTask, 'secrets'>): Variables;
  /** Writes the files of the secrets for setup commands. Returns the variables of these commands, and a function that removes the files. */
  ofSetup(task: Pick<AgentTask, 'setup_secrets'>): { readonly variables: Variables; readonly remove: () => void };
  /** Returns the value with each secret in its strings replaced. Before `begin`, returns the value unchanged. */
  redact<T>(value: T): T;
  /** Begins to redact the values of a task. */
  begin(task: Pick<AgentTask, 'redact'>): void;
  /** Removes the files. */
  remove(): void;
}

/**
 * Creates the secrets of a run. Writes the files of secrets into a new folder of `temporaryFolder`, because archives of the workspace do
 * not include that folder.
 */
export function grantedSecrets(temporaryFolder: string): GrantedSecrets {
  let redactor: Redactor | undefined;
  const folders = new Set<string>();
  let ofAgent: Variables | undefined;

  /** Returns the variables with the values, or with the paths of files in a new folder. */
  function toVariables(secrets: NonNullable<AgentTask['secrets']>): { variables: Variables; remove: () => void } {
    let folder: string | undefined;
    const fileOf = (name: string, value: string): string => {
      folder ??= fs.mkdtempSync(join(temporaryFolder, 'runyard-secrets-'));
      folders.add(folder);
      const file = join(folder, name);
      fs.writeFileSync(file, value, { mode: 0o600, flag: 'wx' });
      return file;
    };
    const variables = Object.fromEntries(
      secrets.map(({ variable, as, value }) => [variable, as === 'file' ? fileOf(variable, value) : value]),
    );
    return { variables, remove: () => void (folder && fs.rmSync(folder, { recursive: true, force: true })) };
  }

  return {
    variablesOf({ secrets = [] }) {
      ofAgent ??= toVariables(secrets).variables;
      return ofAgent;
    },
    ofSetup: ({ setup_secrets: secrets = [] }) => toVariables(secrets),
    redact: (value) => (redactor === undefined ? value : (redactor.value(value) as typeof value)),
    begin({ redact = [] }) {
      if (redact.length > 0) redactor ??= createRedactor(redact);
    },
    remove() {
      for (const folder of folders) fs.rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Returns a client that removes the secrets of the run from reports. Events need no such client, because the reporter itself removes
 * secrets from them.
 */
export function redactingClient(client: ServiceClient, { redact }: Pick<GrantedSecrets, 'redact'>): ServiceClient {
  return {
    ...client,
    reportArtifact: (body, options) => client.reportArtifact(redact(body), options),
    uploadSnapshot: (body, options) => client.uploadSnapshot(redact(body), options),
    ask: (method, path, options) =>
      client.ask(method, path, options?.body === undefined ? options : { ...options, body: redact(options.body) }),
    finishTask: (body, options) => client.finishTask(redact(body), options),
    reportShutdown: (reason, options) => client.reportShutdown(redact(reason), options),
  };
}

/** Removes the secrets of the run from the standard error of this process, which the worker logs. */
export function redactStderr({ redact }: Pick<GrantedSecrets, 'redact'>): void {
  const write = process.stderr.write.bind(process.stderr);
  process.stderr.write = ((text: string | Uint8Array, ...rest: never[]) =>
    write(typeof text === 'string' ? redact(text) : text, ...rest)) as typeof process.stderr.write;
}
