/**
 * Handles the skills of a run. They are read from the code host before the first agent of the run begins, and are stored for all later
 * agents of the run.
 */
import { randomUUIDv7 } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { Repository } from '@runyard/contract/environments/repositories';
import { maxSkillBytes } from '@runyard/contract/limits';
import { type DefinedSkill, definedSkillSpec, parseDefinedSkill } from '@runyard/definitions/defined-skill';
import { createByteMask } from '@runyard/system/redaction/mask-bytes';
import { createRedactor } from '@runyard/system/redaction/redactor';
import type { BlobColumn, DeletedDetail } from '../../platform/domain.ts';
import type { BlobStore } from '../../platform/store/blobs/blobs.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, text, uuid } from '../../platform/store/database/statement.ts';
import type { RunContent } from '../access/contents/content.ts';
import type { CodeHosts, CodeHostUser } from '../code-hosts/code-hosts.ts';
import { bundleOf, type ReadDefinedSkill } from './defined.ts';
import type { SkillLibrary } from './library.ts';
import type { SkillBundle } from './read-repository.ts';
import { parseSkillSpec, type SkillSpec } from './spec.ts';

/** A skill of a run. The text of the first skill is a part of the run's base prompt. */
export interface RunSkill extends SkillBundle {
  /** Spec of the skill: owner/repo:path/to/SKILL.md, or the spec of a skill in a factory's definition. */
  readonly spec: string;
}

export interface RunSkillDeps {
  readonly db: Queryable;
  readonly blobs: BlobStore;
  readonly codeHosts: Pick<CodeHosts, 'credentialFor'>;
  readonly skills: SkillLibrary;
  readonly definedSkills: ReadDefinedSkill;
}

/**
 * `unfit`: a skill does not exist or is malformed; `refused`: the code host gives no access; `unavailable`: the code host does not answer
 * now. The message names the skill. `isNew`: the skills were read now, and the run does not show them yet.
 */
export type RunSkills =
  | { readonly kind: 'skills'; readonly skills: readonly RunSkill[]; readonly isNew: boolean }
  | { readonly kind: 'unfit' | 'unavailable'; readonly message: string }
  | { readonly kind: 'refused'; readonly message: string; readonly repository: Repository };

const readStored = defineStatement({
  name: 'read_skills_of_run',
  text: 'SELECT owner, repo, path, blob_key FROM run_skills WHERE run_id = $1 AND blob_key IS NOT NULL ORDER BY position',
  row: { owner: text(), repo: text(), path: text(), blob_key: text() },
});

/**
 * Stores all skills of a run, or none if a faster agent of the run has already stored them. If the files of the run's skills were deleted
 * because they were old, stores them again.
 */
const insert = defineStatement({
  name: 'insert_skills_of_run',
  text: `
    INSERT INTO run_skills (id, run_id, position, name, description, owner, repo, path, commit_id, blob_key)
    SELECT i.id, $1, i.position, i.name, i.description, i.owner, i.repo, i.path, i.commit_id, i.blob_key
    FROM jsonb_to_recordset($2::jsonb) AS i(id uuid, position integer, name text, description text, owner text, repo text, path text, commit_id text, blob_key text)
    ON CONFLICT (run_id, position) DO UPDATE SET name = excluded.name, description = excluded.description, owner = excluded.owner,
      repo = excluded.repo, path = excluded.path, commit_id = excluded.commit_id, blob_key = excluded.blob_key
    WHERE run_skills.blob_key IS NULL
    RETURNING id`,
  row: { id: uuid },
});

/**
 * SQL: the skill that a run follows, as JSON; NULL if it follows none, or no agent has begun the run. `run` is a row of
 * `runs`.
 */
export const skillOfRun = (run: string): string => `CASE WHEN ${run}.skill_spec IS NOT NULL THEN (
  SELECT jsonb_build_object('name', s.name, 'description', s.description, 'full_path', s.path, 'commit', s.commit_id)
  FROM run_skills s WHERE s.run_id = ${run}.id AND s.position = 0) END`;

