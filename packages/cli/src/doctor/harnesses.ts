import path from 'node:path';
import { presetTypes } from '@runyard/contract/agent/harness-presets/preset';
import { installCommand, presets } from '@runyard/contract/agent/harness-presets/presets';
import { findProgram, isOlder } from '@runyard/worker/find-harness';
import type { Context } from '../context/context.ts';
import type { Finding } from './finding.ts';

/** Reports the built-in harness. Also reports, for each harness preset, whether sandboxes on this machine can find a usable program. */
export async function checkHarnesses({ settings }: Pick<Context, 'settings'>): Promise<Finding[]> {
  const { RUNYARD_HARNESS_DIR: dir, RUNYARD_SANDBOX_MEMORY_MB: memoryMb } = settings;
  const findings = await Promise.all(
    presetTypes.map(async (type): Promise<Finding> => {
      const preset = presets[type];
      const { program, leastMemoryMb } = preset;
      const name = `harness ${type}`;
      const fix = installCommand(preset, dir ?? '/usr/local', path.dirname(process.execPath));
      const found = await findProgram(preset, dir);
      if (found === undefined) {
        return {
          name,
          level: 'fact',
          detail: `${program.command} is not in /usr${dir === undefined ? '' : ` or ${dir}`}`,
          fix,
        };
      }
      const { file, version } = found;
      if (version !== undefined && isOlder(version, program.leastVersion)) {
        return {
          name,
          level: 'note',
          detail: `${file} is ${version}; ${program.leastVersion} or newer is needed`,
          fix,
        };
      }
      const detail = `${file}, ${version === undefined ? 'of unknown version' : version}`;
      if (memoryMb >= leastMemoryMb) return { name, level: 'good', detail };
      return {
        name,
        level: 'note',
        detail: `${detail}; it needs ${leastMemoryMb} MB of memory, and a sandbox has ${memoryMb}`,
        fix: `set RUNYARD_SANDBOX_MEMORY_MB to at least ${leastMemoryMb}`,
      };
    }),
  );
  return [{ name: 'harness oz', level: 'good', detail: 'built in' }, ...findings];
}
