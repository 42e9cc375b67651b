import path from 'node:path';
import type { HarnessPreset } from '@runyard/contract/agent/harness-presets/preset';
import { findPreset, installCommand } from '@runyard/contract/agent/harness-presets/presets';
import type { HarnessConfig } from '@runyard/contract/runs/config';
import { SandboxError } from '../sandboxes/sandbox.ts';
import { findProgram, isOlder } from './find-program.ts';

export interface ProgramGround {
  readonly harnessDir: string | undefined;
  readonly memoryMb: number;
  /** True if the programs of the sandbox come from an image. Then the worker cannot check these programs before the sandbox starts. */
  readonly isInImage: boolean;
}

const reasons = { missing: 'harness_missing', old: 'harness_too_old', memory: 'harness_needs_memory' } as const;

/**
 * Checks, before a sandbox is made, the program of a run's harness: is it installed and new enough, and does the sandbox have enough
 * memory for it? If not, rejects with a `SandboxError` that names the next step. Does nothing if the run names another command for the
 * harness.
 */
export async function checkProgram(harness: HarnessConfig | undefined, ground: ProgramGround): Promise<void> {
  const preset = findPreset(harness?.type ?? '');
  if (preset === undefined || harness?.command !== undefined) return;
  const problem = await problemOf(preset, ground);
  if (problem !== undefined) throw new SandboxError('prepare', reasons[problem.kind], problem.message);
}

/** Returns why a preset does not work on this worker. Returns undefined if the preset works. */
async function problemOf(
  preset: HarnessPreset,
  { harnessDir, memoryMb, isInImage }: ProgramGround,
): Promise<{ readonly kind: keyof typeof reasons; readonly message: string } | undefined> {
  const { type, title, program, leastMemoryMb } = preset;
  const install = `Install it on the worker's machine:\n  ${installCommand(preset, harnessDir ?? '/usr/local', path.dirname(process.execPath))}`;
  const found = isInImage ? undefined : await findProgram(preset, harnessDir);
  if (found === undefined && !isInImage) {
    const where = harnessDir === undefined ? '/usr, and RUNYARD_HARNESS_DIR is not set' : `/usr or ${harnessDir}`;
    const message = `The harness ${type} needs ${title} (${program.command}), which this worker does not have in ${where}. ${install}`;
    return { kind: 'missing', message };
  }
  if (found?.version !== undefined && isOlder(found.version, program.leastVersion)) {
    const message = `The harness ${type} needs ${program.package} ${program.leastVersion} or newer, and ${found.file} is ${found.version}. ${install}`;
    return { kind: 'old', message };
  }
  if (memoryMb < leastMemoryMb) {
    const message = `The harness ${type} needs ${leastMemoryMb} MB of memory, and the sandboxes of this worker have ${memoryMb} MB. Set RUNYARD_SANDBOX_MEMORY_MB of the worker to at least ${leastMemoryMb}.`;
    return { kind: 'memory', message };
  }
  return undefined;
}
