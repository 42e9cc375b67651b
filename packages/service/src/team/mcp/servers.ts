/** Stores the MCP servers of teams. */
import { randomUUIDv7 } from 'node:crypto';
import { maxMcpServers } from '@runyard/contract/limits';
import type { CreateMcpServerRequest, McpServer, UpdateMcpServerRequest } from '@runyard/contract/team/mcp-servers';
import type { Fault } from '../../platform/fault.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import { readsOfTeam } from '../../platform/store/database/rows-of-team.ts';
import {
  bytes,
  defineStatement,
  integer,
  json,
  nullable,
  type RowOf,
  text,
  texts,
  timestamp,
  uuid,
} from '../../platform/store/database/statement.ts';
import { type Author, recordChange } from '../access/audit/record.ts';
import { teamHasRoom } from '../access/teams/has-room.ts';
import { openValues, type ServerValues, sealValues } from './sealed-values.ts';

const row = {
  id: uuid,
  name: text(),
  command: nullable(text()),
  args: json<string[]>(),
  url: nullable(text()),
  value_names: texts,
  created_at: timestamp,
  updated_at: timestamp,
};

const { columns, readAll, readOne } = readsOfTeam('mcp_servers', row);

const lockOne = defineStatement({
  name: 'lock_mcp_server',
  text: `
    SELECT ${columns}, values_number, value_numbers, vault_key_id, sealed_values
    FROM mcp_servers WHERE team_id = $1 AND id = $2 FOR UPDATE`,
  row: {
    ...row,
    values_number: integer,
    value_numbers: json<Readonly<Record<string, number>>>(),
    vault_key_id: text(),
    sealed_values: bytes,
  },
});

const insert = defineStatement({
  name: 'insert_mcp_server',
  text: `
    INSERT INTO mcp_servers (id, team_id, name, command, args, url, value_names, vault_key_id, sealed_values, editor_kind, editor_uid,
      creator_uid)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11) RETURNING ${columns}`,
  row,
});

/** $6: the new encrypted values; NULL leaves the stored values unchanged. */
const update = defineStatement({
  name: 'update_mcp_server',
  text: `
    UPDATE mcp_servers SET name = $2, command = $3, args = $4, url = $5, value_names = coalesce($6, value_names),
      values_number = $11, value_numbers = $12, editor_kind = $9, editor_uid = $10,
      vault_key_id = CASE WHEN $6::text[] IS NULL THEN vault_key_id ELSE $7 END,
      sealed_values = CASE WHEN $6::text[] IS NULL THEN sealed_values ELSE $8 END, updated_at = clock_timestamp()
    WHERE id = $1 RETURNING ${columns}`,
  row,
});

const remove = defineStatement({
  name: 'delete_mcp_server',
  text: `DELETE FROM mcp_servers WHERE team_id = $1 AND id = $2 RETURNING ${columns}`,
  row,
});

type ServerRow = RowOf<typeof readOne>;

/**
 * Returns the numbers of the values after a change (`mcp_servers.values_number`, `value_numbers`): a value that stays the same keeps its
 * number. If the earlier values cannot be opened, all values count as changed.
 */
function numbersAfter(old: RowOf<typeof lockOne>, values: ServerValues | undefined, vault: Vault) {
  if (!values) return { all: old.values_number, each: old.value_numbers };
  const before = vault.keyIds.includes(old.vault_key_id) ? openValues(vault, old.id, old.sealed_values) : null;
  const all = old.values_number + 1;
  const numberOf = (name: string) =>
    Object.hasOwn(before ?? {}, name) && before?.[name] === values[name] ? (old.value_numbers[name] ?? all) : all;
  const names = Object.keys(values);
  const each = Object.fromEntries(names.map((name) => [name, numberOf(name)]));
  const isSame = names.length === old.value_names.length && !Object.values(each).includes(all);
  return { all: isSame ? old.values_number : all, each };
}

function toServer(row: ServerRow): McpServer {
  const { id, name, created_at, updated_at } = row;
  const of =
    row.command === null
      ? { url: row.url ?? '', header_names: row.value_names }
      : { command: row.command, args: row.args, env_names: row.value_names };
  return { id, name, ...of, created_at, updated_at };
}

/**
 * Returns the members of a server that the audit log shows. The log shows no values and no arguments, because people write secrets into
 * them.
 */
const stateOf = ({ name, command, args, url, value_names }: ServerRow) => ({
  name,
  ...(command === null
    ? { url: url === null ? null : new URL(url).origin }
    : { command, args: `${args.length} arguments` }),
  value_names,
});

