/** The machine that a run requests, in addition to its environment. */
import { z } from 'zod';
import { NonBlank } from '../wire/primitives.ts';
import { readImageName } from './image-names.ts';

/** Name of a container image. */
export const RunnerImage = NonBlank.max(500).superRefine((image, context) => {
  const read = readImageName(image.trim());
  if (!read.ok) context.addIssue({ code: 'custom', message: read.problem });
});

export const RunnerCommands = z.array(NonBlank.max(10_000)).max(50);
export const RunnerVcpus = z.int().min(1).max(1_024);
export const RunnerMemoryGb = z.int().min(1).max(16_384);

const RunnerOs = z.enum(['linux', 'macos']).meta({
  id: 'RunnerOs',
  description: 'Operating system, default linux. No worker of this service supports macos, so runs with it are refused',
});

const RunnerArch = z.enum(['x86_64', 'aarch64']).meta({
  id: 'RunnerArch',
  description:
    "Architecture, default: the worker's architecture. Runs with aarch64 are refused without a `worker_host` of this kind",
});

/** The container image, the first setup commands and the size of a run's sandbox. */
export const RunnerConfig = z
  .object({
    docker_image: RunnerImage.optional().describe(
      'Container image of the sandbox, such as `node:24`, instead of the image of the environment. The run waits for a worker with RUNYARD_SANDBOX=docker. Required, except with the `os` macos',
    ),
    os: RunnerOs.optional(),
    arch: RunnerArch.optional(),
    setup_commands: RunnerCommands.optional().describe(
      'Shell commands that run in the workspace before the commands of the environment, in this order, at most 50; the first failing command ends the run',
    ),
    instance_shape: z
      .object({
        vcpus: RunnerVcpus.describe('Processors, 1 to 1,024'),
        memory_gb: RunnerMemoryGb.describe('Memory in GB, 1 to 16,384'),
      })
      .meta({ id: 'InstanceShape', description: 'Size of the sandbox, limited by its worker' })
      .optional(),
  })
  .superRefine(({ os, docker_image }, context) => {
    if (os !== 'macos' && docker_image === undefined)
      context.addIssue({
        code: 'custom',
        path: ['docker_image'],
        message: 'is required: the container image of the sandbox',
      });
  })
  .meta({
    id: 'RunnerConfig',
    description: 'Container image, first setup commands and size of the sandbox of a run',
    allOf: [{ anyOf: [{ required: ['docker_image'] }, { required: ['os'], properties: { os: { const: 'macos' } } }] }],
  });
export type RunnerConfig = z.infer<typeof RunnerConfig>;

const StoredRunner = RunnerConfig.optional().catch(undefined);

/**
 * Returns the runner of a stored configuration. An old configuration may lack this member or have another type in it.
 */
export const runnerOf = (config: Readonly<Record<string, unknown>>): RunnerConfig | undefined =>
  StoredRunner.parse(config.runner_config);