export const skillBlobs: BlobColumn = {
  prefix: 'skills',
  table: 'run_skills',
  column: 'blob_key',
  ofRuns: 'SELECT blob_key FROM run_skills WHERE run_id = ANY($1::uuid[])',
};

const deleteFiles = defineStatement({
  name: 'delete_old_skill_files',
  text: `
    UPDATE run_skills s SET blob_key = NULL FROM (
      SELECT id, blob_key FROM run_skills WHERE run_id = ANY($1::uuid[]) AND blob_key IS NOT NULL
    ) old WHERE s.id = old.id RETURNING old.blob_key AS key`,
  row: { key: text() },
});

/** Deletes the files of the skills of old runs. Keeps the names and commits of the skills. */
export async function deleteSkillFiles(tx: Queryable, runIds: readonly string[]): Promise<DeletedDetail> {
  const files = await tx.query(deleteFiles, [runIds]);
  return { blobKeys: files.map(({ key }) => key), isDone: true };
}

/** The files of one skill: their names, and their contents in base64. */
const maxBlobBytes = 2 * maxSkillBytes;

export interface RunWithSkills {
  readonly runId: string;
  readonly teamId: string;
  /** The user of code hosts as whom the service reads the skills. */
  readonly codeHostUser: CodeHostUser;
  /** Contents that the run executes. They name the revisions of the definitions from which the run's skills come. */
  readonly contents: readonly RunContent[];
  /** By `skillsOfRun`. */
  readonly specs: readonly string[];
  /** Secrets of the run, which are removed from its skills before the skills are stored. */
  readonly values: readonly string[];
}

/** Returns the skills of a run. The first call for a run reads them from the code host and stores them with their commits. */
export async function resolveRunSkills(deps: RunSkillDeps, run: RunWithSkills): Promise<RunSkills> {
  if (run.specs.length === 0) return { kind: 'skills', skills: [], isNew: false };
  const stored = await loadStored(deps, run.runId);
  if (stored.length > 0) return { kind: 'skills', skills: stored, isNew: false };
  const read: ReadSkill[] = [];
  for (const written of run.specs) {
    const defined = parseDefinedSkill(written);
    if (defined) {
      const found = await readDefined(deps, run, defined);
      if (typeof found === 'string') return { kind: 'unfit', message: `The skill ${written} cannot be used: ${found}` };
      const same = sameName(read, found.skill, written);
      if (same) return same;
      read.push({ ...found, skill: withoutValues(found.skill, run.values) });
      continue;
    }
    const spec = parseSkillSpec(written, []);
    if (typeof spec === 'string')
      return { kind: 'unfit', message: `The skill ${written} cannot be found: it ${spec}.` };
    const found = await readSkill(deps, run, spec);
    if (found.kind !== 'read') {
      const message = `The skill ${written} cannot be used: ${found.message}`;
      return { kind: found.kind, message, repository: spec.repository };
    }
    const same = sameName(read, found.skill, written);
    if (same) return same;
    read.push({ ...found, skill: withoutValues(found.skill, run.values) });
  }
  return { kind: 'skills', skills: await store(deps, run.runId, read), isNew: true };
}

/** Returns the refusal of a skill that has the same name as another skill before it in the run's list. */
function sameName(read: readonly ReadSkill[], { name }: RunSkill, written: string): RunSkills | undefined {
  const same = read.find(({ skill }) => skill.name === name);
  if (!same) return undefined;
  const message = `The skill ${written} cannot be used: the skill ${same.skill.spec} of the run has the name ${name} too. Leave one out.`;
  return { kind: 'unfit', message };
}

/** `repository` and `commit` of a skill from a definition: the factory, and the version of its definition. */
interface ReadSkill {
  readonly kind: 'read';
  readonly commit: string;
  readonly repository: SkillSpec['repository'];
  readonly skill: RunSkill;
}

/**
 * Reads a skill of the definition of a factory in the revision that the run executes; returns the reason as a string if there is no such
 * skill.
 */
