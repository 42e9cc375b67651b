import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';

const root = path.resolve(import.meta.dirname, '..');

/** Makes a server for HTTP; servers of node:net and Fastify, which `make-app.ts` calls, are not meant. */
const makesServer =
  /\b(?:http|loadHttp\(\))\.createServer\(|import \{[^}]*\bcreateServer\b[^}]*\} from 'node:http'|\bFastify\(\{/;

test('each HTTP server answers the requests of a connection one after another', () => {
  const files = readdirSync(path.join(root, 'packages'), { recursive: true, encoding: 'utf8' }).filter(
    (name) => /^[a-z]+\/src\/.*\.ts$/.test(name) && !name.endsWith('.test.ts'),
  );
  const withServer = files
    .map((name) => ({ name, text: readFileSync(path.join(root, 'packages', name), 'utf8') }))
    .filter(({ text }) => makesServer.test(text));
  expect(withServer.length).toBeGreaterThan(8);
  // `listenOnSocket` calls `answerInTurn`.
  const others = withServer.filter(({ text }) => !/\b(?:answerInTurn|listenOnSocket)\(/.test(text));
  expect(others.map(({ name }) => name)).toEqual([]);
});
