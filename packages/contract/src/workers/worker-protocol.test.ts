import { expect, test } from 'vitest';
import { z } from 'zod';
import { maxListedExecutions } from '../limits.ts';
import { routes } from '../routes.ts';
import { WorkerMessage } from './worker-protocol.ts';

/** Returns the paths of the lists in a JSON schema that have no maximum. */
function unbounded(node: unknown, path: string): string[] {
  if (typeof node !== 'object' || node === null) return [];
  const { type, maxItems } = node as { readonly type?: unknown; readonly maxItems?: unknown };
  return [
    ...(type === 'array' && maxItems === undefined ? [path] : []),
    ...Object.entries(node).flatMap(([name, value]) => unbounded(value, `${path}/${name}`)),
  ];
}

const schemaOf = (schema: z.ZodType): unknown => z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });

test('each list in a message of a worker has a maximum', () => {
  expect(unbounded(schemaOf(WorkerMessage), 'message')).toEqual([]);
});

test('each list in a request of an agent has a maximum', () => {
  const ofAgents = Object.values(routes).filter(({ allow, body }) => 'run' in allow && body !== undefined);
  expect(ofAgents.length).toBeGreaterThan(5);
  const found = ofAgents.flatMap(({ path, body }) => (body ? unbounded(schemaOf(body), path) : []));
  expect(found).toEqual([]);
});

test('a hello with more executions than a worker can have is no message', () => {
  const hello = (count: number) => ({
    type: 'worker_hello',
    data: {
      worker_id: 'w',
      instance_id: 'i',
      slots: 1,
      executions: Array.from({ length: count }, () => ({ task_id: 't', execution_id: 'e' })),
      sandbox: { backend: 'none', features: [], missing: [] },
      draining: false,
    },
  });
  expect(WorkerMessage.safeParse(hello(maxListedExecutions)).success).toBe(true);
  expect(WorkerMessage.safeParse(hello(9_000)).success).toBe(false);
});
