/** Tests blobs in buckets of servers that lack features of S3, refuse rights or expect a region. */
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { beforeEach, describe, expect, test } from 'vitest';
import { createContext } from '../packages/cli/src/context/context.ts';
import { checkBlobs } from '../packages/cli/src/doctor/database.ts';
import { storeDomain } from '../packages/service/src/edges/start/open-parts.ts';
import type { BlobStore } from '../packages/service/src/platform/store/blobs/blobs.ts';
import { readBoth } from '../packages/service/src/platform/store/blobs/move-blobs.ts';
import { openS3Blobs } from '../packages/service/src/platform/store/blobs/s3-blobs.ts';
import { startTestService } from '../packages/service/test/service.ts';
import { type FakeBucket, startFakeBucket } from './fakes/s3-bucket.ts';
import { closeAtEnd, newFolder } from './support/close-at-end.ts';
import { withVariables } from './support/variables.ts';

let server: FakeBucket;
let folder: string;
let logged: { fields: object; message: string }[];
beforeEach(async () => {
  server = closeAtEnd(await startFakeBucket());
  folder = newFolder();
  logged = [];
});

/** The variables of this process without those of an operator's AWS SDK, and without requests for the role of a machine. */
const noVariables = {
  ...Object.fromEntries(
    ['AWS_ENDPOINT_URL', 'AWS_ENDPOINT_URL_S3', 'AWS_REGION', 'AWS_DEFAULT_REGION', 'AWS_PROFILE'].map((name) => [
      name,
      undefined,
    ]),
  ),
  AWS_EC2_METADATA_DISABLED: 'true',
};

/** Opens the bucket with these variables of the AWS SDK for the work. */
async function opened<T>(
  env: Readonly<Record<string, string>>,
  work: (blobs: BlobStore) => Promise<T>,
  { presigns = true } = {},
): Promise<T> {
  return await withVariables({ ...noVariables, ...env }, async () => {
    const log = { warn: (fields: object, message: string) => void logged.push({ fields, message }) };
    return await work(
      await openS3Blobs({ kind: 's3', bucket: 'store', prefix: 'p/' }, { encryption: undefined, presigns, log }),
    );
  });
}

const bodyOf = (text: string) => Readable.from([Buffer.from(text)]);
const put = (blobs: BlobStore, key: string, text: string) => blobs.put(key, bodyOf(text), { maxBytes: 1_000_000_000 });
const textOf = async (blobs: BlobStore, key: string) => {
  const blob = await blobs.get(key);
  return blob && (await buffer(blob.stream)).toString();
};
const keysOf = async (blobs: BlobStore) => {
  const keys: string[] = [];
  for await (const { key } of blobs.list()) keys.push(key);
  return keys;
};
const writes = () => server.requests.filter(({ kind }) => kind === 'write').length;
const messages = () => logged.map(({ message }) => message);

describe('the address of a bucket', () => {
  const config = async (text: string) => {
    const file = path.join(folder, 'config');
    await writeFile(file, text);
    return { AWS_CONFIG_FILE: file, AWS_SHARED_CREDENTIALS_FILE: path.join(folder, 'none') };
  };
  const keys = 'aws_access_key_id = a\naws_secret_access_key = b\n';

  test('has the region of the config file of the AWS SDK', async () => {
    server.region = 'garage';
    const env = { ...server.env, ...(await config('[default]\nregion = garage\n')) };
    expect(await opened(env, (blobs) => blobs.problem?.() ?? Promise.reject())).toBeNull();
  });

  test('has the endpoint of the config file, also with a host name and a profile, and the bucket in its path', async () => {
    server.region = 'garage';
    const url = server.url.replace('127.0.0.1', 'localhost');
    const env = {
      ...(await config(
        `[profile store]\nregion = garage\nservices = local\n${keys}\n[services local]\ns3 =\n  endpoint_url = ${url}\n`,
      )),
      AWS_PROFILE: 'store',
    };
    await opened(env, async (blobs) => {
      expect(await blobs.problem?.()).toBeNull();
      await put(blobs, 'k', 'text');
      expect(await textOf(blobs, 'k')).toBe('text');
    });
    expect([...server.objects.keys()]).toEqual(['/store/p/k']);
  });

  test('has the region us-east-1 if no source names a region, and a server that expects another one is quoted', async () => {
    server.region = 'us-east-1';
    expect(await opened(server.env, (blobs) => blobs.problem?.() ?? Promise.reject())).toBeNull();
    server.region = 'garage';
    expect(await opened(server.env, (blobs) => blobs.problem?.() ?? Promise.reject())).toEqual({
      text: expect.stringMatching(
        /the bucket store of RUNYARD_BLOBS expects another region \(.*unexpected scope: .*us-east-1.*\); set AWS_REGION/,
      ),
      isLasting: true,
    });
  });

  test('is not used with a key that no HTTP header can have, and the key is not shown', async () => {
    const problem = await opened(
      { ...server.env, AWS_ACCESS_KEY_ID: 'secret-a\nb' },
      (blobs) => blobs.problem?.() ?? Promise.reject(),
    );
    expect(problem).toEqual({ text: expect.stringContaining('correct AWS_ACCESS_KEY_ID'), isLasting: true });
    expect(problem?.text).not.toContain('secret-a');
  });
});

