import { z } from 'zod';
import { maxDefinitionVariables } from '../../limits.ts';
import { Text } from '../../wire/primitives.ts';
import { VariableValue } from '../definition-variables.ts';
import { strictObject } from './strict-object.ts';

/** The name of a variable, without anchors, for patterns that contain it. */
export const variableName = '[A-Za-z][A-Za-z0-9_]{0,63}';
/** Names that say that the value is a secret. */
const nameOfSecret = /secret|passw|credential|token$|api_?key|private_?key/i;

const VariableName = z
  .string()
  .regex(new RegExp(`^${variableName}$`), {
    error: 'must be 1 to 64 characters of [A-Za-z0-9_] and begin with a letter',
  })
  .refine((name) => !nameOfSecret.test(name), {
    error:
      'names a secret: everyone in the team can read variables. Store the value as a secret, and name that in the files',
  });

const Declaration = strictObject({
  type: z
    .enum(['string', 'number', 'boolean'])
    .optional()
    .describe('Type of the value. Default: the type of `default`, or string'),
  default: VariableValue.optional().describe(
    'Value if none is given. Absent: a value must be given at the first apply',
  ),
  description: Text.max(500).optional().describe('Purpose of the variable'),
}).superRefine(({ type, default: value }, context) => {
  if (type !== undefined && value !== undefined && typeof value !== type)
    context.addIssue({ code: 'custom', path: ['default'], message: `must be a ${type}, as the key type says` });
});

/** `variables.yaml`. */
export const VariablesFile = strictObject({
  variables: z
    .record(VariableName, Declaration)
    .refine((variables) => Object.keys(variables).length <= maxDefinitionVariables, {
      error: `must declare at most ${maxDefinitionVariables} variables`,
    })
    .describe(
      'Declarations by the names of the variables, each with `type`, `default` and `description`, which are all optional',
    ),
});
export type VariablesFile = z.infer<typeof VariablesFile>;
