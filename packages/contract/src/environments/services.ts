/** Programs beside the agent, such as databases. */
import { z } from 'zod';
import { maxServices } from '../limits.ts';
import { SandboxVariables } from '../runs/sandbox-variables.ts';
import { NonBlank } from '../wire/primitives.ts';

const EnvironmentService = z
  .object({
    name: z
      .string()
      .regex(/^[a-z0-9][a-z0-9-]{0,39}$/, {
        error: 'must be 1 to 40 characters of [a-z0-9-] and begin with a letter or a digit',
      })
      .describe('Name of the service in the timeline, unique in the environment'),
    command: NonBlank.max(10_000).describe(
      'Shell command that starts the program in the workspace and runs as long as the program, at most 10,000 characters',
    ),
    ready: NonBlank.max(10_000)
      .optional()
      .describe(
        'Shell command that is repeated until it exits with 0, at most 10,000 characters. Then the service is ready',
      ),
    port: z
      .int()
      .min(1)
      .max(65_535)
      .optional()
      .describe('Port of 127.0.0.1 that accepts connections when the service is ready, 1 to 65,535'),
    env: SandboxVariables.optional().describe(
      'Environment variables of the service, in addition to the variables of the environment. Everyone in the team can read them: no secrets',
    ),
    image: z
      .null({
        error: 'services from images are not available. Start the program with command; setup_commands can install it',
      })
      .optional()
      .describe('Null or absent: services from container images are not available'),
  })
  .refine(({ ready, port }) => ready !== undefined || port !== undefined, {
    error: 'needs port or ready, so that the agent begins only when the service is ready',
    path: ['port'],
  })
  .meta({
    id: 'EnvironmentService',
    description: 'A program that runs beside the agent, with the same network',
    allOf: [{ anyOf: [{ required: ['ready'] }, { required: ['port'] }] }],
  });
export type EnvironmentService = z.infer<typeof EnvironmentService>;

export const EnvironmentServices = z
  .array(EnvironmentService)
  .max(maxServices)
  .superRefine((services, context) => {
    for (const member of ['name', 'port'] as const) {
      const taken = new Set<unknown>();
      for (const [index, { [member]: value }] of services.entries()) {
        if (value !== undefined && taken.has(value))
          context.addIssue({
            code: 'custom',
            path: [index, member],
            message: `another service has the ${member} ${value}`,
          });
        taken.add(value);
      }
    }
  });

const StoredServices = EnvironmentServices.optional().catch(undefined);

/** Returns the services of a stored configuration. An old configuration may have another type in this member. */
export const servicesOf = (config: Readonly<Record<string, unknown>>): EnvironmentService[] =>
  StoredServices.parse(config.services) ?? [];

/** Returns the shell commands of services, which are texts that a sandbox executes. */
export const commandsOfServices = (config: Readonly<Record<string, unknown>>): string[] =>
  servicesOf(config).flatMap(({ command, ready }) => (ready === undefined ? [command] : [command, ready]));