describe('a bucket without some features', () => {
  test('gets no checksums after it has refused them, and this is logged once', async () => {
    server.lacks.add('checksums');
    await opened(server.env, async (blobs) => {
      await put(blobs, 'small', 'text');
      await put(blobs, 'again', 'text');
      expect(await textOf(blobs, 'small')).toBe('text');
      expect(await blobs.problem?.()).toBeNull();
    });
    expect(logged).toEqual([
      {
        fields: { reason: expect.stringContaining("Unsupported header 'x-amz-") },
        message: expect.stringContaining('refuses the checksums of the AWS SDK'),
      },
    ]);
    expect([...server.objects.keys()]).toEqual(['/store/p/small', '/store/p/again']);
  });

  test('is read without checksums also by a process that may not write', async () => {
    await opened(server.env, (blobs) => put(blobs, 'k', 'text'));
    server.lacks.add('checksums');
    server.denied.add('write');
    await opened(server.env, async (blobs) => {
      expect(await blobs.stat('k')).toEqual({ sizeBytes: 4 });
      expect(await textOf(blobs, 'k')).toBe('text');
      expect(await blobs.get('missing')).toBeUndefined();
    });
    expect(messages()).toEqual([expect.stringContaining('refuses the checksums')]);
  });

  test('stores a blob only if the key is free, also without conditional writes', async () => {
    server.lacks.add('conditions');
    await opened(server.env, async (blobs) => {
      expect(await blobs.putIfAbsent('k', bodyOf('first'))).toBe(true);
      expect(await blobs.putIfAbsent('k', bodyOf('second'))).toBe(false);
      expect(await textOf(blobs, 'k')).toBe('first');
    });
    expect(messages()).toEqual([expect.stringContaining('refuses conditional writes')]);
  });

  test('is listed, although it does not list unfinished uploads; this is logged once', async () => {
    server.lacks.add('uploads');
    await opened(server.env, async (blobs) => {
      await put(blobs, 'k', 'text');
      expect([await keysOf(blobs), await keysOf(blobs)]).toEqual([['k'], ['k']]);
    });
    expect(logged).toEqual([
      {
        fields: { request: 'ListMultipartUploads', reason: 'NotImplemented: not implemented' },
        message: 'the bucket refuses an optional request',
      },
    ]);
  });
});

describe('a bucket with unfinished uploads of dead processes', () => {
  const list = () =>
    opened(server.env, async (blobs) => {
      await put(blobs, 'k', 'text');
      return await keysOf(blobs);
    });
  beforeEach(() => {
    for (const name of ['a', 'b']) server.unfinished.add(name);
  });

  test('is listed, and the uploads are aborted', async () => {
    expect(await list()).toEqual(['k']);
    expect(server.unfinished.size).toBe(0);
    expect(logged).toEqual([]);
  });

  test('is listed, although it does not abort them; this is logged once', async () => {
    server.denied.add('abort');
    expect(await list()).toEqual(['k']);
    expect(logged.map(({ fields }) => fields)).toEqual([
      { request: 'AbortMultipartUpload', reason: 'AccessDenied: Access Denied.' },
    ]);
  });
});

