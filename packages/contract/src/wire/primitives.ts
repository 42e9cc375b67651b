import { z } from 'zod';
import { maxEventIdLength } from '../limits.ts';

/** PostgreSQL text cannot hold U+0000, so every schema refuses it. */
const withoutNul = (text: string): boolean => !text.includes('\u0000');

/** Any string that the service stores: no NUL character. */
export const Text = z.string().refine(withoutNul, { error: 'must not contain the NUL character (U+0000)' });

/** A string with at least one character that is not white space. */
export const NonBlank = Text.refine((text) => text.trim() !== '', { error: 'must not be empty' }).meta({
  minLength: 1,
  pattern: '\\S',
});

/**
 * Pattern of an address to which the service sends requests. It also matches `http`, although the service accepts `http` only in private
 * networks that the operator permits.
 */
export const webAddressPattern = String.raw`^\s*[Hh][Tt][Tt][Pp][Ss]?://[^\s/?#]`;

/** The key of a request. With this key, the service recognises a repeated request. */
export const IdempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, { error: 'must be 1 to 255 printable ASCII characters without spaces' });

/** Id that an agent's events give a step, a message or an action. The length is limited, because harnesses choose the ids. */
export const EventId = z.string().max(maxEventIdLength);

/** UUIDv7 of a run, execution, conversation, artifact, schedule or delivery. */
export const Uuid = z.string().meta({ format: 'uuid', description: 'UUIDv7' });

/** 22 characters of [A-Za-z0-9]: environment id, webhook UID. */
export const Uid22 = z.string().regex(/^[A-Za-z0-9]{22}$/, { error: 'must be exactly 22 characters of [A-Za-z0-9]' });

/** RFC 3339 in UTC with a `Z`. */
export const Timestamp = z.string().meta({ format: 'date-time', description: 'RFC 3339, UTC, with a Z' });

/** Number of a turn in its execution. With this limit, the number plus 1 (for an interrupt) fits into an integer of the database. */
export const TurnNumber = z.int().min(1).max(1_000_000);
