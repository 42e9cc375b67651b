/** Finds the contents that the run of a request executes, with their authors. */

import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import { parseDefinedSkill } from '@runyard/definitions/defined-skill';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, integer, json, uuid } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import {
  type ContentRevision,
  isSameActor,
  type RunContent,
  readContents,
  readPresentRevisions,
  storedRevisionOf,
} from '../../../team/access/contents/content.ts';
import { uidOfPool } from '../../../team/access/worker-pools/pools.ts';
import { storedId } from '../../../team/mcp/of-run.ts';
import { skillsOfRun } from '../../../team/skills/skills-of-run.ts';
import { turnOfConversation } from '../../executions/run-tokens/present-rights.ts';
import { readSteeringAuthors, readSteeringTexts } from '../tree/steering.ts';
import { workerHostOf } from './request-config.ts';

/** The members of a request that determine its contents. */
export interface ContentsOfRequest {
  readonly teamId: string;
  readonly creator: RunActor;
  readonly executor: RunActor;
  /** Stored contents from which the request was made, such as a schedule, the environment and the agent identity. */
  readonly revisions: readonly ContentRevision[];
  /** The run that the request repeats. Absent if the request replaces both the prompt and the configuration of that run. */
  readonly rerunOf?: string | undefined;
  readonly parentRunId?: string | undefined;
  readonly conversationId?: string | undefined;
}

const readSource = defineStatement({
  name: 'read_contents_of_run',
  text: `
    SELECT contents, jsonb_build_object('kind', creator_kind, 'uid', creator_uid) AS creator,
      jsonb_build_object('kind', executor_kind, 'uid', executor_uid) AS executor FROM runs JOIN run_requests ON run_id = id WHERE id = $1`,
  row: { contents: json<RunContent[]>(), creator: json<RunActor>(), executor: json<RunActor>() },
});

const readConversation = defineStatement({
  name: 'read_runs_to_continue',
  text: `
    SELECT r.conversation_id AS uid, jsonb_agg(r.id) AS ids, ${turnOfConversation('r.conversation_id')} AS turn FROM runs r
    WHERE r.team_id = $2 AND (r.conversation_id = $1 OR r.id IN (SELECT run_id FROM forked_runs WHERE conversation_id = $1))
    GROUP BY r.conversation_id`,
  row: { uid: uuid, ids: json<string[]>(), turn: integer },
});

/**
 * Kinds of contents that a repeated run reads again in their present revision. An agent identity is not one of them: the configuration of
 * the run already contains the parts that came from the identity.
 */
const readAgain: readonly RunContent['kind'][] = ['environment', 'mcp_server', 'worker_pool'];

/** Returns the contents of a run to create. */
export async function contentsOfRequest(db: Queryable, request: ContentsOfRequest): Promise<RunContent[]> {
  const { creator, executor, rerunOf, parentRunId, conversationId } = request;
  const stored = await readContents(db, executor, request.revisions);
  const prompt = promptOf(creator, executor, stored);
  const repeated = rerunOf === undefined ? [] : await contentsOfRun(db, executor, rerunOf, readAgain);
  const above = parentRunId === undefined ? [] : await contentsAbove(db, executor, parentRunId);
  const isConversation = conversationId !== undefined && isUuid(conversationId);
  const written = !isConversation ? [] : await writersOf(db, request.teamId, executor, conversationId);
  return withoutRepeated([...prompt, ...stored, ...repeated, ...above, ...written]);
}

/**
 * Removes duplicates from a list of contents: keeps each revision once for each author and group of acceptors, and the first content of each
 * author among the contents without revisions. Otherwise the list would grow each time a repeated run is repeated.
 */
function withoutRepeated(contents: readonly RunContent[]): RunContent[] {
  const keyOf = ({ kind, uid, revision, author, accepted, accepted_by = [] }: RunContent) =>
    JSON.stringify([
      kind,
      accepted,
      ...(revision === undefined ? [] : [uid, revision]),
      ...(revision !== undefined && accepted ? [] : [author?.kind, author?.uid, accepted_by]),
    ]);
  return [...Map.groupBy(contents, keyOf).values()].flatMap(([first]) => first ?? []);
}

/**
 * If the creator of the request is not the executor of the run, returns the prompt of the request as a content. A person who accepts an
 * identity also accepts the texts that the keys of the identity send.
 */
function promptOf(creator: RunActor, executor: RunActor, stored: readonly RunContent[]): RunContent[] {
  if (isSameActor(creator, executor)) return [];
  const ofIdentity = stored.filter((each) => each.kind === 'agent_identity' && each.uid === creator.uid);
  if (ofIdentity.some(({ accepted }) => accepted)) return [{ kind: 'prompt', author: creator, accepted: true }];
  // People who have accepted all texts of the identity.
  const [first, ...others] = ofIdentity.map(({ accepted_by = [] }) => accepted_by);
  const people = (first ?? []).filter((person) => others.every((acceptors) => acceptors.includes(person)));
  return [{ kind: 'prompt', author: creator, accepted: false, ...(people.length > 0 ? { accepted_by: people } : {}) }];
}

