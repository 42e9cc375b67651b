import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { closeAtEnd, newFolder } from '../../../../test/support/close-at-end.ts';
import { download } from './download.ts';
import { downloadFile } from './download-file.ts';

const bytes = randomBytes(3_000_000);
const known = { sizeBytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };

let folder: string;
let server: Server;
let file: string;
let part: string;
/** The positions that were asked for. */
let asked: number[];
let reports: string[];
/** Answers instead of the server; returns false if the server answers. */
let fault: (from: number, ...answer: Parameters<RequestListener>) => boolean;

beforeEach(async () => {
  folder = newFolder();
  file = path.join(folder, 'a.bin');
  part = `${file}.${known.sha256.slice(0, 16)}.part`;
  [asked, reports, fault] = [[], [], () => false];
  server = closeAtEnd(
    createServer((request, response) => {
      const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
      asked.push(from);
      if (fault(from, request, response)) return;
      const head = {
        'content-length': bytes.length - from,
        'content-range': `bytes ${from}-${bytes.length - 1}/${bytes.length}`,
      };
      response.writeHead(from === 0 ? 200 : 206, head).end(bytes.subarray(from));
    }).listen(0, '127.0.0.1'),
  );
  await once(server, 'listening');
});
afterEach(() => {
  server.closeAllConnections();
});

const get = async ({ replaces = false, remote = {} } = {}) => {
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const open = (from: number) => download(address, `${address}/file`, { from });
  const report = (message: string) => void reports.push(message);
  const screen = { write: () => expect.unreachable() };
  await downloadFile({ known, open, ...remote }, { file, replaces, screen, report, firstRetryMs: 1 });
};

/** Sends `count` bytes from the position on and cuts the connection. */
const cut = (count: number): typeof fault => {
  return (from, _request, response) => {
    response.writeHead(from === 0 ? 200 : 206, {
      'content-length': bytes.length - from,
      'content-range': `bytes ${from}-${bytes.length - 1}/${bytes.length}`,
    });
    response.write(bytes.subarray(from, from + count), () => response.destroy());
    return true;
  };
};

describe('a download into a file', () => {
  test('continues after the last byte each time the connection is cut', async () => {
    fault = (from, ...answer) => asked.length <= 2 && cut(1_000_000)(from, ...answer);
    await get();
    expect(asked).toHaveLength(3);
    expect(asked[0]).toBe(0);
    expect(asked[2]).toBeGreaterThan(0);
    expect(readFileSync(file).equals(bytes)).toBe(true);
    expect(readdirSync(folder)).toEqual(['a.bin']);
  });

  test('keeps the bytes if the service stays away, and the next command continues there', async () => {
    fault = (from, request, response) => {
      if (asked.length === 1) return cut(1_000_000)(from, request, response);
      response.writeHead(503).end();
      return true;
    };
    await expect(get()).rejects.toThrow(/503.* has the first .* the same command continues there/);
    expect(readdirSync(folder)).toEqual([path.basename(part)]);
    const kept = readFileSync(part).length;
    [asked, fault] = [[], () => false];
    await get();
    expect(asked).toEqual([kept]);
    expect(reports[0]).toMatch(/^the download continues after /);
    expect(readFileSync(file).equals(bytes)).toBe(true);
  });

  test('asks for nothing if an earlier command has left all bytes', async () => {
    writeFileSync(part, bytes);
    await get();
    expect([asked, readdirSync(folder)]).toEqual([[], ['a.bin']]);
  });

  test('begins again if the server sends the whole file instead of a range', async () => {
    writeFileSync(part, 'other');
    fault = (_from, _request, response) => {
      response.writeHead(200).end(bytes);
      return true;
    };
    await get();
    expect(readFileSync(file).equals(bytes)).toBe(true);
  });

  test.each([
    ['of another file', Buffer.from('other')],
    ['and more', Buffer.concat([bytes, Buffer.from('x')])],
  ])('with bytes %s in the file beside is refused, and the next one begins again', async (_what, left) => {
    writeFileSync(part, left);
    await expect(get()).rejects.toThrow('do not have the SHA-256');
    expect(readdirSync(folder)).toEqual([]);
    await get();
    expect(readFileSync(file).equals(bytes)).toBe(true);
  });

  test('replaces an existing file only if the user named it', async () => {
    writeFileSync(file, 'mine');
    await expect(get()).rejects.toThrow('exists already');
    expect([asked, readFileSync(file, 'utf8')]).toEqual([[], 'mine']);
    await get({ replaces: true });
    expect(readFileSync(file).equals(bytes)).toBe(true);
  });

  test('does not write through a link in place of the file beside', async () => {
    writeFileSync(path.join(folder, 'victim'), 'mine');
    symlinkSync('victim', part);
    await expect(get()).rejects.toThrow('cannot write');
    expect(readFileSync(path.join(folder, 'victim'), 'utf8')).toBe('mine');
  });

  test('removes its bytes if it fails and the service does not know size and SHA-256', async () => {
    fault = cut(1_000_000);
    await expect(get({ remote: { known: undefined } })).rejects.toThrow();
    expect([asked, readdirSync(folder)]).toEqual([[0], []]);
  });
});
