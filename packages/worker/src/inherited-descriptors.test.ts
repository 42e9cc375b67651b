import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { rootCertificates } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';

const module = fileURLToPath(new URL('./inherited-descriptors.ts', import.meta.url));

test('closeInheritedDescriptors closes descriptors of the parent process, so that child processes do not get them', () => {
  const script = `
    import { execFileSync } from 'node:child_process';
    const list = () => execFileSync('sh', ['-c', 'for d in /proc/$$/fd/*; do readlink $d || :; done'], { encoding: 'utf8' });
    console.log('before', list());
    (await import(${JSON.stringify(module)})).closeInheritedDescriptors();
    console.log('after', list());`;
  // The test uses descriptor 40, because Node itself sets close-on-exec on descriptors up to the first gap in the numbers. It needs
  // bash, because other shells do not support descriptors above 9.
  const run = 'exec 40</etc/hostname; exec "$0" --input-type=module -e "$1"';
  const output = execFileSync('bash', ['-c', run, process.execPath, script], { encoding: 'utf8' });
  const [before = '', after = ''] = output.split('after');
  expect(before).toContain('/etc/hostname');
  expect(after).not.toContain('/etc/hostname');
});

test('closeInheritedDescriptors does not close the file of NODE_EXTRA_CA_CERTS while Node reads it', () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'runyard-descriptors-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'authorities.pem');
  // Writes so many certificates that Node still reads the file when the descriptors are closed.
  writeFileSync(file, Array.from({ length: 10 }, () => rootCertificates.join('\n')).join('\n'));
  const script = `
    import { getCACertificates } from 'node:tls';
    (await import(${JSON.stringify(module)})).closeInheritedDescriptors();
    console.log(getCACertificates('extra').length);`;
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    env: { ...process.env, NODE_EXTRA_CA_CERTS: file },
  });
  expect(Number(output)).toBe(10 * rootCertificates.length);
});
