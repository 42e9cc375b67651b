/**
 * Describes the columns of a run, once. The record set and the INSERT of new runs, `NewRun`, the SELECT lists of reads and their rows
 * derive from this table. `runs` is narrow, because each change of a run writes its row again; `run_requests` has the texts that never change.
 */
import type { BaseCommit } from '@runyard/contract/runs/agent-events';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { RunExecutionLocation, RunSourceType, RunState } from '@runyard/contract/runs/states';
import type { ErrorCode, ErrorDetail } from '@runyard/contract/wire/errors';
import {
  boolean,
  type Column,
  integer,
  json,
  nullable,
  text,
  timestamp,
  uuid,
  uuids,
} from '../../../platform/store/database/statement.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import type { RunContent } from '../../../team/access/contents/content.ts';
import type { RunRights } from '../../../team/access/contents/run-rights.ts';
import type { OpenRequest } from '../../executions/idle/debug-window.ts';
import type { RunCheckout } from './checkout.ts';

/** Columns of `runs` that the creation of a run sets. */
const created = {
  id: uuid,
  team_id: uuid,
  title: text(),
  name: nullable(text()),
  model_id: text(),
  harness: text(),
  environment_id: nullable(text()),
  /** Revision of the environment. The run uses this revision even if the environment changes while the run waits. */
  environment_revision: nullable(integer),
  skill_spec: nullable(text()),
  /** Name of the self-hosted worker that must execute the run; null: workers of the hosted pool execute it. */
  worker_host: nullable(text()),
  source: text<RunSourceType>(),
  mode: nullable(text()),
  creator_kind: text<RunActor['kind']>(),
  creator_uid: text(),
  executor_kind: text<RunActor['kind']>(),
  executor_uid: text(),
  parent_run_id: nullable(uuid),
  /** Ids of the ancestors, the parent first and the root last. */
  ancestor_ids: uuids,
  /** The run that this run repeats: by itself after a failure, or because somebody asked for it. */
  retry_of: nullable(uuid),
  rerun_of: nullable(uuid),
  schedule_id: nullable(uuid),
  schedule_name: nullable(text()),
  schedule_cron: nullable(text()),
  metadata: json<Readonly<Record<string, string>>>(),
  conversation_id: uuid,
  current_execution_id: uuid,
  is_of_factory: boolean,
};

/** Columns of `run_requests`, besides `run_id`. */
const requested = {
  prompt: text(),
  config: json<AmbientAgentConfig>(),
  /** The contents that the run executes, with their authors. */
  contents: json<RunContent[]>(),
  /** NULL if the run is older than rights. */
  rights: nullable(json<RunRights>()),
  /** The commits at which the run of a comparison begins; NULL: neither the run nor a run above it was made for one. */
  comparison_commits: nullable(json<readonly BaseCommit[]>()),
  /** NULL: the run works on the branches that its environment names. */
  checkout: nullable(json<RunCheckout>()),
};

/** Columns of `runs` that later statements set. */
const changing = {
  state: text<RunState>(),
  status_message: nullable(text()),
  error_code: nullable(text<ErrorCode>()),
  retryable: nullable(boolean),
  error_detail: nullable(json<ErrorDetail>()),
  open_request: nullable(json<OpenRequest>()),
  execution_location: text<RunExecutionLocation>(),
  dropped_events: integer,
  dropped_lines: integer,
  created_at: timestamp,
  updated_at: timestamp,
  started_at: nullable(timestamp),
  ended_at: nullable(timestamp),
};

/** All columns, by name. */
export const runColumns = { ...created, ...requested, ...changing };

type Columns = typeof runColumns;
export type RunColumnName = keyof Columns;
type ValueOf<C> = C extends Column<infer T> ? T : never;

/** The values of some columns of a run. */
export type RunValues<Name extends RunColumnName> = { -readonly [Key in Name]: ValueOf<Columns[Key]> };

/** Declares some columns of a run for the rows of a statement. */
export const rowOf = <const Name extends RunColumnName>(names: readonly Name[]): Pick<Columns, Name> =>
  Object.fromEntries(names.map((name) => [name, runColumns[name]])) as Pick<Columns, Name>;

/** Returns the SELECT list of some columns. `r`: alias of `runs`; `q`: alias of `run_requests`. */
export const selectOf = (names: readonly RunColumnName[], r = 'r', q = 'q'): string =>
  names.map((name) => `${name in requested ? q : r}.${name}`).join(', ');

/** Joins the request `q` of the run `r`. */
export const joinRequest = (r = 'r', q = 'q'): string => `JOIN run_requests ${q} ON ${q}.run_id = ${r}.id`;

const given = { ...created, ...requested };
type GivenName = keyof typeof given;
type Camel<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Name;
type Nullable<Name extends GivenName> = null extends ValueOf<Columns[Name]> ? Name : never;

type Fixed<T> = T extends (infer E)[] ? readonly E[] : T;

/** The columns that a new run gives, as members in camel case. A member without value is absent. */
export type GivenColumns = {
  readonly [Name in Exclude<GivenName, { [N in GivenName]: Nullable<N> }[GivenName]> as Camel<Name>]: Fixed<
    ValueOf<Columns[Name]>
  >;
} & {
  readonly [Name in { [N in GivenName]: Nullable<N> }[GivenName] as Camel<Name>]?: NonNullable<ValueOf<Columns[Name]>>;
};

const memberOf = (name: string): string => name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());

/** Each column that a new run gives, with its member of `GivenColumns`. */
const members = Object.keys(given).map((name) => [name, memberOf(name) as keyof GivenColumns] as const);

/** Returns the record of a new run for `createdRecord`. */
export const toRecord = (run: GivenColumns): Record<string, unknown> =>
  Object.fromEntries(members.map(([name, member]) => [name, run[member]]));

/** The columns of `toRecord` with their types, for `jsonb_to_recordset`. */
export const createdRecord = Object.entries(given)
  .map(([name, { sqlTypes }]) => `${name} ${sqlTypes[0]}`)
  .join(', ');

/** Returns the SQL of common table expressions that write the runs of `relation`, which has the columns of `createdRecord`. */
export function insertRuns(relation: string): string {
  const [ofRun, ofRequest] = [Object.keys(created).join(', '), Object.keys(requested).join(', ')];
  return `run AS (
      INSERT INTO runs (${ofRun}, state) SELECT ${ofRun}, 'QUEUED' FROM ${relation}
    ), request AS (
      INSERT INTO run_requests (run_id, ${ofRequest}) SELECT id, ${ofRequest} FROM ${relation}
    )`;
}
