/** The typed result of a run: the schema that a request gives, and the agent's report of a value. */
import { z } from 'zod';
import { maxOutputSchemaBytes, maxOutputSchemaDepth, maxResultBytes } from '../limits.ts';
import { TurnNumber, Uuid } from '../wire/primitives.ts';

const dialect = 'https://json-schema.org/draft/2020-12/schema';

/** Keywords whose value is the address of another schema. */
const references = ['$ref', '$dynamicRef'];

/** Keywords whose value is data, or an object whose members are names and not keywords. */
const dataKeywords = ['const', 'enum', 'default', 'examples'];
const nameKeywords = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'];

/**
 * Returns the fault of an output schema that can be seen without compiling it: a reference to another document, another dialect, or more
 * levels than allowed. Returns undefined if there is none.
 */
function faultOfSchema(schema: unknown, depth = 0): string | undefined {
  if (depth > maxOutputSchemaDepth) return `must have at most ${maxOutputSchemaDepth} levels`;
  if (Array.isArray(schema)) return firstFault(schema, depth);
  if (typeof schema !== 'object' || schema === null) return undefined;
  for (const [name, value] of Object.entries(schema)) {
    if (references.includes(name) && !(typeof value === 'string' && value.startsWith('#')))
      return `${name} must begin with #, because a schema cannot use other documents`;
    if (name === '$id') return '$id is not allowed: refer to parts of the schema with #';
    if (name === '$schema' && value !== dialect) return `$schema must be ${dialect}`;
    const fault = dataKeywords.includes(name)
      ? undefined
      : nameKeywords.includes(name) && typeof value === 'object' && value !== null
        ? firstFault(Object.values(value), depth + 1)
        : faultOfSchema(value, depth + 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

const firstFault = (schemas: readonly unknown[], depth: number): string | undefined => {
  for (const each of schemas) {
    const fault = faultOfSchema(each, depth + 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
};

const utf8Bytes = (text: string): number => new TextEncoder().encode(text).length;

/** A JSON Schema that the result of a run must match. */
export const OutputSchema = z
  .record(z.string(), z.unknown())
  .superRefine((schema, context) => {
    const message =
      utf8Bytes(JSON.stringify(schema)) > maxOutputSchemaBytes
        ? `must be at most ${maxOutputSchemaBytes / 1024} KB as JSON`
        : faultOfSchema(schema);
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  })
  .meta({
    id: 'OutputSchema',
    description:
      'JSON Schema (2020-12) that the result of the run must match, at most 64 KB and without references to other documents. The agent must submit a result at the end of each turn, and the run is FAILED with `result_invalid` if it submits none that fits',
  });
export type OutputSchema = z.infer<typeof OutputSchema>;

/** A part of a submitted result that does not match the schema. */
export const ResultFault = z
  .object({
    path: z.string().describe('JSON Pointer into the result, such as `/items/0/name`; empty: the whole result'),
    message: z.string().describe('Why the part does not match the schema'),
  })
  .meta({ id: 'ResultFault', description: 'A part of a result that does not match the schema of the run' });
export type ResultFault = z.infer<typeof ResultFault>;

/** `POST /harness-support/result`. */
export const SubmitResult = z
  .object({
    turn: TurnNumber.describe('Number of the turn in the execution: 1, 2, …'),
    result: z
      .unknown()
      .optional()
      .describe(`The result, any JSON of at most ${maxResultBytes / 1024} KB; absent: the artifact has it`),
    result_artifact_uid: Uuid.optional().describe(
      'UID of a FILE artifact of this run with the result as JSON, for a larger result; not together with `result`',
    ),
  })
  .refine(({ result, result_artifact_uid }) => (result === undefined) !== (result_artifact_uid === undefined), {
    error: 'needs exactly one of result and result_artifact_uid',
  })
  .meta({ id: 'SubmitResult', description: 'The result of a turn. A later one of the same turn replaces it' });
export type SubmitResult = z.infer<typeof SubmitResult>;

export const SubmitResultResponse = z
  .object({
    accepted: z.boolean().describe('True: the result matches the schema and is the result of the turn'),
    faults: z
      .array(ResultFault)
      .optional()
      .describe('Parts that do not match the schema, at most 20; absent: the result was accepted'),
  })
  .meta({ id: 'SubmitResultResponse', description: 'Whether a result was accepted' });
export type SubmitResultResponse = z.infer<typeof SubmitResultResponse>;
