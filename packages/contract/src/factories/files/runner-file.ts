import { z } from 'zod';
import { RunnerCommands, RunnerImage, RunnerMemoryGb, RunnerVcpus } from '../../runs/runner.ts';
import { Text } from '../../wire/primitives.ts';
import { strictObject } from './strict-object.ts';

const Platform = strictObject({
  os: z
    .enum(['linux', 'macos'])
    .optional()
    .describe('Default linux. Not available on this service: macos, whose runs are refused'),
  arch: z
    .enum(['x86_64', 'aarch64'])
    .optional()
    .describe('Default x86_64 on linux; macos has only aarch64. Runs with aarch64 need a `workerHost` of this kind'),
  linux: strictObject({
    dockerImage: RunnerImage.describe('Container image of the sandbox, instead of the image of the environment'),
  })
    .optional()
    .describe('Needed on linux'),
  mac: strictObject({ version: z.enum(['14', '15', '26', '27']).describe('Version of macOS, in quotes') })
    .optional()
    .describe('Only on macos'),
}).superRefine((platform, context) => {
  const fault = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message });
  if (platform.os === 'macos') {
    if (platform.linux) fault(['linux'], 'is only for os: linux; leave this key out');
    if (platform.arch === 'x86_64') fault(['arch'], 'must be aarch64 on macos');
  } else {
    if (!platform.linux) fault([], 'needs linux.dockerImage, because os is linux');
    if (platform.mac) fault(['mac'], 'is only for os: macos; leave this key out');
  }
});

/** `runners/<name>.yaml`. */
export const RunnerFile = strictObject({
  description: Text.max(2_000).optional().describe('Purpose of the runner'),
  setupCommands: RunnerCommands.optional().describe(
    'Shell commands that prepare the sandbox, in this order, before the commands of the environment, at most 50',
  ),
  instanceShape: strictObject({
    vcpus: RunnerVcpus.describe('Processors'),
    memoryGb: RunnerMemoryGb.describe('Memory in GB'),
  })
    .optional()
    .describe('Size of the sandbox, limited by its worker'),
  platform: Platform.describe('Operating system, architecture and image'),
});
