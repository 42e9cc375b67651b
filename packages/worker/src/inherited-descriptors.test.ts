import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const module = fileURLToPath(new URL('./inherited-descriptors.ts', import.meta.url));

test('closes inherited descriptors, so that child processes do not get them', () => {
  const script = `
    import { execFileSync } from 'node:child_process';
    const list = () => execFileSync('sh', ['-c', 'for d in /proc/$$/fd/*; do readlink $d || :; done'], { encoding: 'utf8' });
    console.log('before', list());
    (await import(${JSON.stringify(module)})).closeInheritedDescriptors();
    console.log('after', list());`;
  // The test needs bash, because other shells do not support descriptors above 9; Node marks only descriptors that follow each other
  // without a gap.
  const run = 'exec 40</etc/hostname; exec "$0" --input-type=module -e "$1"';
  const output = execFileSync('bash', ['-c', run, process.execPath, script], { encoding: 'utf8' });
  const [before = '', after = ''] = output.split('after');
  expect(before).toContain('/etc/hostname');
  expect(after).not.toContain('/etc/hostname');
});
