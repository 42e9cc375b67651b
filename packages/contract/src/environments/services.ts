/** Programs beside the agent, such as databases. */
import { z } from 'zod';
import { maxServices } from '../limits.ts';
import { RunnerImage } from '../runs/runner.ts';
import { SandboxVariables } from '../runs/sandbox-variables.ts';
import { NonBlank } from '../wire/primitives.ts';

const isText = (value: string | null | undefined): value is string => typeof value === 'string';

/** Matches one piece of a word: text in single quotes, text in double quotes, a character after a backslash, or plain text. */
const piece = /'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)|([^\s'"\\]+)/sy;

/**
 * Splits a command into arguments at white space. Quotes and backslashes work as in a shell; nothing else has a meaning. Returns undefined
 * if a quote has no end.
 */
export function argumentsOf(command: string): string[] | undefined {
  const found: string[] = [];
  for (let at = 0, word: string | undefined; ; ) {
    piece.lastIndex = at;
    const [all = '', single, double, escaped, plain] = piece.exec(command) ?? [];
    if (all !== '') {
      word = `${word ?? ''}${single ?? double?.replace(/\\(["\\$`])/g, '$1') ?? escaped ?? plain}`;
      at += all.length;
      continue;
    }
    if (word !== undefined) found.push(word);
    if (at === command.length) return found;
    if (!/\s/.test(command[at] ?? '')) return undefined;
    word = undefined;
    at += 1;
  }
}

function commandProblem({ command, image }: { command?: string | undefined; image?: string | null | undefined }) {
  if (!isText(image))
    return command === undefined ? 'is required: the shell command that starts the program, or image' : undefined;
  if (command === undefined || argumentsOf(command) !== undefined) return undefined;
  return 'has a quote without its end, or a backslash at its end. With image, no shell reads the command';
}

const EnvironmentService = z
  .object({
    name: z
      .string()
      .regex(/^[a-z0-9][a-z0-9-]{0,39}$/, {
        error: 'must be 1 to 40 characters of [a-z0-9-] and begin with a letter or a digit',
      })
      .describe('Name of the service in the timeline, unique in the environment'),
    command: NonBlank.max(10_000)
      .optional()
      .describe(
        'Shell command that starts the program in the workspace and runs as long as the program, at most 10,000 characters. With `image`: the arguments of the entry point of the image, as in Docker Compose; no shell reads them, only quotes and backslashes have a meaning. Required without `image`',
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
      'Environment variables of the service. Without `image`, in addition to the variables of the environment. Everyone in the team can read them: no secrets',
    ),
    image: RunnerImage.nullable()
      .optional()
      .describe(
        'Container image from which the service starts, such as `postgres:17`, with the rules of `docker_image`. The run waits for a worker with RUNYARD_SANDBOX=docker or kubernetes. Null or absent: the service is a program of the sandbox',
      ),
  })
  .superRefine((service, context) => {
    const message = commandProblem(service);
    if (message !== undefined) context.addIssue({ code: 'custom', path: ['command'], message });
  })
  .refine(({ ready, port }) => ready !== undefined || port !== undefined, {
    error: 'needs port or ready, so that the agent begins only when the service is ready',
    path: ['port'],
  })
  .meta({
    id: 'EnvironmentService',
    description: 'A program that runs beside the agent, with the same network',
    allOf: [
      { anyOf: [{ required: ['ready'] }, { required: ['port'] }] },
      { anyOf: [{ required: ['command'] }, { required: ['image'], properties: { image: { type: 'string' } } }] },
    ],
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

/** Returns the commands of services, which are texts that a sandbox executes. */
export const commandsOfServices = (config: Readonly<Record<string, unknown>>): string[] =>
  servicesOf(config).flatMap(({ command, ready }) => [command, ready].filter((each) => each !== undefined));

/** A service that starts from a container image, as workers receive it. */
export const ImageService = z.object({
  name: z.string(),
  image: z.string(),
  /** Arguments of the image's entry point. Absent: those of the image. */
  args: z.array(z.string()).optional(),
  env: z.record(z.string(), z.string()).optional(),
  port: z.int().optional(),
});
export type ImageService = z.infer<typeof ImageService>;

/** Returns the services that start from container images. */
export const imageServicesOf = (config: Readonly<Record<string, unknown>>): ImageService[] =>
  servicesOf(config).flatMap(({ name, image, command, env, port }) =>
    isText(image)
      ? [
          {
            name,
            image: image.trim(),
            ...(command === undefined ? {} : { args: argumentsOf(command) ?? [] }),
            ...(env === undefined ? {} : { env }),
            ...(port === undefined ? {} : { port }),
          },
        ]
      : [],
  );
