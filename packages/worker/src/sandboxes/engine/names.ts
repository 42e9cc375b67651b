/** Names and labels by which this worker and the next worker of the same data folder find their containers. */
import { type Engine, EngineError } from './engine.ts';

const ownerLabel = 'runyard.owner';

/**
 * Returns the name of a sandbox's container. The name proves that a worker of this data folder has created the container. A label
 * would not prove this, because an image may set any label.
 */
export const containerName = (owner: string, id: string): string => `runyard-${owner}-${id}`;

/** Returns the labels of a container. */
export const containerLabels = (
  owner: string,
  more: Readonly<Record<string, string>> = {},
): Record<string, string> => ({
  [ownerLabel]: owner,
  ...more,
});

/**
 * Returns the names of all running and stopped containers of a data folder, without the part that all names have. A name begins with the
 * id of a sandbox; after a `-`, the name of one of its services follows.
 */
async function listContainers(engine: Engine, owner: string): Promise<string[]> {
  const filters = JSON.stringify({ label: [`${ownerLabel}=${owner}`] });
  const found = await engine.call<{ Names?: string[] }[]>('GET', '/containers/json', { query: { all: '1', filters } });
  const prefix = `/${containerName(owner, '')}`;
  return found.flatMap(({ Names = [] }) =>
    Names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length)),
  );
}

/** Removes the containers of a data folder, except those of the sandboxes whose ids are in `kept`. Returns the number of removed sandboxes. */
export async function removeContainers(engine: Engine, owner: string, kept: ReadonlySet<string>): Promise<number> {
  const left = (await listContainers(engine, owner)).filter((name) => !kept.has(sandboxOf(name)));
  for (const name of left) await removeContainer(engine, containerName(owner, name));
  return new Set(left.map(sandboxOf)).size;
}

const sandboxOf = (name: string): string => name.split('-', 1)[0] ?? '';

/** Removes the container with this name, which is that of a sandbox, and the containers of the sandbox's services. */
export async function removeSandbox(engine: Engine, name: string): Promise<void> {
  const query = { all: '1', filters: JSON.stringify({ name: [name] }) };
  const found = await engine.call<{ Names?: string[] }[]>('GET', '/containers/json', { query });
  const services = found.flatMap(({ Names = [] }) => Names).filter((each) => each.startsWith(`/${name}-`));
  for (const each of [...services.map((found) => found.slice(1)), name]) await removeContainer(engine, each);
}

/** Ends all processes in a container and removes the container. Does nothing if the container does not exist. */
export async function removeContainer(engine: Engine, name: string): Promise<void> {
  await engine.call('DELETE', `/containers/${name}`, { query: { force: '1', v: '1' } }).catch(async (error: Error) => {
    if (!(error instanceof EngineError)) throw error;
    // 409: another request is already removing the container.
    if (error.status === 409) return await untilGone(engine, name);
    if (error.status !== 404) throw error;
  });
}

async function untilGone(engine: Engine, name: string): Promise<void> {
  const query = { condition: 'removed' };
  await engine.call('POST', `/containers/${name}/wait`, { query }).catch((error: Error) => {
    if (!(error instanceof EngineError && error.status === 404)) throw error;
  });
}