describe('the check of a bucket', () => {
  test.each([
    ['list', 'list objects', 's3:ListBucket', true],
    ['write', 'write an object', 's3:PutObject', true],
    ['read', 'read an object', 's3:GetObject', true],
    ['open', 'open an object with a presigned URL', 'RUNYARD_BLOBS_DOWNLOADS=service', false],
    ['delete', 'delete an object', 's3:DeleteObject', false],
  ] as const)('names the remedy if the bucket refuses to %s', async (kind, does, remedy, isLasting) => {
    server.denied.add(kind);
    const problem = await opened(server.env, (blobs) => blobs.problem?.() ?? Promise.reject());
    expect(problem).toEqual({ text: expect.stringContaining(`does not ${does} (`), isLasting });
    expect(problem?.text).toContain(remedy);
    expect(problem?.text.match(/does not/g)).toHaveLength(1);
  });

  test('names all rights that are missing, and leaves no object', async () => {
    for (const kind of ['list', 'read'] as const) server.denied.add(kind);
    const problem = await opened(server.env, (blobs) => blobs.problem?.() ?? Promise.reject());
    expect(problem?.text).toMatch(/s3:ListBucket; it does not read an object .* s3:GetObject/);
    expect(server.objects.size).toBe(0);
  });

  test('opens no presigned URL if clients get none', async () => {
    server.denied.add('open');
    expect(await opened(server.env, (blobs) => blobs.problem?.() ?? Promise.reject(), { presigns: false })).toBeNull();
  });

  test('writes at first and after a failure, and otherwise only lists', async () => {
    await opened(server.env, async (blobs) => {
      await blobs.problem?.();
      const first = writes();
      expect(first).toBeGreaterThan(0);
      await blobs.problem?.();
      await blobs.problem?.();
      expect(writes()).toBe(first);
      server.denied.add('write');
      await expect(put(blobs, 'k', 'text')).rejects.toThrow('Access Denied');
      expect((await blobs.problem?.())?.text).toContain('does not write an object');
      server.denied.clear();
      expect(await blobs.problem?.()).toBeNull();
    });
  });

  test('does not write into a bucket from which blobs move away', async () => {
    await opened(server.env, async (old) => {
      const present = await startFakeBucket();
      try {
        await opened(present.env, async (blobs) => {
          server.denied.add('delete');
          expect((await readBoth(blobs, old).problem?.())?.text).toMatch(
            /_FROM does not delete an object .*s3:DeleteObject/,
          );
          server.denied.clear();
          expect(await readBoth(blobs, old).problem?.()).toBeNull();
        });
      } finally {
        await present.close();
      }
    });
    expect(writes()).toBe(0);
  });

  test('leaves objects that are not blobs, and a list deletes them after a day', async () => {
    await opened(server.env, async (blobs) => {
      await put(blobs, 'k', 'text');
      const at = new Date(Date.now() - 25 * 3600 * 1000);
      server.objects.set('/store/p/.runyard-check-old', { bytes: Buffer.from('x'), at });
      server.objects.set('/store/p/.runyard-check-new', { bytes: Buffer.from('x'), at: new Date() });
      expect(await keysOf(blobs)).toEqual(['k']);
    });
    expect([...server.objects.keys()]).toEqual(['/store/p/k', '/store/p/.runyard-check-new']);
  });

  test('is done by a starting and a running service, which says what is missing', async () => {
    const env = { RUNYARD_BLOBS: 's3://store/p' };
    await withVariables({ ...noVariables, ...server.env }, async () => {
      server.denied.add('write');
      await expect(startTestService({ env })).rejects.toThrow('s3:PutObject');
      server.denied.clear();
      const service = await startTestService({ env });
      try {
        const { readiness, loops } = storeDomain(service.deps);
        const ask = (await loops?.())?.find(({ name }) => name === 'asking for the bucket');
        await ask?.work(new AbortController().signal);
        expect(readiness?.degraded?.()).toBeNull();
        server.denied.add('delete');
        await expect(service.deps.blobs.delete('artifacts/1')).rejects.toThrow('Access Denied');
        await ask?.work(new AbortController().signal);
        expect(readiness?.degraded?.()).toContain('s3:DeleteObject');
      } finally {
        await service.close();
      }
    });
  });

  test('is done by doctor, which names what is missing', async () => {
    const check = () =>
      withVariables({ ...noVariables, ...server.env }, () =>
        checkBlobs(createContext({ RUNYARD_BLOBS: 's3://store/p', RUNYARD_DATA_DIR: folder })),
      );
    expect(await check()).toEqual([
      { name: 'blobs', level: 'good', detail: expect.stringContaining('in the bucket store') },
    ]);
    server.denied.add('delete');
    expect(await check()).toEqual([
      { name: 'blobs', level: 'bad', detail: expect.stringContaining('s3:DeleteObject'), fix: expect.any(String) },
    ]);
  });
});
