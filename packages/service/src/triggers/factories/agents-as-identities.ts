/** Shows the agents of a factory as agent identities, the form that published clients read. */

import type { FactoryAgent } from '@runyard/contract/factories/factories';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import { isDefinedSkill } from '@runyard/definitions/defined-skill';
import { defineStatement, json, nullable, text, timestamp } from '../../platform/store/database/statement.ts';
import { type Defaults, defaultsOf, membersWithoutEffect } from '../../team/access/identities/defaults.ts';
import type { ListAgentsOfFactory } from '../../team/access/identities/identities.ts';
import { skillsOfRun } from '../../team/skills/skills-of-run.ts';
import { configOfFactoryRun } from './run-config.ts';

const row = {
  uid: text(),
  factory_uid: text(),
  name: text(),
  agent_type: text<FactoryAgent['agent_type']>(),
  description: nullable(text()),
  prompt: text(),
  config: json<AmbientAgentConfig>(),
  agent_defaults: json<AmbientAgentConfig>(),
  created_at: timestamp,
  updated_at: timestamp,
};

/** Reads all agents of factory $2, or only agent $3. The other parameter is NULL. */
const readAgents = defineStatement({
  name: 'read_agents_of_factory_as_identities',
  text: `
    SELECT a.uid, a.factory_uid, a.name, a.agent_type, a.description, a.prompt, a.config, f.agent_defaults, f.created_at, f.updated_at
    FROM factories f JOIN factory_agents a ON a.factory_uid = f.uid
    WHERE f.team_id = $1 AND CASE WHEN $2::text IS NULL THEN a.uid = $3 ELSE f.uid = $2 END ORDER BY a.name COLLATE "C"`,
  row,
});

/** Returns the agents of a factory. Their configurations include the defaults of the factory, which also apply to their runs. */
export const listAgentsOfFactory: ListAgentsOfFactory = async (db, teamId, wanted, check) => {
  const [factoryUid, uid] = 'uid' in wanted ? [null, wanted.uid] : [wanted.factoryUid, null];
  const found = await db.query(readAgents, [teamId, factoryUid, uid]);
  return await Promise.all(
    found.map(async ({ prompt, config: own, agent_defaults, description, ...members }) => {
      const config = configOfFactoryRun({ defaults: agent_defaults, agent: { prompt, config: own } });
      const skills = [...skillsOfRun(config)];
      const secrets = (config.secrets ?? []).map(({ name }) => name);
      const defaults: Defaults = {
        base_model: config.model_id ?? null,
        environment_id: config.environment_id ?? null,
        // Skills that are a part of the factory's definition need no check, because they exist as long as the definition.
        skills: skills.filter((skill) => !isDefinedSkill(skill)),
        secrets,
        config,
      };
      return {
        ...members,
        ...(description === null ? {} : { description }),
        available: (await check(db, teamId, defaults)).length === 0,
        ...(config.model_id === undefined ? {} : { base_model: config.model_id }),
        ...(config.environment_id === undefined ? {} : { environment_id: config.environment_id }),
        skills,
        secrets: (config.secrets ?? []).map(({ name, phase }) => ({ name, ...(phase ? { phase } : {}) })),
        ...defaultsOf(config),
        on_behalf_of_enabled: false,
        ...membersWithoutEffect,
      };
    }),
  );
};
