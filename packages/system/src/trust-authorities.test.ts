import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import tls from 'node:tls';
import { expect, test } from 'vitest';
import { newFolder } from '../../../test/support/close-at-end.ts';
import { readAuthorities, trustCaFile } from './trust-authorities.ts';

const folder = newFolder();
const file = (name: string, text: string): string => {
  writeFileSync(path.join(folder, name), text);
  return path.join(folder, name);
};

const bundled = tls.getCACertificates('bundled');

test('this process trusts each certificate of RUNYARD_CA_FILE, even if the file has other text between the certificates', () => {
  const made = ['one', 'two'].map((name) => {
    const args = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', `/CN=${name}`];
    const output = execFileSync('openssl', ['req', '-x509', ...args, '-keyout', '/dev/null'], { stdio: 'pipe' });
    return String(output).trim();
  });
  trustCaFile(file('two', `# of the company\n${made.join('\nthe next\n')}\n`));
  // Removes line breaks, because Node breaks the lines of certificates in several ways.
  const plain = (text: string) => text.replaceAll(/\s/g, '');
  const trusted = new Set(tls.getCACertificates('default').map(plain));
  expect([...made, ...bundled].filter((text) => !trusted.has(plain(text)))).toEqual([]);
});

test('the error for a file that cannot be used names the setting and the file', () => {
  expect(() => readAuthorities('/missing')).toThrow('RUNYARD_CA_FILE: /missing cannot be read (ENOENT)');
  const empty = file('empty', 'no certificate');
  expect(() => trustCaFile(empty)).toThrow(`RUNYARD_CA_FILE: ${empty} holds no certificate in PEM`);
  const damaged = file('damaged', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');
  expect(() => trustCaFile(damaged)).toThrow(`RUNYARD_CA_FILE: ${damaged} holds a damaged certificate`);
});
