/** Names and labels by which this worker and the next worker of the same data folder find their containers. */
import { type Engine, EngineError } from './engine.ts';

const ownerLabel = 'runyard.owner';

/**
 * Returns the name of a sandbox's container. Only this worker creates containers with such names. Labels do not prove this, because an
 * image may have any label.
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

/** Returns the ids of the sandboxes of a data folder that have a container, whether it runs or not. */
export async function listSandboxes(engine: Engine, owner: string): Promise<string[]> {
  const filters = JSON.stringify({ label: [`${ownerLabel}=${owner}`] });
  const found = await engine.call<{ Names?: string[] }[]>('GET', '/containers/json', { query: { all: '1', filters } });
  const prefix = `/${containerName(owner, '')}`;
  return found.flatMap(({ Names = [] }) =>
    Names.filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length)),
  );
}

/** Ends everything in a container and removes it, if it exists. */
export async function removeContainer(engine: Engine, name: string): Promise<void> {
  await engine.call('DELETE', `/containers/${name}`, { query: { force: '1', v: '1' } }).catch(async (error: Error) => {
    if (!(error instanceof EngineError)) throw error;
    // 409: another request is removing it.
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
