import { isFindable } from '@runyard/contract/secrets/secrets';
import type { ConfigSeal } from '../../../platform/secrets/config-seal.ts';
import type { Signer } from '../../../platform/secrets/signer.ts';
import type { Vault } from '../../../platform/secrets/vault.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import type { CodeHosts, CodeHostUser } from '../../../team/code-hosts/code-hosts.ts';
import { secretsByForm } from '../../../team/mcp/secret-references.ts';
import { noteClones, readPersonalClones } from '../../executions/run-tokens/personal-clones.ts';
import { codeHostUserOf, readCodeHostUser, readPresentContents } from '../../executions/run-tokens/present-rights.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import type { TaskFiles } from './files-of-task.ts';
import {
  contentsForSecrets,
  type GrantedSecrets,
  grantSecrets,
  readSecretsInFiles,
  secretsOfTask,
} from './grant-secrets.ts';
import { mcpServersOfTask, type TaskServers } from './mcp-servers-of-task.ts';
import type { TaskRow } from './read-task-row.ts';
import { findRefused, isReadByPerson, type NamedObjects, nameKeptObjects } from './repositories-of-task.ts';

export interface AccessDeps {
  readonly db: Database;
  readonly vault: Vault;
  readonly configSeal: ConfigSeal;
  readonly signing: Pick<Signer, 'nameOf'>;
  readonly codeHosts: CodeHosts;
  /** Origin of the service. */
  baseUrl(): string;
}

/** The secrets, MCP servers and repositories that an execution may use. */
export interface TaskAccess {
  readonly kind: 'access';
  /** The user as whom the service asks code hosts for the run. */
  readonly user: CodeHostUser;
  readonly mcp: Extract<TaskServers, { kind: 'servers' }>;
  readonly granted: GrantedSecrets;
  /** Undefined: the files are set up, so the worker needs no names of objects in its cache. */
  readonly namedObjects: NamedObjects | undefined;
}

/** The reason why an execution may not use something that its run needs. */
type AccessRefused =
  | Exclude<TaskServers, { kind: 'servers' }>
  | NonNullable<ReturnType<typeof findRefused>>
  | { readonly kind: 'busy'; readonly detail: string };

/** Checks again what an execution that begins may use, and stores the secrets that it gets with its run. */
export async function accessOfTask(
  deps: AccessDeps,
  session: RunSession,
  row: TaskRow,
  files: TaskFiles,
): Promise<TaskAccess | AccessRefused> {
  const { db, codeHosts } = deps;
  const present = await readPresentContents(db, session.executionId);
  const usable = await secretsOfTask(deps, session, { ...row, contents: contentsForSecrets(row, present) });
  if (usable.kind === 'refused') return { kind: 'secret_unusable', message: usable.message };
  const { secrets } = usable;
  const user = await codeHostUserOf(db, session, present);
  const mcp = await mcpServersOfTask(deps, session.teamId, row.config, row.contents, {
    secrets: secretsByForm(secrets),
    whyNotStored: user.without?.team,
  });
  if (mcp.kind !== 'servers') return mcp;
  const repositories = row.environment_config?.github_repos ?? [];
  const answers = files.isSetUp ? [] : await codeHosts.ask(user, repositories);
  const refused = findRefused(deps, answers);
  if (refused) return refused;
  // The sandbox may read these repositories without a request to the gateway: from the worker's cache, or in the files of another run,
  // which may be deleted later.
  const clones = answers.filter(isReadByPerson).map(({ repository }) => repository);
  const inFilesOfOther = files.ofOther ? await readPersonalClones(db, session.runId) : [];
  await noteClones(db, session.runId, [...clones, ...inFilesOfOther]);
  if (clones.length > 0 && (await readCodeHostUser(db, session)).without?.personal !== user.without?.personal)
    return { kind: 'busy', detail: 'A message arrived that changes the rights of the run.' };
  const ofHosts = (await codeHosts.secretsFor(user, repositories)).map(
    (value) => ({ name: 'code host', kind: 'withheld', value }) as const,
  );
  // Redact these values too, because the files may contain the old value of a secret that was replaced meanwhile.
  const inFiles = files.ofOther ? await readSecretsInFiles(deps, files.ofOther) : [];
  const others = [...mcp.values, ...ofHosts, ...inFiles].filter(({ value }) => isFindable(value));
  const granted = await grantSecrets(deps, session, secrets, others);
  const namedObjects = files.isSetUp ? undefined : nameKeptObjects(deps.signing, session.teamId, row, answers, granted);
  return { kind: 'access', user, mcp, granted, namedObjects };
}
