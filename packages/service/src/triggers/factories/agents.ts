/** Stores the agents of factories. */

import type { FactoryAgent } from '@runyard/contract/factories/factories';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, json, nullable, type RowOf, text } from '../../platform/store/database/statement.ts';

const row = {
  name: text(),
  agent_type: text<FactoryAgent['agent_type']>(),
  description: nullable(text()),
  prompt: text(),
  config: json<AmbientAgentConfig>(),
};

const columns = Object.keys(row).join(', ');

const readAll = defineStatement({
  name: 'read_agents_of_factory',
  text: `SELECT ${columns} FROM factory_agents WHERE factory_uid = $1 ORDER BY name COLLATE "C"`,
  row,
});

const readNames = defineStatement({
  name: 'read_agent_names_of_factories',
  text: 'SELECT factory_uid, name FROM factory_agents WHERE factory_uid = ANY ($1::text[])',
  row: { factory_uid: text(), name: text() },
});

/** Reads an agent for a run. $3: name of the agent; NULL: the foreman. */
const readForRun = defineStatement({
  name: 'read_agent_of_factory_for_run',
  text: `
    SELECT f.agent_defaults, f.revision, ${Object.keys(row)
      .map((column) => `a.${column}`)
      .join(', ')}
    FROM factories f JOIN factory_agents a ON a.factory_uid = f.uid
    WHERE f.team_id = $1 AND f.uid = $2 AND CASE WHEN $3::text IS NULL THEN a.agent_type = 'FOREMAN' ELSE a.name = $3 END`,
  row: { ...row, agent_defaults: json<AmbientAgentConfig>(), revision: integer },
});

const removeAll = defineStatement({
  name: 'delete_agents_of_factory',
  text: 'DELETE FROM factory_agents WHERE factory_uid = $1',
  row: {},
});

const insert = defineStatement({
  name: 'insert_agents_of_factory',
  text: `
    INSERT INTO factory_agents (factory_uid, name, agent_type, description, prompt, config)
    SELECT $1, a.name, a.agent_type, a.description, a.prompt, a.config
    FROM jsonb_to_recordset($2::jsonb) AS a(name text, agent_type text, description text, prompt text, config jsonb)`,
  row: {},
});

/** The agent of a new factory. */
export const newForeman: FactoryAgent = { name: 'foreman', agent_type: 'FOREMAN', prompt: '', config: {} };

const toAgent = ({ description, ...found }: RowOf<typeof readAll>): FactoryAgent => ({
  ...found,
  ...(description === null ? {} : { description }),
});

/** Returns the agents of a factory, by name. */
export async function listFactoryAgents(db: Queryable, factoryUid: string): Promise<FactoryAgent[]> {
  return (await db.query(readAll, [factoryUid])).map(toAgent);
}

/** Returns the names of the agents of factories, in no order. */
export const readAgentNames = (db: Queryable, factoryUids: readonly string[]): Promise<RowOf<typeof readNames>[]> =>
  db.query(readNames, [factoryUids]);

/** Replaces all agents of a factory. The caller has locked the factory. Exactly one agent must be the foreman. */
export async function replaceFactoryAgents(
  tx: Queryable,
  factoryUid: string,
  agents: readonly FactoryAgent[],
): Promise<void> {
  await tx.query(removeAll, [factoryUid]);
  await tx.query(insert, [factoryUid, JSON.stringify(agents)]);
}

/** The parts of an agent that a run of the agent gets, with the defaults of the factory. */
export interface AgentOfRun {
  readonly defaults: AmbientAgentConfig;
  readonly agent: Pick<FactoryAgent, 'prompt' | 'config'>;
  /** Of the definition. */
  readonly revision: number;
}

/** Returns SQL for the result of `readAgentOfRun` as JSON, for statements that also read other data. The arguments are SQL expressions. */
export const agentOfRun = (teamId: string, factoryUid: string, name: string): string => `
  (SELECT jsonb_build_object('defaults', f.agent_defaults, 'revision', f.revision, 'agent', jsonb_build_object('prompt', g.prompt, 'config', g.config))
    FROM factories f JOIN factory_agents g ON g.factory_uid = f.uid
    WHERE f.team_id = ${teamId} AND f.uid = ${factoryUid} AND CASE WHEN ${name} IS NULL THEN g.agent_type = 'FOREMAN' ELSE g.name = ${name} END)`;

/**
 * Returns the agent with this name for runs of the factory. Without a name, returns the foreman. Returns null if the factory has no
 * such agent.
 */
export async function readAgentOfRun(
  db: Queryable,
  { teamId, factoryUid }: { readonly teamId: string; readonly factoryUid: string },
  name?: string,
): Promise<(AgentOfRun & { readonly agent: FactoryAgent }) | null> {
  const [found] = await db.query(readForRun, [teamId, factoryUid, name ?? null]);
  if (!found) return null;
  const { agent_defaults: defaults, revision, ...agent } = found;
  return { defaults, revision, agent: toAgent(agent) };
}
