import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { Fault } from '../../platform/fault.ts';
import { type SchemaThread, schemaThread } from './schema-thread.ts';

/**
 * Returns the fault of a configuration's output schema: it is not a valid JSON Schema, or it takes too long to compile. If the thread is
 * busy, returns no fault, because each result is checked with the schema anyway.
 */
export async function faultOfOutputSchema(
  teamId: string,
  { output_schema: schema }: Pick<AmbientAgentConfig, 'output_schema'>,
  schemas: SchemaThread = schemaThread,
): Promise<Fault | undefined> {
  if (schema === undefined) return undefined;
  const verdict = await schemas.check(teamId, { schema: JSON.stringify(schema) });
  const path = 'config.output_schema';
  if (verdict.kind === 'invalid_schema') return { path, message: `is not a valid JSON Schema: ${verdict.message}` };
  if (verdict.kind === 'too_slow') return { path, message: 'takes too long to compile: make the schema smaller' };
  return undefined;
}
