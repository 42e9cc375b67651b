import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { takeIdentity } from '../bubblewrap/identities.ts';
import type { SandboxContents } from '../bubblewrap/raw-sandbox.ts';
import { openEngine } from '../engine/engine.ts';
import { containerLabels, containerName, removeContainer } from '../engine/names.ts';
import { makeFolders, removeFolders } from '../folders.ts';
import { removeParts } from '../remove-parts.ts';
import { notPrepared } from '../sandbox.ts';
import type { ContainerGround } from './preparation.ts';
import {
  type ContainerOrder,
  type ContainerParts,
  type ContainerSandbox,
  killContainer,
  preparedContainer,
} from './prepared-container.ts';
import { serviceContainers } from './services.ts';
import { userFiles } from './user-files.ts';

/**
 * Makes the folders, the user and the relay of a sandbox. The container is created later, when its command is known. If a step fails,
 * undoes all earlier steps.
 */
export async function prepareContainer(
  ground: ContainerGround,
  contents: Pick<SandboxContents, 'relay' | 'proxy'>,
  order: ContainerOrder,
): Promise<ContainerSandbox> {
  const { id, limits } = order;
  const parts = await prepareParts(ground, order);
  const dispose = () => removeSandbox(ground, parts);
  try {
    const folders = await makeFolders(ground.stateRoot, id, {
      ...(parts.identity === undefined ? {} : { uid: parts.identity.uid }),
      ...(ground.disks.ok ? { diskMb: limits.diskMb } : {}),
    });
    const files = await writeUserFiles(folders.top, parts.inside);
    const memory = async () => ({ oom_kills: (await parts.running?.oomKills()) ?? 0, memory_mb: limits.memoryMb });
    const socket = path.join(folders.top, 'relay.sock');
    parts.relay = await contents.relay?.(socket, parts.identity?.uid, memory, undefined, parts.services?.ask);
    return preparedContainer(ground, contents, order, { parts, folders, files, dispose });
  } catch (error) {
    await dispose();
    throw notPrepared(error as Error);
  }
}

/** Takes the user of a sandbox. Makes the names and labels of its containers. */
async function prepareParts(ground: ContainerGround, order: ContainerOrder): Promise<ContainerParts> {
  const { id, limits } = order;
  const engine = openEngine(ground.engine);
  const name = containerName(ground.owner, id);
  const identity = ground.ownUsers ? await takeIdentity() : undefined;
  const inside = {
    uid: identity?.uid ?? process.getuid?.() ?? 0,
    gid: identity?.uid ?? process.getgid?.() ?? 0,
  };
  const labels = containerLabels(ground.owner, { 'runyard.sandbox': id, 'runyard.execution': order.executionId });
  const services =
    order.services &&
    serviceContainers({
      engine,
      sandbox: name,
      services: order.services,
      labels,
      runtime: ground.runtime,
      limits: { ...limits, cpus: limits.cpus > 0 ? limits.cpus : (order.vcpus ?? 0) },
      nofile: ground.nofile,
      ...inside,
    });
  return { id, engine, name, labels, identity, inside, services, isMade: false, isKilled: false, isOver: false };
}

/**
 * Writes the files in which programs in the container look up their user. Returns for each path inside the container the path on the
 * machine.
 */
async function writeUserFiles(
  top: string,
  { uid, gid }: { readonly uid: number; readonly gid: number },
): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const [name, text] of Object.entries(userFiles(uid, gid))) {
    files[`/etc/${name}`] = path.join(top, name);
    await writeFile(path.join(top, name), text, { mode: 0o644 });
  }
  return files;
}

/** Ends the containers of a sandbox and removes its parts, also if not all parts were prepared. Never rejects. */
async function removeSandbox(ground: ContainerGround, parts: ContainerParts): Promise<void> {
  const { id, engine, name } = parts;
  parts.watch?.stop();
  // Kills the container before its removal, so that it ends even if the removal fails.
  killContainer(ground, parts, 'kill');
  const isRemoved = await removeParts(
    id,
    {
      services: () => parts.services?.remove(),
      container: () => (parts.isMade ? removeContainer(engine, name) : undefined),
      end: async () => {
        await parts.running?.ended;
        parts.isOver = true;
      },
      relay: () => parts.relay?.close(),
      egress: () => parts.egress?.close(),
      folders: () => removeFolders(ground.stateRoot, id),
    },
    ground.log,
  );
  if (isRemoved) parts.identity?.release();
}
