/** Positions in the stream of a team, and the ids of its events. */
import { afterRow, rowOf } from './run-events.ts';

/** A position. Events are ordered by transaction, run and number. `place` is twice the number, like `RunPosition`. */
export interface TeamPosition {
  readonly xact: number;
  /** '' means before all runs of the transaction. */
  readonly runId: string;
  readonly place: number;
}

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

export const compareTeamPositions = (a: TeamPosition, b: TeamPosition): number =>
  a.xact - b.xact || compareText(a.runId, b.runId) || a.place - b.place;

/** Returns the position before all events of the transaction. */
export const beforeTransaction = (xact: number): TeamPosition => ({ xact, runId: '', place: 0 });

/** `EPOCH-XACT`, or the id of an event, `EPOCH-XACT-RUN-SEQ`. The id of the first of two events of a row ends in `.1`. */
const form =
  /^([0-9a-f]{16})-(\d{1,15})(?:-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})-(\d{1,15})(\.1)?)?$/;

export function teamIdOf(epoch: string, { xact, runId, place }: TeamPosition): string {
  if (runId === '') return `${epoch}-${xact}`;
  return `${epoch}-${xact}-${runId}-${Math.ceil(place / 2)}${place % 2 ? '.1' : ''}`;
}

/** Parses the id of an event; null: not an id of a team's stream. */
export function parseTeamId(id: string): { readonly epoch: string; readonly position: TeamPosition } | null {
  const [, epoch, xact, runId, seq, half] = form.exec(id) ?? [];
  if (epoch === undefined) return null;
  const position = { xact: Number(xact), runId: runId ?? '', place: afterRow(Number(seq ?? 0)) - (half ? 1 : 0) };
  return position.place < 0 ? null : { epoch, position };
}

/** Returns the row after which a read continues, as parameters of a statement. */
export const rowOfTeamPosition = ({ xact, runId, place }: TeamPosition) => ({
  xact: String(xact),
  runId: runId || '00000000-0000-0000-0000-000000000000',
  seq: rowOf(place),
});
