import { expect, it } from 'vitest';
import { codeHostUrl } from '../../../team/code-hosts/url.ts';
import { gatewayPathOf } from '../../../team/environments/git-path.ts';
import { gitRequestOf } from './git-path.ts';

it.each([
  '/acme/site.git/HEAD',
  '/acme/site.git/objects/info/packs',
  '/acme/site.git/info/refs',
  '/acme/site.git/info/refs?service=git-upload-archive',
  '/acme/site.git/info/lfs/objects/batch',
  '/acme/../acme/site.git/info/refs?service=git-upload-pack&x=/../..',
  '/../site.git/info/refs?service=git-upload-pack',
  '/acme%2Fx/site.git/info/refs?service=git-upload-pack',
])('offers only smart HTTP: %s', (path) => {
  const [before = '', query = ''] = `/api/v1/gateway/git${path}`.split('?');
  expect(gitRequestOf('GET', before, new URLSearchParams(query))).toBeUndefined();
});

it("the URL of a repository is the code host's URL template with owner and repository filled in", () => {
  const repository = { owner: 'acme', repo: 'a.b-c_d' };
  expect(codeHostUrl('https://git.example/scm/{owner}/{repo}.git', repository).href).toBe(
    'https://git.example/scm/acme/a.b-c_d.git',
  );
});

it.each(['git-upload-pack', 'git-receive-pack'] as const)(
  'the paths of the two requests that git sends for %s are parsed',
  (service) => {
    const repository = { owner: 'acme', repo: 'site.js' };
    const base = gatewayPathOf(repository);
    expect(gitRequestOf('GET', `${base}/info/refs`, new URLSearchParams({ service }))).toEqual({
      repository,
      service,
      step: 'refs',
    });
    expect(gitRequestOf('POST', `${base}/${service}`, new URLSearchParams())).toEqual({
      repository,
      service,
      step: 'rpc',
    });
    expect(gitRequestOf('GET', `${base}/${service}`, new URLSearchParams())).toBeUndefined();
  },
);
