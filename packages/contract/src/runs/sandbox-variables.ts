import { z } from 'zod';
import { Text } from '../wire/primitives.ts';
import { isVariableName, variableNamePattern } from '../wire/variable-names.ts';

const maxVariables = 100;

/** Environment variables that an environment or a harness sets in a sandbox. */
export const SandboxVariables = z
  .record(
    z.string().regex(variableNamePattern, { error: 'must be a name of [A-Za-z0-9_], at most 128 characters' }),
    Text.max(32_768),
  )
  .refine((variables) => Object.keys(variables).length <= maxVariables, { error: `must be at most ${maxVariables}` })
  .refine((variables) => Object.keys(variables).every(isVariableName), {
    error:
      'cannot be HOME, TASK_ID or GIT_TERMINAL_PROMPT, and cannot begin with RUNYARD_, WARP_, OZ_ or GIT_CONFIG, nor with WARP_METADATA_ in lower case, because the agent needs these variables',
  })
  .meta({ maxProperties: maxVariables });
