import type { Environment } from '@runyard/contract/environments/environments';
import { expect, test } from 'vitest';
import { environmentsWith, nameOf, parseRepositoryText } from './repository.ts';

const host = 'github.com';
const site = { owner: 'acme', repo: 'site' };

test.each([
  'acme/site',
  ' acme/site.git ',
  'github.com/acme/site',
  'https://github.com/acme/site',
  'https://github.com/acme/site.git/',
  'https://github.com/acme/site?tab=readme#usage',
  'git@github.com:acme/site.git',
  'ssh://git@github.com:22/acme/site',
])('%s is a repository', (text) => {
  expect(parseRepositoryText(text, host)).toEqual(site);
});

test.each([
  ['acme/site@main', 'main'],
  ['acme/site@feature/a@b', 'feature/a@b'],
  ['https://github.com/acme/site/tree/main', 'main'],
  ['https://github.com/acme/site/tree/feature/a%23b', 'feature/a#b'],
  ['https://github.com/acme/site/-/tree/v1.2', 'v1.2'],
])('%s is a repository at a ref', (text, ref) => {
  expect(parseRepositoryText(text, host)).toEqual({ ...site, ref });
});

test.each([
  ['acme', /must be a repository: owner\/name or owner\/name@branch, or its address on github.com/],
  ['<img src=x onerror=alert(1)>/site', /must be a repository/],
  ['acme/<b>site</b>', /must be a repository/],
  ['../../etc', /must be a repository/],
  ['../..', /must be a repository/],
  ['acme/site@../main', /must be a repository/],
  ['acme/site@--upload-pack=x', /must be a repository/],
  ['https://github.com/acme/site/tree/%E0%A4', /must be a repository/],
  ['https://github.com/acme/site/tree/', /must be a repository/],
  ['https://github.com/acme/site/issues/7', /must be a repository/],
  ['https://github.com/acme', /must be a repository/],
  ['file:///etc/passwd', /must be a repository/],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a hostile text
  ['javascript://github.com/acme/${site}', /must be a repository/],
  ['https://', /must be a repository/],
  ['https://ada:secret@github.com/acme/site', /must have no user name or password/],
  ['https://token@github.com/acme/site', /must have no user name or password/],
  ['http://169.254.169.254/latest/meta-data', /must be on github.com/],
  ['http://localhost:4180/acme/site', /must be on github.com/],
  ['https://github.com.evil.example/acme/site', /must be on github.com/],
  ['git@evil.example:acme/site', /must be on github.com/],
])('%s is refused', (text, message) => {
  expect(parseRepositoryText(text, host)).toMatch(message);
});

test('an address is refused if the host of a repository depends on its owner', () => {
  expect(parseRepositoryText('https://acme.git.example/acme/site', undefined)).toBe(
    'must be a repository: owner/name or owner/name@branch',
  );
  expect(parseRepositoryText('acme/site', undefined)).toEqual(site);
});

test('an environment fits if its workspace has only the repository at the same ref', () => {
  const environment = (uid: string, github_repos: Environment['config']['github_repos'], team = 'team') =>
    ({ uid, config: { github_repos }, scope: { type: 'Team', uid: team } }) as Environment;
  const all = [
    environment('fits', [{ owner: 'Acme', repo: 'Site', depth: 0 }]),
    environment('other ref', [{ ...site, ref: 'main' }]),
    environment('two', [site, { owner: 'acme', repo: 'docs' }]),
    environment('not cloned', [{ ...site, checkout: false }]),
    environment('empty', undefined),
    environment('of another team', [site], 'other'),
  ];
  const fitting = (ref?: string) =>
    environmentsWith({ ...site, ...(ref === undefined ? {} : { ref }) }, all, 'team').map(({ uid }) => uid);
  expect(fitting()).toEqual(['fits']);
  expect(fitting('main')).toEqual(['other ref']);
  expect(fitting('v1')).toEqual([]);
});

test('a new environment is named after repository and ref', () => {
  expect(nameOf(site)).toBe('acme-site');
  expect(nameOf({ ...site, ref: 'v1' })).toBe('acme-site@v1');
  expect(nameOf({ owner: 'a'.repeat(100), repo: 'b'.repeat(100), ref: 'v1' })).toHaveLength(200);
});