const subjectOf = ({ id, name }: ServerRow) => ({ type: 'mcp_server', uid: id, name });

/** Returns the servers of the team, oldest first. */
export async function listMcpServers(db: Queryable, teamId: string): Promise<McpServer[]> {
  return (await db.query(readAll, [teamId])).map(toServer);
}

/** Returns a server; null if the team has none with this id. */
export async function readMcpServer(db: Queryable, teamId: string, id: string): Promise<McpServer | null> {
  const [found] = await db.query(readOne, [teamId, id]);
  return found ? toServer(found) : null;
}

/** Stores a server. `too_many`: the team already has the maximum number of servers. */
export async function createMcpServer(
  tx: Queryable,
  vault: Vault,
  by: Author,
  request: CreateMcpServerRequest,
): Promise<McpServer | 'too_many'> {
  const { teamId } = by;
  if (!(await teamHasRoom(tx, by, 'mcp_servers', maxMcpServers))) return 'too_many';
  const id = randomUUIDv7();
  const values = request.env ?? request.headers ?? {};
  const [made] = await tx.query(insert, [
    id,
    teamId,
    request.name,
    request.command ?? null,
    JSON.stringify(request.args ?? []),
    request.url ?? null,
    Object.keys(values),
    vault.keyId,
    sealValues(vault, id, values),
    by.creator.kind,
    by.creator.uid,
  ]);
  if (!made) throw new Error('the MCP server was not inserted');
  await recordChange(tx, by, { action: 'mcp_server.create', subject: subjectOf(made), after: stateOf(made) });
  return toServer(made);
}

/** `invalid`: 400; null if the team has no such server. */
export type UpdateOutcome =
  | { readonly kind: 'done'; readonly server: McpServer }
  | { readonly kind: 'invalid'; readonly fault: Fault }
  | null;

/** Changes the members that the request contains. */
export async function updateMcpServer(
  db: Database,
  vault: Vault,
  by: Author,
  id: string,
  request: UpdateMcpServerRequest,
): Promise<UpdateOutcome> {
  return await db.transaction(async (tx) => {
    const [old] = await tx.query(lockOne, [by.teamId, id]);
    if (!old) return null;
    const fault = faultOfChange(old, request);
    if (fault) return { kind: 'invalid', fault };
    const values = request.env ?? request.headers;
    const numbers = numbersAfter(old, values, vault);
    const [made] = await tx.query(update, [
      id,
      request.name ?? old.name,
      request.command ?? old.command,
      JSON.stringify(request.args ?? old.args),
      request.url ?? old.url,
      values ? Object.keys(values) : null,
      vault.keyId,
      values ? sealValues(vault, id, values) : Buffer.alloc(0),
      by.creator.kind,
      by.creator.uid,
      numbers.all,
      JSON.stringify(numbers.each),
    ]);
    if (!made) return null;
    const after = values ? { ...stateOf(made), values: 'replaced' } : stateOf(made);
    await recordChange(tx, by, { action: 'mcp_server.update', subject: subjectOf(made), before: stateOf(old), after });
    return { kind: 'done', server: toServer(made) };
  });
}

/**
 * Returns the fault of a change: a server keeps its kind, and stored values are never sent to a program or address for which they were not
 * given.
 */
function faultOfChange(old: ServerRow, request: UpdateMcpServerRequest): Fault | null {
  const isCommand = old.command !== null;
  for (const path of isCommand ? (['url', 'headers'] as const) : (['command', 'args', 'env'] as const)) {
    if (request[path] === undefined) continue;
    const message = `the server has a ${isCommand ? 'command' : 'url'}; leave it out, or store another server`;
    return { path, message };
  }
  if (old.value_names.length === 0) return null;
  const isMoved = isCommand
    ? (request.command !== undefined && request.command !== old.command) || request.args !== undefined
    : request.url !== undefined && request.url !== old.url;
  const path = isCommand ? 'env' : 'headers';
  if (!isMoved || request[path] !== undefined) return null;
  const what = isCommand ? 'command' : 'address';
  return { path, message: `is required with a new ${what}: the stored values were given for the earlier one` };
}

/** Deletes a server. Returns false if the team has no such server. */
export async function deleteMcpServer(tx: Queryable, by: Author, id: string): Promise<boolean> {
  const [gone] = await tx.query(remove, [by.teamId, id]);
  if (!gone) return false;
  const change = { action: 'mcp_server.delete', before: stateOf(gone), endsAccess: true } as const;
  await recordChange(tx, by, { ...change, subject: subjectOf(gone) });
  return true;
}
