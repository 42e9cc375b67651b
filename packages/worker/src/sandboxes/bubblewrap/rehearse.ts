import { chown, lchown, readdir } from 'node:fs/promises';
import path from 'node:path';
import { openRehearsalService } from '../../runtime/rehearsal-service.ts';
import { agentCommand, agentEnvironment } from './agent-command.ts';
import { inside } from './arguments.ts';
import type { BubblewrapGround } from './ground.ts';
import { prepareSandbox } from './prepare.ts';

const longestMs = 20_000;
const agentInside = `${inside.runtime}/agent`;

/** Script that loads every chunk of the bundle that the agent loads late, such as the model SDKs (`bench/agent-start.md`). */
const loadAllParts = `
import { existsSync, readdirSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
const chunks = '${agentInside}/chunks';
for (const name of existsSync(chunks) ? readdirSync(chunks) : []) {
  await import(chunks + '/' + name).catch(() => {});
  flushCompileCache();
}
process.exit(0);
`;

/**
 * Runs the agent of `runtime` once with its compile cache writable, on a task that does nothing, then loads the parts that this
 * run did not need. Node writes the cache when it exits; the entries are valid only for the paths and the user inside the
 * sandbox. Rejects if the agent does not exit with code 0.
 */
export async function rehearseAgent(ground: BubblewrapGround, runtime: string): Promise<void> {
  const id = '00000000-0000-7000-8000-000000000001';
  const root = 'http://localhost';
  const args = ['run', '--task-id', id, '--sandboxed', '--server-root-url', root, '--idle-on-complete', '0s'];
  const env = { TASK_ID: id, WARP_SERVER_ROOT_URL: root };
  await runOnce(ground, runtime, agentCommand(['agent', ...args], ground.gvisor), agentEnvironment(env), 'rehearsal');
  const node = [`${inside.runtime}/node`, '--input-type=module', '--eval', loadAllParts];
  await runOnce(ground, runtime, node, agentEnvironment({}));
}

async function runOnce(
  ground: BubblewrapGround,
  runtime: string,
  command: readonly string[],
  env: Readonly<Record<string, string>>,
  runToken?: string,
): Promise<void> {
  const cache = path.join(runtime, 'agent/cache');
  const sandbox = await prepareSandbox(ground, {
    runtime,
    writableCache: { from: cache, to: `${agentInside}/cache` },
    relay: async (socketPath, uid) => {
      if (uid !== undefined) await giveTo(cache, uid);
      return openRehearsalService(socketPath, uid);
    },
  });
  try {
    const running = sandbox.run(command, env, runToken);
    const tooLong = setTimeout(() => running.kill('kill'), longestMs);
    const end = await running.ended;
    clearTimeout(tooLong);
    if (end.exitCode !== 0) throw new Error(`exit code ${end.exitCode}: ${end.outputTail.trim().slice(-500)}`);
  } finally {
    await sandbox.dispose();
  }
}

/** Gives the folder to the user: files of an earlier rehearsal belong to that one's user. */
async function giveTo(folder: string, uid: number): Promise<void> {
  await chown(folder, uid, uid);
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    await lchown(path.join(entry.parentPath, entry.name), uid, uid);
  }
}
