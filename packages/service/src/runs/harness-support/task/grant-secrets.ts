import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { Vault } from '../../../platform/secrets/vault.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import type { RunContent } from '../../../team/access/contents/content.ts';
import { explainWithheld } from '../../../team/access/contents/describe-withheld.ts';
import { secretsOfServers } from '../../../team/mcp/secret-references.ts';
import {
  describeUnusable,
  findUsableSecrets,
  readRights,
  type SecretNames,
  type UsableSecret,
} from '../../../team/stored-secrets/find-usable.ts';
import { copyOf, keepRunSecrets, type RunSecret, readRunSecrets } from '../../../team/stored-secrets/run-secrets.ts';
import type { PresentContents } from '../../executions/run-tokens/present-rights.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { isOpenToTeam } from '../../runs/follow-ups/lacking-right.ts';
import type { TaskRow } from './read-task-row.ts';

const lockRun = defineStatement({
  name: 'lock_run_for_secrets',
  text: 'SELECT FROM runs WHERE id = $1 FOR UPDATE',
  row: {},
});

export interface GrantedSecrets {
  readonly secrets: NonNullable<AgentTask['secrets']>;
  /** Secrets that only the setup commands get. */
  readonly setupSecrets: NonNullable<AgentTask['secrets']>;
  /** All values that a sandbox of the run ever got. The agent receives only these values, and redacts them. */
  readonly redact: readonly string[];
  /** The values of `redact`, and also the values that the agent does not get. */
  readonly values: readonly string[];
}

type SecretsOfTask =
  | { readonly kind: 'secrets'; readonly secrets: readonly UsableSecret[] }
  | { readonly kind: 'refused'; readonly message: string };

/**
 * Returns all secret values that the sandboxes of a run ever received. They are needed for another run that gets the files of this run,
 * because the files may contain these values.
 */
export async function readSecretsInFiles(
  { db, vault }: { readonly db: Database; readonly vault: Vault },
  runId: string,
): Promise<RunSecret[]> {
  const secrets = await readRunSecrets(db, vault, runId);
  return secrets.map((secret) => (secret.kind === 'granted' ? { ...secret, kind: 'configured' } : secret));
}

type RowOfGrant = Pick<
  TaskRow,
  'config' | 'rights' | 'environment_config' | 'is_own_environment' | 'executor_kind' | 'executor_uid'
> & { readonly contents: readonly RunContent[] };

/**
 * Returns the names of the secrets of a run that was created before runs had rights. A name in an environment of another team means a
 * secret of that team. A team that uses the environment as a guest gets neither these secrets nor its own secrets with the same names.
 */
const namesOf = ({ config, environment_config, is_own_environment }: RowOfGrant): SecretNames => ({
  ofRun: config.secrets ?? [],
  ofEnvironment: is_own_environment ? (environment_config?.secrets ?? []) : [],
});

/**
 * Returns the contents whose authors must have the right to the secrets of a run. If the executor allowed follow-ups of the whole team, texts
 * that arrived after the creation of the run do not count.
 */
export const contentsForSecrets = (row: TaskRow, present: PresentContents | null): readonly RunContent[] =>
  present === null || isOpenToTeam(row.config, row.contents) ? row.contents : present.contents;

/**
 * Returns the secrets of the run with their present values. Checks the permission again, because after the creation of the run a secret may
 * have been deleted, or the run's executor may have left the team.
 */
export async function secretsOfTask(
  { db, vault }: { readonly db: Database; readonly vault: Vault },
  { runId, teamId }: Pick<RunSession, 'runId' | 'teamId'>,
  row: RowOfGrant,
): Promise<SecretsOfTask> {
  const user = { teamId, actor: { kind: row.executor_kind, uid: row.executor_uid }, contents: row.contents };
  const usable = row.rights
    ? await readRights(db, vault, user, row.rights.secrets)
    : await findUsableSecrets(db, vault, user, namesOf(row));
  // If the owner of the execution's pool, or an author of a later text, may not use secrets that only the environment names, these secrets
  // are not granted.
  const named = new Set(
    [...(row.config.secrets ?? []), ...secretsOfServers(row.config.mcp_servers ?? {})].map(({ name }) => name),
  );
  const lost =
    usable.kind === 'withheld'
      ? usable.withheld
      : usable.kind === 'ok' && usable.withheld.find(({ name }) => named.has(name ?? ''));
  if (lost) {
    const reason = await explainWithheld(db, teamId, user.actor, lost);
    return { kind: 'refused', message: `config.secrets: ${reason} Then run it again with: bin/runyard rerun ${runId}` };
  }
  if (usable.kind === 'withheld') throw new Error('a withheld secret was not refused earlier');
  if (usable.kind !== 'ok') return { kind: 'refused', message: `${usable.path}: ${describeUnusable(usable)}.` };
  return { kind: 'secrets', secrets: usable.secrets };
}

/**
 * Stores a copy of each secret value, before the sandbox receives the value or the gateway adds it to a request. The copies are redacted
 * from the run's output. `others` are further values to redact.
 */
export async function grantSecrets(
  { db, vault }: { readonly db: Database; readonly vault: Vault },
  { runId, grantedSecrets }: Pick<RunSession, 'runId' | 'grantedSecrets'>,
  secrets: readonly UsableSecret[],
  others: readonly RunSecret[],
): Promise<GrantedSecrets> {
  const granted = secrets.map(copyOf);
  const ids = secrets.map(({ id }) => id);
  const toKeep = [...granted, ...others];
  if (toKeep.length > 0) {
    await db.transaction(async (tx) => {
      await tx.query(lockRun, [runId]);
      await keepRunSecrets(tx, vault, runId, toKeep, ids);
    });
  }
  const runSecrets = toKeep.length + grantedSecrets.length > 0 ? await readRunSecrets(db, vault, runId) : [];
  const ofPhase = (wanted: 'setup' | undefined) =>
    secrets.flatMap(({ name, variable, as, value, phase }) =>
      (as === 'variable' || as === 'file') && phase === wanted ? [{ name, variable, as, value }] : [],
    );
  return {
    secrets: ofPhase(undefined),
    setupSecrets: ofPhase('setup'),
    redact: runSecrets.filter(({ kind }) => kind !== 'withheld').map(({ value }) => value),
    values: runSecrets.map(({ value }) => value),
  };
}
