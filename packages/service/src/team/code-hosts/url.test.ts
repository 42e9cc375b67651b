import { expect, test } from 'vitest';
import { repositoryAt } from './url.ts';

const github = 'https://github.com/{owner}/{repo}.git';
const site = { owner: 'acme', repo: 'site' };

test.each([
  [github, 'https://github.com/acme/site'],
  [github, ' https://github.com/acme/site.git/ '],
  [github, 'git@github.com:acme/site.git'],
  [github, 'ssh://git@github.com:22/acme/site.git'],
  ['http://127.0.0.1:3000/{owner}/{repo}.git', 'http://127.0.0.1:3000/acme/site'],
])('with %s, the address %s leads to a repository of the code host', (template, address) => {
  expect(repositoryAt(template, address)).toEqual(site);
});

test.each([
  'https://gitlab.com/acme/site',
  'https://github.com.evil.example/acme/site',
  'https://github.com/acme',
  'https://github.com/acme/../..',
  '/srv/git/acme/site.git',
  'file:///acme/site.git',
  'ext::sh -c touch% owned',
  '--upload-pack=touch owned',
  'https://github.com/acme/si te',
])('the address %s leads to no repository of the code host', (address) => {
  expect(repositoryAt(github, address)).toBeUndefined();
});
