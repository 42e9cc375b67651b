import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { curlExample, shellQuote } from './curl-example.ts';

test('a shell reads the intended words of the curl example, whatever the name of the key file is', () => {
  const file = "it's a 'folder'/key";
  // Replaces curl by a program that prints its arguments, so that the test sees the arguments that curl would get.
  const script = curlExample('http://127.0.0.1:4180', `$(printf %s ${shellQuote(file)})`).replace(
    /^curl/,
    'printf "%s\\0"',
  );
  const words = execFileSync('sh', ['-c', script], { encoding: 'utf8' }).split('\0').slice(0, -1);
  expect(words.slice(0, 6)).toEqual([
    '-sS',
    'http://127.0.0.1:4180/api/v1/agent/runs',
    '-H',
    `Authorization: Bearer ${file}`,
    '-H',
    'Content-Type: application/json',
  ]);
  expect(JSON.parse(words[7] ?? '').prompt).toContain('```sh\necho "hello from $(uname -n), as user $(id -u)"\n```');
});

test('a shell reads a word from shellQuote unchanged', () => {
  const word = `it's "a" $HOME \`id\` \\ \n end`;
  expect(execFileSync('sh', ['-c', `printf %s ${shellQuote(word)}`], { encoding: 'utf8' })).toBe(word);
});
