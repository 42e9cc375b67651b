import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { HarnessPreset } from '@runyard/contract/agent/harness-presets/preset';
import { findProgram } from '../../packages/worker/src/harnesses/find-program.ts';

/** Versions to test instead of those of the presets, by the kind of harness. `bin/test-world` sets them. */
const otherVersions = JSON.parse(process.env.HARNESS_VERSIONS ?? '{}') as Readonly<Record<string, string>>;

/** Installs the tested version of a program into `prefix`, unless this version is already there. Returns the version. */
export async function install(preset: HarnessPreset, prefix: string): Promise<string> {
  const { package: name } = preset.program;
  const version = otherVersions[preset.type] ?? preset.program.version;
  const found = await findProgram(preset, prefix);
  if (found?.version !== version) {
    process.stdout.write(`installing ${name}@${version} into ${prefix} ...\n`);
    const scripts = preset.program.needsInstallScript ? [`--allow-scripts=${name}`] : [];
    const args = [
      'install',
      '--global',
      '--prefix',
      prefix,
      '--no-audit',
      '--no-fund',
      ...scripts,
      `${name}@${version}`,
    ];
    await promisify(execFile)('npm', args, { maxBuffer: 16 * 1024 * 1024 });
  }
  return version;
}