async function readDefined(
  { definedSkills }: RunSkillDeps,
  { teamId, contents }: RunWithSkills,
  defined: DefinedSkill,
): Promise<ReadSkill | string> {
  const { factoryUid, path } = defined;
  // A run that was created before definitions had revisions executes the first revision, because the decision about its rights does not
  // cover later revisions.
  const revision = contents.find(({ kind, uid }) => kind === 'definition' && uid === factoryUid)?.revision ?? 1;
  const found = await definedSkills(teamId, defined, revision);
  const bundle = found ? bundleOf(path, found.files) : 'is not there';
  if (!found || typeof bundle === 'string')
    return `the definition of the factory ${factoryUid} has no such skill any more, or it belongs to another team. GET /factory/{uid}/definition shows its files.`;
  return {
    kind: 'read',
    commit: `${found.version}`,
    repository: { owner: '@factory', repo: factoryUid },
    skill: { ...bundle, spec: definedSkillSpec(defined) },
  };
}

async function readSkill(
  { codeHosts, skills }: RunSkillDeps,
  { codeHostUser, teamId }: RunWithSkills,
  spec: SkillSpec,
): Promise<ReadSkill | { readonly kind: 'unfit' | 'refused' | 'unavailable'; readonly message: string }> {
  const { repository } = spec;
  const chosen = await codeHosts.credentialFor(codeHostUser, repository);
  const found = await skills.read({ teamId, repository, chosen }, spec);
  switch (found.kind) {
    case 'unreadable':
      return { kind: found.why === 'unsuitable' ? 'unfit' : found.why, message: found.message };
    case 'unfit':
      return { kind: 'unfit', message: `${found.message}. List the skills with GET /agent.` };
    case 'skill': {
      const { owner, repo } = repository;
      return {
        kind: 'read',
        commit: found.commit,
        repository,
        skill: { ...found.skill, spec: `${owner}/${repo}:${found.skill.path}` },
      };
    }
  }
}

/** Stores the skills of a run. If a faster agent of the run has stored skills, returns these skills. */
async function store(deps: RunSkillDeps, runId: string, read: readonly ReadSkill[]): Promise<readonly RunSkill[]> {
  const rows = read.map(({ skill, repository, commit }, position) => {
    const id = randomUUIDv7();
    const { name, description, path } = skill;
    return { id, position, name, description, ...repository, path, commit_id: commit, blob_key: `skills/${id}` };
  });
  for (const [index, { blob_key }] of rows.entries()) {
    const { spec: _, ...bundle } = read[index]?.skill ?? { spec: '' };
    const bytes = Buffer.from(JSON.stringify(bundle));
    const put = await deps.blobs.put(blob_key, Readable.from([bytes], { objectMode: true }), {
      maxBytes: maxBlobBytes,
    });
    if (put.outcome === 'too_large') throw new Error(`the files of a skill have ${bytes.length} bytes`);
  }
  const inserted = await deps.db.query(insert, [runId, JSON.stringify(rows)]);
  if (inserted.length > 0) return read.map(({ skill }) => skill);
  for (const { blob_key } of rows) await deps.blobs.delete(blob_key);
  return await loadStored(deps, runId);
}

async function loadStored({ db, blobs }: RunSkillDeps, runId: string): Promise<RunSkill[]> {
  const skills: RunSkill[] = [];
  for (const { owner, repo, path, blob_key } of await db.query(readStored, [runId])) {
    const blob = await blobs.get(blob_key);
    if (blob === undefined) throw new Error(`the blob ${blob_key} of a skill is gone`);
    const bundle = JSON.parse((await buffer(blob.stream)).toString('utf8')) as SkillBundle;
    skills.push({ ...bundle, spec: `${owner}/${repo}:${path}` });
  }
  return skills;
}

/**
 * Returns the skill without these secrets in its texts and files, because a person who can push to its repository may have copied secrets
 * there.
 */
export function withoutValues<T extends SkillBundle>(skill: T, values: readonly string[]): T {
  if (values.length === 0) return skill;
  const redactor = createRedactor(values);
  const mask = createByteMask(values);
  return {
    ...skill,
    description: redactor.whole(skill.description),
    body: redactor.whole(skill.body),
    files: skill.files.map((file) => ({
      ...file,
      path: redactor.whole(file.path),
      data: mask.whole(Buffer.from(file.data, 'base64')).toString('base64'),
    })),
  };
}
