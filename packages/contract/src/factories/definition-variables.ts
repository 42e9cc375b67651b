/** Values of the variables of definitions. */
import { z } from 'zod';
import { maxDefinitionVariableLength, maxDefinitionVariables } from '../limits.ts';
import { Text } from '../wire/primitives.ts';

const VariableText = Text.max(maxDefinitionVariableLength).refine((text) => !/[\p{Cc}\u2028\u2029]/u.test(text), {
  error: 'must be one line without control characters',
});

/** The value of a variable: a text of one line, a number or a boolean. */
export const VariableValue = z
  .union([VariableText, z.number(), z.boolean()], {
    error: `must be a text of one line with at most ${maxDefinitionVariableLength} characters, a number, true or false`,
  })
  .meta({ id: 'DefinitionVariableValue', description: 'A text of one line, a number or a boolean' });
export type VariableValue = z.infer<typeof VariableValue>;

/** The values of variables by name. */
export const DefinitionVariables = z
  .record(Text.max(64), VariableValue)
  .refine((variables) => Object.keys(variables).length <= maxDefinitionVariables, {
    error: `must have at most ${maxDefinitionVariables} variables`,
  })
  .meta({
    id: 'DefinitionVariables',
    description: `Values of the variables that \`variables.yaml\` declares, at most ${maxDefinitionVariables}. Everyone in the team can read them: no secrets`,
    maxProperties: maxDefinitionVariables,
  });
export type DefinitionVariables = z.infer<typeof DefinitionVariables>;
