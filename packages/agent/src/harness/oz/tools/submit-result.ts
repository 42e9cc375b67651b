import { z } from 'zod';
import { hasOddSchema } from '../../../mcp/tool-schema.ts';
import type { SubmitValue } from '../../../results/run-result.ts';
import { type BuiltinTool, defineTool, failedWith, succeeded } from './tool.ts';

/** The result that a run must return, and the function that submits it. */
export interface ResultOfRun {
  readonly schema: Readonly<Record<string, unknown>>;
  readonly submit: SubmitValue;
}

/**
 * Returns the schema of the tool's input. A schema that model providers may refuse is not part of it: the instructions of the model contain
 * each schema as text, and the service checks each value.
 */
const inputSchemaOf = (schema: ResultOfRun['schema']): Readonly<Record<string, unknown>> => ({
  type: 'object',
  properties: {
    result: hasOddSchema(schema) || JSON.stringify(schema).includes('"$') ? { description: 'The value' } : schema,
  },
  required: ['result'],
});

/** Returns the tool with which a model submits the result of its run. */
export const submitResultTool = ({ schema, submit }: ResultOfRun): BuiltinTool => ({
  ...defineTool({
    name: 'submit_result',
    description:
      'Submits the result of this run, as `result`. It must match the JSON Schema in your instructions. Call it before you end; the last accepted value of a turn counts.',
    kind: 'other',
    schema: z.looseObject({ result: z.unknown().optional() }),
    title: () => 'Submit the result',
    run: async ({ result }) => {
      const { ok, message } = await submit(result);
      return ok ? succeeded(message) : failedWith(message);
    },
  }),
  inputSchema: inputSchemaOf(schema),
});
