import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import type { FastifyInstance } from 'fastify';

const types: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
};

/** Libraries that the pages load, by their names below /assets/. */
const libraries: Readonly<Record<string, string>> = {
  'marked.js': fileURLToPath(import.meta.resolve('marked')),
  'dompurify.js': fileURLToPath(import.meta.resolve('dompurify')),
};

/** A script that runs as a worker has the policy of its own answer, not that of the page. */
export const workerPolicy = "default-src 'none'; script-src 'self'";

async function ownFiles(): Promise<[string, string][]> {
  const folder = path.join(import.meta.dirname, 'assets');
  const names = await readdir(folder, { recursive: true });
  return names.filter((name) => path.extname(name) in types).map((name) => [name, path.join(folder, name)]);
}

/** Registers the files that the pages load. Each request asks whether its copy is still current. */
export async function registerAssets(app: FastifyInstance): Promise<void> {
  for (const [name, file] of [...(await ownFiles()), ...Object.entries(libraries)]) {
    const bytes = await readFile(file);
    const tag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`;
    app.get(`/assets/${name.replaceAll(path.sep, '/')}`, async (request, reply) => {
      reply.header('etag', tag).header('cache-control', 'no-cache').header('content-security-policy', workerPolicy);
      if (request.headers['if-none-match'] === tag) return reply.code(304).send();
      return reply.type(types[path.extname(name)] ?? 'application/octet-stream').send(bytes);
    });
  }
}
