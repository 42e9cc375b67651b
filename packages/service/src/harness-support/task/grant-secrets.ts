import type { AgentTask } from '@runyard/contract/agent-protocol';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import type { Vault } from '../../secrets/vault.ts';
import type { Database } from '../../store/database/database.ts';
import { describeUnusable, findUsableSecrets } from '../../stored-secrets/find-usable.ts';
import { keepRunSecrets, readRunSecrets } from '../../stored-secrets/run-secrets.ts';
import type { TaskRow } from './read-task-row.ts';

type GrantedSecrets =
  | {
      readonly kind: 'granted';
      readonly secrets: NonNullable<AgentTask['secrets']>;
      /** All values that a sandbox of the run ever got. */
      readonly redact: readonly string[];
    }
  | { readonly kind: 'refused'; readonly message: string };

/**
 * Returns the secrets of the run with their present values, and keeps a copy of each value before the sandbox has it. The permission
 * is checked again: a secret may have been deleted, or its user may have left the team, since the run was created.
 */
export async function grantSecrets(
  { db, vault }: { readonly db: Database; readonly vault: Vault },
  { runId, teamId }: Pick<RunSession, 'runId' | 'teamId'>,
  row: Pick<TaskRow, 'config' | 'environment_config' | 'executor_kind' | 'executor_uid'>,
): Promise<GrantedSecrets> {
  const user = { teamId, actor: { kind: row.executor_kind, uid: row.executor_uid } };
  const names = { ofRun: row.config.secrets ?? [], ofEnvironment: row.environment_config?.secrets ?? [] };
  const usable = await findUsableSecrets(db, vault, user, names);
  if (usable.kind !== 'ok') return { kind: 'refused', message: `${usable.path}: ${describeUnusable(usable)}.` };
  const { secrets } = usable;
  if (secrets.length > 0) await db.transaction((tx) => keepRunSecrets(tx, vault, runId, secrets));
  const kept = await readRunSecrets(db, vault, runId);
  return {
    kind: 'granted',
    secrets: secrets.map(({ name, variable, as, value }) => ({ name, variable, as, value })),
    redact: kept.map(({ value }) => value),
  };
}