/** Returns the contents of a run, for another run that executes them with this executor. */
async function contentsOfRun(
  db: Queryable,
  executor: RunActor,
  runId: string,
  without: readonly RunContent['kind'][] = [],
): Promise<RunContent[]> {
  const [run] = await db.query(readSource, [runId]);
  // The run was deleted after the check of the request.
  if (!run) return [{ kind: 'run', uid: runId, author: null, accepted: false }];
  const { creator } = run;
  const made: RunContent = { kind: 'run', uid: runId, author: creator, accepted: isSameActor(creator, executor) };
  const own = run.contents.filter(({ kind }) => !without.includes(kind));
  const isSameExecutor = isSameActor(run.executor, executor);
  const revisions = new Map(own.flatMap(storedRevisionOf).map((each) => [JSON.stringify(each), each]));
  const stored = await readContents(db, executor, [...revisions.values()]);
  // If a revision is not stored any more, only the decision of the run about this revision is known.
  const known = !isSameExecutor
    ? stored
    : stored.flatMap((content) =>
        content.author || content.accepted
          ? [content]
          : own.filter(
              ({ kind, uid, revision }) =>
                kind === content.kind && uid === content.uid && revision === content.revision,
            ),
      );
  const others = own.filter((content) => storedRevisionOf(content).length === 0);
  // If the executor is the same, the contents of the run already include the prompt of another creator.
  if (isSameExecutor)
    return [
      ...known,
      ...others.flatMap((each) =>
        each.kind === 'prompt' && each.author ? promptOf(each.author, executor, known) : [each],
      ),
    ];
  return [
    ...(made.accepted ? [] : [made]),
    ...stored,
    ...others.map(({ accepted_by: _, ...each }) => ({ ...each, accepted: isSameActor(each.author, executor) })),
  ];
}

/**
 * Returns the contents of the parent run, and one content for each further author whose text the parent's agent may follow when it writes
 * to this run.
 */
async function contentsAbove(db: Queryable, executor: RunActor, runId: string): Promise<RunContent[]> {
  const contents = await contentsOfRun(db, executor, runId);
  const authors = await readSteeringAuthors(db, [runId], executor);
  const isNamed = (author: RunActor | null) =>
    contents.some(
      (each) => !each.accepted && (author === null ? each.author === null : isSameActor(each.author, author)),
    );
  const more = authors.filter((author) => !isNamed(author));
  return [...contents, ...more.map((author): RunContent => ({ kind: 'run', uid: runId, author, accepted: false }))];
}

/**
 * Returns a content for each author whose texts ran in the conversation. If the conversation is a fork, also for the authors of the
 * conversation that it was forked from, also of texts that were sent after the fork; a person accepts these texts with that conversation.
 */
async function writersOf(
  db: Queryable,
  teamId: string,
  executor: RunActor,
  conversationId: string,
): Promise<RunContent[]> {
  const contents: RunContent[] = [];
  for (const { uid, ids, turn } of await db.query(readConversation, [conversationId, teamId])) {
    const texts = await readSteeringTexts(db, ids, executor);
    contents.push(
      ...texts.map((text) => ({ kind: 'conversation', uid, accepted: false, ...text, revision: turn }) as const),
    );
  }
  return contents;
}

/** Returns the revisions of the definitions whose skills a configuration names, without the definition that made the request. */
async function definitionsOf(
  db: Queryable,
  teamId: string,
  config: AmbientAgentConfig,
  madeFrom: readonly ContentRevision[],
): Promise<readonly ContentRevision[]> {
  const named = new Set(skillsOfRun(config).flatMap((spec) => parseDefinedSkill(spec)?.factoryUid ?? []));
  for (const { kind, uid } of madeFrom) if (kind === 'definition') named.delete(uid);
  return await readPresentRevisions(db, teamId, 'definition', [...named]);
}

/** Returns the revisions of the stored MCP servers that a configuration names, if they have a command. */
const serversOf = (db: Queryable, teamId: string, { mcp_servers = {} }: AmbientAgentConfig) =>
  readPresentRevisions(db, teamId, 'mcp_server', [
    ...new Set(Object.values(mcp_servers).flatMap((server) => storedId(server)?.toLowerCase() ?? [])),
  ]);

/**
 * Returns the revision of the pool of self-hosted workers in a configuration; empty if the configuration has no pool, or no worker has
 * connected to it.
 */
async function poolOf(db: Queryable, teamId: string, config: AmbientAgentConfig): Promise<readonly ContentRevision[]> {
  const name = workerHostOf(config);
  return name === undefined ? [] : await readPresentRevisions(db, teamId, 'worker_pool', [uidOfPool(teamId, name)]);
}

/** Returns the present revisions of the contents that a configuration names, without the definitions in `madeFrom`. */
export async function contentsOfConfig(
  db: Queryable,
  teamId: string,
  config: AmbientAgentConfig,
  madeFrom: readonly ContentRevision[],
): Promise<readonly ContentRevision[]> {
  return [
    ...(await definitionsOf(db, teamId, config, madeFrom)),
    ...(await serversOf(db, teamId, config)),
    ...(await poolOf(db, teamId, config)),
  ];
}
