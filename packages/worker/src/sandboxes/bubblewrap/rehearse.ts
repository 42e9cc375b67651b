import { chown, lchown, readdir } from 'node:fs/promises';
import path from 'node:path';
import { startFile } from '../../runtime/agent-program.ts';
import { keepCodeVariable } from '../../runtime/bundle.ts';
import { openRehearsalService } from '../../runtime/rehearsal-service.ts';
import { agentEnvironment } from './agent-command.ts';
import { inside } from './arguments.ts';
import type { BubblewrapGround } from './ground.ts';
import { prepareSandbox } from './prepare.ts';
import type { RawSandbox } from './raw-sandbox.ts';

const longestMs = 20_000;
const agentInside = `${inside.runtime}/agent`;
const keepCode = { [keepCodeVariable]: '1' };

/** Script that loads every part of the agent that a run loads only when it is needed, such as the model SDKs (`bench/agent-start.md`). */
const loadAllParts = `
const { load } = require('${agentInside}/${startFile}');
// Leaves out main.cjs, because this part would start the agent.
for (const name of fs.readdirSync('${agentInside}/parts').filter((name) => name !== 'main.cjs')) load('./' + name);
process.exit(0);
`;

/**
 * Runs the agent of `runtime` once, with a task that does nothing. Then a second program loads the parts that the agent did not need for
 * this task. Both programs store their compiled code when they exit. Rejects if the agent does not exit with code 0.
 */
export async function rehearseAgent(ground: BubblewrapGround, runtime: string): Promise<void> {
  const id = '00000000-0000-7000-8000-000000000001';
  const root = 'http://localhost';
  const args = ['agent', 'run', '--task-id', id, '--sandboxed', '--server-root-url', root, '--idle-on-complete', '0s'];
  const env = { TASK_ID: id, WARP_SERVER_ROOT_URL: root };
  await runOnce(ground, runtime, async (sandbox) => {
    // The rehearsal uses an agent that waits for its run, because most real agents load their code while they wait.
    if (ground.gvisor === undefined) await sandbox.startWaiting(root, keepCode);
    await sandbox.spawn({ args, env: { ...env, ...keepCode }, runToken: 'rehearsal' });
  });
  await runOnce(ground, runtime, async (sandbox) => {
    sandbox.run([`${inside.runtime}/node`, '--eval', loadAllParts], agentEnvironment(keepCode));
  });
}

async function runOnce(
  ground: BubblewrapGround,
  runtime: string,
  start: (sandbox: RawSandbox) => Promise<void>,
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
  const tooLong = setTimeout(() => sandbox.kill('kill'), longestMs);
  try {
    await start(sandbox);
    const end = await sandbox.ended;
    if (end.exitCode !== 0) throw new Error(`exit code ${end.exitCode}: ${end.outputTail.trim().slice(-500)}`);
  } finally {
    clearTimeout(tooLong);
    await sandbox.dispose();
  }
}

/** Makes `uid` the owner of the folder and its files, because files of an earlier rehearsal belong to the user of that rehearsal. */
async function giveTo(folder: string, uid: number): Promise<void> {
  await chown(folder, uid, uid);
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    await lchown(path.join(entry.parentPath, entry.name), uid, uid);
  }
}
